"""Kernels with fewer axes compute the same."""

import numpy as np
import pytest

from minijax.kernels.builder import collapse_axes
from minijax.kernels.checker import check_kernel
from minijax.kernels.ir import Affine, Guard, Parameter, Store
from minijax.kernels.loop_nests import (
    Kernel,
    fold_node,
    index_node,
    interpret,
    load_node,
    op_node,
)
from tests.kernel_cases import random_kernels

F32 = np.dtype("float32")


def copy(sizes, strides, out, guards=()):
    """A kernel that copies, and what is left of its axes."""
    x, result = Parameter("x", F32, 999), Parameter("out", F32, 999)
    a = load_node(x, Affine(0, strides), guards)
    stores = (Store(result, Affine(0, out), a),)
    return collapse_axes(Kernel("copy", sizes, (x, result), (a,), stores)).sizes


@pytest.mark.parametrize(
    "sizes, strides, out, left",
    [
        ((2, 3, 4), (12, 4, 1), (12, 4, 1), (24,)),
        ((2, 3, 4), (0, 0, 0), (12, 4, 1), (24,)),
        ((2, 3, 4), (24, 8, 2), (12, 4, 1), (24,)),
        ((2, 3, 4), (12, 4, -1), (12, 4, 1), (6, 4)),
        ((2, 3, 4), (0, 4, 1), (12, 4, 1), (2, 12)),
        ((3, 4), (1, 3), (4, 1), (3, 4)),
        ((1, 3, 1), (0, 1, 0), (0, 1, 0), (3,)),
        ((1, 1), (0, 0), (0, 0), ()),
        ((), (), (), ()),
    ],
)
def test_axes_that_are_left(sizes, strides, out, left):
    assert copy(sizes, strides, out) == left


def test_guards_count():
    guard = Guard(Affine(0, (1, 0)), 2)
    assert copy((3, 4), (4, 1), (4, 1), [guard]) == (3, 4)


def test_folds_and_indices_keep_axes_apart():
    x, out = Parameter("x", F32, 12), Parameter("out", F32, 3)
    a = load_node(x, Affine(0, (4, 1)))
    s = fold_node("add", (1,), a)
    stores = (Store(out, Affine(0, (1, 0)), s),)
    kernel = Kernel("rows", (3, 4), (x, out), (a, s), stores)
    assert collapse_axes(kernel).sizes == (3, 4)
    everything = fold_node("add", (0, 1), a)
    stores = (Store(out, Affine(0, (0, 0)), everything),)
    kernel = Kernel("all", (3, 4), (x, out), (a, everything), stores)
    assert collapse_axes(kernel).sizes == (12,)
    i = index_node(0)
    b = op_node("convert", i, dtype=F32)
    stores = (Store(x, Affine(0, (4, 1)), b),)
    assert collapse_axes(Kernel("iota", (3, 4), (x,), (i, b), stores)).sizes == (3, 4)


def test_folds_along_axes_of_size_1_vanish():
    x, out = Parameter("x", F32, 3), Parameter("out", F32, 3)
    a = load_node(x, Affine(0, (1, 0)))
    nodes = (a, fold_node("add", (1,), a))
    stores = (Store(out, Affine(0, (1, 0)), nodes[1]),)
    kernel = collapse_axes(Kernel("rows", (3, 1), (x, out), nodes, stores))
    assert [node.op for node in kernel.nodes] == ["load"]


def test_random_kernels():
    for kernel, memory in random_kernels(3, 60):
        smaller = check_kernel(collapse_axes(kernel))
        assert len(smaller.sizes) <= len(kernel.sizes) and 1 not in smaller.sizes
        again = {name: data.copy() for name, data in memory.items()}
        interpret(kernel, memory)
        interpret(smaller, again)
        np.testing.assert_allclose(
            np.asarray(again["out"], float), np.asarray(memory["out"], float), rtol=1e-4
        )
