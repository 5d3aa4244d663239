"""A user's new primitive: the same definitions, for JAX and for minijax.

The primitive is the one of JAX's page on primitives, ``x * y + z``.
"""

from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest

jax = pytest.importorskip("jax")
from jax.extend import core as jax_core  # noqa: E402
from jax.interpreters import ad as jax_ad  # noqa: E402
from jax.interpreters import batching as jax_batching  # noqa: E402
from jax.interpreters import mlir  # noqa: E402

import minijax  # noqa: E402
from minijax.arrays.array import ShapedArray  # noqa: E402
from minijax.extend import core  # noqa: E402
from minijax.interpreters import ad, batching  # noqa: E402
from tests.client_programs import PROGRAMS  # noqa: E402

THEIRS = SimpleNamespace(
    api=jax,
    core=jax_core,
    ad=jax_ad,
    batching=jax_batching,
    ShapedArray=jax.core.ShapedArray,
)
OURS = SimpleNamespace(
    api=minijax, core=core, ad=ad, batching=batching, ShapedArray=ShapedArray
)


def multiply_add(j):
    """Define the primitive, with all rules, and return the function that binds it."""
    primitive = j.core.Primitive("multiply_add")

    def bind(x, y, z):
        return primitive.bind(x, y, z)

    def zero_or(tangent, like):
        zeros = j.api.numpy.zeros_like(like)
        return zeros if type(tangent) is j.ad.Zero else tangent

    def jvp(primals, tangents):
        x, y, z = primals
        dx, dy, dz = (zero_or(t, p) for t, p in zip(tangents, primals, strict=True))
        return bind(x, y, z), bind(dx, y, bind(x, dy, dz))

    def transpose(ct, x, y, z):
        if not j.ad.is_undefined_primal(x):
            return None, bind(x, ct, j.api.numpy.zeros_like(ct)), ct
        return bind(ct, y, j.api.numpy.zeros_like(ct)), None, ct

    def batch(args, dims):
        shared = [dim is None for dim in dims]
        size = next(
            x.shape[0] for x, alone in zip(args, shared, strict=True) if not alone
        )
        args = [
            j.api.numpy.broadcast_to(x, (size, *np.shape(x))) if alone else x
            for x, alone in zip(args, shared, strict=True)
        ]
        assert all(dim == 0 for dim in dims if dim is not None)
        return bind(*args), 0

    primitive.def_impl(lambda x, y, z: np.add(np.multiply(x, y), z))
    primitive.def_abstract_eval(lambda x, y, z: j.ShapedArray(x.shape, x.dtype))
    j.ad.primitive_jvps[primitive] = jvp
    j.ad.primitive_transposes[primitive] = transpose
    j.batching.primitive_batchers[primitive] = batch
    if j is THEIRS:  # the one step that minijax has no use for
        lowering = mlir.lower_fun(lambda x, y, z: x * y + z, multiple_results=False)
        mlir.register_lowering(primitive, lowering)
    return bind


def square_add(j):
    f = multiply_add(j)
    return lambda a, b: f(a, a, b)


A, B = np.float32(2.0), np.float32(10.0)
XS, YS = np.arange(3, dtype="float32"), np.ones(3, "float32")
USES = {
    "eager": lambda api, f: f(A, B),
    "jit": lambda api, f: api.jit(f)(A, B),
    "jvp": lambda api, f: api.jvp(f, (A, B), (A, A)),
    "jvp of one": lambda api, f: api.jvp(lambda a: f(a, B), (A,), (A,)),
    "jit of jvp": lambda api, f: api.jit(lambda a, b: api.jvp(f, (a, b), (a, b)))(A, B),
    "grad": lambda api, f: api.grad(f)(A, B),
    "grad of jit": lambda api, f: api.grad(api.jit(f))(A, B),
    "jit of grad": lambda api, f: api.jit(api.grad(f, argnums=(0, 1)))(A, B),
    "second derivative": lambda api, f: api.grad(api.grad(f))(A, B),
    "linearize": lambda api, f: api.linearize(f, A, B)[1](A, B),
    "vmap": lambda api, f: api.vmap(f)(XS, YS),
    "vmap of one": lambda api, f: api.vmap(f, in_axes=(0, None))(XS, B),
    "vmap of grad": lambda api, f: api.vmap(api.grad(f))(XS, YS),
    "grad of vmap": lambda api, f: api.grad(lambda x: api.vmap(f)(x, YS).sum())(XS),
    "jit of vmap of jvp": lambda api, f: api.jit(
        api.vmap(lambda a, b: api.jvp(f, (a, b), (b, a)))
    )(XS, YS),
}


@pytest.mark.parametrize("name", USES)
def test_one_definition_serves_both(name):
    theirs, ours = (USES[name](j.api, square_add(j)) for j in (THEIRS, OURS))
    theirs, ours = jax.tree.leaves(theirs), minijax.tree_util.tree_leaves(ours)
    for one, other in zip(ours, theirs, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_jaxprs_agree():
    texts = [
        str(j.api.make_jaxpr(j.api.grad(square_add(j)))(A, B)) for j in (THEIRS, OURS)
    ]
    assert texts[0].count("multiply_add") == texts[1].count("multiply_add")


def test_without_a_derivative_rule():
    for j in (THEIRS, OURS):
        primitive = j.core.Primitive("opaque")
        primitive.def_impl(lambda x: x)
        primitive.def_abstract_eval(lambda x: j.ShapedArray(x.shape, x.dtype))  # noqa: B023
        with pytest.raises(NotImplementedError, match="opaque"):
            j.api.grad(primitive.bind)(A)
        with pytest.raises(NotImplementedError, match="opaque"):
            j.api.vmap(primitive.bind)(XS)


def test_several_results():
    for j in (THEIRS, OURS):
        primitive = j.core.Primitive("sincos")
        primitive.multiple_results = True
        primitive.def_impl(lambda x: [np.sin(x), np.cos(x)])
        primitive.def_abstract_eval(lambda x: [x, x])
        j.ad.primitive_jvps[primitive] = lambda primals, tangents, p=primitive: (
            p.bind(*primals),
            [tangents[0] * p.bind(*primals)[1], -tangents[0] * p.bind(*primals)[0]],
        )
        values, slopes = j.api.jvp(lambda x: primitive.bind(x), (A,), (A,))  # noqa: B023
        np.testing.assert_allclose(values, [np.sin(A), np.cos(A)], rtol=1e-6)
        np.testing.assert_allclose(slopes, [A * np.cos(A), -A * np.sin(A)], rtol=1e-6)


def test_helpers():
    results = []
    for j in (THEIRS, OURS):
        product, twice = j.core.Primitive("product"), j.core.Primitive("twice")
        product.def_impl(np.multiply)
        product.def_abstract_eval(lambda x, y: x)
        twice.def_impl(lambda x: 2 * np.asarray(x))
        twice.def_abstract_eval(lambda x: x)
        j.ad.defjvp(
            product,
            lambda t, x, y, p=product: p.bind(t, y),
            lambda t, x, y, p=product: p.bind(x, t),
        )
        j.ad.deflinear2(twice, lambda ct, x, p=twice: [p.bind(ct)])
        j.batching.defvectorized(twice)

        def f(x, product=product, twice=twice):
            return product.bind(twice.bind(x), x)

        results.append(j.api.jvp(f, (A,), (B,)))
        results.append(
            (j.api.vmap(twice.bind)(XS), j.api.linear_transpose(twice.bind, A)(A)[0])
        )
    for theirs, ours in zip(results[:2], results[2:], strict=True):
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(one, other)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_of_clients(name):
    def answer(package):
        root = package.__name__
        return PROGRAMS[name](package, lambda path: import_module(f"{root}.{path}"))

    assert answer(minijax) == answer(jax)


def one_of_each(j):
    """Return functions of user's primitives, whose rules are made by helpers."""
    jnp, new = j.api.numpy, j.core.Primitive

    def defined(name, impl):
        primitive = new(name)
        primitive.def_impl(impl)

        def shape(*avals, **params):
            like = [np.zeros(aval.shape, aval.dtype) for aval in avals]
            return j.ShapedArray(impl(*like, **params).shape, avals[0].dtype)

        primitive.def_abstract_eval(shape)
        return primitive

    turned = defined("turned", lambda x: -np.asarray(x))
    j.ad.deflinear(turned, lambda ct: [turned.bind(ct)])
    product = defined("product", lambda x, y: np.multiply(x, y))
    j.ad.defbilinear(
        product, lambda ct, x, y: product.bind(ct, y), lambda ct, x, y: ct * x
    )
    square_root = defined("square_root", lambda x: np.sqrt(x))
    j.ad.defjvp2(square_root, lambda t, out, x: t / (2 * out))
    total = defined("total", lambda x, axes: np.sum(x, axes))
    j.batching.defreducer(total)
    j.batching.defvectorized(turned)

    def elementwise(size, name, kind, args, dims):
        assert size == 2 and kind is None
        return square_root.bind(*args), dims[0]

    j.batching.axis_primitive_batchers[square_root] = elementwise

    def fronts(axis, args, dims):
        pairs = zip(args, dims, strict=True)
        args = [j.batching.bdim_at_front(x, dim, axis.size) for x, dim in pairs]
        return product.bind(*args), 0

    j.batching.fancy_primitive_batchers[product] = fronts
    x = jnp.arange(1.0, 7.0).reshape(2, 3)
    return {
        "linear": j.api.grad(lambda v: turned.bind(v).sum())(x),
        "bilinear": j.api.grad(lambda v: product.bind(v, v + 1).sum())(x),
        "result": j.api.grad(lambda v: square_root.bind(v).sum())(x),
        "roots": j.api.vmap(square_root.bind)(x),
        "rows": j.api.vmap(lambda v: total.bind(v, axes=(0,)))(x),
        "columns": j.api.vmap(lambda v: total.bind(v, axes=(0,)), 1)(x),
        "fronts": j.api.vmap(product.bind, (1, None))(x, jnp.ones(2)),
        "mapped": j.api.vmap(
            j.api.grad(lambda v: product.bind(v, turned.bind(v)))
        )(x[0]),
        "sum": j.ad.add_tangents(x, j.ad.Zero(j.ShapedArray((2, 3), x.dtype))),
        "both": j.ad.add_tangents(x, x),
        "broadcast": j.batching.broadcast(x, 2, 1, None),
        "zeros": j.ad.zeros_like_aval(j.ShapedArray((2,), np.dtype("float32"))),
    }


def test_rules_by_helpers():
    ours, theirs = one_of_each(OURS), one_of_each(THEIRS)
    for name, value in theirs.items():
        np.testing.assert_allclose(ours[name], value, rtol=1e-6, err_msg=name)
    for j in (OURS, THEIRS):
        with pytest.raises(NotImplementedError, match="for 'alone' not implemented"):
            j.ad.get_primitive_transpose(j.core.Primitive("alone"))
