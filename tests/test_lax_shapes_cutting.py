"""Slices, padding and joining, against NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minijax import lax
from minijax.arrays.array import as_array_impl
from tests.test_lax_shapes_shaping import SHAPES, counting, same


@given(SHAPES, st.data())
def test_slice(shape, data):
    starts = [data.draw(st.integers(0, size)) for size in shape]
    limits = [data.draw(st.integers(a, size)) for a, size in zip(starts, shape)]
    strides = [data.draw(st.integers(1, 3)) for _ in shape]
    x = counting(shape)
    expected = x[tuple(map(slice, starts, limits, strides))]
    same(lax.slice(as_array_impl(x), starts, limits, strides), expected)


@given(st.data())
def test_slice_in_dim(data):
    x, axis = counting((3, 5)), data.draw(st.sampled_from([0, 1, -1]))
    size = x.shape[axis]
    start, limit = (data.draw(st.none() | st.integers(-size, size)) for _ in range(2))
    stride = data.draw(st.integers(1, 3))
    low, high, _ = slice(start, limit).indices(size)
    if low <= high:
        where = [slice(None)] * 2
        where[axis] = slice(start, limit, stride)
        same(
            lax.slice_in_dim(as_array_impl(x), start, limit, stride, axis),
            x[tuple(where)],
        )


@given(st.integers(-5, 4), st.booleans())
def test_index_in_dim(index, keepdims):
    x = counting((3, 5))
    expected = np.take(x, [index] if keepdims else index, 1)
    same(lax.index_in_dim(as_array_impl(x), index, 1, keepdims), expected)


@given(st.lists(st.tuples(*[st.integers(-2, 3)] * 2, st.integers(0, 2)), max_size=2),
       st.integers(0, 3))  # fmt: skip
def test_pad(config, size):
    x = counting((size,) * len(config))
    expected = x
    for axis, (low, high, gap) in enumerate(config):
        lines = []
        for k, part in enumerate(np.moveaxis(expected, axis, 0)):
            lines += [np.full_like(part, 7)] * (gap if k else 0) + [part]
        blank = np.full(np.delete(expected.shape, axis), 7, np.float32)
        lines = [blank] * max(low, 0) + lines + [blank] * max(high, 0)
        if len(lines) < max(-low, 0) + max(-high, 0):
            with pytest.raises(ValueError, match="at least 0"):
                lax.pad(x, 7.0, config)
            return
        lines = lines[max(-low, 0) : len(lines) - max(-high, 0)]
        stacked = np.array(lines, np.float32).reshape((len(lines), *blank.shape))
        expected = np.moveaxis(stacked, 0, axis)
    same(lax.pad(as_array_impl(x), 7.0, config), expected)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=4), st.integers(0, 1))
def test_concatenate(sizes, axis):
    arrays = [counting((2, n) if axis else (n, 2)) for n in sizes]
    same(
        lax.concatenate(map(as_array_impl, arrays), axis), np.concatenate(arrays, axis)
    )


def test_concatenate_rows_of_an_array():
    assert lax.concatenate(counting((2, 3)), 0).shape == (6,)
    x = as_array_impl(counting((2, 3)))
    assert lax.concatenate([x], 1) is x


@pytest.mark.parametrize(
    ("error", "words", "call"),
    [
        (TypeError, "one start, one limit", lambda x: lax.slice(x, (0,), (1,))),
        (TypeError, "limit_indices \\(2, 9\\)", lambda x: lax.slice(x, (0, 0), (2, 9))),
        (TypeError, "0 <= start", lambda x: lax.slice(x, (2, 0), (1, 3))),
        (TypeError, "stride > 0", lambda x: lax.slice(x, (0, 0), (2, 3), (1, 0))),
        (IndexError, "index 5 .* axis 0", lambda x: lax.index_in_dim(x, 5)),
        (ValueError, "axis 4 is out", lambda x: lax.slice_in_dim(x, 0, 1, axis=4)),
        (ValueError, "each axis", lambda x: lax.pad(x, 0.0, ((0, 0, 0),))),
        (ValueError, "nonnegative", lambda x: lax.pad(x, 0.0, [(0, 0, -1)] * 2)),
        (ValueError, "scalar", lambda x: lax.pad(x, x, [(0, 0, 0)] * 2)),
        (TypeError, "same dtypes", lambda x: lax.pad(x, np.int32(0), [(0, 0, 0)] * 2)),
        (TypeError, "out of bounds", lambda x: lax.concatenate([x, x], 2)),
        (TypeError, "differ in", lambda x: lax.concatenate([x, x[:, :1]], 0)),
        (TypeError, "numbers of dim", lambda x: lax.concatenate([x, x[0]], 0)),
        (ValueError, "non-empty", lambda x: lax.concatenate([], 0)),
    ],
)
def test_mistakes(error, words, call):
    with pytest.raises(error, match=words):
        call(counting((2, 3)))
