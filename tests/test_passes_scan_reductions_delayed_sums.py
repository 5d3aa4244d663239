"""Sums that are worked out after a loop, beside sums that are kept in its carry."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minijax.numpy as jnp
from minijax import enable_x64, grad, jit, jvp, lax, make_jaxpr, vmap
from minijax.arrays.array import ShapedArray, shape_rules, typeof
from minijax.core import Primitive, impl_rules
from minijax.jaxprs.checker import check_jaxpr
from minijax.jaxprs.jaxpr import abstractify, jaxpr_as_fun
from minijax.passes.scan_reductions import (
    ADDITIVE,
    BILINEAR,
    run_with_sunk_sums,
    sink_sums,
)
from minijax.rematerialization.jaxpr_transforms import effect_rules, trace_flat_fun
from minijax.scans.scan import accumulation_loop_hook
from tests.transpose_cases import CASES, cases_of_products

_random = np.random.default_rng(12)


def whole(*shape, dtype="float64"):
    """Small whole numbers, with which sums and products are exact."""
    return _random.integers(-3, 4, size=shape).astype(dtype)


def loop(body, counts, consts, carries, sums, xs, length):
    """Run a loop step by step; return carries, sums, and stacked results."""
    num_carry, num_sums = counts
    rows = []
    for t in range(length):
        here = [jnp.asarray(x)[t] for x in xs]
        outs = jaxpr_as_fun(body)(*consts, *sums, *carries, *here)
        sums, carries = outs[:num_sums], outs[num_sums:][:num_carry]
        rows.append(outs[num_carry + num_sums :])
    avals = body.out_avals[num_carry + num_sums :]
    empty = [np.zeros((0, *aval.shape), aval.dtype) for aval in avals]
    stacks = [jnp.stack(column) for column in zip(*rows)] if rows else empty
    return carries, sums, stacks


def run(body, counts, consts, carries, xs, length, delay=True):
    """Return the carries, the totals, the per-step results and the plan."""
    num_carry, num_sums = counts
    plan = sink_sums(body, len(consts), num_carry, num_sums, length, delay)
    check_jaxpr(plan.body)
    zeros = [np.zeros(aval.shape, aval.dtype) for aval in plan.sum_avals]
    carries, sums, stacks = loop(
        plan.body, (num_carry, len(zeros)), consts, carries, zeros, xs, length
    )
    num_ys = len(body.outvars) - num_carry - num_sums
    ys, stacks = stacks[:num_ys], stacks[num_ys:]
    return carries, plan.totals(consts, xs, ys, stacks, sums), ys, plan


def by_hand(body, counts, consts, carries, xs, length):
    """Return carries, totals and per-step results of a body as it stands."""
    num_carry, num_sums = counts
    totals = [np.zeros(aval.shape, aval.dtype) for aval in body.out_avals[:num_sums]]
    rows = []
    for t in range(length):
        here = [jnp.asarray(x)[t] for x in xs]
        outs = jaxpr_as_fun(body)(*consts, *carries, *here)
        totals = [total + term for total, term in zip(totals, outs)]
        carries = outs[num_sums:][:num_carry]
        rows.append(outs[num_sums + num_carry :])
    return carries, totals, [jnp.stack(column) for column in zip(*rows)]


def same_both_ways(step, consts, carries, xs, num_sums, length=3):
    """Compare the two ways for a Python function; return the plan."""
    operands = [*consts, *carries, *(x[0] for x in xs)]
    body = trace_flat_fun(step, list(map(abstractify, operands)))
    counts = len(carries), num_sums
    expected = by_hand(body, counts, consts, carries, xs, length)
    for delay in (False, True):
        *results, plan = run(body, counts, consts, carries, xs, length, delay)
        assert [typeof(x) for x in results[1]] == body.out_avals[:num_sums]
        for ours, theirs in zip(results, expected, strict=True):
            for a, b in zip(ours, theirs, strict=True):
                np.testing.assert_array_equal(a, b)
    return plan


@pytest.mark.parametrize("lhs, rhs, numbers", [*cases_of_products()])
@pytest.mark.parametrize("dtype", ["float64", "int32", "complex128"])
def test_products(lhs, rhs, numbers, dtype):
    """Every kind of matrix product is contracted over the steps, or kept."""

    def step(x, y):
        return [lax.dot_general(x, y, numbers)]

    with enable_x64():
        xs = [whole(3, *shape, dtype=dtype) for shape in (lhs, rhs)]
        plan = same_both_ways(step, [], [], xs, 1)
    assert not plan.sum_avals or 0 in lhs
    assert plan.body.eqns == [] or 0 in lhs


SIZES = st.integers(0, 3)


@st.composite
def products(draw):
    """Draw the shapes of two factors and the numbers of their axes' kinds."""
    kinds = draw(st.lists(st.sampled_from("bclr"), max_size=5))
    sizes = [draw(SIZES) for _ in kinds]
    both = [i for i, kind in enumerate(kinds) if kind in "bc"]
    lhs = draw(
        st.permutations([i for i, kind in enumerate(kinds) if kind == "l"] + both)
    )
    rhs = draw(
        st.permutations([i for i, kind in enumerate(kinds) if kind == "r"] + both)
    )

    def places(axes, wanted):
        return tuple(axes.index(i) for i in both if kinds[i] == wanted)

    numbers = tuple((places(lhs, kind), places(rhs, kind)) for kind in "cb")
    shapes = [tuple(sizes[i] for i in axes) for axes in (lhs, rhs)]
    return *shapes, numbers


def chain(draw, x):
    """Draw a few operations which keep the sum's linearity, and apply them."""
    for _ in range(draw(st.integers(0, 3))):
        shape = typeof(x).shape
        kind = draw(
            st.sampled_from(["transpose", "flat", "grow", "neg", "sum", "scale"])
        )
        if kind == "transpose":
            x = lax.transpose(x, draw(st.permutations(range(len(shape)))))
        elif kind == "flat":
            x = lax.reshape(x, (typeof(x).size,))
        elif kind == "grow":
            x = lax.broadcast_in_dim(x, (2, *shape), range(1, len(shape) + 1))
        elif kind == "neg":
            x = lax.neg(x)
        elif kind == "sum" and shape:
            x = lax.reduce_sum(x, [draw(st.integers(0, len(shape) - 1))])
        elif kind == "scale":
            x = lax.mul(x, 3.0 * jnp.ones(shape)) if draw(st.booleans()) else x * 2.0
    return x


@given(st.data())
@settings(max_examples=60)
def test_random_bodies(data):
    """Products of carried and of per-step values, changed, added, and used twice."""
    lhs, rhs, numbers = data.draw(products())
    length = data.draw(st.integers(0, 3))
    with enable_x64():
        const, carry = whole(*lhs), whole(*rhs)
        xs = [whole(length, *lhs), whole(length, *rhs)]

        def step(const, carry, x, y):
            moving = data.draw(st.sampled_from([x, x * const, lax.neg(x), const]))
            other = data.draw(st.sampled_from([y, carry, carry + y]))
            term = chain(data.draw, lax.dot_general(moving, other, numbers))
            terms = [term, term + term, chain(data.draw, x), chain(data.draw, const)]
            return [*terms, lax.neg(other), moving]

        avals = [abstractify(v) for v in (const, carry)]
        avals += [ShapedArray(shape, "float64") for shape in (lhs, rhs)]
        body = trace_flat_fun(step, avals)
        results = [
            run(body, (1, 4), [const], [carry], xs, length, delay)[:3]
            for delay in (True, False)
        ]
        for a, b in zip(*(sum(result, []) for result in results), strict=True):
            assert typeof(a) == typeof(b)
            np.testing.assert_array_equal(a, b)


LINEAR = {
    name: case
    for name, case in CASES.items()
    if not name.startswith(("reduce_precision", "select_n", "convert"))
    and name.split()[0] + "_p" in dir(lax)
}


@pytest.mark.parametrize("name", LINEAR)
def test_operations_on_sums(name):
    """A linear operation on sums is the sum of its results, for every one there is."""
    call, operands = LINEAR[name]
    primitive = getattr(lax, name.split()[0] + "_p")
    assert primitive in {*ADDITIVE, *BILINEAR, lax.div_p}

    def step(*operands):
        result = call(lax, *operands)
        return result if isinstance(result, list) else [result]

    xs = [np.stack([x, 2 * x, -x]) for x in operands]
    body = trace_flat_fun(step, list(map(abstractify, operands)))
    totals = [run(body, (0, 1), [], [], xs, 3, delay)[1][0] for delay in (True, False)]
    plan = sink_sums(body, 0, 0, 1, 3)
    assert bool(plan.sum_avals) == (body.out_avals[0].size == 0)
    np.testing.assert_allclose(*totals, rtol=1e-4, atol=1e-5)


def test_every_operation_is_tested():
    names = {name.split()[0] + "_p" for name in LINEAR}
    assert {getattr(lax, name) for name in names} >= (ADDITIVE | BILINEAR) - {
        lax.add_any_p
    }


def dot_of(x, y):
    return lax.dot_general(x, y, (((0,), (0,)), ((), ())))


def plan_of(step, *avals, consts=0, carries=0, sums=1, length=3):
    return sink_sums(trace_flat_fun(step, avals), consts, carries, sums, length)


def f32(*shape):
    return ShapedArray(shape, "float32")


def f64(*shape):
    return ShapedArray(shape, "float64")


def test_a_product_waits_only_where_its_factors_are_smaller():
    """What a step writes is compared in bytes: factors against the sum."""

    def step(x, y):
        return [dot_of(jnp.abs(x), jnp.abs(y))]

    with enable_x64():
        for rows, waits in ((1, True), (4, False), (3, True), (5, False)):
            plan = plan_of(step, f64(rows, 8), f64(rows, 8))
            assert bool(plan.eqns) == waits
            assert [aval.shape for aval in plan.sum_avals] == [(8, 8)] * (not waits)
            assert len(plan.body.outvars) == (2 if waits else 1)


def test_what_is_stacked_is_used_again():
    """A factor that one sum needs costs the next one nothing; nor does a result."""

    def step(x, y):
        x, y = jnp.abs(x), jnp.abs(y)
        return [dot_of(x, y), x.sum(0), y]

    with enable_x64():
        plan = plan_of(step, f64(2, 8), f64(2, 8), sums=2)
        assert not plan.sum_avals
        assert len(plan.body.outvars) == 2
        alone = plan_of(lambda x, y: step(x, y)[1:], f64(2, 8), f64(2, 8))
        assert [aval.shape for aval in alone.sum_avals] == [(8,)]


def test_a_sum_is_kept_where_it_is_smallest():
    """What grows in the step is summed before it grows, and grown after the loop."""

    def step(x):
        x = jnp.abs(x)
        return [lax.mul(lax.broadcast_in_dim(x, (100, 3), (1,)), 2.0)]

    with enable_x64():
        plan = same_both_ways(step, [], [], [whole(3, 3)], 1)
    assert [aval.shape for aval in plan.sum_avals] == [(3,)]


def test_terms_that_never_change():
    """They are multiplied by the number of steps; constants may be integers."""

    def step(const, count, x):
        return [const, jnp.ones(2), const + x, count, 3 * (const * count), 1.0, x]

    with enable_x64():
        plan = same_both_ways(
            step, [whole(2), np.int64(5)], [], [whole(4, 2)], 6, length=4
        )
    assert not plan.sum_avals and not plan.body.eqns


def test_numbers_of_steps_that_wrap():
    def step(x):
        return [x]

    plan = sink_sums(trace_flat_fun(step, [ShapedArray((), "int8")]), 1, 0, 1, 300)
    [total] = plan.totals([np.int8(3)], [], [], [], [])
    assert total == np.int8(300 * 3 % 256 - 256)


@pytest.mark.parametrize("dtype", ["float32", "int32", "float16", "complex64"])
def test_no_steps(dtype):
    """Then all sums are zeros of the terms' types, whatever the constants are."""

    def step(const, x, y):
        return [dot_of(x, y), const, lax.mul(const, x), 2 * y]

    body = trace_flat_fun(step, [ShapedArray((2, 3), dtype)] * 3)
    plan = sink_sums(body, 1, 0, 4, 0)
    const = np.full((2, 3), np.inf if dtype == "float32" else 1).astype(dtype)
    nothing = [np.zeros((0, 2, 3), dtype)] * 2
    sums = [np.zeros(aval.shape, dtype) for aval in plan.sum_avals]
    for total, aval in zip(plan.totals([const], nothing, [], [], sums), body.out_avals):
        assert typeof(total) == aval
        assert not np.asarray(total).any()


def test_a_square_is_no_product_with_a_constant():
    def step(x, y):
        half = lax.div(y, np.float64(2))
        return [lax.mul(x, x), lax.mul(x, y), lax.div(y, x), dot_of(x, x), half]

    xs = [1.0 + abs(whole(3, 2, 4)), whole(3, 2, 4)]
    with enable_x64():
        plan = same_both_ways(step, [], [], xs, 5)
    assert [eqn.primitive for eqn in plan.eqns] == [lax.div_p, lax.dot_general_p]
    assert len(plan.sum_avals) == 3


def test_quotients_of_integers_are_not_linear():
    def step(x):
        return [lax.div(x, np.int32(2))]

    plan = same_both_ways(step, [], [], [np.ones((4, 3), "int32")], 1, length=4)
    assert not plan.eqns


def test_digits_are_kept():
    """A sum is not moved to a dtype with fewer digits, or out of integers."""

    def step(half, small):
        wide = lax.convert_element_type(half, "float32")
        counts = lax.convert_element_type(small, "int32")
        return [wide, counts, lax.convert_element_type(wide * 2.0, "float16")]

    avals = ShapedArray((3,), "float16"), ShapedArray((3,), "int8")
    kept = plan_of(step, *avals, sums=3).sum_avals
    assert [aval.dtype.name for aval in kept] == ["float32", "int32", "float16"]
    free = plan_of(lambda x: [lax.convert_element_type(x, "float16")], f32(3))
    assert not free.sum_avals


def test_totals_under_transformations():
    """They bind ordinary primitives: every trace can have them."""

    def step(x, y):
        return [2.0 * dot_of(x, y), y.sum(0)]

    plan = plan_of(step, f64(2, 3), f64(2, 4), sums=2)
    xs, ys = whole(5, 2, 3, dtype="float32"), whole(5, 2, 4, dtype="float32")

    def totals(xs, ys):
        return plan.totals([], [xs, ys], [], [], [])

    direct = totals(xs, ys)
    np.testing.assert_array_equal(direct[0], 2 * np.einsum("tbi,tbj->ij", xs, ys))
    np.testing.assert_array_equal(jit(totals)(xs, ys)[0], direct[0])
    batched = vmap(totals, (None, 0))(xs, np.stack([ys, -ys]))
    np.testing.assert_array_equal(batched[0], np.stack([direct[0], -direct[0]]))
    _, slopes = jvp(totals, (xs, ys), (xs, ys))
    np.testing.assert_array_equal(slopes[0], 2 * np.asarray(direct[0]))


def test_plans_are_remembered():
    body = trace_flat_fun(lambda x: [x], [f64(2)])
    assert sink_sums(body, 0, 0, 1, 3) is sink_sums(body, 0, 0, 1, 3)


def test_terms_are_added_one_by_one():
    """Each as soon as it is there; a product among them waits, the others stay."""

    def step(x, y):
        x, y = jnp.abs(x), jnp.abs(y)
        first, second = x * 3.0, y * 2.0
        chain = lax.add_any_p.bind(first, second)
        chain = lax.add_any_p.bind(chain, x * y)
        return [chain]

    with enable_x64():
        plan = same_both_ways(step, [], [], [whole(3, 2)] * 2, 1)
    names = [eqn.primitive.name for eqn in plan.body.eqns]
    assert names == ["abs", "abs", "mul", "add_any", "mul", "add_any", "mul", "add_any"]


def test_one_term_waits_and_another_is_kept():
    def step(x, y, z):
        product = dot_of(jnp.abs(x), jnp.abs(y))
        return lax.add_any_p.bind_all(product, jnp.abs(z))

    with enable_x64():
        xs = [whole(3, 1, 5), whole(3, 1, 5), whole(3, 5, 5)]
        plan = same_both_ways(step, [], [], xs, 1)
    assert [eqn.primitive.name for eqn in plan.eqns] == ["dot_general", "add_any"]
    assert [aval.shape for aval in plan.sum_avals] == [(5, 5)]
    assert len(plan.body.outvars) == 3


def test_a_term_that_is_used_elsewhere_stays_what_it_is():
    def step(x, y):
        both = lax.add_any_p.bind(jnp.abs(x), jnp.abs(y))
        return [both, both * both]

    with enable_x64():
        plan = same_both_ways(step, [], [], [whole(3, 2)] * 2, 1)
    assert len(plan.sum_avals) == 1


def test_a_sum_that_another_operation_of_the_step_reads():
    def step(b, h, x):
        i, f, g = jnp.split(h @ weights + b, 3)
        h = jnp.sin(i) * i * x + f * g
        return h, h

    def looped(b):
        return lax.scan(lambda h, x: step(b, h, x), jnp.zeros(1), xs)[1].sum()

    def unrolled(b):
        h = jnp.zeros(1)
        rows = [h := step(b, h, x)[0] for x in xs]
        return sum(rows).sum()

    xs, b = jnp.arange(1.0, 4.0), jnp.array([0.7, 0.2, 0.4])
    weights = jnp.array([[0.5, -0.3, 0.2]])
    np.testing.assert_allclose(grad(looped)(b), grad(unrolled)(b), rtol=1e-5)


def test_calls_are_opened_if_it_pays():
    @jit
    def inner(x, y):
        return dot_of(jnp.abs(x), y)

    @jit
    def outer(x, y):
        return 2.0 * inner(x, y), y + 1.0

    def step(x, y):
        return list(outer(x, y))

    with enable_x64():
        wide = same_both_ways(step, [], [], [whole(3, 1, 5), whole(3, 1, 5)], 1)
        flat = same_both_ways(step, [], [], [whole(3, 9, 2), whole(3, 9, 2)], 1)
    assert [eqn.primitive.name for eqn in wide.eqns] == ["dot_general", "mul"]
    assert [eqn.primitive.name for eqn in wide.body.eqns] == ["abs", "add"]
    assert [eqn.primitive.name for eqn in flat.body.eqns] == ["jit", "add_any"]


def test_effects_stay_in_the_loop(monkeypatch):
    """They happen in each step, and not once more after the loop."""
    seen, note_p = [], Primitive("note")

    def note(x):
        seen.append(x)
        return [x]

    monkeypatch.setitem(impl_rules, note_p, note)
    monkeypatch.setitem(shape_rules, note_p, lambda x: [x])
    monkeypatch.setitem(effect_rules, note_p, lambda eqn: True)

    def step(const, x):
        return [dot_of(x, x) * note_p.bind(const)]

    with enable_x64():
        plan = same_both_ways(step, [np.float64(2)], [], [whole(3, 1, 4)], 1)
    assert len(seen) == 9  # by hand, kept, and waiting, three steps each
    assert not plan.eqns


def rnn_loss(w, b, xs, scan):
    def step(h, x):
        h = jnp.tanh(h @ w + x + b)
        return h, h.sum()

    h, ys = scan(step, jnp.ones(xs.shape[1:]), xs)
    return (h * h).sum() + (ys * ys).sum()


@pytest.mark.parametrize("batch", [1, 5, 40])
@pytest.mark.parametrize("reverse", [False, True])
def test_gradient_of_a_recurrent_network(batch, reverse):
    """Against the loop written out; with few examples no product stays in it."""
    rng = np.random.default_rng(batch)
    with enable_x64():
        w, b = rng.normal(size=(6, 6)) / 3, rng.normal(size=6)
        xs = rng.normal(size=(5, batch, 6))

        def written_out(step, h, xs):
            ys = []
            for x in xs[::-1] if reverse else xs:
                h, y = step(h, x)
                ys.append(y)
            return h, jnp.stack(ys)

        def by_scan(step, h, xs):
            return lax.scan(step, h, xs, reverse=reverse)

        def gradient(scan):
            return grad(lambda w, b: rnn_loss(w, b, xs, scan), (0, 1))

        for ours, theirs in zip(gradient(by_scan)(w, b), gradient(written_out)(w, b)):
            np.testing.assert_allclose(ours, theirs, rtol=1e-10)
        [*_, back] = [
            eqn
            for eqn in make_jaxpr(gradient(by_scan))(w, b).eqns
            if eqn.primitive.name == "scan"
        ]
        products = [eqn.primitive.name for eqn in back.params["jaxpr"].eqns]
        assert products.count("dot_general") == (1 if batch < 6 else 2)


def test_hessian_and_batches_of_a_recurrent_network():
    """A delayed sum is differentiated and batched like anything else."""
    rng = np.random.default_rng(0)
    with enable_x64():
        w, b, xs = (
            rng.normal(size=(3, 3)),
            rng.normal(size=3),
            rng.normal(size=(4, 1, 3)),
        )

        def written_out(step, h, xs):
            ys = []
            for x in xs:
                h, y = step(h, x)
                ys.append(y)
            return h, jnp.stack(ys)

        def slope(scan):
            return grad(lambda w: rnn_loss(w, b, xs, scan))

        results = [
            [
                jvp(slope(scan), (w,), (w,))[1],
                grad(lambda w, scan=scan: (slope(scan)(w) ** 2).sum())(w),
                vmap(slope(scan))(jnp.stack([w, -w])),
                jit(slope(scan))(w),
            ]
            for scan in (lax.scan, written_out)
        ]
    for ours, theirs in zip(*results):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)


def test_scans_that_run_backwards_use_it():
    assert accumulation_loop_hook.value is run_with_sunk_sums
