"""Differential equations: known solutions, their gradients, and what is refused."""

import numpy as np
import pytest

import minijax
from minijax import enable_x64, grad, jit, vmap
from minijax import numpy as jnp
from minijax.experimental.ode import odeint

TIMES = jnp.linspace(0.0, 2.0, 5)


def decay(y, t, rate):
    return -rate * y


def test_known_solutions():
    np.testing.assert_allclose(
        odeint(decay, 3.0, TIMES, 0.5), 3 * np.exp(-0.5 * TIMES), rtol=1e-5
    )
    circle = odeint(lambda y, t: 1j * y, jnp.array(1 + 0j), TIMES)
    np.testing.assert_allclose(circle, np.exp(1j * np.asarray(TIMES)), atol=1e-5)
    by_time = odeint(lambda y, t: jnp.cos(t), 0.0, np.asarray(TIMES))
    np.testing.assert_allclose(by_time, np.sin(TIMES), atol=1e-5)


def test_states_are_trees_of_several_dtypes():
    start = {"a": jnp.float32(1.0), "b": (jnp.ones(2, jnp.float16), 2.0)}
    found = odeint(lambda y, t: minijax.tree.map(jnp.negative, y), start, TIMES)
    wanted = np.exp(-np.asarray(TIMES))
    np.testing.assert_allclose(found["a"], wanted, rtol=1e-4)
    assert found["b"][0].shape == (5, 2) and found["b"][0].dtype == jnp.float16
    np.testing.assert_allclose(found["b"][1], 2 * wanted, rtol=1e-4)


def test_tolerances_and_steps():
    with enable_x64(True):
        times = jnp.linspace(0.0, 2.0, 3)

        def error(**how):
            return abs(odeint(decay, 1.0, times, 1.0, **how)[-1] - np.exp(-2.0))

        loose, tight = error(rtol=1e-3, atol=1e-3), error(rtol=1e-10, atol=1e-10)
        assert 1e-7 < loose < 1e-2 and tight < 1e-9
        assert error(rtol=1e-3, atol=1e-3, hmax=1e-2) < loose / 10
        tried = []

        def counted(y, t):
            minijax.debug.callback(lambda _: tried.append(None), t)
            return -y

        odeint(counted, 1.0, times[:2], mxstep=3)
        # A slope to begin with, one for the first length, six for each try.
        assert len(tried) == 2 + 3 * 6


def test_gradients_of_all_arguments():
    with enable_x64(True):
        times = jnp.array([0.0, 0.7, 2.0])

        def last(y, times, rate):
            return odeint(decay, y, times, rate)[-1].sum()

        y, rate = jnp.array([1.0, -2.0]), 0.5
        by_y, by_times, by_rate = jit(grad(last, (0, 1, 2)))(y, times, rate)
        left = np.exp(-rate * 2.0)
        np.testing.assert_allclose(by_y, [left, left], rtol=1e-7)
        np.testing.assert_allclose(by_rate, 1.0 * 2.0 * left, rtol=1e-7)
        np.testing.assert_allclose(by_times, [-0.5 * left, 0, 0.5 * left], atol=1e-7)
        # A middle time alone matters for the value there.
        middle = grad(lambda times: odeint(decay, 1.0, times, rate)[1])(times)
        slope = rate * np.exp(-rate * 0.7)
        np.testing.assert_allclose(middle, [slope, -slope, 0], atol=1e-7)


def test_closures_integers_and_second_derivatives():
    def last(rate):
        return odeint(lambda y, t, n: -rate * y * n, 1.0, TIMES, 2)[-1]

    np.testing.assert_allclose(last(0.5), np.exp(-2.0), rtol=1e-5)
    np.testing.assert_allclose(grad(last)(0.5), -4 * np.exp(-2.0), rtol=1e-4)
    np.testing.assert_allclose(grad(grad(last))(0.5), 16 * np.exp(-2.0), rtol=1e-3)
    trees = {"rate": jnp.float32(0.5), "n": jnp.array([2, 2])}
    slope = grad(
        lambda p: odeint(lambda y, t, p: -p["rate"] * y * p["n"][0], 1.0, TIMES, p)[-1],
        allow_int=True,
    )(trees)
    np.testing.assert_allclose(slope["rate"], -4 * np.exp(-2.0), rtol=1e-4)
    assert slope["n"].dtype == minijax.dtypes.float0


def test_batches_take_their_own_steps():
    rates = jnp.array([0.1, 1.0, 10.0])
    found = vmap(lambda rate: odeint(decay, 1.0, TIMES, rate))(rates)
    wanted = np.exp(-np.outer(rates, TIMES))
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6)
    slopes = vmap(grad(lambda rate: odeint(decay, 1.0, TIMES, rate)[-1]))(rates)
    np.testing.assert_allclose(slopes, -2 * wanted[:, -1], rtol=1e-3, atol=1e-6)


def test_no_step_is_needed_for_one_time():
    assert odeint(decay, jnp.ones(2), TIMES[:1], 1.0).tolist() == [[1.0, 1.0]]


def test_a_list_of_numbers_may_have_a_vector_as_its_derivative():
    found = odeint(lambda y, t: jnp.array([y[1], -y[0]]), [1.0, 0.0], TIMES)
    assert isinstance(found, list)
    np.testing.assert_allclose(found[0], np.cos(TIMES), atol=1e-4)
    np.testing.assert_allclose(found[1], -np.sin(TIMES), atol=1e-4)


@pytest.mark.parametrize(
    ("func", "y0", "t", "args", "told"),
    [
        (decay, 1.0, [0, 1], (1.0,), "t must be an array of floats"),
        (decay, 1.0, TIMES, ("a",), "arrays or scalars, but got 'a'"),
        (decay, {"n": 1}, TIMES, (1.0,), r"y0\['n'\] is of dtype int32"),
        (lambda y, t: y[:1], jnp.ones(2), TIMES, (), r"float32\[2\], got float32\[1\]"),
        (lambda y, t: 1j * y, 1.0, TIMES, (), "got complex64"),
        (lambda y, t: (y, y), 1.0, TIMES, (), "structure of y0.* 1; got .*, 2"),
    ],
)
def test_refusals(func, y0, t, args, told):
    if isinstance(y0, dict):
        func = lambda y, t, rate: y  # noqa: E731
    with pytest.raises(TypeError, match=told):
        odeint(func, y0, t, *args)


def test_times_are_a_vector():
    for times in (1.0, jnp.ones((2, 2)), jnp.zeros(0)):
        with pytest.raises(ValueError, match="vector of times"):
            odeint(decay, 1.0, times, 1.0)


def test_a_mapped_value_in_the_closure_has_its_gradient():
    def last(a, b):
        return odeint(lambda y, t: -a * b * y, 1.0, TIMES)[-1]

    rates = jnp.array([0.5, 1.0])
    wanted = -2 * rates * np.exp(-2 * rates)
    by_a = grad(lambda a: vmap(lambda b: last(a, b))(rates).sum())
    for run in (by_a, jit(by_a)):
        np.testing.assert_allclose(run(1.0), wanted.sum(), rtol=1e-4)
    np.testing.assert_allclose(
        vmap(grad(last), (None, 0))(1.0, rates), wanted, rtol=1e-4
    )
