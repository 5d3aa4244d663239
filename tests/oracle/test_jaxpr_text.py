"""Our jaxprs are JAX's jaxprs, letter by letter, and so is the way they are printed."""

import functools
import importlib
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax._src import core as jax_core

from minijax import default_matmul_precision
from minijax.core import Primitive
from minijax.jaxprs.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from minijax.jaxprs.pretty_printer import jaxpr_text

x = np.float32([0.5, 1.0, 2.0])
m = np.ones((2, 3), np.float32)
b = np.ones((4, 2, 3), np.float32)
i = np.int32([1, 2, 3])
s = np.float32(0.5)
rows, targets = np.ones((8, 3), np.float32), np.ones(8, np.float32)
LOSS = "lambda w, x, y: (lambda r: (r * r).sum())(jnp.tanh(x @ w) - y)"

# What minijax does not have: shardings, and the dimensions of a reshape.
ABSENT = {"sharding", "out_sharding", "dimensions"}
# A psum that vmap has turned into a sum keeps its name there.
SUM_OVER_AXIS = "psum[axes=(0,) axis_index_groups=None]"


def program(text, *args):
    """A function of a JAX-like module from an expression, and its arguments."""
    names = "xyzw"[: len(args)]
    source = f"lambda jax, jnp, lax: lambda {', '.join(names)}: ({text})"
    return pytest.param(source, args, id=text)


PROGRAMS = [
    program("x", x),
    program("(x, x)", x),
    program("(3.0, x)", x),
    program("[x, {'a': x * 2}]", x),
    program("()", x),
    program("x * 2.0 + 1", x),
    program("lax.mul(x, np.float32(2))", x),
    program("x * 0.1", x),
    program("x * 0.1", 1.0),
    program("x * np.float32(0.1)", 1.0),
    program("x + 1e-7", x),
    program("x * True", x),
    program("x * (1 + 2j)", x),
    program("x - jnp.inf", x),
    program("x * jnp.array(3.0) + jnp.float32(2)", x),
    program("x * jnp.asarray(3)", x),
    program("jax.vmap(lambda x: x * jnp.float32(2) + jnp.asarray(3.0))(x)", x),
    program("jax.vmap(lambda x: (x, jnp.array(1)), out_axes=(0, None))(x)", x),
    program("jax.jvp(lambda x: x * jnp.float32(2) + jnp.array(3), (x,), (x,))", s),
    program("jax.jvp(lambda x: (3.0, jnp.arange(3.0), x), (x,), (x,))", s),
    program("jax.jvp(jax.jit(lambda x: (x, 3.0)), (x,), (x,))", x),
    program("jax.grad(lambda x: 3.0)(x), jax.grad(lambda x: 3.0)(x[0])", x),
    program("jax.grad(lambda x: x[0].sum())((x, x, x[0]))", x),
    program("jax.linearize(lambda x: (x, 3.0, jnp.ones(2)), x)[1](x)", x),
    program("jax.vjp(lambda x, y: x, x, x[0])[1](x)", x),
    program("lax.convert_element_type(3, np.int8)", x),
    program("lax.convert_element_type(2.7, np.int32)", x),
    program("x + jnp.ones(3)", x),
    program("x + m", x),
    program("x + m + m", x),
    program("x * y", m, x),
    program("x + y", x, i),
    program("x / 2", i),
    program("2 ** x", x),
    program("x ** 2 + x ** -1 + x ** 0.5 + x ** 3.5", x),
    program("-x + abs(x)", x),
    program("x > y", x, s),
    program("(x > 0) & (x < 1)", x),
    program("jnp.sin(x) * jnp.cos(x)", x),
    program("jnp.sin(2.0) * x", x),
    program("(jnp.sin(x), x)[1]", x),
    program("jnp.tanh(jnp.exp(jnp.log(x)))", x),
    program("jnp.sqrt(x) + jnp.abs(x) + jnp.sign(x) + jnp.floor(x)", x),
    program("jnp.square(x) * jnp.reciprocal(x)", x),
    program("jnp.maximum(x, 0.0)", x),
    program("jnp.isnan(x) | (x == 1)", x),
    program("x.sum()", m),
    program("x.sum(0) + x.mean()", m),
    program("jnp.mean(x)", i),
    program("jnp.mean(x, axis=1, keepdims=True)", m),
    program("x.max() - x.min(0)", m),
    program("jnp.prod(x, axis=1)", m),
    program("jnp.all(x > 0)", m),
    program("jnp.any(x > 0, axis=0)", m),
    program("(x > 1).sum()", x),
    program("jnp.argmax(x), jnp.argmin(x, axis=0)", m),
    program("x @ y", m, x),
    program("x @ x.T", m),
    program("jnp.dot(x, jnp.ones(3))", m),
    program("jnp.dot(x, x)", x),
    program("jnp.vdot(x, x)", x),
    program("jnp.outer(x, x)", x),
    program("jnp.tensordot(x, x, 2)", m),
    program("x.T", m),
    program("jnp.transpose(x, (2, 0, 1))", b),
    program("x.reshape(-1)[None]", m),
    program("x.reshape(3, 2)", m),
    program("jnp.expand_dims(x, 0)", x),
    program("jnp.squeeze(x[None])", x),
    program("jnp.broadcast_to(x, (2, 3))", x),
    program("jnp.concatenate([x, x])", x),
    program("x.astype(int)", x),
    program("x.astype(float)", x),
    program("jnp.zeros(3) + x + jnp.arange(3) + jnp.ones((2, 3))", m),
    program("jnp.full((2,), 3), jnp.full_like(x, 3), jnp.zeros_like(x)", x),
    program("jnp.eye(3)", x),
    program("jnp.arange(1, 6, 2), jnp.arange(3.0)", x),
    program("lax.iota(np.int32, 3)", x),
    program("lax.pad(x, np.float32(0), [(1, 1, 0)])", x),
    program("lax.rev(x, (0,))", x),
    program("lax.select(x > 0, x, -x)", x),
    program("lax.slice(x, (0, 1), (2, 3))", m),
    program("x[1:]", x),
    program("x[0]", x),
    program("x[1]", m),
    program("x[:, None, 1]", m),
    program("jnp.tanh(x @ y) - z", np.ones((8, 3), np.float32), x, np.ones(8, "f4")),
    program("jax.jvp(jnp.sin, (x,), (1.0,))", 1.0),
    program("jax.jvp(lambda x: jnp.tanh(x) * jnp.exp(x), (x,), (x,))", x),
    program("jax.jvp(lambda x: jnp.log(x) / x - jnp.cos(x) ** 3, (x,), (x,))", x),
    program("jax.jvp(lambda x: jnp.dot(x, x.T).sum(0), (x,), (x,))", m),
    program("jax.jvp(lambda x: jnp.sqrt(x) + x.sum(), (x,), (y,))", x, x),
    program("jax.vmap(jnp.sin)(x)", x),
    program("jax.vmap(lambda a: a * y)(x)", x, x),
    program("jax.vmap(jnp.dot)(x, x)", m),
    program("jax.vmap(lambda a, b: a @ b, in_axes=(0, None))(x, y)", b, m.T),
    program("jax.vmap(jax.vmap(lambda a: a + 1))(x)", m),
    program("jax.vmap(lambda a: jax.jvp(jnp.sin, (a,), (a,))[1])(x)", x),
    program("jax.vmap(lambda a: a - lax.psum(a, 'i'), axis_name='i')(x)", x),
    program("jax.make_jaxpr(lambda y: x * y)(2.0).jaxpr and x", x),
    program(f"({LOSS})(x, y, z)", x, rows, targets),
    program(f"jax.jvp(lambda w: ({LOSS})(w, y, z), (x,), (x,))", x, rows, targets),
    program(f"jax.vmap({LOSS}, in_axes=(0, None, None))(x, y, z)", m, rows, targets),
    program("jax.grad(lambda x: jnp.sin(x) * x)(x)", 1.0),
    program("jax.grad(lambda x: jnp.tanh(x).sum())(x)", x),
    program("jax.grad(lambda x: x ** 2.0)(x)", 3.0),
    program("jax.jvp(lambda x: x ** x, (x,), (x,))", 3.0),
    program("jax.grad(lambda x: (x * x).sum())(x)", x),
    program("jax.grad(lambda x: jnp.dot(x, y).sum())(x)", m, x),
    program("jax.linearize(lambda x: jnp.sin(x) * x, 1.0)[1](x)", 1.0),
]


def cleaned(params):
    """JAX's parameters without those that minijax does not have."""
    kept = {k: v for k, v in params.items() if not (k in ABSENT and v is None)}
    return {k: plain(v) for k, v in kept.items()}


def plain(value):
    """NumPy integers in a tuple are spelled as Python's."""
    if isinstance(value, tuple) and type(value) is tuple:
        return tuple(map(plain, value))
    return int(value) if isinstance(value, np.integer) else value


def text_in(package, source, args):
    modules = [package, f"{package}.numpy", f"{package}.lax"]
    [top, numpy, lax_] = map(importlib.import_module, modules)
    function = eval(source, {"np": np, "m": m})(top, numpy, lax_)
    return top.make_jaxpr(function)(*args)


@pytest.mark.parametrize(("source", "args"), PROGRAMS)
def test_program(source, args):
    theirs = text_in("jax", source, args).jaxpr
    eqns = [eqn.replace(params=cleaned(eqn.params)) for eqn in theirs.eqns]
    expected = theirs.replace(eqns=eqns).pretty_print(use_color=False)
    expected = expected.replace(SUM_OVER_AXIS, "reduce_sum[axes=(0,)]")
    assert str(text_in("minijax", source, args)) == expected


# What a product asks for: by its arguments, or by the switch.

ASKED = [
    "None",
    "'highest'",
    "'bfloat16_3x'",
    "lax.Precision.HIGH",
    "('default', 'high')",
    "(lax.Precision.HIGHEST, lax.Precision.DEFAULT)",
    "'F32_F32_F32'",
    "'DEFAULT'",
    "lax.DotAlgorithmPreset.BF16_BF16_F32_X6",
    "lax.DotAlgorithm('float16', 'bfloat16', 'float32', 2, allow_imprecise_accumulation=True)",  # noqa: E501
]
SWITCHED = [None, "default", "high", "highest", "bfloat16", "tensorfloat32", "float32"]
SWITCHED += [one.name for one in lax.DotAlgorithmPreset if one.name != "DEFAULT"]
IMAGES = np.ones((1, 2, 5, 5), np.float32), np.ones((3, 2, 3, 3), np.float32)
PRODUCTS = {
    "jnp.dot(x, x.T, precision=p)": (m,),
    "jnp.dot(x, y, precision=p, preferred_element_type='float16')": (m, x),
    "jnp.matmul(x, y, precision=p)": (b, m.T),
    "jnp.matmul(x, x.mT, precision=p, preferred_element_type='bfloat16')": (b,),
    "jnp.vdot(x, x, precision=p)": (x,),
    "jnp.inner(x, x, precision=p)": (m,),
    "jnp.tensordot(x, x, 2, precision=p)": (m,),
    "jnp.tensordot(x, x, ((1,), (1,)), precision=p)": (m,),
    "jnp.einsum('ij,kj->ik', x, x, precision=p).sum()": (m,),
    "lax.dot(x, y, precision=p)": (m, x),
    "lax.dot(x, x, precision=p)": (x,),
    "lax.dot(x, y, precision=p, preferred_element_type=np.int32)": (i, i),
    "lax.batch_matmul(x, lax.transpose(x, (0, 2, 1)), p)": (b,),
    "lax.dot_general(x, x, (((1,), (1,)), ((0,), (0,))), p)": (b,),
    "lax.conv(x, y, (1, 1), 'VALID', precision=p)": IMAGES,
    "lax.conv(x, y, (1, 1), 'VALID', p, 'float32')": IMAGES,
    "lax.conv_general_dilated(x, y, (1, 1), 'SAME', precision=p)": IMAGES,
    "lax.conv_transpose(x, x, (1, 1), 'SAME', precision=p)": (IMAGES[1][:1],),
    "jax.grad(lambda x: jnp.dot(x, x.T, precision=p).sum())(x)": (m,),
    "jax.vmap(lambda v: jnp.dot(v, y, precision=p))(x)": (m, x),
    "jax.grad(lambda x: lax.conv(x, y, (1, 1), 'VALID', precision=p).sum())(x)": IMAGES,
}  # fmt: skip


# These are made of other operations there, around the same products.
COMPOSED = {
    "jnp.vecdot(x, x, precision=p)": (m,),
    "jnp.matvec(x, y)": (m, x),
    "jnp.vecmat(y, x)": (m.T, x),
    "jnp.linalg.multi_dot([x, x.T, x], precision=p)": (m,),
    "jnp.convolve(x, x, precision=p)": (x,),
}


def printed(package, expression, asked):
    args = (PRODUCTS | COMPOSED)[expression]
    inside = f"(lambda p: {expression})({asked})"
    source = f"lambda jax, jnp, lax: lambda {', '.join('xyzw'[: len(args)])}: {inside}"
    text = str(text_in(package, source, args))
    text = re.sub(r"\b(out_sharding|dimensions)=None", "", text)
    text = re.sub(r"\s+", " ", text).replace(" ]", "]")
    if expression in PRODUCTS:
        return text
    return re.findall(r"precision=.*?(?= preferred_element_type| rhs_dilation)", text)


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("expression", PRODUCTS | COMPOSED)
def test_a_product_prints_what_it_was_asked_for(expression, asked):
    ours, theirs = (printed(name, expression, asked) for name in ("minijax", "jax"))
    assert ours == theirs


@pytest.mark.parametrize("value", SWITCHED)
@pytest.mark.parametrize("expression", PRODUCTS | COMPOSED)
def test_a_product_prints_what_the_switch_asks_for(expression, value):
    with jax.default_matmul_precision(value):
        theirs = printed("jax", expression, "None")
    with default_matmul_precision(value):
        assert printed("minijax", expression, "None") == theirs


@pytest.mark.parametrize("asked", ["1", "'HIGHEST'", "('high', None)", "('high',)"])
def test_what_is_no_precision_is_refused(asked):
    for package in "jax", "minijax":
        with pytest.raises(ValueError, match="Precision argument must be one of"):
            printed(package, "lax.dot(x, x, precision=p)", asked)


# The printer alone, on jaxprs of JAX itself with all that they contain.


@functools.cache
def primitive(name):
    return Primitive(name)


class Aval:
    """A JAX type under our printer."""

    def __init__(self, aval):
        self.aval = aval

    def str_short(self):
        return self.aval.str_short(short_dtypes=True)


class Translation:
    """From JAX's jaxprs to ours, each inner jaxpr once."""

    def __init__(self):
        self.jaxprs, self.variables = {}, {}

    def atom(self, atom):
        if isinstance(atom, jax_core.Literal):
            return Literal(atom.val, Aval(atom.aval))
        return self.variables.setdefault(atom, Var(Aval(atom.aval)))

    def atoms(self, atoms):
        return [self.atom(atom) for atom in atoms]

    def jaxpr(self, jaxpr):
        if jaxpr not in self.jaxprs:
            self.jaxprs[jaxpr] = Jaxpr(
                self.atoms(jaxpr.constvars),
                self.atoms(jaxpr.invars),
                self.atoms(jaxpr.outvars),
                [self.eqn(eqn) for eqn in jaxpr.eqns],
            )
        return self.jaxprs[jaxpr]

    def eqn(self, eqn):
        params = {key: self.param(value) for key, value in eqn.params.items()}
        invars, outvars = self.atoms(eqn.invars), self.atoms(eqn.outvars)
        return JaxprEqn(invars, outvars, primitive(eqn.primitive.name), params)

    def param(self, value):
        if isinstance(value, jax_core.ClosedJaxpr):
            return ClosedJaxpr(self.jaxpr(value.jaxpr), value.consts)
        if isinstance(value, jax_core.Jaxpr):
            return self.jaxpr(value)
        return tuple(map(self.param, value)) if type(value) is tuple else value


inner = jax.jit(lambda x: jnp.sin(x) * 2)


@jax.jit
def long(x):
    return functools.reduce(lambda y, _: jnp.sin(y) * 2, range(8), x)


PRINTED = [
    (lambda x: inner(x) + inner(x), x),
    (lambda x: inner(inner(x)), x),
    (lambda x: long(x), x),
    (lambda x: long(x) + long(x) + inner(x), x),
    (lambda x: lax.scan(lambda c, a: (c + a, c * a), 0.0, x), x),
    (lambda x: lax.cond(x.sum() > 0, jnp.sin, long, x), x),
    (lambda x: lax.switch(1, [jnp.sin, jnp.cos, lambda a: long(a) + inner(a)], x), x),
    (lambda x: lax.while_loop(lambda c: c.sum() < 9, lambda c: inner(c) + 1, x), x),
    (lambda x: lax.fori_loop(0, 3, lambda i, a: long(a), x), x),
    (lambda x: lax.map(inner, x), x),
    (lambda x: jax.checkpoint(lambda a: jnp.sin(jnp.sin(a)))(x), x),
    (lambda x: jnp.linspace(0, 1, 5) * x[0], x),
    (lambda x: jnp.var(x) + jnp.std(x) + jnp.median(x), x),
    (lambda x: jax.nn.softmax(x) + jax.nn.relu(x), x),
    (lambda x: jnp.sort(x)[jnp.argsort(x)], x),
    (lambda x: x.at[0].set(2.0)[1:], x),
    (lambda x: jax.random.normal(jax.random.PRNGKey(0), (3,)), x),
    (lambda x: jnp.einsum("ij,kj->ik", x, x), m),
    (lambda x: lax.conv(x[None, None], x[None, None], (1,), "SAME"), x),
    (jax.grad(lambda x: jax.nn.relu(x).sum()), x),
    (jax.hessian(lambda x: (jnp.tanh(x) ** 3).sum()), x),
    (jax.vmap(lambda a: lax.cond(a > 0, jnp.sin, jnp.cos, a)), x),
    (lambda *xs: sum(xs), *[x] * 40),
    (lambda *xs: xs, *[x] * 40),
    (lambda: jnp.ones(3),),
]


@pytest.mark.parametrize("settings", [{}, {"print_shapes": False}, {"width": 60}])
@pytest.mark.parametrize("case", PRINTED)
def test_printer(case, settings):
    function, *args = case
    theirs = jax.make_jaxpr(function)(*args).jaxpr
    expected = theirs.pretty_print(
        use_color=False, custom_pp_eqn_rules=False, **settings
    )
    expected = re.sub(r"(?<= at 0x)[0-9a-f]+", lambda m: "X" * len(m[0]), expected)
    assert jaxpr_text(Translation().jaxpr(theirs), **settings) == expected
