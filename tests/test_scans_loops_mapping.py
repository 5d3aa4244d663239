"""lax.map: values, batches, and what it refuses."""

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import jit, lax, make_jaxpr
from tests.scan_cases import TABLE

SIZES = [None, 0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("batch_size", SIZES)
@pytest.mark.parametrize("through", [lambda f: f, jit])
def test_values(batch_size, through):
    def f(a):
        return {"sum": a["u"].sum(), "both": (a["u"] * a["v"], 3)}

    xs = {"u": TABLE, "v": jnp.arange(4.0)}
    result = through(lambda xs: lax.map(f, xs, batch_size=batch_size))(xs)
    table = np.asarray(TABLE)
    np.testing.assert_allclose(result["sum"], table.sum(1), rtol=1e-6)
    np.testing.assert_allclose(
        result["both"][0], table * np.arange(4)[:, None], rtol=1e-6
    )
    np.testing.assert_array_equal(result["both"][1], [3, 3, 3, 3])


def test_batches_are_mapped_at_once():
    shapes = []

    def f(a):
        shapes.append(a.shape)
        return a * 2

    closed = make_jaxpr(lambda xs: lax.map(f, xs, batch_size=3))(np.ones((7, 2)))
    [eqn] = [eqn for eqn in closed.eqns if eqn.primitive.name == "scan"]
    assert eqn.params["length"] == 2
    assert shapes == [(2,), (2,)]


def test_no_rows():
    assert lax.map(lambda a: a * 2, TABLE[:0]).shape == (0, 3)
    assert lax.map(lambda a: a * 2, TABLE[:0], batch_size=2).shape == (0, 3)


@pytest.mark.parametrize(
    ("xs", "batch_size", "kind", "fact"),
    [
        (None, None, ValueError, "length"),
        (1.0, None, ValueError, "1.0"),
        (TABLE, -1, TypeError, "-1"),
        ((TABLE, TABLE[:2]), 2, ValueError, "xs[1]: 2"),
    ],
)
def test_refusals(xs, batch_size, kind, fact):
    with pytest.raises(kind) as caught:
        lax.map(lambda a: a, xs, batch_size=batch_size)
    assert fact in str(caught.value)


@pytest.mark.parametrize("batch_size", [None, 2])
def test_a_function_is_traced_at_each_call(batch_size):
    """As in JAX: what it reads besides its argument may have changed."""
    factor = [1.0]

    def scaled(x):
        return x * factor[0]

    for number in (1.0, 2.0, 3.0):
        factor[0] = number
        found = lax.map(scaled, jnp.ones(3), batch_size=batch_size)
        assert found.tolist() == [number] * 3
