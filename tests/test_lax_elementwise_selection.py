"""Choosing among elements."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minijax import lax


@given(st.lists(st.integers(-5, 5), max_size=6), st.integers(1, 4))
def test_which_is_brought_into_range(which, count):
    cases = [np.full(len(which), k, np.float32) for k in range(count)]
    result = np.asarray(lax.select_n(np.int32(which), *cases))
    np.testing.assert_array_equal(result, np.clip(which, 0, count - 1))


def test_bools_choose_between_two():
    x, y = np.float32([1, 2]), np.float32([3, 4])
    pred = np.bool_([True, False])
    np.testing.assert_array_equal(np.asarray(lax.select_n(pred, x, y)), [3, 2])
    np.testing.assert_array_equal(np.asarray(lax.select(pred, x, y)), [1, 4])
    np.testing.assert_array_equal(np.asarray(lax.select(True, x, y)), x)
    np.testing.assert_array_equal(np.asarray(lax.select_n(pred, x)), x)
    assert lax.select_n(True, 1.0, 2.0).weak_type


def test_select_keeps_the_dtype():
    for dtype in (np.bool_, np.int8, np.float16, np.complex64):
        x = np.ones(2, dtype)
        assert lax.select(np.bool_([1, 0]), x, x).dtype == dtype
        assert lax.select_n(np.int32([1, 0]), x, x, x).dtype == dtype


@given(st.floats(-5, 5), st.floats(-5, 5), st.floats(-5, 5))
def test_clamp(low, x, high):
    result = float(
        np.asarray(lax.clamp(np.float32(low), np.float32(x), np.float32(high)))
    )
    assert result == np.minimum(
        np.maximum(np.float32(x), np.float32(low)), np.float32(high)
    )


def test_clamp_and_nan():
    x = np.float32([1, np.nan])
    assert np.isnan(np.asarray(lax.clamp(np.nan, x, 1.0))).all()
    np.testing.assert_array_equal(np.asarray(lax.clamp(2.0, x, 1.0)), [1, np.nan])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: lax.select(np.bool_([1, 0, 1]), x, x), "same shapes"),
        (lambda x: lax.select(np.bool_([1, 0]), x, 1.0), r"\(\), \(2,\)"),
        (lambda x: lax.select(x, x, x), "select_n does not accept dtype float32"),
        (lambda x: lax.select_n(True, x, x, x), "cannot have 3 cases"),
        (lambda x: lax.clamp(np.zeros(3), x, 1.0), r"min.shape=\(3,\)"),
        (lambda x: lax.clamp(0.0, x, np.int32(1)), "same dtypes"),
    ],
)
def test_mistakes(call, words):
    with pytest.raises(TypeError, match=words):
        call(np.float32([1, 2]))
