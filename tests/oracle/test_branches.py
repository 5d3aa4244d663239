"""cond, switch and while_loop against the real JAX: programs, values, types, errors."""

import importlib
import re

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import minijax  # noqa: E402

x = np.float32([0.5, -1.0, 2.0])
i = np.int32([0, 1, 2])
g = np.float32([1.5, 3.0, 2.0])
m = np.float32([[2, 3, 4], [5, 6, 7]])

SETUP = {
    "pick": "lambda x: lax.cond(x > 0, lambda x: jnp.sin(x) * x, lambda x: x * 2.0, x)",
    "three": "lambda i, x: lax.switch(i, [jnp.sin, lambda x: jnp.exp(x) * x, "
    "lambda x: x], x)",
    "many": "lambda x: lax.cond(x.sum() > 0, lambda x: jnp.sin(x).sum(), "
    "lambda x: 2 * x.sum(), x)",
    "grow": "lambda x: lax.while_loop(lambda c: c[1] < 10.0, "
    "lambda c: (c[0] + 1, c[1] * x), (0, 1.1))",
    "steps": "lambda x: lax.while_loop(lambda c: c[0] < 3, "
    "lambda c: (c[0] + 1, jnp.sin(c[1]) * x), (0, 1.0))",
    "wave": "lambda x: lax.while_loop(lambda c: c[0] < 3, "
    "lambda c: (c[0] + 1, jnp.sin(c[1]) * jnp.exp(x)), (0, x))",
}


def case(text, *args):
    """A function of a JAX-like module from an expression, and its arguments."""
    return pytest.param(text, args, id=text)


def function(package, text, count):
    """The function that an expression describes, in a JAX-like package."""
    modules = [package, f"{package}.numpy", f"{package}.lax"]
    top, numpy, lax = map(importlib.import_module, modules)
    names = {"jax": top, "jnp": numpy, "lax": lax, "np": np, "arr": numpy.arange(3.0)}
    for name, body in SETUP.items():
        names[name] = eval(body, names)
    return eval(f"lambda {', '.join('xyzw'[:count])}: ({text})", names)


PROGRAMS = [
    case("pick(x)", 1.0),
    case("lax.cond(True, jnp.sin, jnp.cos, x)", 1.0),
    case("lax.cond(x, jnp.sin, jnp.sin, y)", True, 1.0),
    case("lax.cond(x, jnp.sin, jnp.cos, y)", 1.5, 2.0),
    case("lax.cond(x, jnp.sin, jnp.cos, y)", 1, 2.0),
    case("lax.cond(x, jnp.sin, jnp.cos, operand=y)", True, 2.0),
    case("lax.cond(x, lambda _: y, lambda _: 2 * y, operand=None)", True, 2.0),
    case("lax.cond(x, y, jnp.sin, y * 2, jnp.cos)", True, 2.0),
    case("lax.cond(x, lambda: y * arr, lambda: y + arr)", True, 1.0),
    case("lax.cond(x, lambda: y * z, lambda: z)", True, 1.0, 2.0),
    case("lax.cond(x, lambda a: y + a, lambda a: z * a, arr)", True, 1.0, 2.0),
    case(
        "lax.cond(x, lambda a, b: (a, b, a), lambda a, b: (a, a, b + 1), y, z)",
        True,
        1.0,
        2.0,
    ),
    case("lax.cond(x, lambda a: (1.0, a), lambda a: (1.0, a), y)", True, 1.0),
    case("lax.cond(x, lambda a: a, lambda a: a, y)", True, 1.0),
    case(
        "lax.cond(x, lambda t: {'a': t['b'], 'c': 1}, "
        "lambda t: {'a': t['d'] * 2, 'c': 2}, {'b': y, 'd': z})",
        True,
        1.0,
        2.0,
    ),
    case("lax.cond(x, lambda: None, lambda: None)", True),
    case("lax.cond(x, lambda: np.float32(2), lambda: 1.0)", True),
    case("lax.cond(x > 0, grow, lambda x: (1, x), x)", 2.0),
    case("lax.cond(x, lambda y: jax.vmap(pick)(y), lambda y: y, y)", True, x),
    case("three(x, y)", 1, 2.0),
    case("three(x, y)", np.uint8(200), 2.0),
    case("lax.switch(x, [jnp.sin], y)", 1, 2.0),
    case("lax.switch(x, [jnp.sin, jnp.cos], operand=y)", 1, 2.0),
    case("jax.jvp(pick, (x,), (y,))", 1.0, 1.0),
    case("jax.jvp(lambda x: three(z, x), (x,), (y,))", 1.0, 1.0, 2),
    case("jax.jvp(lambda x: jax.jvp(pick, (x,), (y,)), (x,), (y,))", 1.0, 1.0),
    case("jax.jvp(many, (x,), (x,))", x),
    case("jax.vmap(pick)(x)", x),
    case(
        "jax.vmap(lambda p, x: lax.cond(p, lambda x: jnp.sin(x) * x, "
        "lambda x: 2.0, x), in_axes=(None, 0))(x, y)",
        True,
        x,
    ),
    case(
        "jax.vmap(lambda p, x: lax.cond(p, lambda x: jnp.sin(x) * x, "
        "lambda x: 2.0, x), in_axes=(0, None))(x, y)",
        x > 0,
        1.0,
    ),
    case(
        "jax.vmap(lambda p, x: lax.cond(p, lambda a: a + 1, lambda a: a * 2, x))(x, y)",
        x > 0,
        i,
    ),
    case(
        "jax.vmap(lambda x: lax.cond(y, lambda x: (1.0, x), "
        "lambda x: (2.0, 2 * x), x))(x)",
        x,
        True,
    ),
    case("jax.vmap(three)(x, y)", i, x),
    case("jax.vmap(three, in_axes=(0, None))(x, y)", i, x),
    case("jax.vmap(jax.vmap(pick))(x)", m),
    case("jax.vmap(many, in_axes=1)(x)", m),
    case(
        "jax.vmap(lambda y: lax.cond(x, many, lambda y: y[0], y), in_axes=1)(y)",
        True,
        m,
    ),
    case(
        "jax.vmap(lambda x: lax.cond(y, lambda x: lax.psum(x, 'i'), "
        "lambda x: 2 * x, x), axis_name='i')(x)",
        x,
        True,
    ),
    case(
        "jax.vmap(lambda x: lax.cond(x > 0, lambda x: lax.psum(x, 'i'), "
        "lambda x: 2 * x, x), axis_name='i')(x)",
        x,
    ),
    case(
        "jax.vmap(lambda x: lax.cond(y, lambda a: lax.axis_index('i'), "
        "lambda a: 2, 3.0), axis_name='i')(x)",
        x,
        True,
    ),
    case("jax.vmap(lambda x, y: jax.jvp(pick, (x,), (y,)))(x, x)", x),
    case("jax.linearize(pick, x)[1](y)", 1.0, 1.0),
    case("jax.grad(pick)(x)", 1.0),
    case("jax.grad(many)(x)", x),
    case("jax.value_and_grad(pick)(x)", 1.0),
    case(
        "jax.value_and_grad(lambda x: lax.cond(x > 0, lambda x: (jnp.sin(x), "
        "{'n': 1}), lambda x: (x, {'n': 2}), x), has_aux=True)(x)",
        2.0,
    ),
    case("jax.grad(lambda x: three(y, x))(x)", 1.0, 2),
    case(
        "jax.grad(lambda x: lax.cond(x > 0, jnp.sin, lambda x: jnp.exp(x) * "
        "np.float32(2), x))(x)",
        2.0,
    ),
    case(
        "jax.vjp(lambda y, z: lax.cond(x, lambda a, b: (a * b, b), "
        "lambda a, b: (a, 2.0 * a), y, z), y, z)[1]((w, w))",
        True,
        1.0,
        2.0,
        1.0,
    ),
    case("jax.vmap(jax.grad(lambda y: lax.cond(x, jnp.sin, jnp.cos, y)))(y)", True, x),
    case("jax.vmap(jax.grad(pick))(x)", x),
    case("jax.jit(pick)(x)", 1.0),
    case("jax.jit(jax.grad(pick))(x)", 1.0),
    case("grow(x)", 2.0),
    case("grow(x)", np.float32(2)),
    case(
        "lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1], c[2] * c[1]), "
        "(0, x, y))",
        2.0,
        3.0,
    ),
    case("lax.while_loop(lambda c: c[0] < c[1], lambda c: (c[0] + 1, c[1]), (0, 5))"),
    case(
        "lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * "
        "np.float32(3)), (0, 1))"
    ),
    case("lax.while_loop(lambda c: c < 3, lambda c: 4.0, np.float32(0))"),
    case("lax.while_loop(lambda c: c < x, lambda c: c * x + arr.sum(), 1.0)", 3.0),
    case("lax.while_loop(lambda c: c.sum() < x, lambda c: c + arr, arr)", 30.0),
    case(
        "lax.while_loop(lambda c: c['i'] < 3, lambda c: {'i': c['i'] + 1, "
        "'a': (c['a'][0] * 2, x)}, {'i': 0, 'a': (x, x)})",
        3.0,
    ),
    case("jax.jvp(lambda x: grow(x)[1], (x,), (y,))", 2.0, 1.0),
    case("jax.jvp(lambda x: wave(x)[1], (x,), (y,))", 0.5, 1.0),
    case(
        "jax.jvp(lambda x: lax.while_loop(lambda c: c < 10, lambda c: lax.cond(c < 5, "
        "lambda c: c * 2, lambda c: c * x, c), x), (x,), (y,))",
        2.0,
        1.0,
    ),
    case("jax.jvp(jax.vmap(lambda x: grow(x)[1]), (x,), (x,))", g),
    case("jax.vmap(lambda x, y: jax.jvp(lambda x: grow(x)[1], (x,), (y,)))(x, x)", g),
    case("jax.linearize(lambda x: grow(x)[1], x)[1](y)", 2.0, 1.0),
    case("jax.linearize(lambda x: wave(x)[1], x)[1](y)", 2.0, 1.0),
    case("jax.grad(lambda x: grow(2.0)[1] * x)(x)", 2.0),
    case(
        "jax.grad(lambda x: lax.while_loop(lambda c: c < 3, lambda c: c + 1, 0) * x)"
        "(x)",
        2.0,
    ),
    case("jax.vmap(grow)(x)", g),
    case("jax.vmap(steps)(x)", g),
    case("jax.vmap(jax.vmap(grow))(x)", m),
    case(
        "jax.vmap(jax.vmap(lambda x, y: lax.while_loop(lambda c: c[0] < x, lambda c: "
        "(c[0] * 2, c[1] * y), (1.0, 1.0)), in_axes=(0, None)), in_axes=(None, 0))"
        "(x, x)",
        g,
    ),
    case(
        "jax.vmap(lambda x, y: lax.while_loop(lambda c: c < y, lambda c: c * x, 1.0), "
        "in_axes=(None, 0))(x, y)",
        2.0,
        g,
    ),
    case(
        "jax.vmap(lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, "
        "c[1] * x), (0, jnp.ones(2))), in_axes=1)(x)",
        m,
    ),
    case(
        "jax.vmap(lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, "
        "lax.psum(c[1], 'i')), (0, x)), axis_name='i')(x)",
        g,
    ),
    case(
        "jax.vmap(lambda x: lax.while_loop(lambda c: lax.psum(c, 'i') < 30, "
        "lambda c: c * 2, x), axis_name='i')(x)",
        g,
    ),
    case("jax.jit(jax.vmap(grow))(x)", g),
]

# Where JAX's text has equations that nothing needs, or zeros that ours has not.
VALUES = [
    case(
        "jax.jvp(lambda x: lax.cond(x > 0, lambda x: (jnp.sin(x), 1, 2.0), "
        "lambda x: (jnp.exp(x), 2, 4.0), x)[0::2], (x,), (y,))",
        1.0,
        1.0,
    ),
    case("jax.jvp(jax.vmap(pick), (x,), (x,))", x),
    case("jax.linearize(many, x)[1](x)", x),
    case(
        "jax.grad(lambda x: lax.cond(x > 0, lambda x: lax.cond(x > 1, jnp.sin, "
        "jnp.cos, x), lambda x: x, x))(x)",
        2.0,
    ),
    case(
        "jax.grad(lambda x: lax.cond(y, lambda: jnp.sin(x), lambda: 2.0))(x)", 2.0, True
    ),
    case("jax.grad(jax.grad(pick))(x)", 1.0),
    case("jax.grad(lambda x: jax.vmap(pick)(x).sum())(x)", x),
]


def text_of(jaxpr):
    """A jaxpr of JAX without the parameters that minijax does not have."""
    text = jaxpr.pretty_print(use_color=False)
    text = re.sub(r"\s+memory_space=MemorySpace.Device", "", text)
    text = re.sub(r"\s+out_sharding=None|\s+sharding=None", "", text)
    text = re.sub(
        r"psum\[axes=(\(.*?\))\s+axis_index_groups=None\]", r"reduce_sum[axes=\1]", text
    )
    return re.sub(r"np.int64\((\d+)\)", r"\1", text)


def words(text):
    """A text without its line breaks, which depend on what was taken out of it."""
    return re.sub(r"\[\s+|\s+\]", lambda match: match[0].strip(), text).split()


@pytest.mark.parametrize(("text", "args"), PROGRAMS)
def test_program(text, args):
    theirs = jax.make_jaxpr(function("jax", text, len(args)))(*args)
    ours = minijax.make_jaxpr(function("minijax", text, len(args)))(*args)
    assert words(str(ours)) == words(text_of(theirs.jaxpr))
    kinds = [
        [(a.shape, a.dtype, a.weak_type) for a in c.out_avals] for c in (ours, theirs)
    ]
    assert kinds[0] == kinds[1]


@pytest.mark.parametrize(("text", "args"), PROGRAMS + VALUES)
def test_values(text, args):
    theirs = function("jax", text, len(args))(*args)
    ours = function("minijax", text, len(args))(*args)
    compare(ours, theirs)


def compare(ours, theirs):
    ours = list(map(minijax.numpy.asarray, minijax.tree_util.tree_leaves(ours)))
    theirs = list(map(jax.numpy.asarray, jax.tree_util.tree_leaves(theirs)))
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs):
        kinds = [(a.shape, a.dtype, a.weak_type) for a in (one, other)]
        assert kinds[0] == kinds[1]
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=2e-5)


REFUSED = [
    "lax.cond(None, jnp.sin, jnp.cos, 1.0)",
    "lax.cond([True], jnp.sin, jnp.cos, 1.0)",
    "lax.cond(lambda: True, jnp.sin, jnp.cos, 1.0)",
    "lax.cond('a', jnp.sin, jnp.cos, 1.0)",
    "lax.cond(arr > 0, jnp.sin, jnp.cos, 1.0)",
    "lax.cond(1j, jnp.sin, jnp.cos, 1.0)",
    "lax.cond(jnp.bfloat16(1), jnp.sin, jnp.cos, 1.0)",
    "lax.cond(True, 1, 2, 3)",
    "lax.cond(True, 1, jnp.sin, 2, 3)",
    "lax.cond(True, jnp.sin, jnp.cos, 1.0, operand=2.0)",
    "lax.cond(True, jnp.sin, jnp.cos, 'a')",
    "lax.cond(True, lambda: 'a', lambda: 'a')",
    "lax.cond(True, lambda: 1, lambda: 1.0)",
    "lax.cond(True, lambda: (1, arr), lambda: (1, arr[:2]))",
    "lax.cond(True, lambda: (1, 2), lambda: [1, 2])",
    "lax.cond(True, lambda: (1, 2), lambda: (1, 2, 3))",
    "lax.cond(True, lambda: {'a': 1}, lambda: {'b': 1})",
    "lax.cond(True, lambda: None, lambda: 1)",
    "lax.cond(True, lambda x: x, lambda: 1, 2)",
    "lax.switch(0, [])",
    "lax.switch(0, [1, 2])",
    "lax.switch(0.0, [jnp.sin, jnp.cos], 1.0)",
    "lax.switch(True, [jnp.sin, jnp.cos], 1.0)",
    "lax.switch(None, [jnp.sin, jnp.cos], 1.0)",
    "lax.switch(jnp.arange(2), [jnp.sin, jnp.cos], 1.0)",
    "lax.switch(0, [jnp.sin, jnp.cos], 1.0, operand=1.0)",
    "lax.switch(0, [jnp.sin, jnp.cos, lambda x: 1], 1.0)",
    "lax.while_loop(1, lambda c: c, 0)",
    "lax.while_loop(lambda c: True, 1, 0)",
    "lax.while_loop(lambda c: True, lambda c: c, 'a')",
    "lax.while_loop(lambda c: False, lambda c: 'a', 0)",
    "lax.while_loop(lambda c: 1, lambda c: c, 0)",
    "lax.while_loop(lambda c: None, lambda c: c, 0)",
    "lax.while_loop(lambda c: (c < 3,), lambda c: c, 0)",
    "lax.while_loop(lambda c: c < 3, lambda c: c, arr)",
    "lax.while_loop(lambda c: c < 3, lambda c: c + 1.5, jnp.int32(0))",
    "lax.while_loop(lambda c: c < 3, lambda c: c * arr, 0.0)",
    "lax.while_loop(lambda c: c[0] < 3, lambda c: [c[0], c[1]], (0, 1))",
    "lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0], c), (0, 1))",
    "lax.while_loop(lambda c: c[0] < 3, lambda c: c[0], (0, 1))",
    "jax.grad(lambda x: grow(x)[1])(2.0)",
    "jax.vjp(lambda x: grow(x)[1], 2.0)[1](1.0)",
    "jax.jacrev(lambda x: grow(x)[1])(2.0)",
    "jax.linear_transpose(lambda x: lax.while_loop(lambda c: c[0] < 3, "
    "lambda c: (c[0] + 1, c[1] * 2), (0, x))[1], 1.0)(1.0)",
    "jax.jit(lambda x: 1 if x > 0 else 2)(1.0)",
    "jax.jit(lambda x: lax.cond(x, jnp.sin, jnp.cos, 1.0))(arr)",
]


@pytest.mark.parametrize("text", REFUSED)
def test_refusal(text):
    caught = []
    for package in ("jax", "minijax"):
        with pytest.raises(Exception) as error:
            function(package, text, 0)()
        caught.append([cls.__name__ for cls in type(error.value).__mro__])
    assert caught[0][0] in caught[1]


IN_PYTHON = [
    "lax.cond(True, jnp.sin, jnp.cos, 1.0)",
    "lax.cond(True, lambda: 1, lambda: 2.0)",
    "lax.cond(0.0, lambda: 1, lambda: [])",
    "lax.switch(5, [jnp.sin, jnp.cos, lambda x: [x]], 1.0)",
    "lax.while_loop(lambda c: c < 3, lambda c: c + 1, 0)",
    "lax.while_loop(lambda c: c < 3, lambda c: c + 1.5, 0)",
    "jax.vmap(grow)(jnp.array([1.5, 3.0]))",
    "jax.vmap(pick)(arr)",
    "jax.grad(pick)(2.0)",
    "jax.jvp(pick, (2.0,), (1.0,))",
    "jax.jvp(lambda x: grow(x)[1], (2.0,), (1.0,))",
    "jax.grad(lambda x: grow(x)[1])(2.0)",
]


@pytest.mark.parametrize("text", IN_PYTHON)
def test_without_jit(text):
    with jax.disable_jit():
        theirs = function("jax", text, 0)()
    with minijax.disable_jit():
        ours = function("minijax", text, 0)()
    compare(ours, theirs)
