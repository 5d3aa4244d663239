"""Reverse mode against real JAX: rules, whole functions, jaxprs and errors."""

import functools
import importlib
import re

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import minijax  # noqa: E402
from minijax import lax  # noqa: E402
from minijax.arrays.dtypes import float0  # noqa: E402
from tests.forward_cases import CASES as CURVED  # noqa: E402
from tests.forward_cases import TIES  # noqa: E402
from tests.transpose_cases import CASES, normal  # noqa: E402

F32 = np.float32
NARROW = {"float64": "float32", "complex128": "complex64"}
ALL = {**CURVED, **{f"tie: {name}": case for name, case in TIES.items()}}


def narrow(x):
    x = np.asarray(x)
    return np.asarray(x, NARROW.get(x.dtype.name, x.dtype))


def first(result):
    return result[0] if isinstance(result, list) else result


def same(ours, theirs, rtol=1e-4, atol=1e-5):
    """Compare two trees of arrays: structure, shapes, dtypes and values."""
    ours, our_tree = minijax.tree_util.tree_flatten(ours)
    theirs, their_tree = jax.tree_util.tree_flatten(theirs)
    assert str(our_tree) == str(their_tree)
    for a, b in zip(ours, theirs, strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert a.shape == b.shape
        if a.dtype == float0 or b.dtype == jax.dtypes.float0:
            assert a.dtype == float0 and b.dtype == jax.dtypes.float0
            continue
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)


@pytest.mark.parametrize("name", CASES)
def test_transpose(name):
    call, xs = CASES[name]
    result = np.asarray(first(call(lax, *xs)))
    ct = normal(*result.shape, dtype=result.dtype)
    ours = minijax.linear_transpose(lambda *xs: first(call(lax, *xs)), *xs)(ct)
    theirs = jax.linear_transpose(lambda *xs: call(jax.lax, *xs), *xs)(ct)
    same(ours, theirs, *((1e-2, 1e-2) if "float16" in name else ()))


# JAX cannot transpose the derivative of a fold by any function of two numbers.
@pytest.mark.parametrize("name", sorted({*ALL} - {"products of windows"}))
def test_vjp_of_primitive(name):
    call, operands = ALL[name]
    xs = [narrow(x) for x in operands]
    result, ours = minijax.vjp(lambda *xs: call(lax, *xs), *xs)
    expected, theirs = jax.vjp(lambda *xs: call(jax.lax, *xs), *xs)
    same(result, expected)
    result = np.asarray(result)
    inexact = result.dtype.kind in "fc"
    ct = normal(*result.shape, dtype=result.dtype) if inexact else None
    if inexact:
        same(ours(ct), theirs(ct))


V, M, S = normal(3), normal(2, 3), normal(3, 3)
PARAMS = {"w": normal(3, 4), "b": [normal(4), F32(0.5)]}


def layers(j, p):
    return j.numpy.tanh(M @ p["w"] + p["b"][0]).sum() * p["b"][1]


FUNCTIONS = {
    "product": (lambda j, x: j.numpy.sin(x) * x, (2.0,)),
    "numpy scalar": (lambda j, x: x * x, (F32(3),)),
    "constant": (lambda j, x: 1.0, (2.0,)),
    "loss": (lambda j, w: ((j.numpy.tanh(M @ w) - 1.0) ** 2).sum(), (V,)),
    "tree": (layers, (PARAMS,)),
    "where": (lambda j, x: j.numpy.where(x > 0, x, 0.0).sum(), (V,)),
    "max": (lambda j, x: j.numpy.max(x) + x.min(), (V,)),
    "indexing": (lambda j, x: x[0] * x[1:].sum() + x[::-1][0], (V,)),
    "broadcast": (lambda j, x: (x[:, None] * x).sum(), (V,)),
    "mean var": (lambda j, x: x.mean() * x.var(), (V,)),
    "concatenate": (
        lambda j, x: (j.numpy.concatenate([x, x * x]) ** 3).sum(),
        (V,),
    ),
    "cumsum": (lambda j, x: (j.numpy.cumsum(x) * x).sum(), (V,)),
    "prod": (lambda j, x: j.numpy.prod(x), (V,)),
    "float16": (lambda j, x: (x * x).sum().astype("float32"), (np.ones(3, "float16"),)),
    "complex to real": (lambda j, z: j.numpy.abs(z) ** 2, (F32(1) + 2j,)),
    "logsumexp": (lambda j, x: j.numpy.log(j.numpy.exp(x).sum()), (V,)),
    "two": (lambda j, x, y: (x * y).sum(), (V, V)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_value_and_grad(name):
    f, args = FUNCTIONS[name]
    every = tuple(range(len(args)))
    for argnums in (0, -1, every):
        ours = minijax.value_and_grad(lambda *a: f(minijax, *a), argnums)(*args)
        theirs = jax.value_and_grad(lambda *a: f(jax, *a), argnums)(*args)
        same(ours, theirs)
        same(ours[1], minijax.grad(lambda *a: f(minijax, *a), argnums)(*args))


@pytest.mark.parametrize(
    "name", [n for n in FUNCTIONS if n not in ("complex to real",)]
)
def test_hessian_and_jacobians(name):
    f, args = FUNCTIONS[name]
    for maker in ("hessian", "jacfwd", "jacrev"):
        ours = getattr(minijax, maker)(lambda *a: f(minijax, *a))(*args)
        theirs = getattr(jax, maker)(lambda *a: f(jax, *a))(*args)
        same(ours, theirs, 1e-3, 1e-2 if name == "float16" else 1e-4)


def outputs(j, x, p):
    return {"a": x * p["b"], "c": x.sum(), "n": 3}


def test_jacobian_of_trees():
    args = V, {"b": normal(3)}
    ours = minijax.jacfwd(lambda *a: outputs(minijax, *a), (0, 1))(*args)
    same(ours, jax.jacfwd(lambda *a: outputs(jax, *a), (0, 1))(*args))

    def floats(j):
        return lambda *a: {k: v for k, v in outputs(j, *a).items() if k != "n"}

    same(
        minijax.jacrev(floats(minijax), (0, 1))(*args),
        jax.jacrev(floats(jax), (0, 1))(*args),
    )


OPTIONS = {
    "aux": lambda j: j.grad(lambda x: (x * x, {"a": x}), has_aux=True)(2.0),
    "aux and value": lambda j: j.value_and_grad(lambda x: (x * x, 3), has_aux=True)(
        2.0
    ),
    "holomorphic": lambda j: j.grad(lambda z: z * z, holomorphic=True)(1 + 2j),
    "holomorphic jacfwd": lambda j: j.jacfwd(lambda z: z * z, holomorphic=True)(
        np.ones(2, "complex64") * 2j
    ),
    "holomorphic jacrev": lambda j: j.jacrev(lambda z: z * z, holomorphic=True)(
        np.ones(2, "complex64") * 2j
    ),
    "allow_int": lambda j: j.grad(lambda x, n: x * n, (0, 1), allow_int=True)(1.0, 3),
    "allow_int jacrev": lambda j: j.jacrev(lambda n, x: n * x, (0, 1), allow_int=True)(
        1, 2.0
    ),
    "integer argument": lambda j: j.vjp(lambda x, n: x * n, 1.0, 3)[1](F32(1)),
    "keyword": lambda j: j.grad(lambda x, y: x * y)(2.0, y=3.0),
    "jacfwd aux": lambda j: j.jacfwd(lambda x: (x * x, x), has_aux=True)(V),
    "jacrev aux": lambda j: j.jacrev(lambda x: (x * x, x), has_aux=True)(V),
    "hessian aux": lambda j: j.hessian(lambda x: ((x**3).sum(), 1.0), has_aux=True)(V),
    "hessian argnums": lambda j: j.hessian(lambda x, y: x**2 * y, (0, 1))(1.0, 2.0),
    "psum": lambda j: j.vmap(j.grad(lambda a: j.lax.psum(a * a, "i")), axis_name="i")(
        V
    ),
    "pmean": lambda j: j.vmap(j.grad(lambda a: j.lax.pmean(a * a, "i")), axis_name="i")(
        V
    ),
    "all_gather": lambda j: j.vmap(
        j.grad(lambda a: (j.lax.all_gather(a * a, "i") * V).sum()), axis_name="i"
    )(V),
    "psum_scatter": lambda j: j.vmap(
        j.grad(lambda a: j.lax.psum_scatter(a * a, "i").sum()), axis_name="i"
    )(S),
    "ppermute": lambda j: j.vmap(
        j.grad(lambda a: j.lax.ppermute(a * a, "i", [(0, 1), (1, 2), (2, 0)])),
        axis_name="i",
    )(V),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_option(name):
    same(OPTIONS[name](minijax), OPTIONS[name](jax))


BAD = {
    "not scalar": lambda j: j.grad(j.numpy.sin)(V),
    "integer": lambda j: j.grad(j.numpy.sin)(1),
    "boolean": lambda j: j.grad(lambda x: x)(True),
    "integer leaf": lambda j: j.grad(lambda d: d["a"] * 1.0)({"a": 1}),
    "integer result": lambda j: j.grad(lambda x: x.astype(int))(F32(1)),
    "dictionary result": lambda j: j.grad(lambda x: {"a": x})(1.0),
    "no result": lambda j: j.grad(lambda x: None)(1.0),
    "text result": lambda j: j.grad(lambda x: "a")(1.0),
    "text": lambda j: j.grad(j.numpy.sin)("a"),
    "argnums too large": lambda j: j.grad(lambda x: x, argnums=2)(1.0),
    "argnums too small": lambda j: j.grad(lambda x: x, argnums=-2)(1.0),
    "argnums text": lambda j: j.grad(lambda x: x, argnums="a")(1.0),
    "no arguments": lambda j: j.grad(lambda: 1.0)(),
    "not callable": lambda j: j.grad(3),
    "complex input": lambda j: j.grad(lambda z: z)(1j),
    "complex result": lambda j: j.grad(lambda x: x * 1j)(1.0),
    "holomorphic real input": lambda j: j.grad(lambda z: z, holomorphic=True)(1.0),
    "holomorphic real result": lambda j: j.grad(lambda z: z.real, holomorphic=True)(
        np.complex64(1j)
    ),
    "no pair": lambda j: j.value_and_grad(lambda x: x, has_aux=True)(1.0),
    "jacfwd integer": lambda j: j.jacfwd(lambda x: x)(1),
    "jacfwd complex": lambda j: j.jacfwd(lambda z: z)(np.ones(2, "complex64")),
    "jacrev complex": lambda j: j.jacrev(lambda z: z)(np.ones(2, "complex64")),
    "jacrev integer": lambda j: j.jacrev(lambda x: x)(1),
    "jacfwd argnums": lambda j: j.jacfwd(lambda x: x, argnums=1)(1.0),
    "hessian integer": lambda j: j.hessian(lambda x: x)(1),
    "vjp shape": lambda j: j.vjp(j.numpy.sin, V)[1](np.ones(4, F32)),
    "vjp dtype": lambda j: j.vjp(j.numpy.sin, V)[1](np.arange(3)),
    "vjp tree": lambda j: j.vjp(j.numpy.sin, V)[1]((V, V)),
    "vjp not callable": lambda j: j.vjp(3, 1.0),
    "transpose sin": lambda j: j.linear_transpose(j.numpy.sin, 1.0)(1.0),
    "transpose shape": lambda j: j.linear_transpose(lambda x: 2.0 * x, V)(M),
    "transpose tree": lambda j: j.linear_transpose(lambda x: 2.0 * x, V)((V,)),
    "transpose dtypes": lambda j: j.linear_transpose(lambda x: x.astype(int), V)(V),
}


def error_of(f, j):
    """The classes of what `f` raises, but for the ones below Exception."""
    with pytest.raises(Exception) as caught:
        f(j)
    return type(caught.value)


@pytest.mark.parametrize("name", BAD)
def test_error_is_of_jax_s_class(name):
    ours, theirs = error_of(BAD[name], minijax), error_of(BAD[name], jax)
    names = [cls.__name__ for cls in theirs.__mro__]
    assert ours.__name__ in names and ours is not Exception, (ours, names)


TEXTS = {
    "product": (lambda j: j.grad(lambda x: j.numpy.sin(x) * x), (2.0,)),
    "square": (lambda j: j.grad(lambda x: (x * x).sum()), (np.ones(3, F32),)),
    "tanh": (lambda j: j.grad(lambda x: j.numpy.tanh(x).sum()), (np.ones(3, F32),)),
    "dot": (lambda j: j.grad(lambda m: (m @ V).sum()), (M,)),
    "exp": (lambda j: j.grad(lambda x: j.numpy.exp(x) / x), (2.0,)),
    "value": (lambda j: j.value_and_grad(lambda w: w * 2.0), (1.0,)),
    "max": (lambda j: j.grad(lambda x: j.numpy.max(x)), (V,)),
}


def bare(text):
    """A jaxpr's text without the parameters that minijax does not have."""
    text = re.sub(r"\s*\b(out_sharding|sharding|dimensions)=None", "", str(text))
    text = re.sub(r"np\.int64\((-?\d+)\)", r"\1", text)
    return re.sub(r"\[\s*", "[", re.sub(r"\s+", " ", text)).replace(" ]", "]")


@pytest.mark.parametrize("name", TEXTS)
def test_jaxpr_text(name):
    make, args = TEXTS[name]
    ours = minijax.make_jaxpr(make(minijax))(*args)
    assert bare(ours) == bare(jax.make_jaxpr(make(jax))(*args))


@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize("ct_is_weak", [False, True])
def test_sums_of_weak_and_strong_cotangents(ct_is_weak, staged):
    """A sum that is written down has the type of its first operand."""

    def weak_types(j):
        def doubling(x):
            step = lambda c, _: (c * F32(2), c)  # noqa: E731
            return j.lax.scan(step, x, None, length=2)[1]

        def used_twice(x):
            return j.numpy.sin(x) + x * F32(2)

        found = []
        for f in (doubling, used_twice):
            out, pullback = j.vjp(f, j.numpy.asarray(0.5))
            number = j.numpy.full(out.shape, 0.7, None if ct_is_weak else F32)
            pullback = j.jit(pullback) if staged else pullback
            found.append(pullback(number)[0].weak_type)
        x, y = j.numpy.asarray(0.5), j.numpy.asarray(F32(2))
        sums = lax.add_any_p if j is minijax else jax.interpreters.ad.add_jaxvals_p
        add = sums.bind
        for pair in [(x, y), (y, x), (x, x)]:
            found.append((j.jit(add) if staged else add)(*pair).weak_type)
        return found

    assert weak_types(minijax) == weak_types(jax)


# Checks of derivatives that are given.


def given(library):
    """From words to a function, its derivative in a mode, and arguments."""
    jnp, lax = library.numpy, library.lax

    def tree(x):
        return {"a": jnp.sin(x["a"]) * x["b"], "b": x["b"].sum()}

    def turned(z):
        return z * z * (1 + 2j)

    def half_forward(f):
        return lambda xs, ts: (f(*xs), library.tree.map(lambda t: t / 2, ts[0]))

    def other_value(f):
        return lambda *xs: (f(*xs) + 1, library.vjp(f, *xs)[1])

    def other_type(f):
        return lambda xs, ts: (f(*xs), library.jvp(f, xs, ts)[1].astype("float16"))

    x, z = np.float32([0.5, -1.5]), np.complex64([1 + 2j, -0.5])
    forward = lambda f: functools.partial(library.jvp, f)  # noqa: E731
    reverse = lambda f: functools.partial(library.vjp, f)  # noqa: E731
    return {
        "jvp, a number": ("jvp", jnp.sin, forward(jnp.sin), (np.float32(1),)),
        "vjp, a number": ("vjp", jnp.sin, reverse(jnp.sin), (np.float32(1),)),
        "jvp, a tree": ("jvp", tree, forward(tree), ({"a": x, "b": x + 1},)),
        "vjp, a tree": ("vjp", tree, reverse(tree), ({"a": x, "b": x + 1},)),
        "jvp, complex": ("jvp", turned, forward(turned), (z,)),
        "vjp, complex": ("vjp", turned, reverse(turned), (z,)),
        "jvp, wrong": ("jvp", lax.exp, half_forward(lax.exp), (x,)),
        "vjp, wrong": ("vjp", lax.exp, lambda x: (lax.exp(x), lambda t: (t,)), (x,)),
        "vjp, other value": ("vjp", lax.exp, other_value(lax.exp), (x,)),
        "jvp, other type": ("jvp", lax.exp, other_type(lax.exp), (x,)),
        "jvp, other function": ("jvp", jnp.cos, forward(jnp.sin), (x,)),
    }


@pytest.mark.parametrize("case", given(minijax))
def test_checks_of_given_derivatives_are_jax_s(case):
    found = []
    for library in (minijax, jax):
        checks = importlib.import_module(f"{library.__name__}.test_util")
        mode, *arguments = given(library)[case]
        how = {"rtol": 1e-2, "atol": 1e-2, "eps": 1e-2}
        try:
            getattr(checks, f"check_{mode}")(*arguments, **how, err_msg="here")
            found.append("right")
        except AssertionError as error:
            found.append("wrong")
            assert library is jax or "here: the" in str(error)
    assert found[0] == found[1]
    assert (found[0] == "wrong") == ("wrong" in case or "other" in case)
