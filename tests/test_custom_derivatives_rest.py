"""Rules for batches and transposes, closures, and solutions of equations.

The numbers, texts and messages are those that JAX 0.10.2 has for the same programs:
``python -m tests.own_rules_programs`` records them.
"""

import json

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import (
    closure_convert,
    custom_batching,
    custom_derivatives,
    grad,
    jit,
    jvp,
    lax,
    make_jaxpr,
    vmap,
)
from minijax.extend.core import check_jaxpr
from tests import own_rules_programs

WANTED = json.loads(own_rules_programs.RECORD.read_text(encoding="utf-8"))
FOUND = own_rules_programs.outcomes(minijax)


@pytest.mark.parametrize("name", WANTED["numbers"])
def test_programs_of_newcomers(name):
    ours, wanted = FOUND["numbers"][name], WANTED["numbers"][name]
    assert len(ours) == len(wanted)
    for one, other in zip(ours, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["texts", "messages"])
def test_texts_and_messages(kind):
    assert FOUND[kind] == WANTED[kind]


@custom_batching.custom_vmap
def scaled(x, gain):
    return gain * jnp.sin(x)


@scaled.def_vmap
def scaled_rule(size, in_mapped, x, gain):
    return gain * jnp.sin(x) * 2.0, any(in_mapped)


@pytest.mark.parametrize("backend", ["interpreter", "python", "cpu"])
def test_batches_on_backends(backend):
    xs = jnp.linspace(0.0, 1.0, 5)
    solve = custom_batching.sequential_vmap(lambda x: jnp.exp(x) + scaled(x, 2.0))
    with minijax.config.override("minijax_backend", backend):
        np.testing.assert_allclose(jit(scaled)(0.5, 2.0), scaled(0.5, 2.0), rtol=1e-6)
        mapped = jit(vmap(scaled, (0, None)))(xs, 2.0)
        np.testing.assert_allclose(mapped, 4.0 * np.sin(xs), rtol=1e-5)
        single = jit(vmap(solve))(xs)
        np.testing.assert_allclose(single, np.exp(xs) + 2 * np.sin(xs), rtol=1e-5)


def test_batches_of_tangents_only():
    _, slopes = vmap(lambda t: jvp(scaled, (0.5, 1.0), (t, 0.0)))(jnp.arange(3.0))
    np.testing.assert_allclose(slopes, 2 * np.cos(0.5) * np.arange(3), rtol=1e-5)
    both = vmap(lambda x, t: jvp(scaled, (x, 1.0), (t, 1.0))[1])
    xs = jnp.arange(3.0)
    wanted = 2 * (np.cos(xs) * xs + np.sin(xs))
    np.testing.assert_allclose(both(xs, xs), wanted, rtol=1e-5)


def test_batches_of_second_tangents():
    def slope(x):
        return jvp(lambda x: jvp(scaled, (x, 1.0), (1.0, 0.0))[1], (x,), (1.0,))[1]

    xs = jnp.arange(3.0)
    np.testing.assert_allclose(vmap(slope)(xs), -2 * np.sin(xs), rtol=1e-5, atol=1e-6)
    check_jaxpr(make_jaxpr(vmap(slope))(xs))


def test_integers_have_no_tangents_in_a_batch():
    @custom_batching.custom_vmap
    def f(x, n):
        return x * n, n + 1

    f.def_vmap(lambda size, in_mapped, x, n: ((x * n, n + 1), tuple(in_mapped)))
    g = vmap(lambda x, n: jvp(lambda x: f(x, n)[0], (x,), (1.0,))[1], (0, None))
    assert g(jnp.ones(3), 4).tolist() == [4.0] * 3


def test_a_batch_that_comes_by_the_closure_is_refused():
    def f(w):
        g = custom_batching.custom_vmap(lambda x: x * w)
        g.def_vmap(lambda size, in_mapped, x: (x, in_mapped[0]))
        return g(1.0)

    with pytest.raises(ValueError, match="closes over"):
        vmap(f)(jnp.ones(3))


def test_closures_keep_what_does_not_move():
    def at(w):
        return closure_convert(lambda x: x * w + jnp.arange(2.0).sum(), 1.0)[1]

    assert at(3.0) == [] and vmap(lambda w: len(at(w)) + w)(jnp.ones(2)).tolist()
    assert len(jit(at)(3.0)) == 1
    assert jit(lambda n: len(at(n)) + n)(3) == 3


def test_linear_calls_have_batches_and_move_with_their_residuals():
    def f(x, r):
        return custom_derivatives.linear_call(
            lambda r, x: x / r, lambda r, ct: 5.0 * ct / r, r, x
        )

    assert grad(f, 1)(8.0, 2.0) == -2.0
    xs, rs = jnp.arange(1.0, 4.0), jnp.array([1.0, 2.0, 4.0])
    np.testing.assert_allclose(vmap(f)(xs, rs), xs / rs)
    np.testing.assert_allclose(vmap(grad(f))(xs, rs), 5.0 / rs)
    shared = grad(lambda x: vmap(f, (None, 0))(x, rs).sum())(2.0)
    np.testing.assert_allclose(shared, (5.0 / rs).sum())


def test_roots_with_integers_besides():
    def f(a):
        return lax.custom_root(
            lambda x: x - a,
            1.0,
            lambda f, x: (x - f(x), {"rounds": 1}),
            lambda g, y: y / g(1.0),
            has_aux=True,
        )

    assert grad(lambda a: f(a)[0])(3.0) == 1.0 and f(3.0)[1] == {"rounds": 1}


def test_linear_solutions_of_trees_with_data_besides():
    def f(b):
        x, _ = lax.custom_linear_solve(
            lambda x: {"a": x["b"] * 2.0, "b": x["a"] * 4.0},
            b,
            lambda m, b: ({"a": b["b"] / 4.0, "b": b["a"] / 2.0}, 7),
            transpose_solve=lambda m, b: ({"a": b["b"] / 2.0, "b": b["a"] / 4.0}, 7),
            has_aux=True,
        )
        return x["a"] * 3.0 + x["b"] * 5.0

    b = {"a": jnp.ones(()), "b": jnp.ones(())}
    for gradient in (grad(f), jit(grad(f))):
        assert {k: float(v) for k, v in gradient(b).items()} == {"a": 2.5, "b": 0.75}


def test_a_door_has_the_names_of_jax():
    assert custom_derivatives.custom_jvp is minijax.custom_jvp
    assert custom_derivatives.closure_convert is minijax.closure_convert
    assert {"SymbolicZero", "linear_call"} <= {*dir(custom_derivatives)}
    assert {"custom_vmap", "sequential_vmap"} <= {*dir(custom_batching)}
    zero = custom_derivatives.zero_from_primal
    assert zero(jnp.ones(2)).tolist() == [0.0, 0.0]
    assert zero(3.0, symbolic_zeros=True).shape == ()
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        custom_derivatives.nothing  # noqa: B018


def test_rule_for_batches_hands_on_the_rule_for_tangents():
    square = minijax.custom_batching.custom_vmap(minijax.custom_jvp(lambda x: x * x))
    square.def_vmap(lambda size, mapped, x: (x * x, mapped[0]))
    square.defjvp(lambda primals, tangents: (primals[0] ** 2, 5 * tangents[0]))
    assert minijax.jvp(square, (3.0,), (1.0,)) == (9.0, 5.0)
    assert not hasattr(minijax.custom_batching.custom_vmap(jnp.sin), "defjvp")
