"""Signs of zeros and of tiny complex numbers, eager and compiled; small faces."""

from functools import partial

import numpy as np
import pytest

import minijax as jax
from minijax import export, jit, lax
from minijax import numpy as jnp

ENDS = [complex(x, y) for x in (2.0, -2.0, 0.5, 0.0, -0.0) for y in (0.0, -0.0)]


def parts(z):
    return np.stack([np.asarray(z).real, np.asarray(z).imag])


@pytest.mark.parametrize("name", ["sin", "cos", "sinh", "cosh", "tan", "tanh"])
@pytest.mark.parametrize("turned", [False, True])
def test_zeros_of_complex_sines_have_one_sign(name, turned):
    z = np.array(ENDS, np.complex64)
    z = np.stack([z.imag, z.real], -1).view(np.complex64)[:, 0] if turned else z
    f = getattr(jnp, name)
    eager, compiled = parts(f(jnp.asarray(z))), parts(jit(f)(jnp.asarray(z)))
    np.testing.assert_array_equal(np.signbit(eager), np.signbit(compiled))
    np.testing.assert_allclose(eager, compiled, rtol=1e-6)


def test_sin_of_two_has_the_zero_of_its_cosine():
    """As in JAX, which has it in eager and compiled operations."""
    for f in (jnp.sin, jit(jnp.sin)):
        assert np.signbit(np.asarray(f(jnp.complex64(2 + 0j))).imag)
        assert not np.signbit(np.asarray(f(jnp.complex64(0.5 + 0j))).imag)


@pytest.mark.parametrize("f", [jnp.sign, jit(jnp.sign)], ids=["eager", "jit"])
def test_signs_of_subnormal_complex_numbers(f):
    z = np.array([1e-40 + 1e-40j, 1e-42, 1e-45j, -1e-45, 3e-39 - 4e-39j], np.complex64)
    half = np.sqrt(0.5)
    expected = [half + half * 1j, 1, 1j, -1, 0.6 - 0.8j]
    np.testing.assert_allclose(np.asarray(f(jnp.asarray(z))), expected, rtol=1e-6)
    assert np.asarray(f(jnp.complex64(complex(1e-42, -0.0)))).imag == 0


def test_messages_show_permutations():
    turn, stay = [(0, 1), (1, 0)], [(0, 0), (1, 1)]

    @partial(jax.pmap, axis_name="i")
    def f(x):
        ways = [lambda x, p=p: lax.ppermute(x, "i", p) for p in (turn, stay)]
        return lax.cond(x > 0, *ways, x)

    with pytest.raises(RuntimeError) as refusal:
        f(np.array([1.0, -1.0], np.float32))
    assert str(turn) in str(refusal.value) and str(stay) in str(refusal.value)


def test_what_is_exported_has_no_shardings():
    x = jax.ShapeDtypeStruct((2,), np.float32)
    exported = export.export(jit(lambda x, y: (x + y, x, y)))(x, x)
    mesh = jax.make_mesh((1,), ("i",))
    assert exported.in_shardings_jax(mesh) == (None, None)
    assert exported.out_shardings_jax(mesh) == (None, None, None)


@pytest.mark.parametrize("kind", [jax.custom_vjp, jax.custom_jvp])
def test_a_rule_of_batches_is_given_through_a_rule_of_derivatives(kind):
    f = kind(jax.custom_batching.custom_vmap(lambda x: jnp.sin(x)))
    if kind is jax.custom_vjp:
        f.defvjp(lambda x: (f(x), x), lambda x, g: (g * 10,))
    else:
        f.defjvp(lambda x, t: (f(*x), t[0] * 10))
    f.def_vmap(lambda axis_size, in_batched, x: (jnp.cos(x), True))
    np.testing.assert_allclose(jax.vmap(f)(jnp.ones(2)), np.cos(np.ones(2)), rtol=1e-6)
    assert jax.grad(f)(1.0) == 10.0
    assert not hasattr(kind(jnp.sin), "def_vmap") and not hasattr(f, "def_other")
