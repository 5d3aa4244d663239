"""The rules of while, each against plain Python."""

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import debug, grad, jit, jvp, lax, linearize, make_jaxpr, vjp, vmap
from minijax.experimental import io_callback
from minijax.jaxprs.checker import check_jaxpr


def chain(x, n):
    def body(c):
        i, a, b = c
        return i + 1, jnp.sin(a) * x, b + a

    return lax.while_loop(lambda c: c[0] < n, body, (0, x, 0.0))[2]


def in_python(x, n):
    a, b = x, 0.0
    for _ in range(n):
        a, b = jnp.sin(a) * x, b + a
    return b


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_forward(n):
    x, t = np.float32(0.7), np.float32(1.3)
    expected = jvp(lambda x: in_python(x, n), (x,), (t,))
    for transform in (lambda f: f, jit):
        ours = jvp(transform(lambda x: chain(x, n)), (x,), (t,))
        np.testing.assert_allclose(ours, expected, rtol=1e-5)
    value, derivative = linearize(lambda x: chain(x, n), x)
    np.testing.assert_allclose([value, derivative(t)], expected, rtol=1e-5)


def test_second_order():
    def slope(f):
        return lambda x: jvp(f, (x,), (1.0,))[1]

    ours = slope(slope(lambda x: chain(x, 3)))(0.7)
    theirs = slope(slope(lambda x: in_python(x, 3)))(0.7)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)


@pytest.mark.parametrize("dims", [(0, 0), (0, None), (None, 0)])
def test_batches(dims):
    x, n = jnp.asarray([0.5, 0.7, 0.9]), jnp.asarray([4, 0, 2])
    args = [v if d == 0 else v[2] for v, d in zip((x, n), dims)]
    ours = vmap(chain, in_axes=dims)(*args)
    for k in range(3):
        one = [v[k] if d == 0 else v for v, d in zip(args, dims)]
        np.testing.assert_allclose(ours[k], in_python(one[0], int(one[1])), rtol=1e-5)
    rates = vmap(
        lambda x, n: jvp(lambda x: chain(x, n), (x,), (1.0,))[1], in_axes=dims
    )(*args)
    for k in range(3):
        one = [v[k] if d == 0 else v for v, d in zip(args, dims)]
        rate = jvp(lambda x, n=int(one[1]): in_python(x, n), (one[0],), (1.0,))[1]
        np.testing.assert_allclose(rates[k], rate, rtol=1e-5)


def test_batches_of_batches():
    x, n = jnp.asarray([0.5, 0.9]), jnp.asarray([3, 0, 2])
    f = vmap(vmap(chain, in_axes=(None, 0)), in_axes=(0, None))
    for g in (f, jit(f)):
        expected = [[in_python(a, int(b)) for b in n] for a in x]
        np.testing.assert_allclose(g(x, n), expected, rtol=1e-5)
    check_jaxpr(make_jaxpr(f)(x, n))


def test_vectors_carried_in_a_batch():
    def f(v, n):
        return lax.while_loop(
            lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 2), (0, v)
        )

    v = jnp.arange(6.0).reshape(2, 3)
    count, out = vmap(f, in_axes=(1, 0), out_axes=(0, 1))(v, jnp.asarray([0, 1, 3]))
    np.testing.assert_array_equal(count, [0, 1, 3])
    np.testing.assert_array_equal(out, np.asarray(v) * [1, 2, 8])


def test_done_examples_are_left_alone():
    def f(n):
        def step(n):
            return jnp.where(n % 2 == 0, n // 2, 3 * n + 1)

        return lax.while_loop(lambda c: c != 1, step, n)

    np.testing.assert_array_equal(vmap(f)(jnp.asarray([1, 6])), [1, 1])


@pytest.mark.parametrize("reverse", [grad, lambda f: lambda x: vjp(f, x)[1](1.0)])
def test_backwards_is_refused_with_a_reason(reverse):
    with pytest.raises(ValueError, match="lax.scan"):
        reverse(lambda x: chain(x, 3))(0.5)


def test_loops_that_do_not_move_are_no_obstacle():
    assert (
        grad(lambda x: x * lax.while_loop(lambda c: c < 3, lambda c: c + 1, 0))(2.0)
        == 3
    )
    assert grad(lambda x: (chain(x, 3), x * 2)[1])(0.5) == 2


def test_effects_of_a_batch():
    def f(n):
        def body(c):
            return io_callback(lambda c: c, c, c) + 1

        return lax.while_loop(lambda c: c < n, body, 0)

    with pytest.raises(NotImplementedError, match="io_callback"):
        vmap(f)(jnp.asarray([1, 2]))


def test_collectives():
    def f(x):
        body = lambda c: (c[0] + 1, lax.psum(c[1], "i"))  # noqa: E731
        return lax.while_loop(lambda c: c[0] < 2, body, (0, x))[1]

    np.testing.assert_array_equal(vmap(f, axis_name="i")(jnp.arange(3.0)), [9, 9, 9])


def test_the_linear_half_looks_again():
    """As in JAX: it repeats the loop for its values, and what looks at them with it."""
    seen = []

    def powers(x):
        def body(state):
            i, a = state
            debug.callback(seen.append, a)
            return i + 1, jnp.sin(a) * x

        return lax.while_loop(lambda state: state[0] < 3, body, (0, x))[1]

    counts = []
    _, derivative = linearize(powers, 0.5)
    counts.append(len(seen))
    for _ in range(2):
        derivative(1.0)
        counts.append(len(seen))
    assert counts == [3, 6, 9]
