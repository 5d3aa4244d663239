"""Forward mode: each rule against finite differences, the trace, its promises."""

import numpy as np
import pytest

import minijax
from minijax import lax
from minijax._public import PUBLIC
from minijax.arrays.array import ShapedArray, shape_rules, typeof
from minijax.arrays.dtypes import enable_x64, float0
from minijax.core import (
    Trace,
    current_trace,
    impl_rules,
    set_current_trace,
)
from minijax.errors import ConcretizationTypeError, UnexpectedTracerError
from minijax.forward_mode.jvp import (
    JVPTrace,
    JVPTracer,
    add_or_none,
    instantiate_tangents,
    jvp_flat_fun,
    jvp_rules,
)
from minijax.lax.elementwise import add_any_p
from tests import arity
from tests.forward_cases import CASES, ONCE, direction
from tests.special_values import accepted


def tangent_of(f, primals, tangents):
    """Return the tangent of a function with one result, as a NumPy array."""
    values, slopes = jvp_flat_fun(lambda *xs: [f(*xs)], primals, tangents)
    [slope] = instantiate_tangents(values, slopes)
    assert typeof(slope).shape == typeof(values[0]).shape
    assert typeof(slope).dtype == typeof(values[0]).dtype
    return np.asarray(slope)


def subsets(count):
    """Return every choice of moving operands but the empty one, as lists of bools."""
    return [[bool(bits >> i & 1) for i in range(count)] for bits in range(1, 2**count)]


def shifted(primals, tangents, step):
    """Return the primals, moved by `step` along their tangents."""
    pairs = zip(primals, tangents, strict=True)
    return [x if t is None else x + step * t for x, t in pairs]


@pytest.mark.parametrize("name", [*CASES, *ONCE])
def test_agrees_with_finite_differences(name):
    call, primals = {**CASES, **ONCE}[name]

    agrees_with_differences(lambda *xs: call(lax, *xs), primals)


def agrees_with_differences(f, primals):
    """Fail unless the tangent of `f` is right, whichever operands move."""
    with enable_x64():
        for moving in subsets(len(primals)):
            pairs = zip(primals, moving, strict=True)
            tangents = [direction(x) if moves else None for x, moves in pairs]
            step = 1e-6
            above, below = (f(*shifted(primals, tangents, s)) for s in (step, -step))
            wanted = (np.asarray(above) - np.asarray(below)) / (2 * step)
            found = tangent_of(f, primals, tangents)
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def elementwise():
    """Return primitives of floats, whichever page they are of, and their operands."""
    aval, rng = ShapedArray((5,), np.dtype("float64")), np.random.default_rng(3)
    found = {}
    for p in sorted({*jvp_rules} & {*shape_rules}, key=str):
        avals = [aval] * arity.arity(p)
        bound = hasattr(lax, arity.PUBLIC.get(p.name, p.name)) and p.name != "ppermute"
        if bound and p.name != "stop_gradient" and accepted(p, avals, {}):
            low = 1.2 if p.name == "acosh" else 0.2
            if shape_rules[p](*avals)[0].dtype == aval.dtype:
                found[p.name] = p, [rng.uniform(low, low + 0.6, 5) for _ in avals]
    return found


ELEMENTWISE = elementwise()


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise_primitives_agree_wherever_they_are_written(name):
    primitive, primals = ELEMENTWISE[name]
    agrees_with_differences(lambda *xs: primitive.bind_all(*xs)[0], primals)


def test_a_wrong_slope_is_found(monkeypatch):
    monkeypatch.setitem(jvp_rules, lax.sin_p, jvp_rules[lax.cos_p])
    with pytest.raises(AssertionError):
        test_elementwise_primitives_agree_wherever_they_are_written("sin")


@pytest.mark.parametrize("name", CASES)
def test_second_derivative_agrees_with_differences_of_the_first(name):
    call, primals = CASES[name]
    tangents = [direction(x) for x in primals]

    def slope(*xs):
        values, slopes = jvp_flat_fun(lambda *xs: [call(lax, *xs)], xs, tangents)
        return instantiate_tangents(values, slopes)[0]

    with enable_x64():
        step = 1e-6
        above, below = (slope(*shifted(primals, tangents, s)) for s in (step, -step))
        wanted = (np.asarray(above) - np.asarray(below)) / (2 * step)
        found = tangent_of(slope, primals, tangents)
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_every_primitive_has_a_rule_or_a_reason():
    holes = [
        p for p in shape_rules if p not in jvp_rules and p not in jvp_rules.reasons
    ]
    assert not holes


def test_every_rule_is_among_the_cases():
    bound = set()

    class Note(Trace):
        def process_primitive(self, primitive, args, params):
            bound.add(primitive)
            return impl_rules[primitive](*args, **params)

    with set_current_trace(Note()):
        for call, primals in [*CASES.values(), *ONCE.values()]:
            call(lax, *primals)
    still = {
        *(lax.eq_p, lax.ne_p, lax.lt_p, lax.le_p, lax.gt_p, lax.ge_p),
        *(lax.and_p, lax.or_p, lax.xor_p, lax.not_p, lax.population_count_p, lax.clz_p),
        *(lax.shift_left_p, lax.shift_right_logical_p, lax.shift_right_arithmetic_p),
        *(lax.reduce_and_p, lax.reduce_or_p, lax.reduce_xor_p, lax.is_finite_p),
        *(lax.argmax_p, lax.argmin_p, lax.iota_p, lax.bitcast_convert_type_p),
    }
    others = {add_any_p, lax.copy_p}
    home = PUBLIC["minijax.lax"]
    modules = "arithmetic elementwise reductions shapes".split()
    floor = {f"minijax.lax.{name}" for name in modules}
    of_lax = {p for p in jvp_rules if home.get(f"{p}_p", "") in floor}
    floor_two = of_lax & shape_rules.keys()
    assert {p.name for p in floor_two - bound - still - others} == set()


def test_what_jumps_has_no_tangent():
    x = np.ones(2, np.float32)
    for f in (
        lax.is_finite,
        lambda x: lax.lt(x, x),
        lambda x: lax.argmax(x, 0, "int32"),
    ):
        assert jvp_flat_fun(lambda x, f=f: [f(x)], [x], [x])[1] == [None]


def test_constants_have_no_tangent():
    values, slopes = jvp_flat_fun(lambda x: [x, 3.0, lax.sin(2.0)], [1.0], [1.0])
    assert slopes[0] == 1.0 and slopes[1:] == [None, None]
    assert values[1] == 3.0


def test_a_missing_tangent_costs_nothing():
    x = np.ones(3, np.float32)
    values, slopes = jvp_flat_fun(lambda x, y: [lax.mul(x, y)], [x, x], [None, None])
    assert slopes == [None]
    assert not isinstance(values[0], JVPTracer)


def test_tangents_add_up():
    assert add_or_none(None, None) is None
    assert add_or_none(None, 1.0) == 1.0 == add_or_none(1.0, None)
    assert float(np.asarray(add_or_none(1.0, 2.0))) == 3.0


def test_missing_tangents_written_out():
    primals = [np.ones((2, 3), np.float32), np.arange(2, dtype=np.int32), 1.0]
    matrix, integers, scalar = instantiate_tangents(primals, [None] * 3)
    assert (matrix.shape, matrix.dtype) == ((2, 3), np.float32)
    assert (integers.shape, integers.dtype) == ((2,), float0)
    assert scalar == 0.0 and typeof(scalar).weak_type


def derivative(f):
    return lambda x: jvp_flat_fun(lambda x: [f(x)], [x], [1.0])[1][0]


def number(x):
    return float(np.asarray(x))


def test_no_perturbation_confusion():
    def f(x):
        return lax.mul(x, derivative(lambda y: lax.add(x, y))(1.0))

    assert number(derivative(f)(1.0)) == 1.0


def test_confusion_of_three():
    # d/dx [x * d/dy (x * y * d/dz (x + y + z))] at y = 2, z = 3: x * x -> 2 x
    def f(x):
        def g(y):
            def h(z):
                return lax.add(lax.add(x, y), z)

            return lax.mul(lax.mul(x, y), derivative(h)(3.0))

        return lax.mul(x, derivative(g)(2.0))

    assert number(derivative(f)(5.0)) == 10.0


def test_derivatives_of_high_order():
    f = lax.sin
    for _ in range(4):
        f = derivative(f)
    np.testing.assert_allclose(number(f(0.7)), np.sin(0.7), rtol=1e-6)


def test_derivative_of_a_derivative_through_a_closure():
    def f(x):
        return derivative(lambda y: lax.mul(lax.mul(x, x), lax.sin(y)))(x)

    expected = 2 * 0.5 * np.cos(0.5) - 0.25 * np.sin(0.5)
    np.testing.assert_allclose(number(derivative(f)(0.5)), expected, rtol=1e-6)


def test_the_trace_is_dead_afterwards():
    drawer = []

    def f(x):
        drawer.append(lax.mul(x, 2.0))
        return [x]

    jvp_flat_fun(f, [1.0], [1.0])
    with pytest.raises(UnexpectedTracerError, match="JVPTracer"):
        lax.sin(drawer[0])


def test_the_trace_is_dead_after_an_error():
    traces = []

    def f(x):
        traces.append(x._trace)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        jvp_flat_fun(f, [1.0], [1.0])
    assert not traces[0].alive
    assert not isinstance(current_trace(), JVPTrace)


def test_tracer_knows_its_abstract_value_and_its_number():
    seen = []

    def f(x):
        seen.append((x.aval, x.concrete()))
        return [x]

    x = np.ones((2, 3), np.float32)
    jvp_flat_fun(f, [x], [x])
    assert seen == [(typeof(x), x)] or seen[0][0] == typeof(x) and seen[0][1] is x


def test_branches_on_values_that_move():
    def relu(x):
        return x if lax.gt(x, 0.0) else lax.mul(x, 0.0)

    assert number(derivative(relu)(2.0)) == 1.0
    assert number(derivative(relu)(-2.0)) == 0.0


def test_float_would_lose_the_tangent():
    for convert in (float, complex):
        with pytest.raises(ConcretizationTypeError, match="tangent"):
            derivative(lambda x, convert=convert: lax.mul(x, convert(x)))(2.0)
    assert number(derivative(lambda x: lax.mul(x, float(int(x))))(2.5)) == 2.0


def test_integers_do_not_move():
    with enable_x64():
        values, slopes = jvp_flat_fun(
            lambda x: [lax.convert_element_type(x, "int32"), lax.floor(x)], [2.7], [1.0]
        )
    assert slopes == [None, None]


def test_a_primitive_without_a_rule_says_so():
    with pytest.raises(NotImplementedError, match="jvp rule of 'nextafter'"):
        jvp_flat_fun(lambda x: [lax.nextafter(x, x)], [1.0], [1.0])


def test_weak_types_stay_weak():
    _, [slope] = jvp_flat_fun(lambda x: [lax.mul(lax.square(x), 2.0)], [3.0], [1.0])
    assert typeof(slope).weak_type
    x = np.float32(3)
    _, [slope] = jvp_flat_fun(lambda x: [lax.square(x)], [x], [x])
    assert not typeof(slope).weak_type


def test_the_slope_of_a_power_is_strong():
    for call in (lambda x: lax.pow(x, 2.0), lambda x: lax.pow(x, x)):
        _, [slope] = jvp_flat_fun(lambda x, call=call: [call(x)], [3.0], [1.0])
        assert not typeof(slope).weak_type
    _, [slope] = jvp_flat_fun(lambda x: [lax.pow(2.0, x)], [3.0], [1.0])
    assert not typeof(slope).weak_type


@pytest.mark.parametrize("name", ["asin", "acos", "acosh", "atanh"])
def test_slopes_beside_one_keep_their_digits(name):
    with enable_x64(True):
        gap = 2.0 ** -np.arange(10, 51)
        x = 1 + gap if name == "acosh" else 1 - gap
        wide = gap.astype("longdouble")
        squares = wide * (2 + wide) if name == "acosh" else wide * (2 - wide)
        wanted = 1 / (squares if name == "atanh" else np.sqrt(squares))
        wanted = -wanted if name == "acos" else wanted

        def slope(x):
            return minijax.jvp(getattr(lax, name), (x,), (np.ones(x.shape),))[1]

        for f in (slope, minijax.jit(slope)):
            found = f(x)
            np.testing.assert_allclose(found, wanted.astype("float64"), 1e-15)


def test_the_slope_of_acosh_is_on_its_branch():
    """Of complex numbers on the left, where the root of the square is the other one."""
    with enable_x64(True):
        z = np.array([-2 + 1j, -2 - 1j, 2 + 1j, -0.3 + 0.2j, 0.3 - 2j])
        step = 1e-6
        wanted = (np.arccosh(z + step) - np.arccosh(z - step)) / (2 * step)
        found = tangent_of(lax.acosh, [z], [np.ones_like(z)])
        np.testing.assert_allclose(found, wanted, 1e-6)


@pytest.mark.parametrize("name", ["asin", "acos", "acosh", "asinh"])
def test_slopes_on_both_sides_of_a_branch_cut(name):
    """The sign of a zero says on which side; differences are taken along the cut."""
    with enable_x64(True):
        cut = [(2, 0.0), (2, -0.0), (-2, 0.0), (-2, -0.0), (0.5, -0.0)]

        def places(step):
            parts = np.array([(along + step, zero) for along, zero in cut])
            parts = parts[:, ::-1] if name == "asinh" else parts
            return np.ascontiguousarray(parts).view(complex)[:, 0]

        step, function = 1e-6, getattr(np, f"arc{name[1:]}")
        wanted = (function(places(step)) - function(places(-step))) / (2 * step)
        z, one = places(0), np.ones(len(cut), complex)
        wanted = wanted / 1j if name == "asinh" else wanted
        for f in (getattr(lax, name), minijax.jit(getattr(lax, name))):
            np.testing.assert_allclose(tangent_of(f, [z], [one]), wanted, 1e-6)
