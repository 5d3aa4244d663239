"""Derivatives, batches and costs of sorts."""

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import grad, jacobian, jit, jvp, lax, linearize, make_jaxpr, vjp, vmap
from minijax.rematerialization.jaxpr_transforms import dce_jaxpr
from minijax.test_util import check_grads
from tests.sorting_cases import order

X = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)


@pytest.mark.parametrize("axis", [0, 1])
def test_jacobian_is_a_permutation(axis):
    row = X[:, 0] if axis == 0 else X[0]
    wanted = np.eye(len(row), dtype=np.float32)[order(row)]
    for f in (lax.sort, jit(lax.sort)):
        assert np.array_equal(jacobian(f)(row), wanted)
    check_grads(lambda x: lax.sort(x, axis), (X,), order=2, modes=["fwd", "rev"])


def test_passengers_have_derivatives():
    def f(x, y):
        return lax.sort((jnp.sin(x), y, x * y), num_keys=1)[1:]

    check_grads(f, (X, X[::-1]), order=2, modes=["fwd", "rev"])
    check_grads(lambda y: f(X, y), (X,), order=2, modes=["rev"])


def test_linearize_sorts_now():
    value, pushed = linearize(lax.sort, X[0])
    assert np.array_equal(value, np.sort(X[0]))
    assert np.array_equal(pushed(X[1]), X[1][order(X[0])])
    assert np.array_equal(vjp(lax.sort, X[0])[1](value)[0], X[0])


def test_keys_have_no_transpose():
    with pytest.raises(NotImplementedError, match="'sort' not implemented"):
        from minijax import linear_transpose

        linear_transpose(lax.sort, X[0])(X[0])


def test_passengers_are_linear():
    from minijax import linear_transpose

    [back] = linear_transpose(lambda y: lax.sort((X[0], y))[1], X[1])(X[2])
    wanted = np.empty_like(X[2])
    wanted[order(X[0])] = X[2]
    assert np.array_equal(back, wanted)


@pytest.mark.parametrize("dims", [(0, None), (None, 1), (1, 0), (0, 0)])
def test_batches(dims):
    a, b = np.stack([X[0], X[1]], dims[0] or 0), np.stack([X[2], X[3]], dims[1] or 0)
    a, b = (x if d is not None else x[0] for x, d in zip((a, b), dims))

    def f(a, b):
        return lax.sort((a, b))

    for call in (vmap(f, dims), jit(vmap(f, dims))):
        for i, pair in enumerate(zip(*call(a, b))):
            one = [x if d is None else np.take(x, i, d) for x, d in zip((a, b), dims)]
            for x, y in zip(pair, f(*one)):
                assert np.array_equal(x, y)


def test_unused_passengers_get_off():
    closed = make_jaxpr(lambda x, y, z: lax.sort((x, y, z)))(*X[:3])
    [eqn] = dce_jaxpr(closed.jaxpr, (False, False, True)).eqns
    assert len(eqn.invars) == len(eqn.outvars) == 2
    [eqn] = dce_jaxpr(closed.jaxpr, (True, False, False)).eqns
    assert len(eqn.invars) == 1


def test_text_and_cost():
    text = str(make_jaxpr(lambda x: lax.sort(x, 0))(X))
    assert "sort[dimension=0 is_stable=True num_keys=1] a" in text
    cost = jit(lambda x: lax.sort(x)).lower(np.zeros(1024, "float32")).cost_analysis()
    assert cost["flops"] == 1024 * 10


def test_ties_go_one_way():
    found = jvp(lax.sort, (np.ones(3, "f4"),), (np.float32([3, 1, 2]),))[1]
    assert np.array_equal(found, [3, 1, 2])
    assert np.array_equal(grad(lambda x: lax.sort(x)[0])(np.ones(2, "f4")), [1, 0])
