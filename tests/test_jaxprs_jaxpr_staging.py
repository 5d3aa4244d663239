"""What the staging trace writes down."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minijax.numpy as jnp
from minijax import lax
from minijax.arrays.array import ShapedArray, typeof
from minijax.batching.vmap import MappedAxis, batch_flat_fun
from minijax.core import current_trace
from minijax.errors import UnexpectedTracerError
from minijax.forward_mode.jvp import jvp_flat_fun
from minijax.jaxprs.checker import check_jaxpr
from minijax.jaxprs.jaxpr import (
    ClosedJaxpr,
    Constants,
    EquationTrace,
    JaxprTrace,
    JaxprTracer,
    Literal,
    eval_jaxpr,
    source_info_hook,
    trace_to_jaxpr,
)
from minijax.jaxprs.types import TraceProvenance

VECTOR = ShapedArray((3,), np.float32)
x = np.float32([1, 2, 3])


def stage(fun, *avals):
    """A closed and checked jaxpr of a function on flat lists."""
    closed = ClosedJaxpr(*trace_to_jaxpr(fun, avals))
    check_jaxpr(closed)
    return closed


def test_an_equation_for_each_operation():
    closed = stage(lambda x: [lax.sin(lax.cos(x))], VECTOR)
    assert [eqn.primitive for eqn in closed.eqns] == [lax.cos_p, lax.sin_p]
    assert closed.consts == []


def test_nothing_is_evaluated():
    huge = ShapedArray((10**6, 10**6), np.float32)
    assert stage(lambda x: [lax.sin(x)], huge).out_avals == [huge]


def test_what_does_not_depend_on_arguments_is_written_down_too():
    closed = stage(lambda x: [lax.sin(2.0)], VECTOR)
    assert str(closed) == "{ lambda ; a:f32[3]. let b:f32[] = sin 2.0:f32[] in (b,) }"


def test_unused_operations_stay():
    assert len(stage(lambda x: [(lax.sin(x), x)[1]], VECTOR).eqns) == 1


def test_order_is_the_order_of_binding():
    def fun(x):
        later = lax.sin(x)
        return [lax.cos(x), later]

    assert [e.primitive.name for e in stage(fun, VECTOR).eqns] == ["sin", "cos"]


SCALARS = [True, 3, 2.5, 1j, np.float32(2), np.int8(2), np.array(2.0, np.float16)]


@pytest.mark.parametrize("scalar", SCALARS)
def test_scalars_stand_in_the_jaxpr(scalar):
    closed = stage(lambda: [scalar])
    [literal] = closed.outvars
    assert isinstance(literal, Literal) and closed.consts == []
    assert literal.aval == typeof(scalar)


def test_scalars_are_canonical():
    [literal] = stage(lambda: [np.float64(0.1)]).outvars
    assert literal.val.dtype == np.float32
    assert literal.spell({}) == "0.10000000149011612:f32[]"


def test_arrays_are_hoisted_once():
    table = np.float32([4, 5, 6])
    closed = stage(lambda x: [lax.mul(lax.mul(x, table), table), table], VECTOR)
    assert len(closed.constvars) == 1
    np.testing.assert_array_equal(closed.consts[0], table)


@pytest.mark.parametrize("scalar", [2.0, np.int8(2), jnp.asarray(2.0), True])
def test_a_scalar_made_on_the_way_is_a_literal(scalar):
    closed = stage(lambda: [current_trace().stage_value(scalar)])
    [literal] = closed.outvars
    assert isinstance(literal, Literal) and literal.aval == typeof(scalar)
    assert literal.val == 2.0 or scalar is True


@pytest.mark.parametrize(
    ("number", "dtype", "text"),
    [
        (3, np.float32, "3.0:f32[]"),
        (2.5, np.int32, "2:i32[]"),
        (0.1, np.float16, "0.0999755859375:f16[]"),
        (True, np.int8, "1:i8[]"),
        (1 + 2j, np.float32, "1.0:f32[]"),
    ],
)
def test_a_literal_is_converted_on_the_spot(number, dtype, text):
    params = {"new_dtype": np.dtype(dtype), "weak_type": False}
    closed = stage(lambda: lax.convert_element_type_p.bind_all(number, **params))
    assert str(closed) == f"{{ lambda ; . let  in ({text},) }}"


def test_the_smallest_trace_knows_its_own_tracers_alone():
    trace = EquationTrace(current_trace())
    a = trace.new_input(VECTOR)
    [b] = trace.process_primitive(lax.mul_p, [a, a], {})
    [eqn] = trace.eqns
    assert eqn.invars == [a.variable] * 2 and eqn.outvars == [b.variable]
    with pytest.raises(AttributeError):
        trace.process_primitive(lax.mul_p, [a, 2.0], {})


def test_constants_keep_their_arrays_alive():
    table = np.float32([4, 5, 6])
    constants = Constants()
    var = constants.variable(table)
    assert constants.variable(table) is var
    [kept] = [array for _, _, array in constants.found.values()]
    assert kept is table
    assert constants.split()[0] == [var]


def test_equal_arrays_are_two_constants():
    tables = [np.ones(3, np.float32), np.ones(3, np.float32)]
    assert len(stage(lambda: tables).constvars) == 2


def test_zero_dimensional_arrays_are_arrays():
    scalar = jnp.asarray(2.0)
    assert len(stage(lambda x: [x * scalar], VECTOR).constvars) == 1


def test_a_numpy_constant_is_copied():
    table = np.float32([4, 5, 6])
    closed = stage(lambda: [table])
    table[0] = 0
    np.testing.assert_array_equal(closed.consts[0], [4, 5, 6])


def test_short_lived_constants_do_not_take_each_others_place():
    def fun(x):
        for number in range(20):
            x = lax.mul(x, np.full(3, number + 1, np.float32))
        return [x]

    closed = stage(fun, VECTOR)
    assert [int(np.asarray(c)[0]) for c in closed.consts] == list(range(1, 21))


def test_tracers_of_other_traces_are_constants():
    seen = []

    def outer(x):
        jaxpr, consts = trace_to_jaxpr(lambda y: [lax.mul(x, y)], [VECTOR])
        seen.append((jaxpr, consts))
        return eval_jaxpr(jaxpr, consts, x)

    closed = stage(outer, VECTOR)
    [(inner, [constant])] = seen
    assert isinstance(constant, JaxprTracer) and len(inner.constvars) == 1
    assert len(closed.eqns) == 1


def test_a_dead_tracer_is_refused_as_operand_and_as_result():
    kept = []
    stage(lambda x: [kept.append(x) or x], VECTOR)
    with pytest.raises(UnexpectedTracerError, match="'sin' was applied to"):
        lax.sin(kept[0])
    with pytest.raises(UnexpectedTracerError):
        stage(lambda x: [lax.mul(x, kept[0])], VECTOR)
    with pytest.raises(UnexpectedTracerError):
        stage(lambda x: [kept[0]], VECTOR)


def test_a_tracer_shows_its_type():
    trace = JaxprTrace(current_trace())
    tracer = trace.new_input(VECTOR)
    assert repr(tracer) == "JaxprTracer(f32[3])"
    assert tracer.aval == VECTOR and tracer.shape == (3,)
    assert tracer.concrete() is None


def test_errors_of_shape_rules_reach_the_user():
    with pytest.raises(TypeError, match="add"):
        stage(lambda x: [lax.add(x, np.ones(4, np.float32))], VECTOR)
    assert lax.sin(0.0) is not None  # the evaluator is current again


def test_where_a_value_comes_from():
    trace = JaxprTrace(
        current_trace(),
        TraceProvenance("make_jaxpr", "loss", lambda: ["w", "x['a']", "y"]),
    )
    w, x, y = (trace.new_input(VECTOR) for _ in range(3))
    for primitive, args in [(lax.sin_p, [w]), (lax.mul_p, [w, y]), (lax.sin_p, [2.0])]:
        [result] = trace.process_primitive(primitive, args, {})
        args.append(result.provenance())
    head = "make_jaxpr is writing down the function 'loss' without running it. "
    [sine, product, constant] = [
        trace.process_primitive(primitive, args, {})[0].provenance()
        for primitive, args in [
            (lax.sin_p, [w]),
            (lax.mul_p, [w, x]),
            (lax.sin_p, [2.0]),
        ]
    ]
    assert sine == head + "This value depends on the argument w."
    assert product == head + "This value depends on the arguments w and x['a']."
    assert constant.startswith(head + "Even what does not depend")


def test_without_an_origin():
    trace = JaxprTrace(current_trace())
    assert "This value depends on its arguments" in trace.new_input(VECTOR).provenance()


def test_sources_are_asked_for(monkeypatch):
    places = iter(["first", "second"])
    monkeypatch.setattr(source_info_hook, "value", lambda: next(places))
    closed = stage(lambda x: [lax.sin(lax.cos(x))], VECTOR)
    assert [eqn.source for eqn in closed.eqns] == ["first", "second"]


def two(x):
    return [lax.mul(lax.sin(x), x)]


def test_staging_a_derivative_is_differentiating_the_staged():
    jaxpr, consts = trace_to_jaxpr(two, [VECTOR])
    staged = jvp_flat_fun(lambda x: eval_jaxpr(jaxpr, consts, x), [x], [x])
    direct = jvp_flat_fun(two, [x], [x])
    np.testing.assert_array_equal(np.stack(staged), np.stack(direct))
    derivative = stage(
        lambda x, t: sum(jvp_flat_fun(two, [x], [t]), []), VECTOR, VECTOR
    )
    again = eval_jaxpr(derivative.jaxpr, derivative.consts, x, x)
    np.testing.assert_array_equal(np.stack(again), np.concatenate(direct))


def test_staging_a_batch():
    def batched(x):
        outs, dims = batch_flat_fun(two, [x], [0], MappedAxis(None, 2))
        assert list(dims) == [0]
        return list(outs)

    rows = np.stack([x, x + 1])
    closed = stage(batched, ShapedArray((2, 3), np.float32))
    [result] = eval_jaxpr(closed.jaxpr, closed.consts, rows)
    np.testing.assert_allclose(result, np.sin(rows) * rows, rtol=1e-6)


UNARY = [lax.sin, lax.cos, lax.tanh, lax.neg, lax.exp]


@given(st.lists(st.integers(0, len(UNARY) * 3 - 1), max_size=12))
def test_any_straight_program_evaluates_to_itself(choices):
    def fun(x):
        values = [x]
        for choice in choices:
            kind, which = divmod(choice, len(UNARY))
            last = values[-1]
            values.append(
                UNARY[which](last)
                if kind == 0
                else lax.mul(last, values[which % len(values)])
            )
        return values

    closed = stage(fun, VECTOR)
    with np.errstate(all="ignore"):
        for ours, theirs in zip(
            eval_jaxpr(closed.jaxpr, closed.consts, x), fun(x), strict=True
        ):
            np.testing.assert_array_equal(ours, theirs)
