"""Transposition and reverse mode: each rule by its definition, then whole functions."""

import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minijax
import minijax.numpy as jnp
from minijax import lax
from minijax.arrays.array import typeof
from minijax.arrays.dtypes import enable_x64, float0
from minijax.batching.vmap import higher_order_primitives, vmap
from minijax.core import EvalTrace, Trace, impl_rules, set_current_trace
from minijax.errors import UnexpectedTracerError
from minijax.forward_mode.jvp import jvp_flat_fun
from minijax.jaxprs.jaxpr import make_jaxpr, trace_to_jaxpr
from minijax.jaxprs.types import ShapeDtypeStruct
from minijax.reverse_mode.backward_pass import (
    UndefinedPrimal,
    backward_pass,
    transpose_rules,
    vjp,
    vjp_flat_fun,
)
from minijax.reverse_mode.transpose_rules import linear_jaxpr, linear_transpose
from minijax.tree_util import tree_leaves
from tests.forward_cases import CASES as CURVED
from tests.forward_cases import direction
from tests.transpose_cases import CASES, normal

F32 = np.float32
LOOSE = {"float16": 2e-2}


def pairing(xs, ys):
    """The product of two lists of arrays, cotangents and tangents: a real number."""
    terms = [np.sum(np.asarray(x) * np.asarray(y)) for x, y in zip(xs, ys, strict=True)]
    return float(np.real(sum(terms)))


def first(result):
    """The result of a function, or of a primitive, which returns a list."""
    return result[0] if isinstance(result, list) else result


@pytest.mark.parametrize("name", CASES)
def test_rule_is_the_transpose(name):
    call, xs = CASES[name]
    result = np.asarray(first(call(lax, *xs)))
    ct = normal(*result.shape, dtype=result.dtype)
    cts = linear_transpose(lambda *xs: first(call(lax, *xs)), *xs)(ct)
    for x, arrived in zip(xs, cts, strict=True):
        assert (arrived.shape, arrived.dtype) == (x.shape, x.dtype)
    rtol = LOOSE.get(min(result.dtype.name, xs[0].dtype.name), 1e-4)
    assert pairing(cts, xs) == pytest.approx(pairing([ct], [result]), rtol, 1e-4)


def written_down(call, xs):
    avals = list(map(typeof, xs))
    return trace_to_jaxpr(lambda *xs: [first(call(lax, *xs))], avals)


def test_every_rule_has_a_case():
    seen = {"add_any"}
    for call, xs in CASES.values():
        jaxpr, _ = written_down(call, xs)
        seen |= {eqn.primitive.name for eqn in jaxpr.eqns}
    talking = {"psum", "ppermute", "all_gather", "reduce_scatter", "all_to_all"}
    linear = {p.name for p in transpose_rules if p not in higher_order_primitives}
    refusing = {"pure_callback", "io_callback"}
    # Calls with own rules, a barrier, sorts, moves: the tests of their floors try them.
    ruled = "custom_lin custom_linear_solve custom_vmap_call linear_call".split()
    ruled += ["device_put", "optimization_barrier", "sort"]
    ruled += ["gather", "dynamic_slice", "dynamic_update_slice"]
    ruled += ["scatter", "scatter-add", "scatter-sub", "scatter-mul"]
    ruled += ["tridiagonal_solve", "fft", "conv_general_dilated", "reduce_window_sum"]
    ruled += ["select_and_scatter_add", "select_and_gather_add"]
    ruled += ["sharding_constraint", "pvary"]
    assert linear <= seen | talking | refusing | {*ruled}


def test_every_primitive_has_a_rule_or_a_reason():
    for primitive in impl_rules:
        reason = transpose_rules.reasons.get(primitive, "")
        assert (primitive in transpose_rules) != reason.endswith("."), primitive


def gaps(shape):
    """Shapes that stretch to `shape`: equal, with ones in places, or none."""
    ones = st.tuples(*(st.sampled_from([1, size]) for size in shape))
    return st.one_of(ones, st.just(()))


shapes = st.lists(st.integers(1, 3), min_size=0, max_size=3).map(tuple)


@given(data=st.data(), shape=shapes, name=st.sampled_from(["add", "sub", "mul", "div"]))
def test_stretched_operands_get_their_own_shape(data, shape, name):
    x = normal(*data.draw(gaps(shape)))
    y = normal(*data.draw(gaps(shape))) + F32(3)
    result, pullback = vjp_flat_fun(lambda x, y: [getattr(lax, name)(x, y)], [x, y])
    ct, t, u = normal(*result[0].shape), direction(x), direction(y)
    _, slopes = jvp_flat_fun(lambda x, y: [getattr(lax, name)(x, y)], [x, y], [t, u])
    cts = pullback([ct])
    assert [c.shape for c in cts] == [x.shape, y.shape]
    assert pairing(cts, [t, u]) == pytest.approx(pairing([ct], slopes), 1e-3, 1e-3)


@pytest.mark.parametrize("name", CURVED)
def test_backwards_agrees_with_forwards(name):
    call, operands = CURVED[name]
    with enable_x64():
        f, ts = lambda *xs: [call(lax, *xs)], [direction(x) for x in operands]
        [result], pullback = vjp_flat_fun(f, operands)
        ct = direction(np.asarray(result), seed=1)
        cts = pullback([ct])
        _, slopes = jvp_flat_fun(f, operands, ts)
    for x, arrived in zip(operands, cts, strict=True):
        assert (arrived.shape, arrived.dtype) == (np.shape(x), np.asarray(x).dtype)
    slope = np.zeros_like(ct) if slopes[0] is None else slopes[0]
    assert pairing(cts, ts) == pytest.approx(pairing([ct], [slope]), 1e-8, 1e-8)


# Collectives: transposed under the vmap that they talk across.

TALK = {
    "psum": lambda x: lax.psum(x, "i"),
    "ppermute": lambda x: lax.ppermute(x, "i", [(0, 1), (2, 0)]),
    "all_gather": lambda x: lax.all_gather(x, "i", axis=1),
    "all_gather tiled": lambda x: lax.all_gather(x, "i", axis=1, tiled=True),
    "psum_scatter": lambda x: lax.psum_scatter(x, "i", scatter_dimension=1),
    "psum_scatter tiled": lambda x: lax.psum_scatter(x, "i", tiled=True),
    "all_to_all": lambda x: lax.all_to_all(x, "i", 1, 0),
    "all_to_all tiled": lambda x: lax.all_to_all(x, "i", 0, 1, tiled=True),
}


@pytest.mark.parametrize("name", TALK)
def test_collective(name):
    xs = normal(3, 6, 3)
    over_i = {"axis_name": "i"}
    ys = vmap(TALK[name], **over_i)(xs)
    cts = normal(*ys.shape)
    [back] = vmap(lambda x, ct: linear_transpose(TALK[name], x)(ct), **over_i)(xs, cts)
    assert back.shape == xs.shape
    assert pairing([back], [xs]) == pytest.approx(pairing([cts], [ys]), 1e-4)


# The backward pass.


def test_values_that_are_known_are_computed_first():
    def f(x, y):
        return [lax.mul(lax.sin(y), lax.neg(x)), lax.cos(y)]

    jaxpr, consts = trace_to_jaxpr(f, [typeof(1.0), typeof(2.0)])
    cts = backward_pass(
        jaxpr, consts, [UndefinedPrimal(typeof(1.0)), 2.0], [F32(3), F32(5)]
    )
    assert float(cts[0]) == pytest.approx(-3 * np.sin(2.0))
    assert cts[1] is None


def test_the_diamond_is_summed_before_it_is_passed_on():
    def f(x):
        y = lax.neg(x)
        return [lax.add(lax.mul(2.0, y), lax.neg(y))]

    class Count(Trace):
        parent, seen = EvalTrace(), []

        def process_primitive(self, primitive, args, params):
            self.seen.append(primitive.name)
            return self.parent.process_primitive(primitive, args, params)

    jaxpr, consts = linear_jaxpr(f, [typeof(F32(1))])
    with set_current_trace(Count()) as count:
        [ct] = backward_pass(jaxpr, consts, [UndefinedPrimal(typeof(F32(1)))], [F32(1)])
    assert float(ct) == -1.0
    assert count.seen == ["neg", "mul", "add_any", "neg"]


def test_zeros_stay_symbolic():
    jaxpr, consts = linear_jaxpr(lambda x, y: [lax.neg(x), y], [typeof(F32(1))] * 2)
    places = [UndefinedPrimal(typeof(F32(1)))] * 2
    assert backward_pass(jaxpr, consts, places, [None, None]) == [None, None]
    assert backward_pass(jaxpr, consts, places, [None, 3.0]) == [None, 3.0]


def test_the_places_of_the_caller_stay_empty():
    aval = typeof(F32(1))
    jaxpr, consts = linear_jaxpr(lambda x: [lax.neg(x)], [aval])
    place = UndefinedPrimal(aval)
    for _ in range(2):
        assert backward_pass(jaxpr, consts, [place], [F32(3)]) == [-3.0]
    assert place.ct is None


def test_cotangents_are_freed_when_they_have_been_passed_on():
    def f(x):
        for _ in range(50):
            x = lax.neg(x)
        return [x]

    ones = np.ones(100_000, "float32")
    jaxpr, consts = linear_jaxpr(f, [typeof(ones)])
    tracemalloc.start()
    backward_pass(jaxpr, consts, [UndefinedPrimal(typeof(ones))], [ones])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 6 * ones.nbytes


def test_results_that_are_inputs_or_constants():
    aval = typeof(F32(1))
    jaxpr, consts = linear_jaxpr(lambda x: [x, x, 2.0, np.ones(3, F32)], [aval])
    cts = backward_pass(
        jaxpr, consts, [UndefinedPrimal(aval)], [F32(3), F32(4), F32(5), None]
    )
    assert float(cts[0]) == 7.0


@pytest.mark.parametrize(
    ("f", "primitive"),
    [
        (lax.sin, "sin"),
        (lambda x: lax.mul(x, x), "mul"),
        (lambda x: lax.div(1.0, x), "div"),
        (lambda x: lax.reduce_max(x, (0,)), "reduce_max"),
        (lambda x: lax.dot_general(x, x, (((0,), (0,)), ((), ()))), "dot_general"),
    ],
)
def test_what_is_not_linear_is_refused(f, primitive):
    x = np.ones(3, F32)
    with pytest.raises(NotImplementedError, match=f"'{primitive}'.*not linear"):
        linear_transpose(f, x)(f(x))


# vjp and linear_transpose on trees.


def model(params, n):
    return {"y": lax.mul(params["w"], params["b"]), "n": n}, "note"


def test_vjp_on_trees():
    params = {"w": normal(3), "b": normal(3), "unused": normal(2)}
    result, vjp_fun, aux = vjp(model, params, 4, has_aux=True)
    assert (aux, result["n"]) == ("note", 4)
    ct = normal(3)
    grads, none = vjp_fun({"y": ct, "n": np.zeros((), float0)})
    np.testing.assert_allclose(grads["w"], ct * params["b"], rtol=1e-6)
    np.testing.assert_allclose(grads["b"], ct * params["w"], rtol=1e-6)
    assert grads["unused"].shape == (2,) and not np.any(grads["unused"])
    assert (none.shape, none.dtype) == ((), float0)


def test_vjp_fun_may_be_called_again_and_is_a_tree():
    _, vjp_fun = vjp(lax.sin, normal(3))
    first_time, again = vjp_fun(np.ones(3, F32))[0], vjp_fun(np.ones(3, F32))[0]
    np.testing.assert_array_equal(first_time, again)
    assert [leaf.shape for leaf in tree_leaves(vjp_fun)] == [(3,)]


def test_vjp_fun_leaves_a_vmap():
    xs = normal(4, 3)
    pullbacks = vmap(lambda x: vjp(lax.sin, x)[1])(xs)
    [cts] = vmap(lambda pullback, ct: pullback(ct))(pullbacks, np.ones((4, 3), F32))
    np.testing.assert_allclose(cts, np.cos(xs), rtol=1e-6)


def test_vjp_of_vjp_and_staging():
    def slope(x):
        return vjp(lambda x: lax.mul(lax.sin(x), x), x)[1](np.ones((), F32))[0]

    _, vjp_fun = vjp(slope, F32(2))
    expected = 2 * np.cos(2) - 2 * np.sin(2)
    assert float(vjp_fun(F32(1))[0]) == pytest.approx(expected, 1e-5)
    assert "cos" in str(make_jaxpr(slope)(F32(2)))


def test_results_without_tangents():
    _, vjp_fun = vjp(lambda x: lax.gt(x, 0.0), F32(1))
    [ct] = vjp_fun(np.zeros((), float0))
    assert (float(ct), ct.dtype) == (0.0, F32)


@pytest.mark.parametrize("ct", [np.zeros(3, float0), np.ones(3, int), np.ones(3, F32)])
def test_any_cotangent_will_do_for_an_integer(ct):
    x = normal(3)
    _, vjp_fun = vjp(lambda x: (lax.sin(x), lax.gt(x, 0.0)), x)
    np.testing.assert_allclose(vjp_fun((np.ones(3, F32), ct))[0], np.cos(x), rtol=1e-6)
    with pytest.raises(ValueError, match=r"result\[1\].*float0\[3\]"):
        vjp_fun((np.ones(3, F32), ct[:2]))


@pytest.mark.parametrize("cotangents", [(), (1.0, 2.0)])
def test_a_pullback_takes_one_argument(cotangents):
    _, vjp_fun = vjp(lambda x: (x, x), 1.0)
    with pytest.raises(
        TypeError, match=f"with {len(cotangents)} arguments, but takes one"
    ):
        vjp_fun(*cotangents)


def test_residuals_of_a_dead_trace_are_refused():
    kept = []

    def f(x):
        kept.append(vjp(lax.sin, x)[1])
        return [x]

    jvp_flat_fun(f, [F32(1)], [F32(1)])
    with pytest.raises(UnexpectedTracerError):
        kept[0](F32(1))


def test_linear_transpose_wants_types_only():
    def f(tree):
        return {"out": lax.mul(lax.sin(2.0), tree["in"])}

    transposed = linear_transpose(f, {"in": ShapeDtypeStruct((3,), F32)})
    [ct] = transposed({"out": np.ones(3, F32)})
    np.testing.assert_allclose(ct["in"], np.sin(2.0) * np.ones(3), rtol=1e-6)


def test_linear_transpose_of_integers():
    [ct] = linear_transpose(lambda x: lax.mul(2, x), np.int32(1))(np.int32(5))
    assert (int(ct), ct.dtype) == (10, np.int32)


def test_linear_transpose_twice_is_the_function():
    weights, x = normal(3), normal(3)

    def f(x):
        return lax.cumsum(lax.mul(x, weights))

    once = linear_transpose(f, x)
    twice = linear_transpose(lambda ct: once(ct)[0], x)
    np.testing.assert_allclose(twice(x)[0], f(x), rtol=1e-6)


@pytest.mark.parametrize(
    "program",
    [
        "from minijax import grad; print(float(grad(lambda x: x * x)(3.0)))",
        "from minijax import vjp; print(float(vjp(lambda x: 2 * x, 3.0)[1](3.0)[0]))",
        "from minijax import linear_transpose as t; "
        "print(float(t(lambda x: 2 * x, 1.0)(3.0)[0]))",
        "import minijax as m; print(float(m.jacrev(lambda x: x * x)(3.0)))",
    ],
)
def test_the_rules_are_there_without_being_asked_for(program):
    """A fresh process that imports nothing but the public name has all rules."""
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True
    )
    assert run.stdout == "6.0\n", run.stderr


def test_the_cotangent_of_a_copy_is_a_copy():
    ct = jnp.ones(3)
    _, pullback = vjp(lambda x: jnp.array(x, copy=True), jnp.arange(3.0))
    [found] = pullback(ct)
    assert found is not ct and found.tolist() == ct.tolist()


@pytest.mark.filterwarnings("error")
def test_a_real_factor_of_a_complex_product():
    """Its cotangent is the real part of what comes back, and NumPy says nothing."""
    x, y = jnp.arange(5, dtype="float32"), jnp.arange(5, dtype="complex64")
    slope = minijax.jacobian(lambda x, y: lax.dot(x, y).real)(x, y)
    assert slope.tolist() == [0, 1, 2, 3, 4]
