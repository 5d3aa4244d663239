"""Loops with a known number of steps are JAX's: texts, values, types, refusals."""

import importlib
import itertools

import jax
import numpy as np
import pytest
from jax._src import core as jax_core

from tests.commands import some

xs = np.float32([0.5, 1.0, 2.0])
w = np.float32([[1, 2, 0], [0, 1, 1], [0.5, 0, 1]])
h = np.float32([0.1, -0.2, 0.3])
steps = np.linspace(-1, 1, 12, dtype="float32").reshape(4, 3)
one = np.float32(1.0)

NAMES = {"np": np, "xs": xs, "w": w, "h": h, "steps": steps, "one": one}
ABSENT = {"sharding", "out_sharding", "dimensions"}

# Bodies and loops that the cases below share, as source of a JAX-like module.
PRELUDE = """
xs, w, h, steps = map(jnp.asarray, (xs, w, h, steps))
def power(c, a): return c * a, c + a
def cell(h, x): return jnp.tanh(w @ h + x), h
def by(f): return lambda y: lax.scan(f, 1.0, y)
def rnn(w, h, steps):
    return lax.scan(lambda h, x: (jnp.tanh(w @ h + x), h), h, steps)
def last(w, h, steps): return rnn(w, h, steps)[0].sum()
def factor(x):
    return lax.scan(lambda c, a: (jnp.sin(c) * jnp.cos(x), a + c), 1.0, xs)
def both(x): return lax.scan(lambda c, a: (c * x, a + c), 1.0, xs)
def nested(x):
    def outer(c, a):
        d, ys = lax.scan(lambda d, b: (d * c + b, d), a, xs)
        return d * x, ys.sum()
    return lax.scan(outer, x, xs)
def two(x):
    def body(c, a):
        n, s, t = c
        return (n + 1, s * x + a, t), (s, t)
    return lax.scan(body, (0, x, x * 2.0), xs)
def repeat(x): return lax.fori_loop(0, 3, lambda i, c: c * x + i, 1.0)
"""

# A text is known to differ where a line begins with ~: sums over steps are delayed,
# zeros are made before the first loop, a psum that vmap has met is a reduce_sum.
PROGRAMS = """
both
lambda x: both(2.0)
lambda x: lax.scan(lambda c, a: (c * x, a + c), 1.0, jnp.asarray(xs), reverse=True)
lambda x: lax.scan(power, 1.0, x)                                     | xs
lambda x: lax.scan(power, 1.0, x, reverse=True, unroll=2)             | xs
lambda x: lax.scan(power, 1.0, x, unroll=True)                        | xs
lambda x: lax.scan(power, 1.0, x, unroll=False)                       | xs
lambda x: lax.scan(power, 1.0, x, unroll=0)                           | xs
lambda x: lax.scan(power, 1.0, x, _split_transpose=True)              | xs
lambda x: lax.scan(power, 1.0, x[:0])                                 | xs
lambda x: lax.scan(power, 1.0, x[:0], unroll=True)                    | xs
lambda x: lax.scan(lambda c, a: (jnp.sin(c), None), x, None, length=3)
lambda x: lax.scan(lambda c, a: (c, a), x, xs)
lambda x: lax.scan(lambda c, a: (c, c), x, None, length=3)
lambda x: lax.scan(lambda c, a: (c, (a, a * c)), x, xs)
lambda x: lax.scan(lambda c, a: (c * np.float32(2), a), x, xs)
lambda x: lax.scan(lambda c, a: (c * a, a), 1, x)                     | xs
lambda x: lax.scan(lambda c, a: ((c[1], c[0] * a), c), (1.0, 2.0), x)  | xs
lambda x: lax.scan(lambda c, a: (c, 1.0), x, xs)
lambda x: lax.scan(lambda c, a: ({"b": c["a"], "a": c["b"] + a}, (c,)), {"a": x, "b": x}, xs)
lambda x: lax.scan(lambda c, a: (c + a["u"] * a["v"], ()), x, {"u": xs, "v": xs})
lambda x: lax.scan(lambda c, a: [c * a, (a,)], x, xs)
two
nested
rnn                                                                   | w, h, steps
lambda x: lax.fori_loop(0, 3, lambda i, c: c * x + i, 1.0)
lambda x: lax.fori_loop(2, 5, lambda i, c: (c[1], c[0] * i), (x, x))
lambda x: lax.fori_loop(5, 2, lambda i, c: c * x, 1.0)
lambda x: lax.fori_loop(np.int32(1), np.int32(4), lambda i, c: c * i, x)
lambda x: lax.fori_loop(0, 4, lambda i, c: c * i, x, unroll=2)
lambda x: lax.fori_loop(0, 4, lambda i, c: c * i, x, unroll=True)
lambda x: lax.fori_loop(0, 4, lambda i, c: c, x)
lambda n: lax.fori_loop(0, n, lambda i, c: c * 2.0 + i, 1.0)           | np.int32(3)
lambda n: lax.fori_loop(n, np.int8(9), lambda i, c: c * 2.0, 1.0)      | np.int8(3)
lambda x: lax.map(lambda a: a * a.sum(), x)                           | w
lambda x: lax.map(lambda a: {"s": a[0].sum(), "t": a[1]}, (x, x))     | w
lambda x: lax.map(lambda a: 3.0, x)                                   | xs
lambda x: lax.map(lambda a: a * a.sum(), x, batch_size=2)             | w
lambda x: lax.map(lambda a: a * a.sum(), x, batch_size=3)             | w
lambda x: lax.map(lambda a: a * a.sum(), x, batch_size=5)             | w
lambda x: lax.map(lambda a: a * a.sum(), x, batch_size=0)             | w
lambda x, t: jax.jvp(both, (x,), (t,))                                | one, one
lambda x, t: jax.jvp(factor, (x,), (t,))                              | one, one
lambda x, t: jax.jvp(nested, (x,), (t,))                              | one, one
lambda x, t: jax.jvp(two, (x,), (t,))                                 | one, one
lambda x, t: jax.jvp(repeat, (x,), (t,))                              | one, one
lambda x, t: jax.jvp(by(power), (x,), (t,))                           | xs, xs
lambda w, t: jax.jvp(lambda w: rnn(w, h, steps), (w,), (t,))          | w, w
jax.vmap(both)                                                        | xs
jax.vmap(by(power))                                                   | w
jax.vmap(by(power), in_axes=1, out_axes=(0, 1))                       | w
jax.vmap(lambda x: lax.scan(lambda c, a: (c + a, a * x), 1.0, xs))    | xs
jax.vmap(nested)                                                      | xs
jax.vmap(two)                                                         | xs
jax.vmap(rnn, in_axes=(None, 0, None))                                | w, w, steps
jax.vmap(rnn, in_axes=(0, None, None))                                | np.stack([w, w]), h, steps
jax.vmap(rnn, in_axes=(None, None, 1))                                | w, h, np.stack([steps, steps], 1)
jax.vmap(rnn, in_axes=(2, 1, 2))                                      | np.stack([w, w], 2), w[:, :2], np.stack([steps, steps], 2)
jax.vmap(repeat)                                                      | xs
jax.vmap(lambda x: lax.map(lambda a: a * x, xs))                      | xs
jax.grad(lambda x: both(x)[0])
jax.grad(lambda x: both(x)[1].sum())
jax.grad(lambda x: factor(x)[0])
jax.grad(lambda x: factor(x)[1].sum())
jax.grad(lambda x: nested(x)[0])
jax.grad(lambda x: two(x)[0][1])
~ jax.grad(lambda x: two(x)[1][1].sum())
jax.grad(repeat)
jax.grad(lambda x: by(power)(x)[0])                                   | xs
jax.grad(lambda x: lax.map(lambda a: jnp.sin(a) * a, x).sum())        | xs
jax.grad(lambda x: lax.scan(lambda c, a: (c * a, c + a), 1.0, x, reverse=True)[1].sum()) | xs
jax.grad(last, 1)                                                     | w, h, steps
~ jax.grad(last, 2)                                                     | w, h, steps
~ jax.grad(last)                                                        | w, h, steps
lambda x, t: jax.linearize(both, x)[1](t)                             | one, one
lambda x, t: jax.linearize(factor, x)[1](t)                           | one, one
lambda x, t: jax.linearize(nested, x)[1](t)                           | one, one
lambda x, t: jax.linearize(two, x)[1](t)                              | one, one
lambda x, t: jax.linearize(by(power), x)[1](t)                        | xs, xs
~ lambda w, t: jax.linearize(lambda w: rnn(w, h, steps), w)[1](t)       | w, w
jax.grad(jax.grad(lambda x: both(x)[0]))
jax.grad(jax.grad(repeat))
jax.grad(jax.grad(repeat))                                            | 2.0
jax.vmap(jax.grad(lambda x: both(x)[0]))                              | xs
jax.vmap(jax.grad(last, 1), in_axes=(None, 0, None))                  | w, w, steps
~ jax.grad(lambda x: jax.vmap(both)(x)[0].sum())                        | xs
~ jax.vmap(lambda x: lax.scan(lambda c, a: (c + lax.psum(x, "i"), a), 1.0, xs), axis_name="i") | xs
jax.vmap(lambda x: lax.scan(lambda c, a: (c + lax.axis_index("i"), a), x, xs), axis_name="i") | xs
"""  # noqa: E501


def cases():
    for line in PROGRAMS.strip().splitlines():
        source, _, args = (part.strip("~ ") for part in line.partition("|"))
        yield pytest.param(source, args or "one", id=line)


def function_in(package, source):
    modules = [package, f"{package}.numpy", f"{package}.lax"]
    top, jnp, lax = map(importlib.import_module, modules)
    space = {**NAMES, "jax": top, "jnp": jnp, "lax": lax}
    exec(PRELUDE, space)
    return eval(source, space), top


def cleaned(value):
    """A jaxpr, or a parameter, of JAX without what minijax does not have."""
    if isinstance(value, jax_core.ClosedJaxpr):
        return value.replace(jaxpr=cleaned(value.jaxpr))
    if isinstance(value, jax_core.Jaxpr):
        return value.replace(eqns=list(map(cleaned, value.eqns)))
    if isinstance(value, jax_core.JaxprEqn):
        params = {k: cleaned(v) for k, v in value.params.items()}
        kept = {k: v for k, v in params.items() if not (k in ABSENT and v is None)}
        return value.replace(params=kept)
    if type(value) is tuple:
        return tuple(map(cleaned, value))
    return int(value) if isinstance(value, np.integer) else value


def leaves_in(package, source, args, jit=False):
    function, top = function_in(package, source)
    function = top.jit(function) if jit else function
    return top.tree_util.tree_flatten(function(*args))


SAME_TEXT = [case for case in cases() if not case.id.startswith("~")]


@pytest.mark.parametrize(("source", "args"), SAME_TEXT)
def test_text(source, args):
    args = eval(f"({args},)", dict(NAMES))
    (theirs, _), (ours, top) = (
        function_in(package, source) for package in ("jax", "minijax")
    )
    expected = cleaned(jax.make_jaxpr(theirs)(*args).jaxpr)
    assert str(top.make_jaxpr(ours)(*args)) == expected.pretty_print(use_color=False)


@pytest.mark.parametrize("case, jit", some(itertools.product(cases(), [0, 1]), 2))
def test_values(case, jit):
    source, args = case.values
    args = eval(f"({args},)", dict(NAMES))
    theirs, tree = leaves_in("jax", source, args, jit)
    ours, our_tree = leaves_in("minijax", source, args, jit)
    assert str(our_tree) == str(tree)
    for their, our in zip(theirs, ours, strict=True):
        assert np.asarray(our).dtype == np.asarray(their).dtype
        if np.asarray(their).dtype.kind != "V":  # float0
            np.testing.assert_allclose(np.asarray(our), their, rtol=2e-5, atol=1e-5)
        weak = [bool(getattr(x, "weak_type", False)) for x in (our, their)]
        assert weak[0] == weak[1]


# Calls that must fail: the class is JAX's, and the message names all of the facts.
REFUSED = """
lax.scan(3, 1.0, xs)                                       | scan, 3
lax.scan(lambda c, a: c, 1.0, xs)                          | pair
lax.scan(lambda c, a: (c, a, a), 1.0, xs)                  | pair
lax.scan(lambda c, a: None, 1.0, xs)                       | pair
lax.scan(power, 1.0, (xs, xs[:2]))                         | 3, 2, xs[0], xs[1]
lax.scan(power, 1.0, xs, length=2)                         | 2, 3, length
lax.scan(power, 1.0, None)                                 | length
lax.scan(power, 1.0, 3.0)                                  | 3.0
lax.scan(power, 1.0, {"a": [xs, 1.0]})                     | xs['a'][1], 1.0
lax.scan(power, 1.0, jnp.float32(3))                       | xs
lax.scan(power, 1.0, None, length="a")                     | length
jax.jit(lambda n: lax.scan(power, 1.0, None, length=n))(3) | length, fori_loop
lax.scan(lambda c, a: ((c, c), a), 1.0, xs)                | c, tuple
lax.scan(lambda c, a: ({"a": 1.0}, a), {"a": 1.0, "b": 2.0}, xs) | c, b
lax.scan(lambda c, a: (xs, a), 1.0, xs)                    | c, float32[], float32[3]
lax.scan(lambda c, a: (c.astype(int), a), jnp.float32(1), xs) | c, float32[], int32[]
lax.scan(lambda k, a: ({"a": [k["a"][0], k["a"][1] * a]}, a), {"a": [1.0, jnp.int32(2)]}, xs) | k['a'][1], int32[], float32[]
lax.scan(lambda c, a: ((c[1], c[0] * a), a), (1, 2), xs)   | c[0], int32[], float32[]
lax.scan(power, 1.0, xs, unroll=-1)                        | unroll
lax.scan(power, 1.0, xs, unroll=1.5)                       |
lax.scan(power, 1.0, xs, unroll="a")                       |
lax.scan(lambda c, a: (c + "a", a), 1.0, xs)               |
lax.scan(lambda c, a: (c, "a"), 1.0, xs)                   | str
lax.scan(power, "s", xs)                                   | 's'
lax.scan(power, 1.0, "abc")                                | 'abc'
lax.scan(lambda c, a: ((c if a > 0 else -c), a), 1.0, xs)  | a
lax.fori_loop(0, 3, 1, 1.0)                                | fori_loop
lax.fori_loop(jnp.int32(0), jnp.uint8(3), power, 1.0)      | int32, uint8
lax.fori_loop(0.0, 3, power, 1.0)                          | float32, int32
jax.jit(lambda n: lax.fori_loop(0, n, lambda i, c: c, 1.0, unroll=2))(3) | unroll
lax.fori_loop(0, 3, lambda i, c: (c, c), 1.0)              | tuple
lax.fori_loop(0, 3, lambda i, c: {"a": c["a"].astype(int)}, {"a": one}) | ['a'], float32[], int32[]
lax.fori_loop(jnp.arange(3), jnp.arange(3), lambda i, c: c, 1.0) | bool[3]
jax.grad(lambda x: jax.jit(lambda n: lax.fori_loop(0, n, lambda i, c: c * x, 1.0))(3))(2.0) | scan
lax.map(lambda a: a, None)                                 | length
lax.map(lambda a: a, 1.0)                                  | 1.0
lax.map(3, xs)                                             |
lax.map(lambda a: a, xs, batch_size=-1)                    |
lax.map(lambda a: a[0], (xs, xs[:2]), batch_size=2)        |
"""  # noqa: E501


def refusals():
    for line in REFUSED.strip().splitlines():
        source, _, facts = line.rpartition("|")
        facts = [fact.strip() for fact in facts.split(",") if fact.strip()]
        yield pytest.param(source.strip(), facts, id=source.strip())


@pytest.mark.parametrize(("source", "facts"), [*refusals()])
def test_refusal(source, facts):
    caught = {}
    for package in ("jax", "minijax"):
        with pytest.raises(Exception) as caught[package]:
            function_in(package, f"lambda: {source}")[0]()
    theirs, ours = caught["jax"].type, caught["minijax"]
    assert theirs.__name__ in [cls.__name__ for cls in ours.type.__mro__], ours.value
    assert all(fact in str(ours.value) for fact in facts), ours.value


WITHOUT_JIT = """
lax.scan(lambda c, a: ((c if a > 0.6 else c + 1), a), 1.0, xs)
lax.scan(power, 1.0, xs, reverse=True)
lax.scan(lambda c, a: (c * 2, 1.0), 1, None, length=3)
lax.scan(lambda c, a: (c * 2, None), 1, xs)
lax.scan(lambda c, a: (xs, a), 1.0, xs)
lax.fori_loop(0, 3, lambda i, c: c + i if i < 2 else c, 1.0)
lax.fori_loop(3, 3, lambda i, c: c + i, 1.0)
lax.map(lambda a: {"b": a * 2}, xs)
"""


@pytest.mark.parametrize("source", WITHOUT_JIT.strip().splitlines())
def test_disable_jit(source):
    results = {}
    for package in ("jax", "minijax"):
        top = importlib.import_module(package)
        with top.disable_jit():
            results[package] = leaves_in(package, f"lambda: {source}", ())
    (theirs, tree), (ours, our_tree) = results["jax"], results["minijax"]
    assert str(our_tree) == str(tree)
    for their, our in zip(theirs, ours, strict=True):
        np.testing.assert_allclose(np.asarray(our), their, rtol=1e-6)


def test_disable_jit_of_nothing():
    for package in ("jax", "minijax"):
        top = importlib.import_module(package)
        with top.disable_jit(), pytest.raises(ValueError, match="zero-length"):
            function_in(package, "lambda: lax.scan(power, 1.0, xs[:0])")[0]()
