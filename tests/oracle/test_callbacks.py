"""Callbacks, prints and invalid numbers: one program, run by JAX and by minijax."""

import io
import re
from types import SimpleNamespace

import numpy as np
import pytest

jax = pytest.importorskip("jax")
from jax.experimental import io_callback as jax_io_callback  # noqa: E402

import minijax  # noqa: E402
from minijax import debug, lax  # noqa: E402
from minijax.experimental import io_callback  # noqa: E402

COMMON = """
    jit vmap grad jvp linearize vjp linear_transpose hessian make_jaxpr pure_callback
    ShapeDtypeStruct debug_nans debug_infs effects_barrier
""".split()


def package(module, lax, debug, io_callback):
    """Return what a program of these tests needs of one of the two packages."""
    return SimpleNamespace(
        **{name: getattr(module, name) for name in COMMON},
        np=module.numpy,
        lax=lax,
        debug=debug,
        io_callback=io_callback,
    )


THEIRS = package(jax, jax.lax, jax.debug, jax_io_callback)
OURS = package(minijax, lax, debug, io_callback)
X = np.arange(3, dtype="float32")


class Run:
    """What happened: calls of Python functions, what was printed, result or error."""

    def __init__(self, j, program, capsys):
        self.calls = []
        capsys.readouterr()
        try:
            result = program(j, self)
            j.effects_barrier()
            self.result = list(map(self.leaf, jax.tree.leaves(to_numpy(result))))
        except Exception as error:
            self.result = self.kind(error)
        self.printed = capsys.readouterr().out.splitlines()

    @staticmethod
    def leaf(x):
        return x.dtype, x.shape, np.round(x.astype("float64"), 5).tolist()

    @staticmethod
    def kind(error):
        name = type(error).__name__
        return "JaxRuntimeError" if "JaxRuntime" in repr(error) else name

    def note(self, *args, **kwargs):
        """Remember the arguments of a call of Python."""
        leaves = [np.asarray(x) for x in (*args, *kwargs.values())]
        self.calls.append([(x.dtype.name, x.shape, x.tolist()) for x in leaves])


def to_numpy(tree):
    if isinstance(tree, dict):
        return {key: to_numpy(value) for key, value in tree.items()}
    if isinstance(tree, (tuple, list)):
        return [to_numpy(value) for value in tree]
    return None if tree is None else np.asarray(tree)


def sine(run):
    def call(x):
        run.note(x)
        return np.sin(x)

    return call


def pure(j, run, method=None):
    return lambda x: j.pure_callback(
        sine(run), j.ShapeDtypeStruct(np.shape(x), "float32"), x, vmap_method=method
    )


def pure_sum(j, run, method):
    def add(x, y):
        run.note(x, y)
        return np.asarray(x) + np.asarray(y)

    return lambda x, y: j.pure_callback(
        add, j.ShapeDtypeStruct(np.shape(x), "float32"), x, y, vmap_method=method
    )


def returns(value, promise, jitted=True):
    """A program whose callback returns a value, where something was promised."""

    def program(j, run):
        def shape(leaf):
            return j.ShapeDtypeStruct(*leaf)

        tree = jax.tree.map(shape, promise, is_leaf=lambda t: type(t) is tuple)

        def call(x):
            return j.pure_callback(lambda x: value, tree, x)

        return (j.jit(call) if jitted else call)(X)

    return program


S, V = ((), "float32"), ((3,), "float32")
PURE = {
    "eager": lambda j, r: pure(j, r)(X),
    "scalar": lambda j, r: pure(j, r)(1.0),
    "jit": lambda j, r: j.jit(pure(j, r))(X),
    "jit in jit": lambda j, r: j.jit(lambda x: 2 * j.jit(pure(j, r))(x))(X),
    "unused": lambda j, r: (pure(j, r)(X), X)[1],
    "unused in jit": lambda j, r: j.jit(lambda x: (pure(j, r)(x), x)[1])(X),
    "vmap without method": lambda j, r: j.vmap(pure(j, r))(X),
    "vmap of a constant": lambda j, r: j.vmap(lambda x: x + pure(j, r)(2.0))(X),
    "no such method": lambda j, r: pure(j, r, "often")(X),
    "jvp": lambda j, r: j.jvp(pure(j, r), (1.0,), (1.0,)),
    "grad": lambda j, r: j.grad(pure(j, r))(1.0),
    "grad of jit": lambda j, r: j.grad(j.jit(pure(j, r)))(1.0),
    "linearize": lambda j, r: j.linearize(pure(j, r), 1.0)[0],
    "transpose": lambda j, r: j.linear_transpose(pure(j, r), 1.0)(1.0),
    "grad beside it": lambda j, r: j.grad(lambda x: x * pure(j, r)(2.0))(1.0),
    "grad of jit beside it": lambda j, r: j.grad(j.jit(lambda x, y: x * pure(j, r)(y)))(
        1.0, 2.0
    ),
    "in cond": lambda j, r: j.jit(
        lambda x: j.lax.cond(x > 0, pure(j, r), lambda x: x, x)
    )(1.0),
    "in scan": lambda j, r: j.lax.scan(lambda c, a: (c, pure(j, r)(a)), 0.0, X),
    "in while": lambda j, r: j.lax.while_loop(
        lambda c: c < 3, lambda c: c + 1 + 0 * pure(j, r)(c), 0.0
    ),
    "in fori": lambda j, r: j.lax.fori_loop(
        0, 3, lambda i, c: c + pure(j, r)(i + 0.5), 0.0
    ),
    "keywords": lambda j, r: j.pure_callback(
        lambda x, *, y: (r.note(x, y), np.asarray(y))[1],
        j.ShapeDtypeStruct(*S),
        X,
        y=2.0,
    ),
    "tree": lambda j, r: j.pure_callback(
        lambda t: {"b": t["a"], "c": (t["a"],)},
        {"b": j.ShapeDtypeStruct(*V), "c": (j.ShapeDtypeStruct(*V),)},
        {"a": X},
    ),
    "raises": lambda j, r: j.pure_callback(
        lambda x: 1 // 0, j.ShapeDtypeStruct(*S), 1.0
    ),
    "raises in jit": lambda j, r: j.jit(
        lambda x: j.pure_callback(lambda x: 1 // 0, j.ShapeDtypeStruct(*S), x)
    )(1.0),
    "64 bits": lambda j, r: j.pure_callback(
        np.sin, j.ShapeDtypeStruct((), "float64"), 1.0
    ),
    "promise of an int": lambda j, r: j.pure_callback(np.sin, 3, 1.0),
    "promise of nothing": lambda j, r: j.pure_callback(lambda x: None, None, 1.0),
    "string": lambda j, r: j.pure_callback(np.sin, j.ShapeDtypeStruct(*S), "x"),
    "float for float32": returns(2.5, S),
    "int for float32": returns(2, S),
    "wide float": returns(np.ones(3), V),
    "int32": returns(np.ones(3, "int32"), V),
    "wrong shape": returns(np.ones(4, "float32"), V),
    "wrong shape, no jit": returns(np.ones(4, "float32"), V, jitted=False),
    "too many": returns((np.ones(3, "float32"),) * 2, V),
    "none": returns(None, V),
    "list for tuple": returns([np.ones(3, "float32")], (V,)),
    "other keys": returns({"c": np.ones(3, "float32")}, {"d": V}),
    "wrong leaf": returns({"a": np.float32(1), "b": np.float32(1)}, {"a": S, "b": V}),
    "bool": returns(True, ((), "bool")),
    "complex": returns(1j, ((), "complex64")),
}
METHODS = """
    sequential sequential_unrolled expand_dims broadcast_all legacy_vectorized
""".split()
for _name in METHODS:
    PURE |= {
        f"{_name}, shared scalar": lambda j, r, m=_name: j.vmap(
            pure_sum(j, r, m), in_axes=(0, None)
        )(X, 1.0),
        f"{_name}, last axis": lambda j, r, m=_name: j.vmap(
            pure_sum(j, r, m), in_axes=(1, None)
        )(np.ones((3, 2), "float32"), X),
        f"{_name}, twice": lambda j, r, m=_name: j.vmap(
            j.vmap(pure_sum(j, r, m), in_axes=(0, None)), in_axes=(None, 0)
        )(X, X + 1),
        f"{_name}, of jit": lambda j, r, m=_name: j.vmap(j.jit(pure(j, r, m)))(X),
        f"{_name}, in jit": lambda j, r, m=_name: j.jit(j.vmap(pure(j, r, m)))(X),
    }


@pytest.mark.parametrize("name", PURE)
def test_pure_callbacks(name, capsys):
    theirs, ours = (Run(j, PURE[name], capsys) for j in (THEIRS, OURS))
    assert ours.result == theirs.result
    assert sorted(ours.calls) == sorted(theirs.calls)


def count(j, run, ordered):
    """A function of arrays that notes them, and returns how many calls there were."""

    def call(*args):
        run.note(*args)
        return np.float32(len(run.calls))

    return lambda *args: j.io_callback(
        call, j.ShapeDtypeStruct(*S), *args, ordered=ordered
    )


IO = {
    "eager": lambda j, f: f(1.0),
    "jit": lambda j, f: j.jit(f)(1.0),
    "unused": lambda j, f: j.jit(lambda x: (f(x), x)[1])(1.0),
    "vmap": lambda j, f: j.vmap(f)(X),
    "vmap, shared": lambda j, f: j.vmap(f, in_axes=(0, None))(X, 7.0),
    "vmap of a constant": lambda j, f: j.vmap(lambda x: f(7.0))(X),
    "vmap of jit": lambda j, f: j.vmap(j.jit(f))(X),
    "jvp": lambda j, f: j.jvp(f, (1.0,), (1.0,)),
    "grad": lambda j, f: j.grad(f)(1.0),
    "jvp beside it": lambda j, f: j.jvp(lambda x: x * f(2.0), (1.0,), (1.0,)),
    "grad beside it": lambda j, f: j.grad(lambda x: x * f(2.0))(1.0),
    "grad of jit beside it": lambda j, f: j.grad(j.jit(lambda x: x * f(2.0)))(1.0),
    "transpose": lambda j, f: j.linear_transpose(f, 1.0)(1.0),
    "in cond": lambda j, f: j.jit(lambda x: j.lax.cond(x > 0, f, lambda x: x, x))(1.0),
    "in scan": lambda j, f: j.lax.scan(lambda c, a: (c, f(a)), 0.0, X),
    "in while": lambda j, f: j.lax.while_loop(
        lambda c: c < 3, lambda c: c + f(c) * 0 + 1, 0.0
    ),
    "in the condition": lambda j, f: j.lax.while_loop(
        lambda c: (f(c) < 100) & (c < 3), lambda c: c + 1, 0.0
    ),
    "vmap of scan": lambda j, f: j.vmap(
        lambda y: j.lax.scan(lambda c, a: (c, f(a, y)), 0.0, X)
    )(X),
    "vmap of cond": lambda j, f: j.vmap(lambda x: j.lax.cond(x > 0, f, lambda x: x, x))(
        X
    ),
}


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("name", IO)
def test_io_callbacks(name, ordered, capsys):
    theirs, ours = (
        Run(j, lambda j, run: IO[name](j, count(j, run, ordered)), capsys)
        for j in (THEIRS, OURS)
    )
    assert ours.result == theirs.result
    assert ours.calls == theirs.calls


def square(j, ordered):
    def f(x):
        j.debug.print("{} and {twice}", x, twice=2 * x, ordered=ordered)
        return x * x

    return f


def twice_mapped(j, f):
    return j.vmap(j.vmap(f))(np.arange(4, dtype="float32").reshape(2, 2))


PRINTS = {
    "eager": lambda j, f: f(1.0),
    "jit": lambda j, f: j.jit(f)(1.0),
    "jit in jit": lambda j, f: j.jit(j.jit(f))(1.0),
    "vmap": lambda j, f: j.vmap(f)(X),
    "vmap of a constant": lambda j, f: j.vmap(lambda x: x + f(2.0))(X),
    "vmap of vmap": twice_mapped,
    "last axis": lambda j, f: j.vmap(lambda x: f(x).sum(), in_axes=1)(
        np.arange(6, dtype="float32").reshape(2, 3)
    ),
    "jit of vmap": lambda j, f: j.jit(j.vmap(f))(X),
    "vmap of jit": lambda j, f: j.vmap(j.jit(f))(X),
    "jvp": lambda j, f: j.jvp(f, (1.0,), (1.0,)),
    "jvp of jvp": lambda j, f: j.jvp(lambda x: j.jvp(f, (x,), (x,)), (1.0,), (1.0,)),
    "grad": lambda j, f: j.grad(f)(1.0),
    "grad of jit": lambda j, f: j.grad(j.jit(f))(1.0),
    "jit of grad": lambda j, f: j.jit(j.grad(f))(1.0),
    "linearize": lambda j, f: j.linearize(f, 1.0)[1](1.0),
    "linearize jit": lambda j, f: j.linearize(j.jit(f), 1.0)[1](1.0),
    "vjp": lambda j, f: j.vjp(f, 1.0)[1](1.0),
    "hessian": lambda j, f: j.hessian(f)(1.0),
    "transpose": lambda j, f: j.linear_transpose(lambda x: (f(x), 2 * x)[1], 1.0)(1.0),
    "in cond": lambda j, f: j.lax.cond(True, f, lambda x: x, 1.0),
    "in scan": lambda j, f: j.lax.scan(lambda c, a: (c, f(a)), 0.0, X),
    "grad of scan": lambda j, f: j.grad(
        lambda y: j.lax.scan(lambda c, a: (c, f(a * y)), 0.0, X)[1].sum()
    )(2.0),
    "in while": lambda j, f: j.lax.while_loop(
        lambda c: c < 3, lambda c: (f(c), c + 1)[1], 0.0
    ),
    "in fori": lambda j, f: j.lax.fori_loop(0, 3, lambda i, c: (f(c), c + 1)[1], 0.0),
    "vmap of cond": lambda j, f: j.vmap(lambda x: j.lax.cond(x > 0, f, lambda x: x, x))(
        X
    ),
    "vmap of scan": lambda j, f: j.vmap(
        lambda y: j.lax.scan(lambda c, a: (c, f(a * y)), 0.0, X)[1].sum()
    )(X),
    "vmap of while": lambda j, f: j.vmap(
        lambda x: j.lax.while_loop(lambda c: c < 3, lambda c: (f(c), c + 1)[1], x)
    )(X),
}


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("name", PRINTS)
def test_prints(name, ordered, capsys):
    theirs, ours = (
        Run(j, lambda j, run: PRINTS[name](j, square(j, ordered)), capsys)
        for j in (THEIRS, OURS)
    )
    assert ours.result == theirs.result
    assert sorted(ours.printed) == sorted(theirs.printed)
    if ordered:
        assert ours.printed == theirs.printed


THIRDS = np.arange(3, dtype="float32") / 3
FORMATS = {
    "plain": lambda p: p("hello"),
    "braces": lambda p: p("a {{}} b"),
    "specs": lambda p: p("{:.3f} {x:5.1f}", 1.23456, x=2.0),
    "nested spec": lambda p: p("{:{width}}|", 1.5, width=8),
    "numbers": lambda p: p("{} {} {}", 1, True, 2 + 1j),
    "positions": lambda p: p("{1} {0}", 1.0, 2.0),
    "strings": lambda p: p("{} {d}", "text", d={"a": "b"}),
    "arrays": lambda p: p("{} {m}", THIRDS, m=np.eye(2, dtype="float32")),
    "attributes": lambda p: p("{x.shape} {x[0]}", x=THIRDS),
    "tree": lambda p: p("{}", {"a": THIRDS, "b": (1.5, "s")}),
    "two calls": lambda p: p(ordered=True)("hello {x}", x=3),
    "missing": lambda p: p("{} {}", 1.0),
    "missing name": lambda p: p("{y}", x=1.0),
    "unused": lambda p: p("{}", 1.0, 2.0),
    "unused name": lambda p: p("{y}", x=1.0, y=2.0),
    "no format": lambda p: p(THIRDS),
    "spec for an array": lambda p: p("{:.3f}", THIRDS),
}


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("name", FORMATS)
def test_formats(name, jitted, capsys):
    def program(j, run):
        f = lambda: FORMATS[name](j.debug.print)  # noqa: E731
        return (j.jit(f) if jitted else f)()

    theirs, ours = (Run(j, program, capsys) for j in (THEIRS, OURS))
    assert ours.result == theirs.result
    printed = [re.sub(", weak_type=True", "", line) for line in theirs.printed]
    assert [re.sub(", weak_type=True", "", line) for line in ours.printed] == printed


def test_print_options_are_those_of_the_call(capsys):
    def program(j, run):
        with np.printoptions(precision=2):
            f = j.jit(lambda x: j.debug.print("{}", x)).lower(THIRDS).compile()
        f(THIRDS)

    theirs, ours = (Run(j, program, capsys) for j in (THEIRS, OURS))
    assert ours.printed == theirs.printed == ["[0.   0.33 0.67]"]


def debug_call(function, *args, **kwargs):
    return lambda j, run: j.debug.callback(
        lambda *a, **k: function(run, *a, **k), *args, **kwargs
    )


DEBUG_CALLS = {
    "arguments": debug_call(lambda run, x, s, *, y: run.note(x, y), X, "s", y=2.0),
    "result": debug_call(lambda run, x: 3, X),
    "error": debug_call(lambda run, x: 1 // 0, X),
    "ordered": debug_call(lambda run, x: run.note(x), X, ordered=True),
    "not callable": lambda j, run: j.debug.callback(3, 1.0),
    "two calls": lambda j, run: j.debug.callback(ordered=True)(run.note, X),
}


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("name", DEBUG_CALLS)
def test_debug_callbacks(name, jitted, capsys):
    def program(j, run):
        f = lambda: DEBUG_CALLS[name](j, run)  # noqa: E731
        return (j.jit(f) if jitted else f)()

    theirs, ours = (Run(j, program, capsys) for j in (THEIRS, OURS))
    assert ours.result == theirs.result
    assert ours.calls == theirs.calls


def entropy(j):
    return lambda p: -(p * j.np.log(p)).sum()


def hidden(j):
    return lambda x: j.np.where(j.np.isnan(j.np.log(x - 5)), 0.0, 1.0)


def minus_log(x):
    return np.float32("nan") if x < 0 else np.float32(0)


CERTAIN = np.array([1.0, 0.0], "float32")
NANS = {
    "eager": lambda j: entropy(j)(CERTAIN),
    "jit": lambda j: j.jit(entropy(j))(CERTAIN),
    "twice": lambda j: [j.jit(lambda x: x + 1)(X), j.jit(entropy(j))(CERTAIN)],
    "jit in jit": lambda j: j.jit(lambda p: 1 + j.jit(entropy(j))(p))(CERTAIN),
    "vmap": lambda j: j.vmap(entropy(j))(np.stack([CERTAIN] * 2)),
    "grad": lambda j: j.grad(lambda x: j.np.sqrt(x) * j.np.sqrt(x))(0.0),
    "grad of jit": lambda j: j.grad(j.jit(lambda x: j.np.sqrt(x) * j.np.sqrt(x)))(0.0),
    "hidden in jit": lambda j: j.jit(hidden(j))(X),
    "hidden": lambda j: hidden(j)(X),
    "infinite": lambda j: j.np.exp(j.np.float32(1000.0)),
    "infinite in jit": lambda j: j.jit(lambda x: j.np.exp(x) * 2)(1000.0),
    "passed through": lambda j: j.jit(lambda x: x)(np.float32("nan")),
    "empty": lambda j: j.np.zeros((0,)) / 0,
    "integers": lambda j: j.np.arange(3) // 2,
    "a callback": lambda j: j.jit(
        lambda x: j.pure_callback(minus_log, j.ShapeDtypeStruct(*S), x)
    )(-1.0),
    "in cond": lambda j: j.jit(
        lambda x: j.lax.cond(x > 0, lambda x: j.np.log(-x), lambda x: x, x)
    )(1.0),
    "in scan": lambda j: j.lax.scan(lambda c, a: (j.np.log(c), a), 0.5, X)[0],
    "in while": lambda j: j.lax.while_loop(
        lambda c: c > -3, lambda c: j.np.log(c), 0.5
    ),
}


@pytest.mark.parametrize("nans", [False, True])
@pytest.mark.parametrize("infs", [False, True])
@pytest.mark.parametrize("name", NANS)
def test_invalid_numbers(name, nans, infs):
    outcomes = []
    for j in (THEIRS, OURS):
        with j.debug_nans(nans), j.debug_infs(infs):
            try:
                NANS[name](j)
                outcomes.append("fine")
            except FloatingPointError as error:
                word = re.search(r"\((nan|inf)\)|'(nan|inf)'", str(error))
                outcomes.append(word[1] or word[2])
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("name", ["eager", "jit", "jit in jit", "vmap", "infinite"])
def test_the_primitive_has_jaxs_name(name):
    messages = []
    for j in (THEIRS, OURS):
        with j.debug_nans(True), j.debug_infs(True):
            with pytest.raises(FloatingPointError) as info:
                NANS[name](j)
            messages.append(str(info.value).splitlines()[0])
    assert messages[0] == messages[1]


def test_jaxprs_of_callbacks():
    def program(j):
        spec = j.ShapeDtypeStruct((3,), "float32")

        def f(x):
            a = j.pure_callback(np.sin, spec, x, vmap_method="expand_dims")
            return j.io_callback(np.cos, spec, a, ordered=True)

        return str(j.make_jaxpr(f)(X)), str(
            j.make_jaxpr(
                j.vmap(
                    lambda x: j.pure_callback(
                        np.sin, spec, x, vmap_method="broadcast_all"
                    )
                )
            )(np.ones((2, 3), "f"))
        )

    theirs = [re.sub(r"\n *sharding=None", "", text) for text in program(THEIRS)]
    assert list(program(OURS)) == theirs


def curve(x):
    y = x * x
    return y + y * 2.0


WRAPS = {
    "plain": lambda j: curve,
    "grad": lambda j: j.grad(curve),
    "jvp": lambda j: lambda x: j.jvp(curve, (x,), (x,)),
    "linearize": lambda j: lambda x: j.linearize(curve, x)[1](x),
    "vmap": lambda j: lambda x: j.vmap(curve)(X * x),
    "grad of jit": lambda j: j.grad(j.jit(curve)),
    "vmap of jit": lambda j: lambda x: j.vmap(j.jit(curve))(X * x),
}


@pytest.mark.parametrize("name", WRAPS)
def test_sources_are_jaxs(name):
    texts = []
    for j in (THEIRS, OURS):
        closed = j.make_jaxpr(WRAPS[name](j))(1.0)
        texts.append(places(closed.pretty_print(source_info=True)))
    assert texts[0] == texts[1]


def places(text):
    """Return where the equations of `curve` come from; the calls have none in JAX."""
    return re.findall(r"# (?:\S*/)?(\S+ \(curve\))", text)


def stopping(j, typed, out):
    def f(x, n=3):
        y = {"twice": 2 * x, "name": "x"}
        j.debug.breakpoint(stdin=io.StringIO(typed), stdout=out, num_frames=2)
        return y["twice"]

    return f


TYPED = "p x\np y\npp n\nx[0]\np nothing\n1 //\nu\nd\nd\nw\nc\n"


@pytest.mark.parametrize("jitted", [False, True])
def test_breakpoints(jitted):
    texts = []
    for j in (THEIRS, OURS):
        out = io.StringIO()
        f = stopping(j, TYPED, out)
        (j.jit(f) if jitted else f)(j.np.arange(3.0))
        j.effects_barrier()
        texts.append(out.getvalue())
    theirs, ours = ([*map(shortened, text.split("(jdb) "))] for text in texts)
    assert ours[:6] == theirs[:6]
    assert [part[:15] for part in ours] == [part[:15] for part in theirs]


def shortened(text):
    return re.sub(r"\(<string>.*|\(<unknown>.*", "", text).strip()
