"""Loops of kernels: everything is computed once, where it can be, and in time."""

import numpy as np

from minijax.kernels.ir import Affine, FoldCombine, FoldInit, Loop, Parameter, Store
from minijax.kernels.loop_nests import (
    Kernel,
    Node,
    fold_node,
    load_node,
    loop_nest,
    op_node,
    print_nest,
)
from tests.kernel_cases import random_kernels

F32 = np.dtype("float32")


def walk(steps, moving, known):
    """Check that each step finds what it needs."""
    for step in steps:
        if isinstance(step, Loop):
            assert step.axis not in moving
            walk(step.body, moving | {step.axis}, {*known})
            known.update(step.folds)
        elif isinstance(step, Node):
            assert step not in known and moving >= {*step.level}
            assert known >= {*step.args}
            known.add(step)
        elif isinstance(step, Store):
            assert step.node in known and moving == {*step.place.axes}
        elif isinstance(step, FoldCombine):
            assert known >= {*step.fold.args}
            assert moving >= {*step.fold.level, *step.fold.detail.axes}
        else:
            assert isinstance(step, FoldInit) and moving >= {*step.fold.level}


def test_random_kernels():
    for kernel, _ in random_kernels(5, 100):
        walk(loop_nest(kernel), frozenset(), set())


def test_what_does_not_move_is_computed_before():
    x, row, out = (
        Parameter(name, F32, n) for name, n in (("x", 12), ("y", 3), ("out", 12))
    )
    a, b = load_node(x, Affine(0, (4, 1))), load_node(row, Affine(0, (1, 0)))
    c = op_node("exp", b)
    d = op_node("add", a, c)
    stores = (Store(out, Affine(0, (4, 1)), d),)
    assert print_nest(Kernel("add", (3, 4), (x, row, out), (a, b, c, d), stores)) == (
        "for i < 3:\n"
        "  v1 = load y[i]\n"
        "  v2 = exp v1\n"
        "  for j < 4:\n"
        "    v0 = load x[4*i + j]\n"
        "    v3 = add v0 v2\n"
        "    out[4*i + j] = v3"
    )


def test_a_fold_of_folds():
    x, out = Parameter("x", F32, 12), Parameter("out", F32, 1)
    a = load_node(x, Affine(0, (4, 1)))
    b = fold_node("max", (1,), a)
    c = fold_node("add", (0,), b)
    stores = (Store(out, Affine(0, (0, 0)), c),)
    assert print_nest(Kernel("sum", (3, 4), (x, out), (a, b, c), stores)) == (
        "v2 = 0.0\n"
        "for i < 3:\n"
        "  v1 = -inf\n"
        "  for j < 4:\n"
        "    v0 = load x[4*i + j]\n"
        "    v1 = max v1 v0\n"
        "  v2 = add v2 v1\n"
        "out[0] = v2"
    )


def test_stores_share_loops():
    x, one, two = (Parameter(name, F32, 3) for name in ("x", "out", "out2"))
    a = load_node(x, Affine(0, (1,)))
    b = op_node("neg", a)
    stores = (Store(one, Affine(0, (1,)), a), Store(two, Affine(0, (1,)), b))
    [loop] = loop_nest(Kernel("both", (3,), (x, one, two), (a, b), stores))
    assert loop.body == [a, b, *stores]
