"""Loops are split and change places; a rewriting that would be wrong is refused."""

import numpy as np
import pytest

from minijax.kernels.checker import check_nest
from minijax.kernels.loop_nests import loop_nest, print_nest
from minijax.llvm.vectors import split_extent
from minijax.vectorization.loop_splitting import (
    ScheduleError,
    reorder_complaint,
    reorder_loops,
    split_loop,
)
from tests import vector_cases as cases
from tests.test_kernels_builder_loop_kinds import F32, KERNELS, loops


def test_the_parts_of_a_loop_are_all_of_it():
    for size in range(40):
        for length in range(1, 12):
            parts = split_extent(size, length)
            found = [
                range(start + n * live, start + (n + 1) * live)
                for start, live, number in parts
                for n in range(number)
            ]
            assert [i for part in found for i in part] == [*range(size)]


@pytest.mark.parametrize("kind", ["vector", "strip", "together", "team"])
def test_what_is_split_is_a_nest_that_the_checker_takes(kind):
    [loop] = loop_nest(KERNELS["copy"])
    made = split_loop([loop] if kind == "strip" else loop, 2, kind)
    check_nest(KERNELS["copy"], [made])
    assert made.kind == kind and made.count == 2


def test_a_split_that_would_be_wrong_is_refused():
    rows, sums = loops("sums")[:2]
    with pytest.raises(ScheduleError, match="along j .* of 4 .*together.*depend on"):
        split_loop(sums, 4, "together")
    with pytest.raises(ScheduleError, match="begin anew in each strip"):
        split_loop([sums], 4, "strip")
    with pytest.raises(ScheduleError, match='its kind is "vector" already'):
        split_loop(split_loop(rows, 4, "vector"), 4, "together")
    with pytest.raises(ScheduleError, match="its kind and its count"):
        split_loop(rows, 4, "serial")


def test_loops_change_places():
    kernel = KERNELS["copy"]
    steps = check_nest(kernel, [reorder_loops(*loop_nest(kernel), (2, 0, 1))])
    heads = [x.strip() for x in print_nest(kernel, steps).split("\n") if "for" in x]
    sizes = kernel.sizes
    assert heads == [f"for {'ijk'[axis]} < {sizes[axis]}:" for axis in (2, 0, 1)]


def test_loops_whose_order_matters_do_not_change_places():
    rows = loops("sums")[0]
    assert "folds of its own" in reorder_complaint(rows, (1, 0))
    assert "other axes" in reorder_complaint(loops("copy")[0], (0, 2))
    met = loops("scattered")[0]
    assert reorder_complaint(met, (1, 0)) == (
        "a later index may store over an earlier one"
    )
    distinct = loop_nest(cases.spread(4, 20, F32, "add", distinct=True))[-1]
    assert reorder_complaint(distinct, (1, 0)) is None
    with pytest.raises(ScheduleError, match="No loops in the order j i"):
        reorder_loops(met, (1, 0))


@pytest.mark.parametrize("dtype, fine", [("int32", True), ("float32", False)])
def test_only_exact_folds_are_regrouped_by_an_exchange(dtype, fine):
    from minijax.kernels.ir import Affine, Parameter, Store
    from minijax.kernels.loop_nests import Kernel, fold_node, load_node

    dtype = np.dtype(dtype)
    x, out = Parameter("x", dtype, 60), Parameter("out", dtype, 1)
    total = fold_node("add", (0, 1), a := load_node(x, Affine(0, (10, 1))))
    stores = (Store(out, Affine(0, (0, 0)), total),)
    kernel = Kernel("all", (6, 10), (x, out), (a, total), stores)
    begin, loop, store = loop_nest(kernel)
    complaint = reorder_complaint(loop, (1, 0))
    assert (complaint is None) == fine
    if fine:
        check_nest(kernel, [begin, reorder_loops(loop, (1, 0)), store])
    else:
        assert complaint == "a fold needs its numbers in order"
