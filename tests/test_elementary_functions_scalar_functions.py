"""Functions of scalars: how they are written, and how kernels take them in."""

import mpmath
import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import jit
from minijax.elementary_functions.exponentials import (
    FLOAT_FORMATS,
    cody_waite,
    emit_exp2_int,
    emit_nearest_multiple,
)
from minijax.elementary_functions.scalar_functions import (
    build_function,
    emit_estrin_step,
    emit_lower_clamp,
    emit_polynomial,
    emit_polynomial_tail,
    emit_upper_clamp,
    inline_function,
    slow_paths,
)
from minijax.kernels.builder import NodeBuilder
from minijax.kernels.loop_nests import Node
from tests.function_cases import DTYPES, F32, compiled, interpreted

RUNS = pytest.mark.parametrize("run", [compiled, interpreted])
EACH = pytest.mark.parametrize("dtype", DTYPES)


def test_only_what_is_needed_is_kept():
    def body(k, x):
        k.mul(x, 7)
        return k.add(x, x)

    found = build_function("double", body, [F32])
    assert found.operations == 1 and [node.op for node in found.nodes] == ["add"]
    assert [arg.op for arg in found.args] == ["argument"]


def rare_body(k, x):
    """1 / x, or 100 x where x is small; a product is shared."""
    double = k.mul(x, 2)
    small = k.lt(x, 0.5)
    return k.rarely(small, lambda: k.mul(double, 50), k.div(2, double))


def test_rare_parts_are_kept_apart():
    found = build_function("rare", rare_body, [F32])
    assert [node.op for node in found.rare.nodes if node.op != "constant"] == ["mul"]
    assert found.rare.condition in found.nodes
    assert found.rare.result not in found.nodes
    shared = {arg for node in found.rare.nodes for arg in node.args}
    assert shared & {*found.nodes}


@RUNS
def test_rare_parts_are_chosen(run):
    x = np.array([0.25, 1, 4], "float32")
    np.testing.assert_array_equal(run(rare_body, x), np.float32([25, 1, 0.25]))


def test_inlining_gives_levels():
    found = build_function("cube", lambda k, x: k.mul(x, k.mul(x, x)), [F32])
    k, index = NodeBuilder(), Node("load", (), F32, (0, 2))
    assert inline_function(k, found, [index]).level == (0, 2)
    assert not {*found.nodes} & {*k.nodes}


@RUNS
@EACH
def test_nearest_whole_number(run, dtype):
    x = np.array([0, 0.4, 0.6, -0.6, 1.5, 2.5, 1000.3, -4096.7], dtype)
    np.testing.assert_array_equal(
        run(lambda k, a: emit_nearest_multiple(k, a, 1)[0], x), np.rint(x)
    )
    bits = run(lambda k, a: emit_nearest_multiple(k, a, 1)[1], x)
    assert bits.dtype == FLOAT_FORMATS[dtype].integer
    np.testing.assert_array_equal((bits - np.rint(x).astype(bits.dtype)) % 2**20, 0)


@RUNS
@EACH
def test_powers_of_two(run, dtype):
    x = np.array([0, 1, -1, 10, -126, 127], dtype)

    def body(k, a):
        return emit_exp2_int(k, emit_nearest_multiple(k, a, 1)[1], dtype)

    np.testing.assert_array_equal(run(body, x), np.ldexp(dtype.type(1), x.astype(int)))


@RUNS
@EACH
@pytest.mark.parametrize("count", [2, 5, 9, 10, 11, 24])
@pytest.mark.parametrize("write", [emit_polynomial, emit_estrin_step])
def test_polynomials(write, count, dtype, run):
    rng = np.random.default_rng(count)
    numbers, x = rng.normal(size=count).tolist(), rng.uniform(-1, 1, 30).astype(dtype)
    found = run(lambda k, a: k.add(write(k, a, numbers), k.mul(a, 0)), x)
    wanted = np.polyval(numbers[::-1], x.astype("float64"))
    tolerance = 60 * np.finfo(dtype).eps
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


@RUNS
@EACH
@pytest.mark.parametrize("count", [1, 2, 5, 9, 12])
def test_rests_of_series(count, dtype, run):
    rng = np.random.default_rng(count)
    numbers, x = rng.normal(size=count).tolist(), rng.uniform(-1, 1, 30).astype(dtype)
    found = run(lambda k, a: emit_polynomial_tail(k, k.add(a, a), a, numbers), x)
    wanted = np.polyval([*numbers[::-1], 2, 0], x.astype("float64"))
    tolerance = 60 * np.finfo(dtype).eps
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


@EACH
def test_rests_take_one_square(dtype):
    numbers = [0.5, 0.25, 0.125, 1.5, 2.5, 3.5]
    found = build_function(
        "", lambda k, x: emit_polynomial_tail(k, x, x, numbers), [dtype]
    )
    ops = [node.op for node in found.nodes if node.op != "constant"]
    assert ops.count("mul") == 1 and ops.count("fma") == 6 and len(ops) == 7


@RUNS
def test_limits_let_nan_through(run):
    x = np.array([-3, 0, 3, np.nan, np.inf, -np.inf], "float32")
    above = np.float32([-3, 0, 2, np.nan, 2, -np.inf])
    below = np.float32([-2, 0, 3, np.nan, np.inf, -2])
    np.testing.assert_array_equal(
        run(lambda k, a: emit_upper_clamp(k, a, 2.0), x), above
    )
    np.testing.assert_array_equal(
        run(lambda k, a: emit_lower_clamp(k, a, -2.0), x), below
    )


@RUNS
def test_multiples_are_taken_off_part_by_part(run):
    x, parts = np.array([710.0]), (3.0, 0.125)
    found = run(lambda k, a: cody_waite(k, a, k.number(200, a), parts), x)
    assert found[0] == 710 - 200 * 3.125


def doubly_rare(k, x):
    """Write 1, above 10 twice x, above 100 three times x."""

    def large():
        return k.rarely(k.gt(x, 100), lambda: k.mul(x, 3), k.mul(x, 2))

    return k.rarely(k.gt(x, 10), large, k.number(1, x))


@RUNS
def test_what_is_rare_may_have_numbers_that_are_rarer(run):
    found = build_function("doubly", doubly_rare, [F32])
    assert [path.result.op for path in slow_paths(found.rare)] == ["mul", "mul"]
    x = np.array([3, 11, 101, 10, 100, -1, np.nan], F32)
    np.testing.assert_array_equal(run(doubly_rare, x), [1, 22, 303, 1, 200, 1, 1])


@pytest.mark.parametrize("size", [1, 7, 8, 9, 33])
@pytest.mark.parametrize("most", [1e2, 2.0**31, 1e38])
def test_sines_of_vectors_with_rare_numbers_in_some_places(size, most):
    x = np.linspace(-1, 1, size, dtype=F32) ** 3 * F32.type(most)
    x[::3] = 0.5
    found = np.asarray(jit(jnp.sin)(x))
    exact = [float(mpmath.sin(mpmath.mpf(float(each)))) for each in x]
    np.testing.assert_allclose(found, exact, rtol=3e-7, atol=1e-12)
