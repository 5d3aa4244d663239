"""Calls with rules of their own: as Python, in programs, in batches, on backends."""

import gc
import itertools
import weakref

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import custom_jvp, custom_vjp, grad, jit, make_jaxpr, vmap
from minijax.custom_derivatives.custom_jvp_vjp import callee_rules
from minijax.extend.core import check_jaxpr
from tests import own_rules_cases

FUNCTIONS = own_rules_cases.functions(minijax)
WAYS = own_rules_cases.transformations(minijax)
STACKS = [
    (name, stack)
    for name in FUNCTIONS
    for stack in [(way,) for way in WAYS]
    if own_rules_cases.is_possible(name, stack)
]


@pytest.mark.parametrize("backend", ["interpreter", "python", "cpu"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_backends_agree_with_python(name, backend):
    f = FUNCTIONS[name]
    with minijax.config.override("minijax_backend", backend):
        np.testing.assert_allclose(jit(f)(1.25), f(1.25), rtol=1e-5)
        np.testing.assert_allclose(jit(grad(f))(1.25), grad(f)(1.25), rtol=1e-5)
        xs = jnp.array([1.25, 0.5])
        found = jit(vmap(grad(jit(f))))(xs)
        np.testing.assert_allclose(found, [grad(f)(x) for x in xs], rtol=1e-5)


@pytest.mark.parametrize(("name", "stack"), STACKS)
def test_a_program_is_what_python_does(name, stack):
    f = FUNCTIONS[name]
    for way in stack:
        f = WAYS[way](f)
    np.testing.assert_allclose(jit(f)(1.25), f(1.25), rtol=1e-5)
    check_jaxpr(make_jaxpr(f)(1.25))


def test_python_may_look_at_numbers():
    @custom_vjp
    def f(x):
        return x if float(x) > 0 else -x

    f.defvjp(lambda x: (f(x), x), lambda x, ct: (ct * 7.0 if x > 0 else ct,))
    assert f(-2.0) == 2.0 and grad(f)(2.0) == 7.0 and grad(f)(-2.0) == 1.0
    with pytest.raises(minijax.errors.ConcretizationTypeError):
        jit(f)(2.0)


def test_a_call_tells_what_it_calls():
    [eqn] = make_jaxpr(FUNCTIONS["bent"])(1.0).eqns
    names = [inner.primitive.name for inner in callee_rules[eqn.primitive](eqn).eqns]
    assert names == ["sin", "mul"]
    [inner] = callee_rules[eqn.primitive](eqn).eqns[:1]
    assert callee_rules[inner.primitive](inner) is None


def test_an_example_in_a_closure_is_mapped():
    def f(w):
        h = custom_jvp(lambda x: x * w)
        h.defjvp(lambda p, t: (p[0] * 2.0, t[0]))
        return h(3.0)

    np.testing.assert_array_equal(vmap(f)(jnp.arange(3.0)), [0.0, 3.0, 6.0])
    np.testing.assert_array_equal(vmap(jit(f))(jnp.arange(3.0)), [0.0, 3.0, 6.0])
    np.testing.assert_array_equal(jit(vmap(f))(jnp.arange(3.0)), [0.0, 3.0, 6.0])


def test_what_moves_in_a_closure_is_refused():
    def forward(w):
        h = custom_jvp(lambda x: x * w)
        h.defjvp(lambda p, t: (p[0] * 2.0, t[0]))
        return h(3.0)

    def backward(w):
        h = custom_vjp(lambda x: x * w)
        h.defvjp(lambda x: (x * 2.0, None), lambda _, ct: (ct,))
        return h(3.0)

    for f, kind in [(forward, "custom_jvp"), (backward, "custom_vjp")]:
        with pytest.raises(Exception, match=f"of a {kind} function with respect to a"):
            grad(jit(f))(2.0)
        with pytest.raises(minijax.errors.UnexpectedTracerError):
            grad(f)(2.0)


def test_collectives_meet_the_axis_of_the_batch():
    f = custom_jvp(lambda x: minijax.lax.psum(x, "i"))
    f.defjvps(lambda t, out, x: 5.0 * t)
    xs = jnp.arange(3.0)
    np.testing.assert_array_equal(vmap(f, axis_name="i")(xs), [3.0, 3.0, 3.0])
    np.testing.assert_array_equal(vmap(jit(f), axis_name="i")(xs), [3.0, 3.0, 3.0])
    np.testing.assert_array_equal(vmap(grad(f), axis_name="i")(xs), [5.0, 5.0, 5.0])


@pytest.mark.parametrize("order", list(itertools.permutations(["jit", "vmap", "grad"])))
def test_orders_agree(order):
    f = FUNCTIONS["both"]
    for name in order:
        f = WAYS[name](f)
    assert np.isfinite(f(0.75))
    np.testing.assert_allclose(f(0.75), jit(f)(0.75), rtol=1e-5)


def test_a_program_does_not_keep_the_arrays_it_was_traced_with():
    class Box(np.ndarray):
        """An array that can be referred to weakly."""

    f = jit(lambda x: FUNCTIONS["turned"](x) * 2.0)
    data = np.ones(1000, np.float32).view(Box)
    seen = weakref.ref(data)
    f(jnp.asarray(data))
    del data
    gc.collect()
    assert seen() is None


@pytest.mark.parametrize("name", ["relu", "forward", "backward"])
@pytest.mark.parametrize("inside", [jit, lambda f: f])
def test_results_of_shared_arguments_are_shared(name, inside):
    forward = custom_jvp(lambda x: x * 3.0)
    forward.defjvp(lambda p, t: (forward(*p), t[0] * 5.0))
    backward = custom_vjp(lambda x: x * 3.0)
    backward.defvjp(lambda x: (backward(x), x), lambda x, ct: (ct * 5.0,))
    h = {"relu": minijax.nn.relu, "forward": forward, "backward": backward}[name]
    each = inside(vmap(lambda x, y: h(x), in_axes=(None, 0), out_axes=None))
    value, slope = minijax.value_and_grad(each)(2.0, jnp.arange(3.0))
    assert (value, slope) == ((2.0, 1.0) if name == "relu" else (6.0, 5.0))


def test_a_rule_that_depends_on_the_example_alone_is_refused():
    h = custom_jvp(lambda x: x * 3.0)
    h.defjvp(lambda p, t: (h(*p), t[0] * minijax.lax.axis_index("i")))
    each = vmap(h, in_axes=None, axis_size=3, axis_name="i")
    _, slopes = minijax.jvp(each, (2.0,), (1.0,))
    np.testing.assert_array_equal(slopes, [0.0, 1.0, 2.0])
    with pytest.raises(TypeError, match="depends on the example"):
        minijax.jvp(jit(each), (2.0,), (1.0,))
