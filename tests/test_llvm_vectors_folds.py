"""Running values: which of them wait for each other."""

import re

import numpy as np
import pytest

from minijax.kernels.ir import Affine, Parameter, Store
from minijax.kernels.loop_nests import Kernel, fold_node, load_node
from minijax.llvm.targets import forced_target, kernel_function

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
