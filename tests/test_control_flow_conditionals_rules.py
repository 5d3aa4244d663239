"""The rules of cond, each against plain Python."""

from itertools import product

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import (
    grad,
    jit,
    jvp,
    lax,
    linear_transpose,
    linearize,
    make_jaxpr,
    vjp,
    vmap,
)
from minijax.arrays.array import ShapedArray
from minijax.control_flow.common import any_per_position, residual_slots
from minijax.debug import print as debug_print
from minijax.experimental import io_callback
from minijax.jaxprs.checker import check_jaxpr
from minijax.rematerialization.jaxpr_transforms import dce_closed_jaxpr
from minijax.test_util import check_grads

F32, I32 = ShapedArray((), np.float32), ShapedArray((), np.int32)
BRANCHES = [
    lambda x, y: (jnp.sin(x) * y, x),
    lambda x, y: (x, jnp.exp(y) * x),
    lambda x, y: (2.0, y),
]


def choose(i, x, y):
    return lax.switch(i, BRANCHES, x, y)


@pytest.mark.parametrize("i", [0, 1, 2])
def test_derivatives(i):
    def of_branch(x, y):
        return BRANCHES[i](x, y)

    check_grads(lambda x, y: choose(i, x, y), (0.7, 1.2), 2)
    for f in (jvp, lambda f, p, t: (f(*p), linearize(f, *p)[1](*t))):
        ours = f(lambda x, y: choose(i, x, y), (0.7, 1.2), (1.0, 0.5))
        theirs = f(of_branch, (0.7, 1.2), (1.0, 0.5))
        np.testing.assert_allclose(np.ravel(ours), np.ravel(theirs), rtol=1e-6)


@pytest.mark.parametrize("dims", [d for d in product([0, None], repeat=3) if any(
    x == 0 for x in d)])  # fmt: skip
def test_batches(dims):
    values = [
        jnp.asarray([2, 0, 1]),
        jnp.asarray([0.5, 1.0, 2.0]),
        jnp.asarray([3.0] * 3),
    ]
    args = [x if dim == 0 else x[0] for x, dim in zip(values, dims)]
    for transform in (lambda f: f, jit):
        ours = transform(vmap(choose, in_axes=dims))(*args)
        for k in range(3):
            one = [x[k] if dim == 0 else x for x, dim in zip(args, dims)]
            expected = BRANCHES[int(one[0])](*one[1:])
            for a, b in zip(ours, expected):
                np.testing.assert_allclose(a[k], b, rtol=1e-6)


def test_axis_anywhere():
    x = jnp.arange(6.0).reshape(2, 3)
    for p in (jnp.asarray([True, False, True]), True):
        f = vmap(
            lambda p, a: lax.cond(p, jnp.cumsum, jnp.negative, a),
            in_axes=(0 if p is not True else None, 1),
            out_axes=1,
        )
        expected = [
            np.cumsum(column) if flag else -column
            for column, flag in zip(np.asarray(x).T, np.broadcast_to(p, 3))
        ]
        np.testing.assert_allclose(f(p, x), np.transpose(expected), rtol=1e-6)


def test_no_nan_from_the_other_branch():
    def f(a):
        return lax.cond(a > 0, jnp.sqrt, lambda a: 0.0 * a, a)

    points = jnp.asarray([0.0, 4.0])
    for g in (vmap(grad(f)), grad(lambda a: vmap(f)(a).sum()), jit(vmap(grad(f)))):
        np.testing.assert_array_equal(g(points), [0, 0.25])


def test_gradient_where_a_branch_ignores_an_operand():
    def f(a):
        def other(p):
            return jvp(lambda z: z * 0.7, (a,), (jnp.ones_like(a),))[1]

        return lax.cond(a > 0, lambda p: p, other, a)

    assert vjp(f, np.float32(1.5))[1](np.float32(1))[0] == 1
    assert vjp(f, np.float32(-1.5))[1](np.float32(1))[0] == 0


def test_transposed():
    def f(p):
        return lambda x, y: lax.cond(p, lambda: (2.0 * x, y), lambda: (x + y, y))

    for p, expected in ((True, (2.0, 3.0)), (False, (1.0, 4.0))):
        [*found] = linear_transpose(f(p), 1.0, 1.0)((1.0, 3.0))
        assert tuple(found) == expected


def test_slots():
    groups = [[F32], [I32, F32, F32], [], [F32, I32]]
    slots, places = residual_slots(groups)
    assert slots == (F32, I32, F32)
    assert places == [(0,), (1, 0, 2), (), (0, 1)]
    for group, own in zip(groups, places):
        assert [slots[i] for i in own] == group
        assert len(set(own)) == len(own)


def test_flags_of_any_branch():
    assert any_per_position([(True, False), (False, False)]) == (True, False)
    assert any_per_position([(), ()]) == ()


def test_dead_results_go():
    closed = make_jaxpr(choose)(1, 0.5, 2.0)
    pruned, needed = dce_closed_jaxpr(closed, (False, True))
    check_jaxpr(pruned)
    [eqn] = [eqn for eqn in pruned.eqns if eqn.primitive.name == "cond"]
    assert len(eqn.outvars) == 1
    assert [len(b.eqns) for b in eqn.params["branches"]] == [0, 2, 0]
    assert needed == (True, True, True)


def test_effects_of_a_batch():
    p, x = jnp.asarray([True, False]), jnp.ones(2)

    def writing(p, x):
        return lax.cond(p, lambda: io_callback(abs, x, x), lambda: x)

    def printing(p, x):
        return lax.cond(p, lambda: (debug_print("seen"), x)[1], lambda: x)

    with pytest.raises(NotImplementedError, match="io_callback"):
        vmap(writing)(p, x)
    np.testing.assert_array_equal(vmap(printing)(p, x), x)


def test_derivatives_are_programs():
    for f in (
        lambda x: grad(lambda x: choose(1, x, 2.0)[1])(x),
        lambda x: vmap(grad(lambda x: choose(1, x, 2.0)[1]))(jnp.stack([x, x])),
        lambda x: grad(grad(lambda x: choose(0, x, 2.0)[0]))(x),
    ):
        check_jaxpr(make_jaxpr(f)(0.5))
