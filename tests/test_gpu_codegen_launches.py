"""Which indices have threads of their own, and how many threads there are."""

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import make_jaxpr
from minijax.fusion.fusion_pass import fuse
from minijax.gpu.codegen import (
    LaunchShape,
    contiguous_axis,
    default_launch,
    is_reorderable,
    parallel_axes,
    stores_never_alias,
)
from minijax.kernels.ir import (
    Affine,
    IndirectTerm,
    Parameter,
    Store,
    Update,
    trip_count,
)
from minijax.kernels.loop_nests import Kernel, index_node, load_node
from minijax.kernels.lowering import lower
from tests.kernel_cases import Chance, PlacesChance, random_kernels

FLOAT, PLACE = np.dtype("float32"), np.dtype("int64")


def kernels_of(f, *args):
    return [step.kernel for step in fuse(lower(make_jaxpr(f)(*args))).steps]


def scatter(size, columns, stride, how="add", distinct=False):
    """A kernel that updates rows of `columns` numbers, whose places are data."""
    rows, x = Parameter("rows", PLACE, size), Parameter("x", FLOAT, size * columns)
    out = Parameter("out", FLOAT, 10_000)
    row = load_node(rows, Affine(0, (1, 0)))
    value = load_node(x, Affine(0, (columns, 1)))
    update = Update(how, (row,), (IndirectTerm(stride, 10),), (0, 1), distinct)
    store = Store(out, Affine(0, (0, 1)), value, update)
    sizes = (size, columns)
    return Kernel("scatter", sizes, (rows, x, out), (row, value), (store,))


@pytest.mark.parametrize(
    "f, shape, outer",
    [
        (lambda x: x * 2, (3, 4), (0,)),  # collapsed
        (lambda x: x.sum(axis=1), (3, 4), (0,)),
        (lambda x: x.sum(axis=0), (3, 4), (0,)),
        (lambda x: x.sum(), (3, 4), ()),
        (lambda x: jnp.cumsum(x, axis=1), (3, 4), (0,)),
        (lambda x: x - x.max(axis=1, keepdims=True), (3, 4), (0,)),
    ],
)
def test_axes_without_folds_are_outer(f, shape, outer):
    kernel = kernels_of(f, jnp.zeros(shape))[-1]
    assert parallel_axes(kernel) == outer


@pytest.mark.parametrize(
    "columns, stride, own", [(8, 8, True), (8, 7, False), (1, 1, True)]
)
def test_columns_of_a_scatter_have_threads_if_rows_do_not_overlap(columns, stride, own):
    kernel = scatter(5, columns, stride)
    [store] = kernel.stores
    assert stores_never_alias(kernel, store, 1) == own
    assert not stores_never_alias(kernel, store, 0)
    assert 0 not in parallel_axes(kernel)


def test_a_scatter_whose_places_are_distinct_has_a_thread_for_each():
    assert parallel_axes(scatter(5, 8, 7, distinct=True)) == (0, 1)


def test_a_number_that_moves_along_an_axis_may_meet_itself():
    i, out = index_node(0), Parameter("out", FLOAT, 100)
    value = load_node(Parameter("x", FLOAT, 5), Affine(0, (1,)))
    update = Update("add", (i,), (IndirectTerm(1, 100),), (0,))
    store = Store(out, Affine(0, (20,)), value, update)
    kernel = Kernel("k", (5,), (value.detail.parameter, out), (i, value), (store,))
    assert not stores_never_alias(kernel, store, 0)


@pytest.mark.parametrize("chance", [Chance, PlacesChance])
def test_outer_indices_never_store_into_one_element(chance):
    for kernel, _ in random_kernels(11, 60, chance):
        outer = parallel_axes(kernel)
        for store in kernel.stores:
            assert {*outer} <= {*store.axes}
        folded = [n.detail.axes for n in kernel.nodes if n.op in ("fold", "running")]
        assert not {*outer} & {axis for axes in folded for axis in axes}


@pytest.mark.parametrize("shape", [(1, 5), (3, 7), (64, 8), (64, 1024), (2, 9000)])
@pytest.mark.parametrize("axis", [0, 1])
def test_launches_fit_cards(shape, axis):
    for kernel in kernels_of(
        lambda x: x / x.sum(axis=axis, keepdims=True), jnp.zeros(shape)
    ):
        launch = default_launch(kernel)
        assert launch.threads <= 1024
        assert launch.team == 1 or launch.across or launch.team % 32 == 0
        needed = trip_count(kernel, launch.outer)
        assert 0 <= launch.blocks(kernel) * launch.teams - needed < launch.teams


def test_each_kind_of_kernel_has_its_launch():
    x = jnp.zeros((64, 1024))
    [rows] = kernels_of(lambda x: x / x.sum(axis=1, keepdims=True), x)
    [columns] = kernels_of(lambda x: x.sum(axis=0), x)
    [each] = kernels_of(lambda x: x * 2, x)
    [long] = kernels_of(lambda x: x.sum(axis=1), jnp.zeros((64, 50_000)))
    [running] = kernels_of(lambda x: jnp.cumsum(x, axis=1), x)
    assert default_launch(rows) == LaunchShape((0,), 32, 8)
    assert default_launch(columns) == LaunchShape((0,), 8, 32, True)
    assert default_launch(each) == default_launch(running) == LaunchShape((0,))
    assert default_launch(long) == LaunchShape((0,), 1024, 1)
    assert not is_reorderable(running)
    assert (contiguous_axis(rows), contiguous_axis(columns)) == (1, 0)


def test_no_index_takes_no_block():
    [kernel] = kernels_of(lambda x: x * 2, jnp.zeros((0, 3)))
    assert default_launch(kernel).blocks(kernel) == 0
