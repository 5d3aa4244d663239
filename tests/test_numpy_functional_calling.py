"""Functions of NumPy that take functions; beside NumPy's."""

import re

import numpy as np
import pytest

import minijax
from minijax import numpy as jnp

X = np.arange(6, dtype="float32").reshape(2, 3)


def test_elements_and_rows():
    larger = jnp.vectorize(lambda x, y: jnp.where(x > y, x, y))
    assert np.array_equal(larger(X[:, :1], X[:1]), np.maximum(X[:, :1], X[:1]))
    dots = jnp.vectorize(jnp.dot, signature="(n),(n)->()")
    stack = np.ones((4, 1, 3), "float32")
    assert np.array_equal(dots(stack, X), np.vecdot(stack, X))
    pair = jnp.vectorize(lambda x: (x, x.sum()), signature="(n)->(n),()")(X)
    assert [part.shape for part in pair] == [(2, 3), (2,)]


def test_arguments_that_stay():
    power = jnp.vectorize(lambda x, n, up: x**n + up, excluded={1, "up"})
    assert np.array_equal(power(X, 2, up=1), X**2 + 1)
    either = jnp.vectorize(lambda x, y: x if y is None else x + y)
    assert np.array_equal(either(X, None), X)


WRONG = {
    "inconsistent size for core dimension 'm': 4 vs 3": ("(n,m),(m)->(n)", X, X[0, :1]),
    "wrong number of positional arguments: expected 2, got 1": ("(n),(n)->()", X),
    "does not have enough dimensions": ("(n,m),(m)->(n)", X[0], X[0]),
    "output shape (2,) does not match core dimensions ()": ("(n,m),(m)->()", X, X[0]),
    "not a valid gufunc signature: foo": ("foo", X, X),
}


@pytest.mark.parametrize("message", WRONG)
def test_signatures_that_do_not_fit(message):
    signature, *args = WRONG[message]
    message = message.replace("4 vs 3", "1 vs 3")
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        jnp.vectorize(jnp.dot, signature=signature)(*args)


def test_ranks():
    add = jnp.vectorize(lambda x, y: x + y)
    with minijax.numpy_rank_promotion("raise"):
        with pytest.raises(ValueError, match="rank_promotion"):
            add(X, X[0])
        assert add(X, 1.0).shape == (2, 3)


def test_a_function_for_each_piece():
    x = np.float32([-2, 0.5, 3])

    def f(x):
        return jnp.piecewise(x, [x < 0, x > 1], [lambda x: -x, 7, lambda x: x * x])

    assert np.array_equal(minijax.jit(f)(x), [2, 0.25, 7])
    assert np.array_equal(minijax.grad(lambda x: f(x).sum())(x), [-1, 1, 0])


def test_axes():
    for axis in (0, 1):
        ours = jnp.apply_along_axis(jnp.cumsum, axis, X)
        assert np.array_equal(ours, np.cumsum(X, axis))
    assert jnp.apply_over_axes(jnp.sum, X, (0, 1)).shape == (1, 1)
    table = jnp.fromfunction(lambda i, j: 10 * i + j, (2, 3), dtype=int)
    assert np.array_equal(table, [[0, 1, 2], [10, 11, 12]])
