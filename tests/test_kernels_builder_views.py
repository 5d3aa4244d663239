"""Views beside the views of NumPy."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from minijax.kernels.builder import (
    Buffer,
    broadcast_scalar_view,
    broadcast_view,
    contiguous_view,
    reshape_view,
    reverse_view,
    row_major_strides,
    slice_view,
    transpose_view,
)
from minijax.kernels.lowering import array_from_view

I32 = np.dtype("int32")


@st.composite
def pairs(draw):
    """A view after some changes, and the array after the same."""
    shape = draw(st.lists(st.integers(1, 4), max_size=3))
    array = np.arange(int(np.prod(shape)), dtype=I32).reshape(shape)
    view = contiguous_view(Buffer("m", I32, array.size), I32, shape)
    memory = {view.source: array.reshape(-1).view(np.uint8)}
    for change in draw(st.lists(st.sampled_from(CHANGES), max_size=3)):
        view, array = change(draw, view, array)
    return view, array, memory


def permute(draw, view, array):
    axes = draw(st.permutations(range(array.ndim)))
    return transpose_view(view, axes), array.transpose(axes)


def reverse(draw, view, array):
    axes = [axis for axis in range(array.ndim) if draw(st.booleans())]
    return reverse_view(view, axes), np.flip(array, axes)


def cut(draw, view, array):
    starts = [draw(st.integers(0, size)) for size in array.shape]
    steps = [draw(st.integers(1, 3)) for _ in array.shape]
    array = array[tuple(map(slice, starts, array.shape, steps))]
    return slice_view(view, starts, array.shape, steps), array


def stretch(draw, view, array):
    shape = (draw(st.integers(0, 3)), *array.shape)
    return broadcast_view(view, shape, range(1, len(shape))), np.broadcast_to(
        array, shape
    )


CHANGES = [permute, reverse, cut, stretch]


@given(pairs())
def test_views(pair):
    view, array, memory = pair
    np.testing.assert_array_equal(array_from_view(view, memory), array)
    assert view.shape == array.shape
    still = [step for size, step in zip(view.shape, view.strides) if size == 1]
    assert not any(still)


@given(pairs(), st.data())
def test_reshape(pair, data):
    view, array, memory = pair
    shape = data.draw(st.sampled_from([(-1,), (2, -1), (-1, 2), (1, -1, 3), (-1, 1)]))
    try:
        wanted = array.reshape(shape)
    except ValueError:
        return
    found = reshape_view(view, wanted.shape)
    if found is not None:
        np.testing.assert_array_equal(array_from_view(found, memory), wanted)
    elif array.size:
        assert not np.shares_memory(wanted, array)  # NumPy has to copy as well


def test_scalars_need_no_memory():
    view = broadcast_scalar_view(np.float32(2), (2, 3))
    np.testing.assert_array_equal(
        array_from_view(view, {}), np.full((2, 3), 2, "float32")
    )
    assert reshape_view(view, (6,)).shape == (6,) and str(view) == "2.0:f32[2,3]"


def test_row_major():
    assert row_major_strides((2, 3, 4)) == (12, 4, 1) and row_major_strides(
        (2, 1, 4)
    ) == (4, 0, 1)


def test_an_axis_without_elements_moves():
    """A store into it goes through its loop, which has no turn."""
    one = contiguous_view(Buffer("m", I32, 1), I32, (1,))
    assert slice_view(one, [0], [0], [1]).strides == (1,)
    assert slice_view(one, [0], [1], [1]).strides == (0,)
