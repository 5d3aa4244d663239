"""Where a program finds its buffers, if values are written over others in chains."""

from functools import partial

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import jit, make_jaxpr
from minijax.cpu_backend.program_codegen import Locations
from minijax.jitting.compilation import compile_cached
from tests.commands import blocks

WEIGHTS = np.ones((2, 2), "f")


def drawn(rng, m, a, b):
    """A program of sums along columns, products, cosines and sorts of what it has."""
    made = [a, b]
    for _ in range(rng.integers(5, 14)):
        x, y = (made[rng.integers(len(made))] for _ in range(2))
        kind = rng.integers(6)
        if kind < 2:
            made.append(m.cumsum(x, 0))
        elif kind == 2:
            made.append(m.cos(x) @ WEIGHTS)
        elif kind == 3:
            made.append(m.cos(x) - y)
        elif kind == 4:
            made.append(m.sort(x, 0) + m.cos(y))
        else:
            made.append(x + y)
    return made[-1], made[-2] + m.cos(made[2])


def of(seed):
    """A drawn program as a function of two arrays, and the same of NumPy's."""

    def run(m, a, b):
        return drawn(np.random.default_rng(seed), m, a, b)

    return partial(run, jnp), partial(run, np)


A = np.random.default_rng(0).normal(size=(6, 2)).astype("f")


@pytest.mark.parametrize("block", blocks(4, 8))
def test_a_chain_of_values_in_one_place_is_one_variable(block):
    for seed in range(10 * block, 10 * block + 10):
        f, by_numpy = of(seed)
        run, expected = jit(f), by_numpy(A.astype(np.float64), 2.0 * A)
        for _ in range(2):
            for ours, wanted in zip(run(A, 2 * A), expected):
                assert np.allclose(ours, wanted, rtol=1e-2, atol=1e-2), seed
        where = Locations(compile_cached(make_jaxpr(f)(A, A), "cpu").plan)
        assert not where.first.keys() & {*where.first.values()}, seed


def test_the_first_of_a_chain_whose_later_part_is_found_earlier():
    def f(m, a, b):
        h, mm = a @ WEIGHTS, m.cumsum(b, 0)
        p = m.cumsum(h, 0) + mm
        z = m.cos(m.cumsum(p, 0) - h)
        ck = m.cumsum(z, 0) + m.cos(p)
        return m.cumsum(ck, 0), m.cos(mm) + ck

    x = np.arange(12, dtype="f").reshape(6, 2) / 9
    found = jit(lambda a, b: f(jnp, a, b))(x, x + 1)
    for ours, wanted in zip(found, f(np, x, x + 1)):
        assert np.allclose(ours, wanted, rtol=1e-4, atol=1e-4)
