"""Folding axes, against NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minijax
import minijax.numpy as jnp
from minijax import lax
from minijax.lax.reductions import check_places
from tests import array_cases as cases
from tests.test_lax_shapes_shaping import SHAPES, same

NUMPY = {
    "reduce_sum": np.sum, "reduce_prod": np.prod, "reduce_max": np.max,
    "reduce_min": np.min, "reduce_and": np.bitwise_and.reduce,
    "reduce_or": np.bitwise_or.reduce, "reduce_xor": np.bitwise_xor.reduce,
    "argmax": np.argmax, "argmin": np.argmin, "cumsum": np.cumsum,
    "cumprod": np.cumprod, "cummax": np.maximum.accumulate,
    "cummin": np.minimum.accumulate, "cumlogsumexp": np.logaddexp.accumulate,
}  # fmt: skip


@given(SHAPES.filter(lambda shape: 0 not in shape), st.data())
@pytest.mark.parametrize("name", [n for n in NUMPY if n.startswith("reduce")])
def test_reductions(name, shape, data):
    axes = [axis for axis in range(len(shape)) if data.draw(st.booleans())]
    x = cases.numbers(shape, "int32") % 5
    same(getattr(lax, name)(x, axes), np.int32(NUMPY[name](x, axis=tuple(axes))))


@given(SHAPES.filter(lambda shape: shape and 0 not in shape), st.data())
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_places(name, shape, data):
    axis = data.draw(st.integers(0, len(shape) - 1))
    x = cases.numbers(shape, "int8") % 5
    same(getattr(lax, name)(x, axis, np.uint16), np.uint16(NUMPY[name](x, axis)))


@given(SHAPES.filter(bool), st.data(), st.booleans())
@pytest.mark.parametrize("name", [n for n in NUMPY if n.startswith("cum")])
def test_running(name, shape, data, reverse):
    axis = data.draw(st.integers(0, len(shape) - 1))
    x = cases.numbers(shape, "float32")
    turned = np.flip(x, axis) if reverse else x
    expected = NUMPY[name](turned, axis)
    expected = np.flip(expected, axis) if reverse else expected
    result = getattr(lax, name)(x, axis, reverse)
    np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-6, atol=1e-7)
    assert result.dtype == np.float32


def test_empty():
    empty = np.zeros((0, 3), np.float32)
    assert [*np.asarray(lax.reduce_max(empty, (0,)))] == [-np.inf] * 3
    assert [*np.asarray(lax.reduce_min(empty, (0,)))] == [np.inf] * 3
    assert int(np.asarray(lax.reduce_max(np.zeros(0, np.int8), (0,)))) == -128
    assert bool(np.asarray(lax.reduce_min(np.zeros(0, bool), (0,)))) is True
    assert int(np.asarray(lax.reduce_and(np.zeros(0, np.int8), (0,)))) == -1
    assert lax.reduce_sum(empty, (1,)).shape == (0,)


def test_nan_wins():
    x = np.float32([1, np.nan, 3])
    assert np.isnan(np.asarray(lax.reduce_max(x, (0,))))
    assert int(np.asarray(lax.argmax(x, 0, int))) == 1
    assert int(np.asarray(lax.argmin(x, 0, int))) == 1
    np.testing.assert_array_equal(np.asarray(lax.cummax(x)), [1, np.nan, np.nan])


def test_half_precision_is_added_up_in_32_bits():
    ones = np.ones(3000, np.float16)
    total = lax.reduce_sum(ones, (0,))
    assert total.dtype == np.float16 and float(np.asarray(total)) == 3000
    assert float(np.asarray(lax.cumsum(ones))[-1]) == 3000


MANY_ROWS = {
    (100_003, 3): [(0,)],
    (3, 1000, 2): [(1,), (0, 1), (1, 2), (0, 1, 2)],
    (1000, 300, 2): [(0,), (1,), (0, 1), (0, 2)],
    (301, 0, 5): [(0,), (0, 1)],
    (300, 1): [(0,)],
}


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "complex64"])
@pytest.mark.parametrize("shape", MANY_ROWS)
def test_sums_of_many_rows(shape, dtype):
    rng = np.random.default_rng(2)
    x = (3 * rng.normal(size=shape)).astype(dtype)
    wide = np.result_type(x, "int64" if dtype == "int8" else "float64")
    for axes in MANY_ROWS[shape]:
        for each in (x, x[::-1], x[::2], np.asfortranarray(x)):
            result = np.asarray(lax.reduce_sum(each, axes))
            expected = each.astype(wide).sum(axes).astype(dtype)
            assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
            if dtype == "int8":
                assert (result == expected).all()
                continue
            largest = abs(each.astype(wide)).sum(axes)
            error = abs(result.astype(wide) - expected)
            assert (error <= (1e-3 if dtype == "float16" else 3e-7) * largest).all()


@pytest.mark.parametrize("axes", [(0,), (0, 2)])
@pytest.mark.parametrize("dense", [True, False])
def test_equal_numbers_keep_their_digits(dense, axes):
    """All additions round the same way: row by row, three digits are right."""
    tenths = np.broadcast_to(np.float32(0.1), (60_000, 4, 3))
    x = tenths.copy() if dense else tenths
    count = 60_000 * (3 if 2 in axes else 1)
    result = np.asarray(lax.reduce_sum(x, axes))
    np.testing.assert_allclose(result, count * float(np.float32(0.1)), rtol=1e-5)


def test_sums_keep_their_dtype():
    assert lax.reduce_sum(np.int8([100, 100]), (0,)).dtype == np.int8
    assert int(np.asarray(lax.reduce_sum(np.int8([100, 100]), (0,)))) == -56
    assert lax.reduce_sum(2.0, ()).weak_type


@pytest.mark.parametrize(
    ("error", "words", "call"),
    [
        (ValueError, "out-of-bounds", lambda x: lax.reduce_sum(x, (2,))),
        (ValueError, "out-of-bounds", lambda x: lax.reduce_sum(x, (-1,))),
        (ValueError, "duplicate", lambda x: lax.reduce_sum(x, (0, 0))),
        (TypeError, "dtype bool", lambda x: lax.reduce_sum(x > 0, (0,))),
        (TypeError, "dtype float32", lambda x: lax.reduce_and(x, (0,))),
        (ValueError, "non-empty reduced", lambda x: lax.argmax(x[:0], 0, int)),
        (TypeError, "index_dtype", lambda x: lax.argmax(x, 0, float)),
        (ValueError, "cumsum axes", lambda x: lax.cumsum(x, 2)),
        (TypeError, "cumlogsumexp", lambda x: lax.cumlogsumexp(np.int32([1]))),
    ],
)
def test_mistakes(error, words, call):
    with pytest.raises(error, match=words):
        call(np.ones((2, 3), np.float32))


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("backend", [None, "interpreter", "python", "cpu"])
def test_places_beyond_the_index_type_are_refused(name, backend):
    def function(x):
        return getattr(lax, name)(x, 0, np.int8)

    run = minijax.jit(function, backend=backend) if backend else function
    assert run(np.zeros(128, "float32")).dtype == np.int8
    with pytest.raises(OverflowError, match="129 elements: int8 counts to 127"):
        run(np.zeros(129, "float32"))


def test_counts_of_more_elements_than_32_bits_hold():
    large = minijax.ShapeDtypeStruct((2**16, 2**16), np.int8)
    for function in (jnp.mean, jnp.var, jnp.std):
        assert minijax.eval_shape(function, large).dtype == np.float32
    assert minijax.eval_shape(jnp.argmax, large).dtype == np.int32
    with pytest.raises(OverflowError, match="4294967296 elements: int32"):
        check_places("argmax", 2**32, np.dtype("int32"))
    check_places("argmax", 2**32, np.dtype("int64"))


@pytest.mark.parametrize("reverse", [False, True])
def test_complex_sums_of_exponentials_keep_small_totals(reverse):
    inf = np.inf
    rows = [[-2000, 0], [-50 + 1j, -1200 + 2j, 3j, -300], [-inf, -inf, 1j, -inf]]
    for row in rows:
        x = np.array(row, np.complex64)
        given, alike = (x[::-1], x) if reverse else (x, x)
        expected = [alike[0]]
        for number in alike[1:]:
            high, low = sorted([expected[-1], number], key=lambda z: -z.real)
            more = 0 if high.real == -inf else np.exp(np.complex128(low - high))
            expected.append(high + np.log1p(more))
        jitted = minijax.jit(lax.cumlogsumexp, static_argnums=(1, 2))
        for f in (lax.cumlogsumexp, jitted):
            found = np.asarray(f(given, 0, reverse))
            found = found[::-1] if reverse else found
            np.testing.assert_allclose(found, expected, rtol=1e-6)
