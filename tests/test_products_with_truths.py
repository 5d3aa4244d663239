"""A float times bools is the float or 0: eager, compiled, transformed."""

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import lax

BACKENDS = "interpreter python kernels llvm planned cpu".split()
BACKENDS = [name for name in BACKENDS if name in minijax.jitting.compilation.backends]
INFINITE = [np.inf, -np.inf, np.nan, 1.0]
TRUTHS = [False, False, False, True]
FLOATS = ["float16", "bfloat16", "float32", "complex64"]


def arrays(dtype):
    return jnp.array(TRUTHS), jnp.array(INFINITE).astype(dtype)


def chosen(dtype):
    return np.array([0, 0, 0, 1], np.dtype(jnp.dtype(dtype)))


PROGRAMS = {
    "product": lambda m, x: m * x,
    "reflected": lambda m, x: x * m,
    "of NumPy": lambda m, x: np.array(TRUTHS) * x,
    "multiply": jnp.multiply,
    "compared": lambda m, x: (m.astype(int) == 1) * x,
    "in a batch": minijax.vmap(lambda m, x: m * x),
    "in a scan": lambda m, x: lax.map(lambda row: row[0] * row[1], (m, x)),
    "in a branch": lambda m, x: lax.cond(True, lambda: m * x, lambda: x),
    "in a call": lambda m, x: minijax.jit(lambda x: m * x)(x),
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_eager_and_compiled(name, dtype):
    f, (m, x) = PROGRAMS[name], arrays(dtype)
    for how in (f, minijax.jit(f)):
        np.testing.assert_array_equal(how(m, x), chosen(dtype))
        assert how(m, x).dtype == x.dtype


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_backend(backend):
    m, x = arrays("float32")
    f = minijax.jit(PROGRAMS["product"], backend=backend)
    np.testing.assert_array_equal(f(m, x), chosen("float32"))


VIEWED = {
    "conversion": lambda m, x: m.astype("float32") * x,
    "column": lambda m, x: (m[:, None] * x)[:, 1],
    "row": lambda m, x: (m * x[:, None])[1],
    "matrix": lambda m, x: (m.reshape(2, 2).astype("float32").T.T * x.reshape(2, 2)),
}


@pytest.mark.parametrize("name", VIEWED)
def test_views_of_truths(name):
    m, x = arrays("float32")
    found = minijax.jit(VIEWED[name])(m, x).ravel()
    wanted = [0, 0, 0, -np.inf] if name in ("column", "row") else [0, 0, 0, 1]
    np.testing.assert_array_equal(found, np.float32(wanted))


def test_a_mask_of_attention():
    """The one that is published: it was NaN from the first step."""

    def attention(s, m):
        return minijax.nn.softmax(s + (m == 0) * float("-inf"), axis=1)

    s, m = jnp.zeros((2, 2)), jnp.tril(jnp.ones((2, 2), bool))
    wanted = np.float32([[1, 0], [0.5, 0.5]])
    for f in (attention, minijax.jit(attention)):
        np.testing.assert_array_equal(f(s, m), wanted)
        slopes = minijax.grad(lambda s, f=f: (f(s, m) ** 2).sum())(s)
        assert np.isfinite(slopes).all()


@pytest.mark.parametrize("of", [lambda f: f, minijax.jit], ids=["eager", "jit"])
def test_slopes(of):
    m, x = arrays("float32")
    loss = lambda x: (m * x).sum()  # noqa: E731
    np.testing.assert_array_equal(of(minijax.grad(loss))(x), np.float32(TRUTHS))
    value, slope = minijax.jvp(of(lambda x: m * x), (x,), (x,))
    np.testing.assert_array_equal(value, chosen("float32"))
    np.testing.assert_array_equal(slope, chosen("float32"))


def test_the_program_is_that_of_jax():
    m, x = arrays("float32")
    slope = lambda m, x: minijax.grad(lambda x: (m * x).sum())(x)  # noqa: E731
    for f in (PROGRAMS["product"], slope):
        names = [eqn.primitive.name for eqn in minijax.make_jaxpr(f)(m, x).eqns]
        assert names[:2] == ["convert_element_type", "mul"]
        assert "select_n" not in names


def test_weak_types():
    m, _ = arrays("float32")
    for f in (lambda m: m * 2.0, minijax.jit(lambda m: m * 2.0)):
        assert f(m).dtype == "float32"
        assert f(m).weak_type
    assert not (m * jnp.float32(2)).weak_type


def test_numbers_of_python_are_numbers():
    """A bool that a program knows is the number 0 or 1, as in JAX."""
    x = jnp.array([np.inf])
    for f in (lambda x: x * False, lambda x: x * np.bool_(False)):
        assert np.isnan(f(x)).all()
        assert np.isnan(minijax.jit(f)(x)).all()


def test_integers_multiply():
    m = jnp.array(TRUTHS)
    assert (m * jnp.arange(4)).tolist() == [0, 0, 0, 3]
    assert (m * m).tolist() == TRUTHS


def test_shapes_that_do_not_meet():
    with pytest.raises((ValueError, TypeError), match="[Ii]ncompatible shapes"):
        jnp.array([True, False]) * jnp.ones(3)
