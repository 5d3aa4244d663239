"""Products with long sums, of operands in any order of memory, beside 64 bits."""

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import jit, lax
from minijax.arrays.numerics import BLOCKED_SUM_SIZES, LONGEST_SUM, matmul_impl

N = 2**20 + 3
LINE = np.full(N, 0.1, "float32")
WIDE = np.full((3, 2 * N), 0.1, "float32")

CASES = {
    "ones": lambda x, y: x @ jnp.ones(N),
    "rows of ones": lambda x, y: jnp.ones((3, N)) @ x,
    "backwards": lambda x, y: jnp.dot(x[::-1], x),
    "in steps": lambda x, y: y[:, ::2] @ x,
    "repeated": lambda x, y: x @ jnp.broadcast_to(x[:, None], (N, 3)),
    "batch": lambda x, y: jnp.einsum("bij,bkj->bik", y[None, :, 1::2], y[None, :2, :N]),
    "plain": lambda x, y: jnp.dot(x, x),
}


@pytest.mark.parametrize("backend", [None, "interpreter", "python", "cpu"])
@pytest.mark.parametrize("name", CASES)
def test_long_sums(name, backend):
    f = CASES[name]
    found = (jit(f, backend=backend) if backend else f)(
        jnp.array(LINE), jnp.array(WIDE)
    )
    tenth = float(LINE[0])
    expected = N * tenth * (1 if "ones" in name else tenth)
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_many_long_sums_apart():
    x = np.full((70, 2 * BLOCKED_SUM_SIZES * 4), 0.1, "float32")[:, ::2]
    found = jnp.array(x)[:, ::-1] @ lax.transpose(jnp.array(x), (1, 0))
    np.testing.assert_allclose(
        found, 4 * BLOCKED_SUM_SIZES * float(x[0, 0]) ** 2, rtol=1e-5
    )


@pytest.mark.parametrize(
    "terms",
    [BLOCKED_SUM_SIZES - 1, BLOCKED_SUM_SIZES, BLOCKED_SUM_SIZES + 1, LONGEST_SUM + 5],
)
@pytest.mark.parametrize("kind", ["float32", "complex64", "int32", "bool"])
@pytest.mark.parametrize("m, n", [(1, 1), (0, 2), (2, 3), (9, 9)])
def test_each_way_is_the_same_product(m, n, kind, terms):
    rng = np.random.default_rng(terms)
    a, b = (rng.integers(-2, 3, shape) for shape in ((2, m, 2 * terms), (terms, n)))
    a, b = a.astype(kind)[..., ::-2], np.broadcast_to(b.astype(kind), (2, terms, n))
    for x in (a, a.copy()):
        for y in (b, b.copy(), b.swapaxes(1, 2).copy().swapaxes(1, 2)):
            found = matmul_impl(np, x, y)
            assert found.dtype == kind and found.shape == (2, m, n)
            np.testing.assert_array_equal(found, np.matmul(a, b))
