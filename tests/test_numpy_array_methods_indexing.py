"""Basic indices: the same elements as in NumPy, by few primitives, and clear errors."""

import hypothesis.extra.numpy as arrays
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minijax.numpy as jnp
from minijax.core import Trace, current_trace, set_current_trace
from minijax.numpy.array_methods import as_places, slice_limits
from minijax.numpy.operands import concrete_int_or_none

quick = settings(deadline=None, max_examples=200, derandomize=True)

SHAPES = arrays.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)


class Diary(Trace):
    """Notes which primitives are bound."""

    def __init__(self):
        self.parent, self.names = current_trace(), []

    def process_primitive(self, primitive, args, params):
        self.names.append(primitive.name)
        with set_current_trace(self.parent):
            return primitive.bind_all(*args, **params)


def follow(x, index):
    """The part of an array, and the primitives that it took."""
    trace = Diary()
    with set_current_trace(trace):
        part = jnp.asarray(x)[index]
    return part, trace.names


@quick
@given(data=st.data(), shape=SHAPES)
def test_same_elements_as_numpy(data, shape):
    x = np.arange(float(np.prod(shape))).reshape(shape)
    index = data.draw(arrays.basic_indices(shape, allow_newaxis=True))
    part, names = follow(x, index)
    np.testing.assert_array_equal(np.asarray(part), x[index])
    assert part.shape == x[index].shape
    assert len(names) <= 4 and len(set(names)) == len(names)
    assert set(names) <= {"slice", "rev", "squeeze", "broadcast_in_dim"}


@pytest.mark.parametrize("size", range(5))
def test_every_slice(size):
    x = np.arange(float(size))
    ends = [None, *range(-size - 2, size + 3)]
    for start in ends:
        for stop in ends:
            for step in (None, 1, 2, 3, -1, -2, -3):
                index = slice(start, stop, step)
                assert jnp.asarray(x)[index].tolist() == x[index].tolist(), index


@quick
@given(size=st.integers(1, 5), place=st.integers(-20, 20))
def test_integers_beyond_the_ends_mean_the_ends(size, place):
    nearest = min(max(place + size if place < 0 else place, 0), size - 1)
    assert int(jnp.arange(size)[place]) == nearest


def test_what_takes_nothing_away_is_no_operation():
    x = jnp.ones((2, 3))
    for index in (
        (),
        ...,
        slice(None),
        (slice(None), slice(0, 9)),
        (..., slice(-3, None)),
    ):
        assert follow(x, index)[1] == []
        assert x[index] is x


def test_operations_stand_in_one_order():
    x = jnp.ones((2, 3, 4))
    _, names = follow(x, np.s_[1, None, ::-1, 2:])
    assert names == ["slice", "rev", "squeeze", "broadcast_in_dim"]


@pytest.mark.parametrize(
    "integer", [1, np.int8(1), np.array(1), jnp.array(1), jnp.uint8(1), np.uint64(1)]
)
def test_integers_in_many_clothes(integer):
    assert concrete_int_or_none(integer) == 1
    assert float(jnp.array([5.0, 7.0, 9.0])[integer]) == 7.0
    assert jnp.array([5.0, 7.0, 9.0])[integer:].tolist() == [7.0, 9.0]


@pytest.mark.parametrize(
    "other", [True, 1.0, "1", [1], np.array([1]), None, jnp.ones(())]
)
def test_what_is_no_integer(other):
    assert concrete_int_or_none(other) is None


def test_places_and_cuts():
    assert as_places(-1, 3) == 2
    assert as_places(slice(None, None, -2), 5) == range(4, -1, -2)
    assert slice_limits(2) == (2, 3, 1)
    assert slice_limits(range(4, -1, -2)) == (0, 5, 2)
    assert slice_limits(range(3, 1)) == (3, 3, 1)


def test_iteration_goes_along_the_first_axis():
    rows = [*jnp.arange(6.0).reshape(3, 2)]
    assert [row.tolist() for row in rows] == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    first, second = jnp.array([1.0, 2.0])
    assert (float(first), float(second)) == (1.0, 2.0)


INDICES = [
    "True", "False", "np.bool_(True)", "np.array(False)", "jnp.bool_(True)",
    "(True, 0)", "(0, True)", "(False, 0)", "(True, slice(1, None))", "(0, True, 1)",
    "(slice(1, None), True)", "(True, None)", "(None, True)", "(True, True)",
    "(True, False)", "(..., True)", "(True, ...)", "(None, ..., True, None)",
    "(slice(None), True, 1)", "(slice(None), 1, True)", "(True, slice(None), 1)",
    "(1, slice(None), True)", "(slice(None), False)", "(..., False, 0)",
]  # fmt: skip


@pytest.mark.parametrize("text", INDICES)
def test_bools_make_an_axis(text):
    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    index = eval(text, {"np": np, "jnp": jnp})
    entries = index if isinstance(index, tuple) else (index,)
    plain = tuple(np.asarray(e)[()] if hasattr(e, "dtype") else e for e in entries)
    part = jnp.asarray(x)[index]
    np.testing.assert_array_equal(part, x[plain])


def test_arrays_without_axes_take_bools():
    assert jnp.float32(3)[True].shape == jnp.float32(3)[True, True].shape == (1,)
    assert jnp.float32(3)[False].shape == (0,)
    with pytest.raises(IndexError, match="Too many indices"):
        jnp.float32(3)[True, 0]
