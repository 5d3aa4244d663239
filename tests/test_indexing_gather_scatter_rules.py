"""Derivatives, batches and costs of gathers, scatters and dynamic slices."""

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import grad, jacobian, jit, jvp, lax, linear_transpose, make_jaxpr, vmap
from minijax.jitting.stages import cost_analysis
from minijax.test_util import check_grads
from tests.indexing_cases import X

PLACES = jnp.array([2, 0, -1, 2])
ROWS = lax.ScatterDimensionNumbers((1, 2), (0,), (0,))
HOW = "add subtract min max set".split()


def test_gradients_of_reading():
    check_grads(lambda x: jnp.sin(x[PLACES]), (X,), order=2, modes=["fwd", "rev"])
    check_grads(lambda x: x[:, PLACES, 0] ** 3, (X,), order=2, modes=["fwd", "rev"])


@pytest.mark.parametrize("how", HOW)
def test_gradients_of_writing(how):
    updates = np.random.default_rng(1).normal(size=(4, 5, 3)).astype("float32")

    def f(x, updates):
        return getattr(jnp.sin(x).at[PLACES], how)(updates * updates)

    modes = ["fwd", "rev"]
    check_grads(f, (X, updates), order=2, modes=modes, atol=2e-2, rtol=2e-2)


def test_gradients_of_products_need_a_promise():
    def f(x, y, unique):
        return jnp.asarray(x).at[jnp.array([1, 3])].mul(y, unique_indices=unique)

    check_grads(lambda x, y: f(x, y, True), (X, X[:2]), order=2, modes=["fwd", "rev"])
    with pytest.raises(NotImplementedError, match="unique_indices=True"):
        grad(lambda y: f(X, y, False).sum())(X[:2])
    found = grad(lambda x: f(x, X[:2], False).sum())(X)
    np.testing.assert_allclose(found[1], X[0])


def test_the_last_update_gets_the_cotangent():
    def f(y):
        return (jnp.zeros(3).at[PLACES].set(y) ** 2).sum()

    slopes = grad(f)(jnp.arange(4.0))
    np.testing.assert_array_equal(slopes, [0, 2, 0, 6])


def test_extremes_share_at_ties():
    x, y = jnp.array([1.0, 5.0]), jnp.array([5.0, 5.0, 0.0])
    at = jnp.array([1, 1, 0])
    by_x, by_y = jacobian(lambda x, y: x.at[at].max(y), (0, 1))(x, y)
    np.testing.assert_allclose(by_x, [[1, 0], [0, 1 / 3]], atol=1e-6)
    np.testing.assert_allclose(by_y, [[0, 0, 0], [1 / 3, 1 / 3, 0]], atol=1e-6)


@pytest.mark.parametrize("name", ["min", "max", "set", "add"])
@pytest.mark.parametrize("at", [[5, 0], [-7, 2], [5, 7], [0, 9], [-9, 1]])
def test_clipped_places_are_those_of_the_derivative(name, at):
    inside = np.clip(np.where(np.array(at) < 0, np.array(at) + 3, at), 0, 2)
    operands = jnp.array([1.0, 5.0, 3.0]), jnp.array([4.0, 2.0])

    def entered(places, mode):
        return lambda x, y: (getattr(x.at[places], name)(y, mode=mode) ** 2).sum()

    wanted = grad(entered(inside, None), (0, 1))(*operands)
    clipped = entered(jnp.array(at), "clip")
    for slopes in (grad(clipped, (0, 1)), jit(grad(clipped, (0, 1)))):
        for found, slope in zip(slopes(*operands), wanted):
            np.testing.assert_allclose(found, slope)
    rate = jvp(clipped, operands, operands)[1]
    assert rate == sum((slope * x).sum() for slope, x in zip(wanted, operands))


def test_fill_values_do_not_move():
    def f(x):
        return x.at[jnp.array([0, 9])].get(mode="fill")

    value, rate = jvp(f, (X,), (X,))
    assert np.isnan(value[1]).all() and not rate[1].any()
    assert not grad(lambda x: jnp.nansum(f(x)))(X)[-1].any()


def test_transposes():
    [back] = linear_transpose(lambda x: x[PLACES], X)(X)
    wanted = np.zeros_like(X)
    np.add.at(wanted, [2, 0, 3, 2], X)
    np.testing.assert_allclose(back, wanted, rtol=1e-6)
    with pytest.raises(NotImplementedError, match="unique_indices=True"):
        linear_transpose(lambda y: jnp.zeros_like(X).at[PLACES].set(y), X)(X)


@pytest.mark.parametrize("dims", [(0, None), (None, 0), (0, 0), (2, 1)])
@pytest.mark.parametrize("compiled", [False, True])
def test_batches(dims, compiled):
    several = np.stack([X, 2 * X, X - 1], dims[0] or 0) if dims[0] is not None else X
    several = jnp.asarray(several)
    places = np.array([[2, 0], [1, 1], [-1, 9]])
    numbers = np.stack([*places], dims[1] or 0) if dims[1] is not None else places[0]

    def one(i, a, dim):
        return np.take(np.asarray(a), i, dim) if dim is not None else a

    for f in (
        lambda x, i: x[i],
        lambda x, i: x[:, i[0]],
        lambda x, i: x.at[i].add(x[:2]),
        lambda x, i: x.at[i, i].set(x[0, :2]),
        lambda x, i: lax.dynamic_slice(x, (i[0], 1, i[1]), (2, 3, 1)),
        lambda x, i: lax.dynamic_update_slice(x, x[:1], (i[0], 0, i[1])),
    ):
        call = vmap(f, dims)
        found = (jit(call) if compiled else call)(several, numbers)
        for i in range(3):
            x, n = one(i, several, dims[0]), one(i, numbers, dims[1])
            wanted = f(jnp.asarray(x), jnp.asarray(n))
            np.testing.assert_allclose(found[i], wanted, rtol=1e-6)


def test_costs():
    def cost(f, *args):
        return cost_analysis(make_jaxpr(f)(*args).jaxpr)

    table, rows = np.zeros((1000, 8), "float32"), np.zeros((10, 1), "int32")
    numbers = lax.GatherDimensionNumbers((1,), (0,), (0,))
    found = cost(lambda x, i: lax.gather(x, i, numbers, (1, 8)), table, rows)
    assert found == {"bytes accessed": 2 * 320 + 40}
    numbers, new = lax.ScatterDimensionNumbers(*numbers), np.zeros((10, 8), "float32")
    found = cost(lambda x, i, u: lax.scatter_add(x, i, u, numbers), table, rows, new)
    assert found == {"bytes accessed": 3 * 320 + 40, "flops": 80}


def test_what_is_not_used_is_left_out():
    closed = make_jaxpr(grad(lambda x, i: x[i].sum()))(X, PLACES)
    from minijax.rematerialization.jaxpr_transforms import dce_all_outputs

    text = str(dce_all_outputs(closed)[0])
    assert text.count("gather[") == 0 and text.count("scatter-add[") == 1
