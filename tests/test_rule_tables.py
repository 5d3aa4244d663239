"""The rule tables as a whole: no holes, and every rule means what its column says.

The samples are all equations that the case tables of the other tests contain when they
are written down as jaxprs, plain and differentiated: so each rule meets the shapes,
parameters and literals with which the other rules use its primitive.
"""

import importlib
import itertools
import pkgutil
import re

import numpy as np
import pytest

import minijax
from book.tools import pages
from minijax import lax, linear_transpose, make_jaxpr
from minijax.arrays.array import shape_rules, typeof
from minijax.batching.vmap import higher_order_primitives, vmap_rules
from minijax.control_flow.common import empty_p
from minijax.core import Primitive, RuleTable, impl_rules, rule_tables
from minijax.extend.core import check_jaxpr, jaxpr_as_fun
from minijax.forward_mode.jvp import instantiate_tangents, jvp_flat_fun, jvp_rules
from minijax.jitting.compilation import compile_cached
from minijax.linearization.linearize import partial_eval_rules
from minijax.rematerialization.jaxpr_transforms import dce_rules
from minijax.reverse_mode.backward_pass import transpose_rules
from minijax.reverse_mode.backward_pass import transpose_rules as _same_table
from tests import control_cases, forward_cases, transpose_cases
from tests import test_batching_vmap_trace as test_batching_trace
from tests.backends_here import HERE, in_turn
from tests.commands import LONG, some

for module in pkgutil.walk_packages(minijax.__path__, "minijax."):
    importlib.import_module(module.name)

# They need a named axis: tests/test_batching_collectives.py and, backwards,
# tests/test_reverse_mode_backward_pass.py.
TALKING = {*test_batching_trace.COLLECTIVE, "axis_index"}
# They call functions of Python: tests/test_callbacks_callback_primitives.py.
CALLING = {"pure_callback", "io_callback", "debug_callback", "debug_print"}
# They call functions with rules of their own:
# tests/test_custom_derivatives_custom_jvp_vjp_function_calls.py.
RULED = {"custom_jvp_call", "custom_vjp_call", "custom_lin"} | {
    "custom_vmap_call",
    "linear_call",
    "custom_linear_solve",
}
# They act on keys, which are no numbers: tests/test_prng_keys.py and, for gamma,
# tests/test_distributions_inversion_sampling.py.
KEYS = "seed wrap unwrap split fold_in bits clone gamma".split()
KEYED = {f"random_{name}" for name in KEYS}
# They need a mesh of devices: tests/test_sharding_replicas.py,
# tests/test_sharding_shardings.py and, beside JAX, tests/oracle/test_replicas.py and
# tests/oracle/test_shardings.py.
SPREAD = {"shard_map", "pvary", "sharding_constraint", "inspect_sharding"}
# It raises, or is a failure of an error value: tests/test_checkify.py.
CHECKED = {"check"}
# It has no result: tests/test_sinks.py.
SUNK = {"dce_sink"}
APART = TALKING | CALLING | RULED | KEYED | SPREAD | CHECKED | SUNK
SILENT = [primitive for primitive in shape_rules if primitive.name not in APART]
CURVED = {
    **forward_cases.CASES,
    **forward_cases.ONCE,
    **control_cases.cases(minijax),
}


def programs():
    """Yield functions of arrays with arguments for them, from all case tables."""
    for primitive in test_batching_trace.FLOOR_2:
        for operands, params in test_batching_trace.samples(primitive):
            args = [test_batching_trace.sample(*operand) for operand in operands]
            yield lambda *xs, p=primitive, q=params: p.bind_all(*xs, **q), args
    for call, args in transpose_cases.CASES.values():
        yield lambda *xs, call=call: call(lax, *xs), args
    for call, args in CURVED.values():
        args = [narrow(x) for x in args]
        yield lambda *xs, call=call: call(lax, *xs), args
        yield derivative(call), args
    yield lambda: lax.iota("int32", 3), []
    yield lax.linalg.cholesky_update, [np.eye(3, dtype="f4"), np.ones(3, "f4")]
    yield lambda *xs: minijax.device_put(xs), [np.ones(3, "f4"), np.ones(2, "c8")]
    yield lambda: empty_p.bind(dtype=np.dtype("float32")), []


def narrow(x):
    """An operand of `tests.forward_cases` in 32 bits."""
    return np.asarray(x, "complex64" if np.asarray(x).dtype.kind == "c" else "float32")


def derivative(call):
    """A program with the equations that the jvp rules of a call write."""

    def f(*xs):
        return minijax.jvp(lambda *xs: call(lax, *xs), xs, xs)[1]

    return f


def collect():
    """Return, for each primitive, its samples: types of operands, and parameters."""
    found = {primitive: {} for primitive in shape_rules}
    for f, args in programs():
        for eqn in make_jaxpr(f)(*args).jaxpr.eqns:
            avals = tuple(atom.aval for atom in eqn.invars)
            types = tuple((aval.shape, aval.dtype) for aval in avals)
            key = (types, tuple(sorted(eqn.params.items(), key=lambda item: item[0])))
            found[eqn.primitive].setdefault(key, (types, eqn.params))
    return {primitive: list(samples.values()) for primitive, samples in found.items()}


SAMPLES = collect()
LOW = dict.fromkeys(["acosh"], 1.2)
MATRICES = "cholesky eig eigh lu qr svd triangular_solve".split()


def operands(primitive, types, seed=0):
    """Return arrays of these types, on which the primitive is defined and smooth."""
    rng = np.random.default_rng(seed)
    low = LOW.get(primitive.name, 0.2)

    def one(shape, dtype):
        if dtype.kind == "b":
            return rng.random(shape) < 0.5
        if dtype.kind in "iu":
            high = 2 if primitive.name == "cond" else 3  # the number of branches
            return rng.integers(0, high, shape).astype(dtype)
        x = rng.uniform(low, low + 0.6, shape)
        if primitive.name in MATRICES:  # far from singular ones
            x = x + np.eye(*shape[-2:]) * np.arange(2, 2 + shape[-1])
        if dtype.kind == "c":
            x = x + 1j * rng.uniform(0.2, 0.8, shape)
        return np.asarray(x, dtype)

    return [one(shape, dtype) for shape, dtype in types]


def tolerance(*arrays):
    """What rounding may do in the narrowest dtype among floats and complex numbers."""
    names = {np.asarray(x).dtype.name for x in arrays}
    return 2e-2 if names & {"float16", "bfloat16"} else 2e-4


def close(ours, wanted, rtol):
    """Fail unless two arrays agree, in units of the largest element."""
    ours, wanted = np.asarray(ours), np.asarray(wanted)
    assert (ours.shape, ours.dtype) == (wanted.shape, wanted.dtype)
    scale = np.max(np.abs(wanted), initial=1e-6) if ours.dtype.kind in "fc" else 0
    np.testing.assert_allclose(ours, wanted, rtol=rtol, atol=rtol * scale)


# The tables.


def hole(table, primitive):
    """What to do about a place of the grid that has neither a rule nor a reason."""
    rules, key = f"{table.name}_rules", f"{primitive}_p"
    return (
        f"'{primitive}' has no {table.name} rule. Write {rules}[{key}] = ..., or why "
        f"it has none, {rules}.reasons[{key}] = 'It ...', on the primitive's own page, "
        f"or on the page of {rules} if that is the higher one. 'Adding a primitive' in "
        "CONTRIBUTING.md has the tables and their pages."
    )


@pytest.mark.parametrize("table", rule_tables, ids=lambda table: table.name)
def test_rule_or_reason(table):
    for primitive in shape_rules:
        assert pages.state(table, primitive) != "holes", hole(table, primitive)
        if table.default is not None:  # then there is no need for a reason
            assert table[primitive] and primitive not in table.reasons, primitive


def test_a_hole_is_told_with_its_mend(column):
    said = hole(column, lax.sin_p)
    assert said.startswith("'sin' has no test rule. Write test_rules[sin_p] = ..., or")
    assert "test_rules.reasons[sin_p] = " in said


@pytest.mark.parametrize("table", rule_tables, ids=lambda table: table.name)
def test_reasons_are_sentences(table):
    for primitive, reason in table.reasons.items():
        assert reason[0].isupper() and reason.endswith("."), (primitive, reason)
        assert len(reason.split()) > 4, (primitive, reason)


@pytest.mark.parametrize("table", rule_tables, ids=lambda table: table.name)
def test_no_rule_for_what_cannot_run(table):
    assert {*table, *table.reasons} <= {*impl_rules}
    assert {*impl_rules} == {*shape_rules}


@pytest.fixture
def column():
    """A rule table with a default, for one test."""
    table = RuleTable("test", default="ordinary")
    yield table
    rule_tables.remove(table)


def test_default_is_the_rule_of_those_without_one(column):
    column[lax.sin_p] = "own"
    assert [column[p] for p in (lax.sin_p, lax.cos_p)] == ["own", "ordinary"]
    assert {*column} == {lax.sin_p} and column.get(lax.cos_p) is None


def test_no_default_no_rule():
    with pytest.raises(NotImplementedError, match="impl rule of 'new' is not impl"):
        impl_rules[Primitive("new")]


def test_a_rule_outweighs_a_reason(column):
    """Whichever module is imported first."""
    column[lax.sin_p] = "own"
    column.reasons.update(dict.fromkeys([lax.sin_p, lax.cos_p], "It is periodic."))
    states = [pages.state(column, p) for p in (lax.sin_p, lax.cos_p)]
    assert states == ["rules", "reasons"] and column[lax.sin_p] == "own"


def test_grid_page_has_all_columns(column):
    """Rules, defaults and reasons, and what they stand for in the counts."""
    column[lax.sin_p] = "own"
    column.reasons[lax.cos_p] = "It is a cosine, and no more."
    page = pages.grid_page(rule_tables).splitlines()
    heads, *rows = [line.split(" | ") for line in page if line.startswith("| ")]
    names = [re.sub(r"\[(\w+)\]\(.*", r"\1", head.strip(" |")) for head in heads[1:]]
    assert names == [table.name for table in rule_tables]
    assert {"print", "split", "dce", "effect", "cost"} <= {*names}
    last = {row[0].split("](")[0].strip("| ["): row[-1].strip(" |") for row in rows}
    assert (last["`sin`"], last["`tan`"]) == ("●", "○")
    reason = f"{last['`cos`']}. It is a cosine, and no more."
    assert reason in page and " " not in last.values()


@pytest.mark.parametrize("primitive", sorted(higher_order_primitives, key=str), ids=str)
def test_what_contains_a_program(primitive):
    """It can be split, and without unused results it is shorter (but for `while`)."""
    if primitive.name in RULED:  # the tape writes it down whole, and inlining opens it
        return
    assert primitive in partial_eval_rules
    assert primitive in dce_rules or primitive.name == "while"


def test_names_are_unique():
    names = [primitive.name for primitive in shape_rules]
    assert len(names) == len({*names})
    assert transpose_rules is _same_table


def test_every_primitive_is_in_the_case_tables():
    assert not [primitive for primitive in SILENT if not SAMPLES[primitive]]


# The rules.


@pytest.mark.parametrize("primitive", SILENT, ids=str)
def test_backends_agree(primitive):
    """As one emitted function, with the types that the shape rule foresees.

    A primitive's first sample on all backends, the rest on the machine's and on
    another by turns; with `LONG=1` all on all.
    """
    for number, (types, params) in enumerate(SAMPLES[primitive]):
        xs = operands(primitive, types)
        closed = make_jaxpr(lambda *xs: primitive.bind_all(*xs, **params))(*xs)  # noqa: B023
        wanted = jaxpr_as_fun(closed)(*xs)
        some = in_turn(number // 2, 1)
        here = HERE if LONG or not number else some[number % len(some) :][:1]
        for backend in here:
            outs = compile_cached(closed, backend)(*map(minijax.numpy.asarray, xs))
            for y, aval, expected in zip(outs, closed.out_avals, wanted, strict=True):
                assert typeof(y) == aval, backend
                close(y, expected, tolerance(*xs, expected) / 10)


@pytest.mark.parametrize("primitive", SILENT, ids=str)
def test_shape_rule_foresees_the_result(primitive):
    for types, params in SAMPLES[primitive]:
        xs = operands(primitive, types)
        avals = shape_rules[primitive](*map(typeof, xs), **params)
        for aval, y in zip(avals, primitive.bind_all(*xs, **params), strict=True):
            assert typeof(y) == aval
            assert (np.asarray(y).shape, np.asarray(y).dtype) == (
                aval.shape,
                aval.dtype,
            )


def corners(types):
    """Choices of mapped axes, first or last, for all subsets of operands but none."""
    choices = [[None, 0, len(shape)][: 2 + bool(shape)] for shape, _ in types]
    return [dims for dims in itertools.product(*choices) if set(dims) != {None}]


@pytest.mark.parametrize("primitive", [p for p in SILENT if p in vmap_rules], ids=str)
def test_vmap_is_a_loop(primitive):
    for types, params in SAMPLES[primitive]:
        for dims in some(corners(types), 2)[:8]:
            pairs = [operands(primitive, types, seed) for seed in (1, 2)]
            args = [
                xs[0] if dim is None else np.stack(xs, dim)
                for xs, dim in zip(zip(*pairs), dims)
            ]

            def f(*xs):
                return primitive.bind_all(*xs, **params)[0]  # noqa: B023

            out = minijax.vmap(f, in_axes=dims)(*args)
            singles = [
                [x if d is None else np.take(x, i, d) for x, d in zip(args, dims)]
                for i in range(2)
            ]
            wanted = np.stack([np.asarray(f(*single)) for single in singles])
            close(out, wanted, tolerance(*args, wanted))


def inexact(types):
    return [i for i, (_, dtype) in enumerate(types) if dtype.kind in "fc"]


def moved(primitive, types, params):
    """Return a sample's derivative at a fixed point, and the positions that move."""
    xs = operands(primitive, types)

    def slope(tangents):
        dense = [tangents.get(i) for i in range(len(xs))]
        values, slopes = jvp_flat_fun(
            lambda *xs: primitive.bind_all(*xs, **params), xs, dense
        )
        return instantiate_tangents(values, slopes)[0]

    return slope, inexact(types)


@pytest.mark.parametrize("primitive", [p for p in SILENT if p in jvp_rules], ids=str)
def test_derivative_is_linear(primitive):
    """Also for tangents of very different sizes, and for one operand at a time."""
    for types, params in SAMPLES[primitive]:
        slope, positions = moved(primitive, types, params)
        if not positions or any(dtype.itemsize == 2 for _, dtype in types):
            continue
        a, b = (
            {i: operands(primitive, types, seed)[i] for i in positions}
            for seed in (3, 4)
        )
        both = {i: a[i] + np.asarray(1e4, a[i].dtype) * b[i] for i in positions}
        ours = np.asarray(slope(both))
        if ours.dtype.itemsize == 0 or ours.dtype.itemsize == 2:
            continue
        wanted = np.asarray(slope(a)) + ours.dtype.type(1e4) * np.asarray(slope(b))
        close(ours, wanted, 1e-3)
        alone = [np.asarray(slope({i: both[i]})) for i in positions]
        close(ours, np.sum(alone, 0, dtype=ours.dtype), 1e-3)


def pairing(xs, ys):
    """The real part of the sum of products."""
    wide = [(np.asarray(x, complex), np.asarray(y, complex)) for x, y in zip(xs, ys)]
    return float(np.real(sum(np.sum(x * y) for x, y in wide)))


# Of a sort, only what is no key is linear: tests/test_sorting_sort_rules.py.
REVERSIBLE = [p for p in transpose_rules if p.name not in ("while", "sort")]


@pytest.mark.parametrize("primitive", REVERSIBLE, ids=str)
def test_transpose_keeps_the_pairing(primitive):
    """Each operand in which the primitive is linear, while the others are known."""
    tried = transposed = 0
    for types, params in SAMPLES[primitive]:
        xs = operands(primitive, types)
        for i in inexact(types):

            def f(x):
                return primitive.bind_all(*xs[:i], x, *xs[i + 1 :], **params)[0]  # noqa: B023

            zero = np.asarray(f(np.zeros_like(xs[i])))
            if zero.dtype.kind not in "fc" or np.any(zero):
                continue  # not linear: affine, at best
            tried += 1
            y = np.asarray(f(xs[i]))
            [ct] = operands(primitive, [(y.shape, y.dtype)], seed=5)
            try:
                [back] = linear_transpose(f, xs[i])(ct)
            except NotImplementedError as error:
                assert "linear" in str(error)
                continue
            transposed += 1
            assert (back.shape, back.dtype) == (xs[i].shape, xs[i].dtype)
            rtol = tolerance(xs[i], y)
            size = pairing([np.abs(ct)], [np.abs(y)]) + 1e-6
            assert abs(pairing([ct], [y]) - pairing([back], [xs[i]])) < rtol * size
    assert primitive.name in APART or transposed >= min(tried, 1)


# Programs.


def plain(f):
    return f


def pushed(f):
    return lambda *xs: minijax.jvp(f, xs, tuple(x * 2.0 for x in xs))


def pulled(f):
    def g(*xs):
        y, pullback = minijax.vjp(f, *xs)
        return y, pullback(y)

    return g


def mapped(f):
    def g(*xs):
        return minijax.vmap(f)(*[minijax.numpy.stack([x, x]) for x in xs])

    return g


@pytest.mark.parametrize("name", CURVED)
def test_jaxprs_are_sound_readable_and_faithful(name):
    for transform in (plain, pushed, pulled, mapped):
        is_sound_readable_and_faithful(*CURVED[name], transform)


def is_sound_readable_and_faithful(call, points, transform):
    with minijax.enable_x64():
        xs = [minijax.numpy.asarray(x) for x in points]
        f = transform(lambda *xs: call(lax, *xs))
        try:
            direct = minijax.tree_util.tree_leaves(f(*xs))
            closed = make_jaxpr(f)(*xs)
        except NotImplementedError as error:
            assert "rule of" in str(error)
            return
        except ValueError as error:
            assert "while_loop" in str(error)
            return
        check_jaxpr(closed)
        text = str(closed)
        assert all(eqn.primitive.name in text for eqn in closed.jaxpr.eqns)
        for aval, y, direct_y in zip(
            closed.out_avals, jaxpr_as_fun(closed)(*xs), direct, strict=True
        ):
            assert typeof(y) == aval == typeof(direct_y)
            np.testing.assert_allclose(y, direct_y, rtol=1e-9, atol=1e-12)
