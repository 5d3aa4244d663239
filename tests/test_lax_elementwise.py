"""Elementwise primitives: NumPy's numbers where they agree, and the corners."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import minijax.numpy as jnp
from minijax import jit, lax, make_jaxpr
from minijax.arrays.array import as_array_impl, shape_rules, typeof
from minijax.arrays.numerics import lgamma_scalar
from minijax.lax.arithmetic import promote_python_scalars
from minijax.lax.elementwise import add_any
from tests import array_cases as cases

INF, NAN = np.inf, np.nan
NUMPY = {
    "neg": np.negative, "floor": np.floor, "ceil": np.ceil, "exp": np.exp,
    "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log1p": np.log1p,
    "sqrt": np.sqrt, "cbrt": np.cbrt, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh,
    "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "is_finite": np.isfinite, "square": np.square,
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "max": np.maximum,
    "min": np.minimum, "atan2": np.arctan2, "nextafter": np.nextafter, "eq": np.equal,
    "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal,
}  # fmt: skip


def numbers(function, *args):
    return np.asarray(function(*args))


@pytest.mark.parametrize("name", NUMPY)
def test_agrees_with_numpy(name):
    x = cases.specimen("float32")
    args = (x,) if name in cases.UNARY else (x, x[::-1].copy())
    with np.errstate(all="ignore"):
        expected = NUMPY[name](*args)
    np.testing.assert_array_equal(numbers(getattr(lax, name), *args), expected)


@pytest.mark.parametrize("name", cases.UNARY + cases.BINARY)
def test_the_shape_rule_keeps_its_word(name):
    for dtype in cases.DTYPES:
        keeps_its_word(name, dtype)


def keeps_its_word(name, dtype):
    x = cases.specimen(dtype)
    args = (x,) if name in cases.UNARY else (x, x)
    try:
        result = getattr(lax, name)(*args)
    except TypeError as refusal:
        words = str(refusal)
        assert "does not accept dtype" in words or "negative powers" in words
        assert str(typeof(x).dtype) in str(refusal)
    else:
        assert result.shape == x.shape and result._buffer.dtype == result.dtype


@given(
    hnp.mutually_broadcastable_shapes(num_shapes=2, min_dims=1, max_dims=3),
    st.booleans(),
)
def test_axes_of_size_1_stretch(shapes, weak):
    x, y = (np.ones(shape, np.float32) for shape in shapes.input_shapes)
    if x.ndim == y.ndim:
        assert lax.add(x, y).shape == shapes.result_shape
    else:
        with pytest.raises(TypeError, match="same number of dimensions"):
            lax.add(x, y)
    assert lax.add(x, 2.0 if weak else np.float32(2)).shape == x.shape


def test_weakness():
    weak, strong = as_array_impl(2.0), as_array_impl(np.float32(2))
    assert lax.add(weak, 1.0).weak_type and lax.sin(1.0).weak_type
    assert not lax.add(strong, 1.0).weak_type and not lax.add(weak, strong).weak_type
    assert lax.eq(weak, 1.0).weak_type
    assert lax.mul(2, 3).dtype == np.int32


def test_python_numbers_take_the_dtype_of_the_array():
    half, small = np.float16([1]), np.uint8([1])
    assert lax.add(half, 1.0).dtype == lax.add(half, 1).dtype == np.float16
    assert lax.add(small, 3).dtype == np.uint8
    assert promote_python_scalars(small, 1.5)[1] == 1.5
    for args in [(small, 1.5), (small, True), (half, 1j), (np.bool_([1]), 1)]:
        with pytest.raises(TypeError):
            lax.max(*args)


def test_integer_division():
    x, y = np.int32([7, -7, 5, -(2**31)]), np.int32([2, 2, 0, -1])
    np.testing.assert_array_equal(numbers(lax.div, x, y), [3, -3, -1, -(2**31)])
    np.testing.assert_array_equal(numbers(lax.rem, x, y), [1, -1, 5, 0])
    x, y = np.uint8([7, 5]), np.uint8([2, 0])
    np.testing.assert_array_equal(numbers(lax.div, x, y), [3, 255])
    np.testing.assert_array_equal(numbers(lax.rem, x, y), [1, 5])


@given(st.integers(-100, 100), st.integers(-100, 100).filter(bool))
def test_division_and_remainder_belong_together(x, y):
    quotient, rest = (
        lax.div(np.int32(x), np.int32(y)),
        lax.rem(np.int32(x), np.int32(y)),
    )
    assert int(np.asarray(quotient)) * y + int(np.asarray(rest)) == x
    assert int(np.asarray(quotient)) == math.trunc(x / y)


@pytest.mark.parametrize(
    ("function", "x", "expected"),
    [
        (lax.shift_left, 1, [2, 1 << 31, 0, 0, 0]),
        (lax.shift_right_logical, -1, [2**31 - 1, 1, 0, 0, 0]),
        (lax.shift_right_arithmetic, -1, [-1] * 5),
        (lax.shift_right_arithmetic, 5, [2, 0, 0, 0, 0]),
    ],
)
def test_shifts(function, x, expected):
    by = np.int32([1, 31, 32, 33, -1])
    result = numbers(function, np.full(5, x, np.int32), by)
    np.testing.assert_array_equal(result, np.array(expected).astype(np.int32))


def test_bits():
    x = np.int8([-1, 3, 0, -128])
    np.testing.assert_array_equal(numbers(lax.population_count, x), [8, 2, 0, 1])
    np.testing.assert_array_equal(numbers(lax.clz, x), [0, 6, 8, 0])
    np.testing.assert_array_equal(numbers(lax.bitwise_not, np.bool_([1, 0])), [0, 1])


def test_rounding():
    x = np.float32([0.5, 1.5, -0.5, 2.5, -2.5, 0.49999997, 1e20, INF, NAN])
    away = [1, 2, -1, 3, -3, 0, np.float32(1e20), INF, NAN]
    even = [0, 2, -0.0, 2, -2, 0, np.float32(1e20), INF, NAN]
    np.testing.assert_array_equal(numbers(lax.round, x), np.float32(away))
    method = lax.RoundingMethod.TO_NEAREST_EVEN
    np.testing.assert_array_equal(numbers(lax.round, x, method), np.float32(even))
    with pytest.raises(ValueError):
        lax.round(x, 7)


def test_signs_of_zero():
    assert np.signbit(numbers(lax.sign, np.float32(-0.0)))
    assert np.signbit(numbers(lax.round, np.float32(-0.2)))
    assert not np.signbit(numbers(lax.sign, np.float32(0.0)))
    np.testing.assert_allclose(numbers(lax.sign, np.complex64(3 + 4j)), 0.6 + 0.8j)


def test_powers():
    x = np.float32([2, -2, 0])
    np.testing.assert_array_equal(numbers(lax.integer_pow, x, -2), [0.25, 0.25, INF])
    np.testing.assert_array_equal(
        numbers(lax.integer_pow, np.int8([2, 3]), 5), [32, -13]
    )
    np.testing.assert_array_equal(numbers(lax.pow, x, np.int32([3, 3, 0])), [8, -8, 1])
    np.testing.assert_array_equal(numbers(lax.reciprocal, x), [0.5, -0.5, INF])
    z = numbers(lax.integer_pow, np.complex64(1 + 1j), 3)
    np.testing.assert_allclose(z, (1 + 1j) ** 3, rtol=1e-6)


@given(st.floats(-0.999, 0.999))
def test_inverse_error_function(y):
    back = math.erf(float(numbers(lax.erf_inv, np.float64(y).astype(np.float32))))
    assert back == pytest.approx(y, abs=1e-6)


@pytest.mark.parametrize(
    ("function", "values"),
    [
        (lax.erf, {0.0: 0.0, INF: 1.0, -INF: -1.0, 1.0: 0.8427008}),
        (lax.erfc, {0.0: 1.0, INF: 0.0, 3.0: 2.209e-5}),
        (lax.erf_inv, {1.0: INF, -1.0: -INF, 2.0: NAN, 0.0: 0.0, 0.5: 0.4769363}),
        (lax.lgamma, {1.0: 0.0, 0.5: 0.5723649, -1.0: INF, INF: INF, -INF: INF}),
        (lax.digamma, {1.0: -0.5772157, 0.5: -1.9635101, -0.5: 0.0364899, 0.0: NAN,
                       -2.0: NAN, INF: INF, -INF: NAN, 100.0: 4.6001619}),
        (lax.logistic, {0.0: 0.5, 1000.0: 1.0, -1000.0: 0.0, NAN: NAN}),
        (lax.rsqrt, {0.0: INF, -1.0: NAN, 4.0: 0.5, INF: 0.0}),
    ],
)  # fmt: skip
def test_special_functions(function, values):
    result = numbers(function, np.float32(list(values)))
    np.testing.assert_allclose(result, [*values.values()], rtol=1e-4, atol=1e-7)


def test_complex_numbers():
    z = np.complex64([3 + 4j, -1j])
    np.testing.assert_array_equal(numbers(lax.abs, z), [5, 1])
    np.testing.assert_array_equal(numbers(lax.real, z), [3, 0])
    np.testing.assert_array_equal(numbers(lax.imag, z), [4, -1])
    np.testing.assert_array_equal(numbers(lax.conj, z), [3 - 4j, 1j])
    assert lax.conj(np.float32(2)).dtype == np.complex64
    parts = np.float32([INF, -0.0]), np.float32([NAN, -0.0])
    made = numbers(lax.complex, *parts)
    np.testing.assert_array_equal(made.real, parts[0])
    assert np.signbit(made[1].imag) and made.dtype == np.complex64


def test_reduce_precision():
    x = np.float32([1.1, 1e5, 65504, 65530, 6e-5, 1e-8, -3.3, INF, NAN, -0.0])
    with np.errstate(over="ignore"):
        half = x.astype(np.float16).astype(np.float32)
    half[np.abs(half) < 2.0**-14] = 0  # no numbers with fewer digits near zero
    np.testing.assert_array_equal(numbers(lax.reduce_precision, x, 5, 10), half)
    for bits in ((10**9, 10**9), (8, 10**5), (10**5, 23)):  # as many as there are
        np.testing.assert_array_equal(numbers(lax.reduce_precision, x, *bits), x)
    for bits in ((0, 3), (8, -1)):
        with pytest.raises(ValueError, match="exponent_bits of 1 or more"):
            lax.reduce_precision(x, *bits)


def test_sums_of_cotangents():
    assert add_any(np.bool_([1]), np.bool_([0])).dtype == bool
    np.testing.assert_array_equal(
        numbers(add_any, np.float32([1]), np.float32([2])), [3]
    )


def test_empty_arrays():
    empty = np.zeros((0, 3), np.float32)
    for name in ("sin", "erf", "lgamma", "sign", "round", "logistic", "neg"):
        assert getattr(lax, name)(empty).shape == (0, 3)
    assert lax.add(empty, empty).shape == lax.add(empty, 1.0).shape == (0, 3)
    assert lax.add(empty, np.ones((1, 3), np.float32)).shape == (0, 3)


def test_documentation():
    assert lax.sin.__name__ == "sin" and "jax.lax.sin" in lax.sin.__doc__
    names = {str(primitive) for primitive in shape_rules}
    assert {"sin", "add", "pow", "integer_pow"} <= names


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_half_as_exponent_is_no_square_root(dtype):
    x = np.array([-np.inf, -0.0, 0.0, 4.0, -1.0, np.nan], dtype)
    wanted = np.array([np.inf, 0.0, 0.0, 2.0, np.nan, np.nan], dtype)
    for exponent in (dtype_half(dtype, ()), dtype_half(dtype, x.shape)):
        with np.errstate(all="ignore"):
            found = np.asarray(lax.pow(x, np.broadcast_to(exponent, x.shape)))
        np.testing.assert_array_equal(found, wanted)
        assert not np.signbit(found[1])


def dtype_half(dtype, shape):
    return np.full(shape, 0.5, dtype)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_small_powers_of_infinite_complex_numbers_are_products(dtype):
    parts = [0.0, -0.0, 1.0, np.inf, -np.inf, np.nan]
    x = np.array([complex(a, b) for a in parts for b in parts], dtype)
    with np.errstate(all="ignore"):
        wanted = {1: x, 2: x * x, 3: x * (x * x), 4: (x * x) * (x * x)}
        for y, product in wanted.items():
            found = np.asarray(lax.integer_pow(x, y))
            np.testing.assert_array_equal(found.real, product.real)
            np.testing.assert_array_equal(found.imag, product.imag)


def test_log_gamma_of_the_largest_number_is_infinite():
    assert lax.lgamma(np.float32(3e38)) == np.inf
    assert lgamma_scalar(1.7e308) == np.inf


def test_an_elementwise_primitive_refuses_parameters_that_it_does_not_have():
    def sine(x):
        return lax.sin_p.bind_all(x, zz=1)

    for run in (sine, make_jaxpr(sine), jit(sine)):
        with pytest.raises(TypeError, match="sin.. got an unexpected .* 'zz'"):
            run(1.0)


@pytest.mark.parametrize("params", [{}, {"x": 2}, {"y": 2, "zz": 1}])
def test_an_elementwise_primitive_with_parameters_takes_these_alone(params):
    def power(x):
        return lax.integer_pow_p.bind_all(x, **params)

    for run in (power, make_jaxpr(power), jit(power)):
        with pytest.raises(TypeError, match="integer_pow has y; it was given"):
            run(2.0)


HARD_POWERS = [
    ("bfloat16", -1, 257), ("float16", -1, 2049), ("float32", -1, 2**24 + 1),
    ("bfloat16", -1, -257), ("int8", -1, 129), ("uint8", 3, 300), ("int16", 7, 40001),
    ("int32", 3, 2**31), ("int8", 2, 200), ("int32", 5, 13), ("float32", 1.5, 6),
]  # fmt: skip


@pytest.mark.parametrize("dtype, x, n", HARD_POWERS)
def test_a_power_whose_exponent_the_dtype_does_not_hold(dtype, x, n):
    """A rounded exponent may be even where the exponent is odd."""
    found = jnp.full(3, x, dtype) ** n
    if found.dtype.kind in "iu":
        bits = 8 * found.dtype.itemsize
        wanted = np.array([pow(x, n, 2**bits)] * 3, f"uint{bits}").view(dtype)
    else:
        wanted = np.full(3, x**n if x != -1 else (-1) ** n, found.dtype)
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(jit(lambda x: x**n)(jnp.full(3, x, dtype)), wanted)
