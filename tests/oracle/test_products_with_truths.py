"""A float times an array of bools is what it is in JAX, infinities and NaN included."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import minijax  # noqa: E402
from tests.test_products_with_truths import INFINITE, TRUTHS  # noqa: E402

PROGRAMS = {
    "product": lambda jax, m, x: m * x,
    "reflected": lambda jax, m, x: x * m,
    "number": lambda jax, m, x: (m == 0) * -np.inf,
    "a bool of Python": lambda jax, m, x: x * False,
    "integers": lambda jax, m, x: m.astype(int) * x,
    "slope": lambda jax, m, x: jax.grad(lambda x: (m * x).sum().real)(x.real),
    "batch": lambda jax, m, x: jax.vmap(lambda m, x: m * x)(m, x),
    "scan": lambda jax, m, x: jax.lax.map(lambda row: row[0] * row[1], (m, x)),
    "dot": lambda jax, m, x: jax.numpy.dot(~m[::-1], x[::-1]),
    "dot of finite": lambda jax, m, x: jax.numpy.dot(m, x),
    "inner": lambda jax, m, x: jax.numpy.inner(x, m),
    "vecdot": lambda jax, m, x: jax.numpy.vecdot(m, x),
    "matmul": lambda jax, m, x: x @ m,
    "tensordot": lambda jax, m, x: jax.numpy.tensordot(m, x, 1),
    "einsum": lambda jax, m, x: jax.numpy.einsum("i,i", m, x),
    "einsum of elements": lambda jax, m, x: jax.numpy.einsum("i,i->i", m, x),
    "row and column": lambda jax, m, x: jax.jit(lambda m, x: m[None] @ x[:, None])(
        m, x
    ),
    "column times one": lambda jax, m, x: m[:, None] @ x[:1],
    "einsum of a number": lambda jax, m, x: jax.numpy.einsum("i,->i", m, x[0]),
    "einsum of a batch": lambda jax, m, x: jax.numpy.einsum(
        "bi,bi->b", m.reshape(2, 2), x.reshape(2, 2)
    ),
    "batched dot": lambda jax, m, x: jax.vmap(jax.numpy.dot)(
        m.reshape(2, 2), x.reshape(2, 2)
    ),
    "slope of a power": lambda jax, m, x: jax.grad(lambda x: (x**m).sum().real)(x.real),
    "polyval": lambda jax, m, x: jax.numpy.polyval(x, m),
    "mask": lambda jax, m, x: jax.nn.softmax(x.real * 0 + (m == 0) * -np.inf),
}


@pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_beside_jax(name, dtype, jitted):
    with minijax.enable_x64(True), jax.enable_x64(True):
        found = []
        for module in (minijax, jax):
            m = module.numpy.array(TRUTHS)
            x = module.numpy.array(INFINITE).astype(dtype)
            f = lambda m, x, module=module: PROGRAMS[name](module, m, x)  # noqa: E731
            found.append((module.jit(f) if jitted else f)(m, x))
        ours, theirs = found
        assert (ours.dtype, ours.weak_type) == (theirs.dtype, theirs.weak_type)
        np.testing.assert_array_equal(ours, theirs)


def test_conversions_in_compiled_programs():
    """Alone, a converted array is an array of numbers; in a program it is truths."""
    for module in (minijax, jax):
        m, x = module.numpy.array(TRUTHS), module.numpy.array(INFINITE)
        f = lambda m, x: m.astype("float32") * x  # noqa: E731
        assert np.isnan(f(m, x)[:3]).all()
        assert np.asarray(module.jit(f)(m, x)).tolist() == [0, 0, 0, 1]
