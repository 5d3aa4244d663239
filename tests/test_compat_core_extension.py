"""A user's primitives, defined in JAX's words, in every pair of transformations."""

import itertools

import numpy as np
import pytest

import minijax
from minijax import grad, jit, jvp, lax, linearize, make_jaxpr, vjp, vmap
from minijax import numpy as jnp
from minijax.arrays.array import ShapedArray
from minijax.extend.core import Primitive, jaxpr_as_fun
from minijax.interpreters import ad, batching
from minijax.kernels.lowering import elementwise_kernel_rule, kernel_rules
from tests.backends_here import HERE

X = np.array([0.5, 1.0, 2.0], "float32")


def define_product():
    """Return a function that multiplies, by a primitive with all rules."""
    product = Primitive("product")
    product.def_impl(lambda x, y: np.multiply(x, y))
    product.def_abstract_eval(lambda x, y: ShapedArray(x.shape, x.dtype))

    def jvp_rule(primals, tangents):
        (x, y), (dx, dy) = primals, tangents
        parts = [(dx, y), (dy, x)]
        moves = [product.bind(d, other) for d, other in parts if type(d) is not ad.Zero]
        return product.bind(x, y), sum(moves[1:], moves[0])

    def transpose(ct, x, y):
        if ad.is_undefined_primal(x):
            return product.bind(ct, y), None
        return None, product.bind(x, ct)

    def batch(args, dims):
        size = max(x.shape[dim] for x, dim in zip(args, dims) if dim is not None)
        fill = [
            jnp.moveaxis(x, dim, 0)
            if dim is not None
            else jnp.broadcast_to(x, (size, *jnp.shape(x)))
            for x, dim in zip(args, dims)
        ]
        return product.bind(*fill), 0

    ad.primitive_jvps[product] = jvp_rule
    ad.primitive_transposes[product] = transpose
    batching.primitive_batchers[product] = batch
    return product


PRODUCT = define_product()


def program(multiply):
    return lambda x: multiply(jnp.sin(x), multiply(x, x))


def staged(f):
    return lambda x: jaxpr_as_fun(make_jaxpr(f)(x))(x)[0]


ONES = np.ones(3, "float32")
WAYS = {
    "itself": lambda f: f,
    "jit": jit,
    "staged": staged,
    "vmap": lambda f: lambda x: vmap(f)(jnp.stack([x, 2 * x]))[1],
    "last axis": lambda f: lambda x: vmap(f, 1, 1)(jnp.stack([x, 2 * x], 1))[:, 1],
    "jvp": lambda f: lambda x: jvp(f, (x,), (ONES,))[1],
    "linearize": lambda f: lambda x: linearize(f, x)[1](ONES),
    "vjp": lambda f: lambda x: vjp(f, x)[1](jnp.ones(3))[0],
    "grad": lambda f: grad(lambda x: f(x).sum()),
}


@pytest.mark.parametrize("pair", [*itertools.product(WAYS, WAYS)], ids="-".join)
def test_every_pair(pair):
    ours, truth = program(PRODUCT.bind), program(lambda x, y: x * y)
    for name in pair:
        ours, truth = WAYS[name](ours), WAYS[name](truth)
    np.testing.assert_allclose(ours(X), truth(X), rtol=1e-5)


@pytest.mark.parametrize("backend", HERE)
def test_every_backend(backend):
    f = jit(program(PRODUCT.bind), backend=backend)
    np.testing.assert_allclose(f(X), np.sin(X) * X * X, rtol=1e-6)


def test_equations_hold_the_primitive():
    [eqn] = make_jaxpr(PRODUCT.bind)(X, X).eqns
    assert eqn.primitive is PRODUCT
    assert repr(PRODUCT) == eqn.primitive.name == PRODUCT.name == "product"


def test_results_have_the_types_of_the_package():
    twice = Primitive("twice")
    twice.def_impl(lambda x: np.float64(2) * np.asarray(x))
    twice.def_abstract_eval(lambda x: ShapedArray(x.shape, x.dtype))
    assert twice.bind(X).dtype == jit(twice.bind)(X).dtype == np.float32


def test_several_results_and_parameters():
    powers = Primitive("powers")
    powers.multiple_results = True
    powers.def_impl(lambda x, count: [np.asarray(x) ** i for i in range(count)])
    powers.def_abstract_eval(lambda x, count: [x] * count)
    batching.primitive_batchers[powers] = lambda args, dims, count: (
        powers.bind(*args, count=count),
        dims * count,
    )
    for f in (powers.bind, jit(powers.bind, static_argnames="count"), vmap):
        if f is vmap:
            outs = vmap(lambda x: powers.bind(x, count=3))(X)
        else:
            outs = f(X, count=3)
        np.testing.assert_allclose(outs, [X**0, X, X**2])


def test_helpers():
    half, weigh = Primitive("half"), Primitive("weigh")
    half.def_impl(lambda x: np.asarray(x) / 2)
    half.def_abstract_eval(lambda x: x)
    ad.deflinear2(half, lambda ct, x: [half.bind(ct)])
    batching.defvectorized(half)
    weigh.def_impl(np.multiply)
    weigh.def_abstract_eval(lambda x, n: x)
    ad.defjvp(weigh, lambda t, x, n: weigh.bind(t, n), None)
    batching.defbroadcasting(weigh)
    np.testing.assert_array_equal(vmap(half.bind)(X), X / 2)
    np.testing.assert_array_equal(minijax.linear_transpose(half.bind, X)(X)[0], X / 2)
    _, slope = jvp(lambda x, n: weigh.bind(half.bind(x), n), (X, X), (ONES, ONES))
    np.testing.assert_array_equal(slope, X / 2)


def test_zeros():
    zero = ad.Zero(ShapedArray((2,), np.float32))
    assert repr(zero) == "Zero(float32[2])"
    np.testing.assert_array_equal(ad.instantiate_zeros(zero), np.zeros(2))
    assert ad.instantiate_zeros(X) is X


def test_zeros_of_rules_are_zeros():
    floor = Primitive("my_floor")
    floor.def_impl(np.floor)
    floor.def_abstract_eval(lambda x: x)
    ad.primitive_jvps[floor] = lambda primals, tangents: (
        floor.bind(*primals),
        ad.Zero(ShapedArray((3,), np.float32)),
    )
    np.testing.assert_array_equal(grad(lambda x: floor.bind(x).sum())(X), 0)


def test_missing_rules_are_named():
    bare = Primitive("bare")
    with pytest.raises(NotImplementedError, match="impl rule of 'bare'"):
        bare.bind(X)
    bare.def_impl(lambda x: x)
    for f, table in [
        (grad(lambda x: bare.bind(x).sum()), "jvp"),
        (vmap(bare.bind), "vmap"),
    ]:
        with pytest.raises(NotImplementedError, match=f"{table} rule of 'bare'"):
            f(X)


def test_rule_tables_know_users_primitives():
    root = Primitive("my_root")
    root.def_impl(np.sqrt)
    root.def_abstract_eval(lambda x: x)
    kernel_rules[root] = elementwise_kernel_rule(lambda k, x: k.sqrt(x))
    assert root in kernel_rules and Primitive("my_root") not in kernel_rules
    lowered = jit(lambda x: root.bind(x) * 2.0).lower(X)
    assert "sqrt" in lowered.as_text("kernels")
    assert "= my_root" not in lowered.as_text("steps")  # a step of the host
    np.testing.assert_allclose(lowered.compile()(X), 2 * np.sqrt(X), rtol=1e-6)
    del kernel_rules[root]


def test_an_evaluation_that_calls_the_one_before_it():
    calls, plain = [], lax.sin_p.impl
    shape, seen = lax.sin_p.abstract_eval, []
    try:
        lax.sin_p.def_impl(lambda x, **how: calls.append(x.shape) or plain(x, **how))
        lax.sin_p.def_abstract_eval(lambda x, **how: seen.append(x) or shape(x, **how))
        np.testing.assert_array_equal(lax.sin_p.bind(X), plain(X))
        assert make_jaxpr(lax.sin_p.bind)(X).out_avals[0].shape == X.shape
    finally:
        lax.sin_p.def_impl(plain)
        lax.sin_p.def_abstract_eval(shape)
    lax.sin_p.bind(X)
    assert calls == [X.shape] and seen
    with pytest.raises(NotImplementedError, match="impl rule of 'empty'"):
        Primitive("empty").impl(X)
