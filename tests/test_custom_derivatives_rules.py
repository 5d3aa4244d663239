"""custom_jvp and custom_vjp: what rules get, what they may return, what is refused."""

import functools

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import custom_jvp, custom_vjp, grad, hessian, jacrev, jit, jvp, vjp, vmap
from minijax.arrays.dtypes import float0
from minijax.custom_derivatives.flat_functions import (
    CustomVJPPrimal,
    SymbolicZero,
    custom_vjp_primal_tree_values,
)
from tests import own_rules_cases

MISTAKES = own_rules_cases.mistakes(minijax)
TWO = jnp.array([2.0])


@pytest.mark.parametrize("name", sorted(MISTAKES))
def test_mistakes_are_refused(name):
    tracer = minijax.errors.UnexpectedTracerError
    classes = AttributeError, TypeError, ValueError, tracer
    with pytest.raises(classes) as caught:
        MISTAKES[name]()
    assert any(word in str(caught.value) for word in ("custom", "Custom", "defjvps"))


def test_arguments_by_name_and_default():
    @custom_jvp
    def f(x, y=2.0, *, z=None):
        return x * y

    with pytest.raises(TypeError, match="could not be resolved to positional-only"):
        f.defjvp(lambda p, t: p) and f(1.0, z=3.0)

    g = custom_jvp(lambda x, y=2.0: x * y)
    g.defjvp(lambda p, t: (g(*p), t[0] * p[1] + t[1]))
    assert g(x=3.0) == 6.0 and grad(lambda x: g(y=x, x=1.0))(4.0) == 1.0
    with pytest.raises(TypeError, match="missing a required argument: 'x'"):
        g()
    h = custom_jvp(functools.partial(lambda x, y: x * y, y=3.0))
    h.defjvp(lambda p, t: (h(*p), 10.0 * t[0]))
    assert h(2.0) == 6.0 and grad(h)(2.0) == 10.0


def test_names_of_static_arguments():
    f = custom_jvp(lambda n, x: x * n, nondiff_argnames="n")
    f.defjvp(lambda n, p, t: (f(n, *p), 100.0 * n * t[0]))
    assert grad(lambda x: f(3, x))(1.0) == 300.0 and f(x=2.0, n=4) == 8.0
    with pytest.raises(ValueError, match="names 'm', but the arguments of"):
        custom_jvp(lambda n, x: x, nondiff_argnames="m")


def test_a_static_argument_of_forward_mode_does_not_move():
    f = custom_jvp(lambda x, y: x * y, nondiff_argnums=(1,))
    f.defjvp(lambda y, p, t: (f(p[0], y), t[0] * y))
    assert grad(lambda x: f(x, x))(3.0) == 3.0
    np.testing.assert_array_equal(vmap(f)(jnp.arange(3.0), jnp.arange(3.0)), [0, 1, 4])


def test_attributes_are_those_of_the_function():
    def f(x):
        """Say what it is."""
        return x

    for kind in (custom_jvp, custom_vjp):
        decorated = kind(f)
        assert (decorated.__name__, decorated.__doc__) == ("f", "Say what it is.")
        assert decorated.__wrapped__ is f and decorated.fun is f


def test_forward_rules_see_zeros_when_they_ask():
    seen = []

    @custom_jvp
    def f(x, y, n):
        return x * y, n

    def rule(primals, tangents):
        seen.append([type(t) for t in tangents])
        x_dot, _, n_dot = tangents
        return f(*primals), (x_dot, n_dot)

    f.defjvp(rule, symbolic_zeros=True)
    assert grad(lambda x: f(x, 2.0, 3)[0])(1.0) == 1.0
    assert seen[0][1:] == [SymbolicZero, SymbolicZero]
    f.defjvp(rule)
    assert jvp(lambda x: f(x, 2.0, 3)[0], (1.0,), (5.0,)) == (2.0, 5.0)
    assert SymbolicZero not in seen[1]


def test_a_forward_rule_gets_float0_for_integers():
    f = custom_jvp(lambda x, n: x * n)

    @f.defjvp
    def rule(primals, tangents):
        assert tangents[1].dtype == float0
        return f(*primals), tangents[0] * 2.0

    assert grad(f)(1.0, 3) == 2.0 and grad(jit(f))(1.0, 3) == 2.0
    assert vmap(grad(f), (0, None))(jnp.ones(2), 3).tolist() == [2.0, 2.0]


def test_backward_rules_see_zeros_when_they_ask():
    seen = []

    @custom_vjp
    def f(tree, n):
        return tree["a"] * n, tree["b"]

    def fwd(tree, n):
        seen.append([tree["a"].perturbed, tree["b"].perturbed, n.perturbed])
        assert isinstance(n, CustomVJPPrimal)
        values = custom_vjp_primal_tree_values((tree, n))
        return f.fun(*values), values[1]

    def bwd(n, cts):
        seen.append([type(ct) is SymbolicZero for ct in cts])
        return {"a": cts[0] * 10.0, "b": None}, None

    f.defvjp(fwd, bwd, symbolic_zeros=True)
    assert grad(lambda a: f({"a": a, "b": 1.0}, 3)[0])(2.0) == 10.0
    assert seen == [[True, False, False], [False, True]]
    with pytest.raises(TypeError, match="unexpected leaf type"):
        custom_vjp_primal_tree_values({"a": 1.0})
    with pytest.raises(NotImplementedError, match="does not support symbolic zeros"):
        f.defvjp(fwd, bwd, symbolic_zeros=True, optimize_remat=True)


def test_symbolic_zeros_describe_themselves():
    zero = SymbolicZero(minijax.typeof(jnp.ones((2, 3))))
    assert (zero.shape, zero.ndim, zero.size, zero.dtype) == ((2, 3), 2, 6, np.float32)
    assert repr(zero) == "SymbolicZero(float32[2,3])"


def test_what_a_backward_rule_may_return():
    tree = {"a": jnp.ones(2), "b": 2.0}
    f = custom_vjp(lambda x, tree, n: x * tree["b"])
    zero = SymbolicZero(minijax.typeof(2.0))
    for found in [
        [3.0, None, None],
        (3.0, {"a": None, "b": zero}, np.zeros((), float0)),
        (3.0, {"a": np.zeros(2, np.float32), "b": None}, 7.0),
    ]:
        f.defvjp(lambda x, tree, n: (x, None), lambda res, ct, found=found: found)
        x_bar, tree_bar, n_bar = vjp(f, 1.0, tree, 3)[1](1.0)
        assert x_bar == 3.0 and not tree_bar["a"].any() and tree_bar["b"] == 0.0
        assert n_bar.dtype == float0
    long = SymbolicZero(minijax.typeof(jnp.ones(4)))
    f.defvjp(
        lambda x, tree, n: (x, None),
        lambda res, ct: (3.0, {"a": None, "b": long}, None),
    )
    with pytest.raises(ValueError, match=r"at output\[1\]\['b'\] the SymbolicZero had"):
        vjp(f, 1.0, tree, 3)[1](1.0)


def test_a_shared_argument_gets_the_sum():
    f = custom_vjp(lambda w, x: w * x)
    f.defvjp(
        lambda w, x: (w * x, (w, x)),
        lambda wx, ct: (ct * wx[1], (ct * wx[0]).sum()),
    )
    xs = jnp.array([[1.0, 2.0], [3.0, 4.0]])
    total = lambda w: vmap(vmap(f, (None, 0)), (None, 1))(w, xs).sum()  # noqa: E731
    assert grad(total)(3.0) == 10.0 and grad(jit(total))(3.0) == 10.0
    moved = vjp(vmap(f, (1, None)), xs, 2.0)[1](jnp.ones((2, 2)))
    np.testing.assert_array_equal(moved[0], np.full((2, 2), 2.0))
    assert moved[1] == 10.0


def test_derivatives_of_derivatives():
    f = custom_jvp(jnp.sin)
    f.defjvps(lambda t, out, x: 2.0 * jnp.cos(x) * t)
    np.testing.assert_allclose(grad(grad(f))(1.0), -2.0 * np.sin(1.0), rtol=1e-6)
    np.testing.assert_allclose(hessian(f)(1.0), -2.0 * np.sin(1.0), rtol=1e-6)
    g = custom_vjp(jnp.sin)
    g.defvjp(lambda x: (g(x), x), lambda x, ct: (2.0 * jnp.cos(x) * ct,))
    np.testing.assert_allclose(jacrev(grad(g))(1.0), -2.0 * np.sin(1.0), rtol=1e-6)
    with pytest.raises(TypeError, match="can't apply forward-mode"):
        hessian(g)(1.0)
    with pytest.raises(TypeError, match="can't apply forward-mode"):
        jit(lambda x: jvp(jit(g), (x,), (x,)))(1.0)


def test_a_linear_call_is_transposed():
    f = custom_jvp(lambda x: 3.0 * x)
    f.defjvp(lambda p, t: (f(*p), f(*t)))
    assert grad(f)(1.0) == 3.0 and grad(jit(f))(1.0) == 3.0
    assert minijax.linear_transpose(f, 1.0)(2.0) == (6.0,)


def test_what_is_known_does_not_move():
    """A rule whose tangent is a constant has a derivative of zero when linearized."""

    @custom_vjp
    def ruled(x):
        return 2 * x

    ruled.defvjp(lambda x: (2 * x, None), lambda _, ct: (ct,))

    @custom_jvp
    def still(x):
        return 2 * x

    still.defjvp(lambda primals, _: (2 * primals[0], jnp.float32(3)))

    def live(x):
        return ruled(still(x))

    def dead(x):
        ruled(still(x))
        return x * x

    for way in (lambda f: f, jit):
        assert way(grad(live))(0.5) == 0
        assert way(grad(dead))(0.5) == 1
        assert way(lambda x: minijax.linearize(still, x)[1](1.0))(0.5) == 0
        assert way(grad(grad(dead)))(0.5) == 2
        with pytest.raises(TypeError, match="forward-mode"):
            way(lambda x: jvp(live, (x,), (x,)))(0.5)


@pytest.mark.parametrize("backend", ["interpreter", "python", "cpu"])
def test_a_call_loses_operands_that_only_dead_equations_read(backend):
    @custom_vjp
    def ruled(x):
        return 2 * x

    ruled.defvjp(lambda x: (2 * x, None), lambda _, ct: (ct,))

    def f(x):
        again = minijax.checkpoint(lambda y, z: (y.sum(), z * z)[1])
        return again(ruled(x), x)

    both = jit(lambda x: jvp(f, (x,), (x,)), backend=backend)
    assert both(0.5) == (0.25, 0.5)


def test_a_rule_calls_a_function_with_a_rule_whose_loop_carries_known_values():
    def weighted(t, x):
        def step(carry, _):
            known, total = carry
            return (known * 0.5, total + t * jnp.cos(known * x)), None

        return minijax.lax.scan(step, (0.6, 0.0), None, length=3)[0][1]

    inner = custom_jvp(weighted)
    inner.defjvp(lambda xs, ts: (inner(*xs), weighted(ts[0], xs[1])))
    outer = custom_jvp(lambda x: inner(x, x))
    outer.defjvp(lambda xs, ts: (outer(*xs), inner(ts[0], xs[0])))
    wanted = np.cos(2.0 * np.array([0.6, 0.3, 0.15])).sum()
    for found in (grad(outer)(2.0), jit(grad(outer))(2.0), vmap(grad(outer))(TWO)[0]):
        np.testing.assert_allclose(found, wanted, rtol=1e-5)
    [ct] = minijax.linear_transpose(lambda t: inner(t, 2.0), 1.0)(1.0)
    np.testing.assert_allclose(ct, wanted, rtol=1e-5)
