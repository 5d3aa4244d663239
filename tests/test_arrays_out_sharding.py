"""Each public function with `out_sharding` puts its result where that says."""

import inspect
from contextlib import suppress
from functools import partial
from importlib import import_module

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import P, lax, random
from minijax.sharding import Mesh, NamedSharding
from tests.commands import LONG

MESH = Mesh(minijax.devices()[:1], ("x",))
ROW, SQUARE, KEY = jnp.arange(2.0), jnp.ones((2, 2)), random.key(0)
IDS, HALF = jnp.array([0, 1]), jnp.float32(0.5)

# For each public function with `out_sharding`: how it is called for a result whose
# first axis can be cut.
PLACED = {
    "numpy": {
        "arange": lambda f: partial(f, 2),
        "array asarray bincount ravel": lambda f: partial(f, IDS),
        "broadcast_to": lambda f: partial(f, ROW, (2, 2)),
        "reshape": lambda f: partial(f, ROW, (2, 1)),
        "dot matmul": lambda f: partial(f, SQUARE, SQUARE),
        "einsum": lambda f: partial(f, "ij,jk", SQUARE, SQUARE),
        "empty ones zeros": lambda f: partial(f, 2),
        "full full_like": lambda f: partial(f, 2 if f is jnp.full else ROW, 1.0),
        "ones_like zeros_like": lambda f: partial(f, ROW),
        "percentile": lambda f: partial(f, ROW, jnp.array([25.0, 50.0])),
        "repeat": lambda f: partial(f, ROW, 2),
        "tensordot": lambda f: partial(f, SQUARE, SQUARE, 1),
    },
    "numpy.linalg": {"tensordot": lambda f: partial(f, SQUARE, SQUARE, axes=1)},
    "lax": {
        "broadcast": lambda f: partial(f, ROW, (2,)),
        "broadcast_in_dim": lambda f: partial(f, ROW, (2, 2), (0,)),
        "broadcasted_iota": lambda f: partial(f, int, (2,), 0),
        "conv_general_dilated": lambda f: partial(
            f, jnp.ones((2, 1, 3)), jnp.ones((1, 1, 2)), (1,), "VALID"
        ),
        "dot": lambda f: partial(f, SQUARE, SQUARE),
        "dot_general": lambda f: partial(f, SQUARE, SQUARE, (((1,), (0,)), ((), ()))),
        "empty": lambda f: partial(f, (2,), float),
        "ragged_dot": lambda f: partial(f, SQUARE, SQUARE[None], jnp.array([2])),
        "ragged_dot_general": lambda f: partial(
            f, SQUARE, SQUARE[None], jnp.array([2]),
            lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), [0], [0]),
        ),
        "reduce": lambda f: partial(f, SQUARE, 0.0, lax.add, (1,)),
        "reshape": lambda f: partial(f, ROW, (2, 1)),
        "rng_bit_generator": lambda f: lambda **how: f(
            jnp.zeros(4, "uint32"), (2,), **how
        )[1],
    },
    "nn.initializers": {"ones zeros": lambda f: partial(f, KEY, (2,))},
    "ops": {
        "segment_max segment_min segment_prod segment_sum": lambda f: partial(
            f, ROW, IDS, 2
        ),
    },
    "random": {
        "ball": lambda f: partial(f, KEY, 2, shape=(2,)),
        "bernoulli": lambda f: partial(f, KEY, 0.5, (2,)),
        "beta f": lambda f: partial(f, KEY, HALF, HALF, (2,)),
        "bits cauchy exponential gumbel laplace logistic maxwell normal rademacher "
        "uniform": lambda f: partial(f, KEY, (2,)),
        "categorical": lambda f: partial(f, KEY, SQUARE),
        "chisquare gamma generalized_normal geometric loggamma pareto poisson rayleigh "
        "t wald": lambda f: partial(f, KEY, HALF, shape=(2,)),
        "dirichlet": lambda f: partial(f, KEY, ROW + 1, (2,)),
        "lognormal": lambda f: partial(f, KEY, shape=(2,)),
        "multivariate_normal": lambda f: partial(f, KEY, ROW, jnp.eye(2)),
        "orthogonal": lambda f: partial(f, KEY, 2),
        "permutation": lambda f: partial(f, KEY, ROW),
        "randint": lambda f: partial(f, KEY, (2,), 0, 9),
        "triangular": lambda f: partial(f, KEY, 0.0, 0.5, 1.0, (2,)),
        "truncated_normal": lambda f: partial(f, KEY, -1.0, 1.0, (2,)),
    },
}
CALLS = {
    f"{space}.{name}": (space, name, call)
    for space, calls in PLACED.items()
    for names, call in calls.items()
    for name in names.split()
}


@pytest.mark.parametrize("path", CALLS)
def test_a_result_lies_where_out_sharding_says(path):
    space, name, call = CALLS[path]
    f = call(getattr(import_module(f"minijax.{space}"), name))
    with minijax.set_mesh(MESH):
        places = [f(out_sharding=minijax.P("x"))]
        if LONG or [*CALLS].index(path) % 2:  # one of two is compiled, too
            run = minijax.jit(lambda: f(out_sharding=NamedSharding(MESH, P("x"))))
            places.append(run())
    for found in places:
        assert isinstance(found.sharding, NamedSharding), found.sharding
        assert found.sharding.spec[0] == "x"
        np.testing.assert_allclose(found, f(out_sharding=None), rtol=1e-6)
    for wrong in ("rows", minijax.devices()[0]):
        with pytest.raises((TypeError, ValueError), match="out_sharding"):
            f(out_sharding=wrong)
    with pytest.raises(ValueError, match="not under a mesh context"):
        f(out_sharding=P("x"))


def test_each_function_with_out_sharding_is_among_them():
    found = set()
    for space in (*PLACED, "nn", "scipy.special", "scipy.linalg", "numpy.fft"):
        module = import_module(f"minijax.{space}")
        for name in dir(module):
            with suppress(TypeError, ValueError):
                order = inspect.signature(getattr(module, name)).parameters
                found |= {f"{space}.{name}"} if "out_sharding" in order else set()
    assert found == set(CALLS)


def test_methods_take_out_sharding():
    with minijax.set_mesh(MESH):
        for found in (
            SQUARE.reshape(4, out_sharding=P("x")),
            SQUARE.ravel(out_sharding=P("x")),
            SQUARE.flatten(out_sharding=P("x")),
            SQUARE.repeat(2, out_sharding=P("x")),
            SQUARE.at[IDS].get(out_sharding=P("x")),
            SQUARE.at[IDS].add(1.0, out_sharding=P("x")),
        ):
            assert found.sharding.spec[0] == "x"


def test_out_sharding_in_batches_and_gradients():
    def f(x):
        return jnp.dot(x, x, out_sharding=P("x"))

    with minijax.set_mesh(MESH):
        batch = minijax.vmap(f)(jnp.ones((3, 2, 2)))
        slope = minijax.grad(lambda x: f(x).sum())(SQUARE)
    assert batch.sharding.spec[:2] == (None, "x")
    np.testing.assert_array_equal(slope, 4 * SQUARE)
