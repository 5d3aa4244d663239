"""Running values: which of them wait for each other."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

from minijax.kernels.ir import Affine, Fold, Parameter, Store
from minijax.kernels.loop_nests import Kernel, fold_node, load_node
from minijax.llvm.instructions import FunctionBuilder
from minijax.llvm.targets import (
    TargetLibrary,
    current_target,
    forced_target,
    kernel_function,
)
from minijax.llvm.vectors import emit_horizontal_fold, fold_side_by_side

F32 = np.dtype("float32")


def sums_of_columns(rows, columns, groups=1):
    """A kernel that adds up the columns of some matrices."""
    size = rows * columns
    x, out = Parameter("x", F32, groups * size), Parameter("out", F32, groups * columns)
    a = load_node(x, Affine(0, (size, 1, columns)))
    total = fold_node("add", (2,), a)
    stores = (Store(out, Affine(0, (columns, 1, 0)), total),)
    return Kernel("sums", (groups, columns, rows), (x, out), (a, total), stores)


def longest_wait(kernel):
    """How many additions of a kernel have to wait for each other."""
    waits = {}
    for line in kernel_function(kernel, "k", forced_target("plain")).text.splitlines():
        name, _, instruction = line.strip().partition(" = ")
        before = [waits.get(arg, 0) for arg in re.findall(r"%[\w.]+", instruction)]
        waits[name] = max(before, default=0) + ("fadd" in instruction)
    return max(waits.values())


@pytest.mark.parametrize(("rows", "wait"), [(1, 1), (2, 2), (4, 3), (9, 5), (16, 7)])
def test_turns_outside_of_loops_wait_for_few(rows, wait):
    """A block of √n turns, and an addition for each further block."""
    assert longest_wait(sums_of_columns(rows, 4)) == wait


def test_turns_inside_of_loops_go_on():
    assert longest_wait(sums_of_columns(16, 4, groups=40)) == 16


@pytest.mark.parametrize("how", ["add", "max", "mul"])
@pytest.mark.parametrize("terms", [3, 5, 6, 7, 9, 11, 13, 14, 15, 16])
def test_lanes_of_alike_folds_are_folded_together(how, terms):
    """In the order of a single one, and in fewer lines than one by one."""
    rng, rows = np.random.default_rng(terms), 13
    fold, given = Fold(how, (1,)), rng.normal(size=(rows, terms)).astype("float32")
    given[0, -1], given[1] = np.nan, -0.0
    texts, found = [], np.empty((2, rows), "float32")
    for together, result in zip((False, True), found):
        f = FunctionBuilder()
        places = [f.at("float", "%x", row * terms) for row in range(rows)]
        loads = [f.load("float", place, terms) for place in places]
        node = SimpleNamespace(args=[SimpleNamespace(dtype=F32)], detail=fold)
        before = len(f.lines)
        if together:
            names = fold_side_by_side(f, node, loads, terms)
        else:
            names = [emit_horizontal_fold(f, node, [x], terms)[0] for x in loads]
        texts.append(len(f.lines) - before)
        for row, name in enumerate(names):
            f.store("float", name, f.at("float", "%out", row))
        params = [("float*", "%x"), ("float*", "%out")]
        text = f.definition("k", params, "nounwind", linkage="")
        library = TargetLibrary("\n".join([*f.needed.values(), text]), current_target())
        library.function("k", 2)(given.ctypes.data, result.ctypes.data)
    assert found[0].tobytes() == found[1].tobytes()
    assert texts[1] < texts[0] / 2 + rows
