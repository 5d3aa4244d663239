"""Loads at computed places fuse: with what makes their numbers, what they read, and
what reads them."""

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import jit, lax, make_jaxpr, nn
from minijax.fusion.fusion_pass import fuse
from minijax.kernels.lowering import Launch, lower
from minijax.passes.pipeline import simplify

CHANCE = np.random.default_rng(5)
SIZES = (1, 2, 7, 8, 9, 15, 16, 17, 33, 65)
KINDS = "float32 float64 float16 bfloat16 complex64 int32 int8 uint16 bool".split()


def kernels(f, *args):
    """The kernels that are left of a program."""
    program = fuse(lower(simplify(make_jaxpr(f)(*args))))
    return [step.kernel for step in program.walk() if isinstance(step, Launch)]


def layer_norm(x):
    """Each row with mean 0 and variance 1."""
    centred = x - x.mean(-1, keepdims=True)
    return centred / jnp.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)


x = jnp.linspace(-2.0, 2.0, 1000)
table = jnp.sin(jnp.arange(6400.0)).reshape(64, 100)
numbers = jnp.arange(50) * 37 % 64
ONE = {
    "what reads it": (lambda x, n: x[n] * 2, x, numbers),
    "what it reads": (lambda x, n: jnp.exp(x)[n] * 2, x, numbers),
    "what makes its numbers": (lambda x, n: x[3 * n % 50], x, numbers),
    "an embedding and a layer norm": (lambda t, n: layer_norm(t[n]), table, numbers),
    "a sum over what was gathered": (lambda t, n: t[n].sum(0), table, numbers),
    "one element of each row": (
        lambda t, n: jnp.log(2 + jnp.take_along_axis(t, n, 1)),
        table,
        jnp.arange(64)[:, None],
    ),
    "a slice": (
        lambda x, n: jnp.tanh(lax.dynamic_slice(jnp.exp(x), (n,), (100,)) * 2),
        x,
        3,
    ),
    "an index of the producer": (lambda x, n: (x * jnp.arange(1000))[n], x, numbers),
    "a table that is walked backwards": (lambda x, n: jnp.exp(x)[::-1][n], x, numbers),
    "a transposed table": (lambda t, n: jnp.exp(t).T[n] * 2, table, numbers),
}


@pytest.mark.parametrize("name", ONE)
def test_one_kernel(name):
    """A computed place does not end a kernel, and what it computes is the same."""
    f, *args = ONE[name]
    assert len(kernels(f, *args)) == 1
    np.testing.assert_allclose(jit(f)(*args), f(*args), rtol=2e-5, atol=1e-5)


def test_columns_that_a_sum_crosses_are_put_side_by_side():
    """A sum that goes from row to row for gathered columns is a kernel of its own."""
    square = jnp.ones((1000, 1000))
    many = jnp.arange(1000)
    assert len(kernels(lambda x, n: x[:, n].sum(0), square, many)) == 3
    assert len(kernels(lambda x, n: x[:, n].sum(1), square, many)) < 3


def test_a_gather_is_not_done_again_for_each_row():
    """What is read along other loops costs what a function costs."""
    few = jnp.arange(300)
    outer = lambda x, n: x[n][:, None] * x[n][None]  # noqa: E731
    assert all(
        {*node.level} == {0}
        for kernel in kernels(outer, x, few)
        for node in kernel.nodes
        if node.op == "load" and node.args
    )


@pytest.mark.parametrize("mode", ["fill", "clip", "drop"])
def test_outside_of_the_limit(mode):
    """The other number stands where there is no element, whatever makes the rest."""
    n = jnp.asarray([-1001, -1000, -1, 0, 999, 1000, 2**31 - 1, -(2**31)])

    def f(x, n):
        return (jnp.exp(x) + 1).at[n].get(mode=mode, fill_value=-7) * 2

    assert len(kernels(f, x, n)) == 1
    np.testing.assert_allclose(jit(f)(x, n), f(x, n), rtol=1e-6)


def test_a_table_that_is_read_both_ways():
    """An array of which one reader computes the places is whole before."""

    def f(x, n):
        e = jnp.exp(x)
        return e[n % 1000] + e, e.sum(), jnp.cumsum(e)[n]

    many = jnp.arange(1000) * 7
    for found, wanted in zip(jit(f)(x, many), f(x, many)):
        np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_nothing_is_overwritten_that_is_still_read():
    """A result may lie over an operand that another load reads in its place only."""

    def step(_, carry):
        y, z = carry
        return z[numbers * 13 % 50] + y, y * 0.5 - z

    start = jnp.ones(50), jnp.arange(50.0)
    run = lambda start: lax.fori_loop(0, 20, step, start)  # noqa: E731
    wanted = start
    for number in range(20):
        wanted = step(number, wanted)
    for found, each in zip(jit(run)(start), wanted):
        np.testing.assert_allclose(found, each, rtol=1e-5)


def drawn(kind, shape):
    """Some numbers of a dtype."""
    found = CHANCE.normal(size=shape) * 3
    if kind.startswith("complex"):
        found = found + 1j * CHANCE.normal(size=shape)
    if kind == "uint16":
        found = abs(found)
    return jnp.asarray(found > 0 if kind == "bool" else found).astype(kind)


def makers(kind):
    """Functions of a table that keep its shape."""
    found = {
        "as it is": lambda t: t,
        "backwards": lambda t: t[::-1, ::-1] | t if kind == "bool" else -t[::-1, ::-1],
        "padded": lambda t: jnp.pad(t, ((1, 0), (0, 2)))[:-1, :-2],
        "by its index": lambda t: jnp.where(jnp.arange(t.shape[1]) % 2 == 0, t, t[:1]),
        "of a column": lambda t: t[:, :1] + jnp.zeros_like(t),
    }
    if kind not in ("bool", "int32", "int8", "uint16"):
        found |= {"a function": lambda t: jnp.exp(t * 0.25)}
    return found


READERS = {
    "rows": lambda t, n, m: t[n],
    "columns": lambda t, n, m: t[:, n],
    "elements": lambda t, n, m: t[n, m],
    "rows and their sums": lambda t, n, m: t[n] + t[n].sum(1, keepdims=True),
    "a sum of rows": lambda t, n, m: t[n].sum(0),
    "of a gather": lambda t, n, m: t[n][m % n.shape[0]],
    "a slice": lambda t, n, m: lax.dynamic_slice(t, (n[0], m[0]), (1, t.shape[1])),
    "shifted": lambda t, n, m: t[n][1:] * t[n][:-1],
    "fill": lambda t, n, m: t.at[n, m].get(mode="fill", fill_value=1),
    "clip": lambda t, n, m: t.at[n].get(mode="clip"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reader", READERS)
def test_against_eager_calls(reader, kind):
    """Each reader of each maker, at sizes where vectors end."""
    with minijax.enable_x64(kind == "float64"):
        for make in makers(kind).values():
            rows, columns, count = CHANCE.choice(SIZES, 3)
            t = drawn(kind, (rows, columns))
            n, m = (
                jnp.asarray(CHANCE.integers(-size - 2, size + 2, count))
                for size in (rows, columns)
            )

            def f(t, n, m, make=make):
                return READERS[reader](make(t), n, m)

            wanted = np.asarray(f(t, n, m)).astype(complex)
            found = np.asarray(jit(f)(t, n, m)).astype(complex)
            close = {"float16": 4e-3, "bfloat16": 4e-2, "float64": 1e-12}
            least = close.get(kind, 1e-5)
            scale = np.abs(wanted[np.isfinite(wanted)]).max(initial=1.0)
            np.testing.assert_allclose(found, wanted, rtol=least, atol=least * scale)


def test_scores_of_a_network():
    """The loss of a classifier gathers from the scores: two kernels, not four."""

    def loss(x, labels):
        scores = nn.log_softmax(x)
        return -jnp.take_along_axis(scores, labels[:, None], 1).mean()

    labels = numbers[jnp.arange(64) % 50] % 100
    assert len(kernels(loss, table, labels)) == 2
    np.testing.assert_allclose(jit(loss)(table, labels), loss(table, labels), rtol=1e-5)
