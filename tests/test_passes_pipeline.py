"""All passes on many programs: the same results, bit by bit, and nothing left to do."""

from functools import partial

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import grad, jit, lax, make_jaxpr, vmap
from minijax.jaxprs.checker import JaxprTypeError, check_jaxpr
from minijax.jaxprs.pretty_printer import subjaxprs
from minijax.passes.pipeline import passes, simplify
from minijax.passes.rewriting import JaxprRewriter
from tests import corpus, mutants_passes, pass_programs
from tests.commands import LONG, blocks
from tests.pass_cases import adds_in_loops, difference, evaluated
from tests.program_writer import Program, Types, namespace
from tests.random_control import TRANSFORMATIONS, runnable

EVERY = {**passes, "simplify": simplify}
PROGRAMS = corpus.programs(minijax)
TABLE = corpus.transformations(minijax)
SINGLE = [(name,) for name in TABLE if not name.startswith("plain")]
STACKS = [
    ("scan", "grad"), ("while", "jvp"), ("cond", "vjp"), ("fori", "grad"),
    ("vmap", "scan"), ("grad", "vmap"), ("vjp", "jvp"), ("scan", "scan"),
]  # fmt: skip


@pytest.fixture(autouse=True)
def checks():
    with minijax.config.override("jax_enable_checks", True):
        yield


def count(jaxpr):
    """Return the number of equations, those inside of others too."""
    return len(jaxpr.eqns) + sum(map(count, subjaxprs(jaxpr)))


def same(closed, new, args, close=False):
    """Require equal results; where additions were moved, up to rounding."""
    assert list(map(str, new.in_avals)) == list(map(str, closed.in_avals))
    assert new.out_avals == closed.out_avals
    for x, y in zip(evaluated(closed, args), evaluated(new, args), strict=True):
        found = difference(x, y)
        if found and (close or adds_in_loops(closed)):
            exact = np.asarray(x).dtype.itemsize >= 8
            np.testing.assert_allclose(x, y, rtol=1e-12 if exact else 1e-5, atol=1e-6)
        else:
            assert not found


def fixed(new):
    """Require that nothing is left to do, even if nothing is remembered."""
    minijax.clear_caches()
    assert str(simplify(new)) == str(new)


@pytest.mark.parametrize("name", PROGRAMS)
def test_corpus(name):
    """Every second transformation, the others for the next program; of stacks every
    16th. With `LONG=1` all of them.
    """
    f, point = PROGRAMS[name]
    number = [*PROGRAMS].index(name)
    with minijax.enable_x64(True):
        some = SINGLE[number % 2 :: 2] + STACKS[number % 16 :: 16]
        for stack in SINGLE + STACKS if LONG else some:
            x = jnp.asarray(point)
            try:
                closed = make_jaxpr(corpus.apply(TABLE, stack, f))(x)
            except (TypeError, ValueError):  # it has no such derivative
                continue
            new = simplify(closed)
            same(closed, new, [x])
            fixed(new)


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("seed", blocks(10, 20))
def test_random_control_flow(seed):
    with minijax.enable_x64(bool(seed % 2)), np.errstate(all="ignore"):
        program = Program(seed, [Types("minijax")], 4)
        f = runnable(minijax, namespace("minijax"), program.source)
        leaves = [jnp.asarray(x) for x in minijax.tree_util.tree_leaves(program.inputs)]
        for transformation in TRANSFORMATIONS:
            try:
                closed = make_jaxpr(partial(transformation, minijax, f))(program.inputs)
            except Exception:
                continue
            for run in EVERY.values() if seed % 5 == 0 else [simplify]:
                new = run(closed)
                check_jaxpr(new)
                same(closed, new, leaves)
            fixed(new)


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("block", blocks(3, 8))
def test_programs_of_bad_numbers(block):
    for seed in range(40 * block, 40 * block + 40):
        assert not pass_programs.wrong(seed), seed


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("name", mutants_passes.MUTANTS)
def test_programs_of_bad_numbers_find_mutants(name):
    seed = mutants_passes.SEEDS[name]
    some, fault = mutants_passes.brought_back(name)
    with fault:
        try:
            found = pass_programs.wrong(seed, some)
        except JaxprTypeError:  # the checker has seen it
            found = {name: "no jaxpr"}
    assert found
    assert not pass_programs.wrong(seed)


def test_what_is_empty_along_another_axis_counts():
    closed, args = program_of(
        lambda x: jnp.concatenate([jnp.concatenate([x, x]), x]), jnp.ones((2, 0))
    )
    for run in EVERY.values():
        assert run(closed).out_avals == closed.out_avals
        same(closed, run(closed), args)


def test_a_loop_of_no_rounds_asks_nothing():
    def ask(n):
        raise AssertionError("nothing was to be asked")

    def walk(x, n):
        number = np.zeros((), "float32")
        return lax.while_loop(
            lambda x: x < 1.0,
            lambda x: x + jnp.exp(minijax.pure_callback(ask, number, n)),
            x,
        )

    closed, args = program_of(walk, np.float32(2.0), 3)
    assert "pure_callback" not in names(simplify(closed))
    same(closed, simplify(closed), args)


@pytest.mark.parametrize("axes", [(), (0,)])
@pytest.mark.parametrize("reduce", [lax.reduce_max, lax.reduce_min])
def test_the_maximum_of_one_complex_number_begins_at_infinity(reduce, axes):
    for sign in (1, -1):
        x = jnp.asarray(np.array([[complex(sign * np.inf, sign)]], "complex64"))
        closed, args = program_of(lambda x: reduce(x, axes), x)
        same(closed, simplify(closed), args)


X = jnp.asarray(np.linspace(-1.0, 2.0, 12, dtype="float32").reshape(3, 4))
ROWS = jnp.asarray(np.linspace(-0.5, 0.5, 30, dtype="float32").reshape(10, 3))
W = jnp.asarray(np.random.default_rng(0).normal(size=(3, 3)).astype("float32"))


def program_of(f, *args):
    return make_jaxpr(f)(*args), args


def names(closed):
    return [eqn.primitive.name for eqn in closed.eqns]


@pytest.mark.parametrize("run", EVERY.values(), ids=EVERY)
def test_nothing_to_do(run):
    closed, _ = program_of(lambda x: jnp.sin(x) * x, X)
    assert run(closed) is closed
    assert run(run(closed)) is closed


def test_each_pass_alone():
    inner = jit(lambda x: jnp.sin(x) * 2.0)
    programs = {
        "inlining": lambda x: inner(x) + 1.0,
        "branches": lambda x: lax.cond(True, jnp.sin, jnp.cos, x),
        "loops": lambda x: lax.scan(lambda c, _: (c * jnp.exp(x), 0), x, None, 3)[0],
        "constant folding": lambda x: x * jnp.sin(np.ones(4, "float32") * 2),
        "algebra": lambda x: jnp.negative(-x) * 1.0,
        "rearranging": lambda x: x.T.T + x.reshape(2, 6).reshape(3, 4),
        "contractions": lambda x: x.T @ x,
        "common subexpressions": lambda x: jnp.sin(x) + jnp.sin(x),
        "dead code": lambda x: (jnp.cos(x), x)[1] * 2.0,
    }
    assert programs.keys() == passes.keys()
    for name, f in programs.items():
        closed, args = program_of(f, X)
        new = passes[name](closed)
        assert str(new) != str(closed), name
        check_jaxpr(new)
        same(closed, new, args)


def test_jit_with_a_backend_stays():
    f = jit(lambda x: x * 2.0, backend="interpreter")
    assert names(simplify(make_jaxpr(lambda x: f(x) + 1)(X))) == ["jit", "add"]


def test_inlined_twice():
    f = jit(lambda x: jnp.sin(x) * 2.0)
    closed, args = program_of(lambda x: f(f(x)) + f(x + 1), X)
    new = simplify(closed)
    assert names(new).count("sin") == 3
    same(closed, new, args)


def test_effects_stay_and_keep_their_order(capsys):
    def f(x):
        minijax.debug.print("first {}", 1)
        jnp.sin(x)
        minijax.debug.print("first {}", 1)
        lax.cond(True, lambda: minijax.debug.print("second"), lambda: None)
        lax.scan(lambda c, _: (c, minijax.debug.print("third")), 0, None, 2)
        return x

    closed, args = program_of(f, X)
    evaluated(simplify(closed), args)
    found = capsys.readouterr().out.split("\n")
    assert found == ["first 1", "first 1", "second", "third", "third", ""]


def test_weak_types_of_results():
    closed = make_jaxpr(lambda x, y: (x * 1, y + 0, 2.0, x + 0 * y))(1.0, 2)
    assert simplify(closed).out_avals == closed.out_avals
    closed = make_jaxpr(lambda x: lax.convert_element_type(x, jnp.float32))(1.0)
    assert simplify(closed).out_avals == closed.out_avals
    assert names(simplify(closed)) == ["convert_element_type"]


def test_sources_survive():
    new = simplify(make_jaxpr(lambda x: jnp.negative(-jnp.sin(x)) - (-x))(X))
    assert all("test_passes_pipeline.py" in str(eqn.source) for eqn in new.eqns)


def test_named_axes():
    def f(x):
        return x - lax.psum(x * 1, "i") + lax.psum(x * 1, "i")

    closed = make_jaxpr(f, axis_env=[("i", 3)])(X)
    assert names(simplify(closed)).count("psum") == 1
    closed, args = program_of(vmap(f, axis_name="i"), X)
    same(closed, simplify(closed), args)


def test_twins_differ_in_the_sign_of_zero():
    closed, args = program_of(lambda x: (x / 0.0, x / -0.0), X)
    same(closed, simplify(closed), args)
    assert names(simplify(closed)) == ["div", "div"]


def test_large_constants_are_left_alone():
    big = np.ones(10_000, "float32")
    closed = make_jaxpr(lambda x: x + jnp.sin(big)[:4])(X)
    assert "sin" in names(simplify(closed))


def test_uniform_arrays_stay_small():
    new = simplify(make_jaxpr(lambda x: x + jnp.exp(jnp.full((3, 4), 2.0)))(X))
    assert names(new) == ["add"]
    assert not new.consts


def test_reductions_of_uniform_arrays():
    """As NumPy adds, in its order; part of the axes, and large arrays, are left."""

    def f(x):
        return x + jnp.sum(jnp.full((3, 37), 0.1)) * jnp.max(jnp.full(5, -2.0))

    closed, args = program_of(f, X)
    assert names(simplify(closed)) == ["add"]
    same(closed, simplify(closed), args)
    assert names(simplify(make_jaxpr(grad(lambda b: jnp.sum(X + b)))(0.5))) == []
    for shape, axis in ((3, 4), 0), (5000, None):
        closed = make_jaxpr(lambda s=shape, a=axis: jnp.full(s, 0.1).sum(a))()
        assert names(simplify(closed))[-1] == "reduce_sum"


def test_branches():
    def f(p, x):
        return lax.cond(p, lambda x: (x, x + 1, 2.0), lambda x: (x, x + 2, 2.0), x)

    closed, args = program_of(f, True, X)
    new = simplify(closed)
    [cond] = [eqn for eqn in new.eqns if eqn.primitive.name == "cond"]
    assert len(cond.outvars) == 1
    same(closed, new, args)


def test_loops_of_no_steps_and_one():
    def f(n):
        def loop(x):
            def step(c, row):
                return c + row.sum(), (c, row)

            return lax.scan(step, x, ROWS[:n])

        return loop

    for n in (0, 1):
        closed, args = program_of(f(n), X)
        new = simplify(closed)
        assert "scan" not in names(new)
        same(closed, new, args)


def rnn(h, u, rows):
    def step(h, x):
        scale = jnp.exp(u).sum()
        h = jnp.tanh(W @ h + u @ x)
        return h, (h, x, scale)

    return lax.scan(step, h, rows)


def test_loop_invariants():
    closed, args = program_of(lambda u: rnn(jnp.zeros(3), u, ROWS), W)
    new = simplify(closed)
    [scan] = [eqn for eqn in new.eqns if eqn.primitive.name == "scan"]
    assert "exp" not in names(scan.params["jaxpr"])
    assert len(scan.outvars) == 2
    same(closed, new, args, close=True)


def test_products_of_rows():
    u = jnp.ones((8, 3)) * 0.1
    closed, args = program_of(
        lambda u, rows: lax.scan(
            lambda c, x: (c + u @ x, u @ x * 2), jnp.ones(8), rows
        ),
        u,
        ROWS,
    )
    new = simplify(closed)
    assert names(new)[-2:] == ["dot_general", "scan"]
    assert "dot_general" not in names(new.eqns[-1].params["jaxpr"])
    same(closed, new, args, close=True)


@pytest.mark.parametrize("free", [(), (1,), (2,), (1, 2)])
def test_products_on_either_side(free):
    """One product in front of the loop, wherever the row stands in it."""
    rows = jnp.asarray(np.random.default_rng(1).normal(size=(7, 5, *free)), "float32")
    big = jnp.asarray(np.random.default_rng(2).normal(size=(6, 5, 40)), "float32")
    for numbers, order in [((([0], [1]), ([], [])), 0), ((([1], [0]), ([], [])), 1)]:

        def f(rows, big, numbers=numbers, order=order):
            def step(c, row):
                pair = (big, row) if order else (row, big)
                y = lax.dot_general(*pair, numbers)
                return c + y.sum(), y

            return lax.scan(step, 0.0, rows)

        closed, args = program_of(f, rows, big)
        new = simplify(closed)
        same(closed, new, args, close=True)


def test_while_loops():
    def f(x, n):
        def going(state):
            return state[0] < jnp.exp(n).sum()

        def body(state):
            i, y, z = state
            return i + 1, y * jnp.tanh(x) + z, z

        return lax.while_loop(going, body, (0, x, x * 2))

    closed, args = program_of(f, X, jnp.ones(2))
    new = simplify(closed)
    loop = new.eqns[-1]
    assert loop.primitive.name == "while"
    assert len(loop.outvars) == 2
    inside = [names(loop.params[key]) for key in ("cond_jaxpr", "body_jaxpr")]
    assert "exp" not in inside[0]
    assert "tanh" not in inside[1]
    same(closed, new, args)


def test_a_loop_that_may_not_end_stays_where_it_may_not_start():
    def f(x, go):
        def forever(x):
            return lax.while_loop(lambda y: y == y, lambda y: y + 1, x)

        return lax.while_loop(lambda c: c < go, lambda c: c + forever(x), 0.0)

    closed = make_jaxpr(f)(1.0, 0.0)
    new = simplify(closed)
    assert names(new) == ["while"]
    assert evaluated(new, [1.0, 0.0])[0] == 0


def test_rounds_that_never_come():
    closed, args = program_of(lambda x: lax.while_loop(lambda c: False, jnp.sin, x), X)
    new = simplify(closed)
    assert not new.eqns
    same(closed, new, args)


def test_programs_go_with_those_who_hold_them():
    import gc
    import weakref

    closed = make_jaxpr(lambda x: jnp.sin(x) * 1.0 + jnp.sin(x))(X)
    new = simplify(closed)
    kept = weakref.ref(closed), weakref.ref(new)
    del closed, new
    gc.collect()
    assert [ref() for ref in kept] == [None, None]


def test_work_grows_with_the_length_of_a_program(monkeypatch):
    """Each equation is looked at once, and no recursion is too deep."""
    looked_at = []
    add = JaxprRewriter.add
    monkeypatch.setattr(
        JaxprRewriter,
        "add",
        lambda sweep, eqn: looked_at.append(eqn) or add(sweep, eqn),
    )

    def f(x):
        zero = (x ^ 5) - (x ^ 5)
        for k in range(2000):
            zero = ((x + zero) ^ k) - (x ^ k)
        return zero

    closed = make_jaxpr(f)(jnp.ones(2, int))
    assert len(simplify(closed).eqns) == 1
    assert len(looked_at) <= 2 * len(closed.eqns)


def test_grad_of_the_example():
    def loss(w, x, y):
        residual = jnp.tanh(x @ w) - y
        return (residual * residual).sum()

    args = jnp.ones(4), X, jnp.ones(3)
    closed = make_jaxpr(jit(grad(loss)))(*args)
    new = simplify(closed)
    assert count(new.jaxpr) < count(closed.jaxpr)
    same(closed, new, args)


def test_sums_of_single_elements_have_no_sign_of_zero():
    zeros = jnp.full((1, 2), -0.0)
    for f in (lambda x: x.sum(0), lambda x: lax.reduce_sum(x, ()), lambda x: x.max(0)):
        closed, args = program_of(f, zeros)
        same(closed, simplify(closed), args)


def test_complex_products_do_not_commute():
    rng = np.random.default_rng(3)
    x, y = jnp.asarray(rng.normal(size=(2, 2, 99)), "complex64") * (1 + 0.3j)
    closed, args = program_of(lambda x, y: (x * y, y * x, x + y, y + x), x[0], y[0])
    same(closed, simplify(closed), args)


def test_conversions():
    """Each chain of two conversions, on the worst numbers of its first dtype."""
    from minijax.arrays.dtypes import SHORT_DTYPE_NAMES, WIDE_DTYPES
    from tests.test_passes_simplification_identities import nasty

    few = "int4", "uint2", "float8_e4m3fn", "float8_e5m2"
    dtypes = [x for x in SHORT_DTYPE_NAMES if x not in WIDE_DTYPES or x.name in few]
    with minijax.enable_x64(True), np.errstate(all="ignore"):
        for first in dtypes:
            x = jnp.asarray(nasty(first))

            def f(x):
                with_all = []
                for middle in dtypes:
                    y = lax.convert_element_type_p.bind(
                        x, new_dtype=middle, weak_type=False
                    )
                    with_all += [
                        lax.convert_element_type_p.bind(
                            y, new_dtype=last, weak_type=False
                        )
                        for last in dtypes
                    ]
                return with_all

            closed, args = program_of(f, x)
            new = passes["rearranging"](closed)
            assert str(new) != str(closed)
            same(closed, new, args)


def test_a_slice_of_nothing_stays_inside():
    """It begins at the end of a slice with a stride, behind the end of the array."""
    closed = make_jaxpr(lambda x: x.reshape(6)[::4][2:])(x := jnp.ones((2, 3)))
    new = simplify(closed)
    check_jaxpr(new)
    same(closed, new, [x])
