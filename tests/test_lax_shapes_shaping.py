"""Primitives that rearrange elements, against NumPy."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import minijax
from minijax import lax
from minijax.arrays.array import as_array_impl
from minijax.arrays.numerics import canonicalize_axis, remove_axes
from minijax.core import Array

SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)


def counting(shape):
    return np.arange(math.prod(shape), dtype=np.float32).reshape(shape)


def same(ours, expected):
    np.testing.assert_array_equal(np.asarray(ours), expected)
    assert ours.shape == expected.shape


@given(SHAPES, st.data())
def test_transpose(shape, data):
    permutation = data.draw(st.permutations(range(len(shape))))
    x = counting(shape)
    same(lax.transpose(as_array_impl(x), permutation), x.transpose(permutation))


@given(SHAPES, st.data())
def test_reshape(shape, data):
    x = counting(shape)
    sizes = data.draw(st.sampled_from([(x.size,), (1, x.size), (x.size, 1, 1), shape]))
    order = data.draw(st.permutations(range(len(shape))))
    same(lax.reshape(as_array_impl(x), sizes), x.reshape(sizes))
    expected = x.transpose(order).reshape(sizes)
    same(lax.reshape(as_array_impl(x), sizes, order), expected)


@given(SHAPES, st.data())
def test_broadcast_in_dim(shape, data):
    extra = data.draw(st.integers(0, 2))
    rank = len(shape) + extra
    chosen = data.draw(st.permutations(range(rank)))[: len(shape)]
    places = chosen  # in any order: axes of the operand are moved
    target = [data.draw(st.integers(0, 3)) for _ in range(rank)]
    for place, size in zip(places, shape):
        if size != 1:
            target[place] = size
    x = counting(shape)
    lined_up = [1] * rank
    for place, size in zip(places, shape):
        lined_up[place] = size
    rising = x.transpose(np.argsort(places).astype(int))
    expected = np.broadcast_to(rising.reshape(lined_up), target)
    same(lax.broadcast_in_dim(as_array_impl(x), target, places), expected)
    same(lax.broadcast_in_dim(x, target, places), expected)


@given(SHAPES, st.data())
def test_expand_and_squeeze(shape, data):
    x, count = counting(shape), data.draw(st.integers(0, 2))
    rank = len(shape) + count
    axes = data.draw(st.permutations(range(rank)))[:count]
    axes = [axis - rank * data.draw(st.booleans()) for axis in axes]
    expanded = lax.expand_dims(as_array_impl(x), axes)
    same(expanded, np.expand_dims(x, tuple(axes)))
    same(lax.squeeze(expanded, axes), x)


@given(SHAPES, st.data())
def test_rev(shape, data):
    axes = [axis for axis in range(len(shape)) if data.draw(st.booleans())]
    x = counting(shape)
    same(lax.rev(as_array_impl(x), axes), np.flip(x, tuple(axes)))


@pytest.mark.of_the_cpu("shares the memory of NumPy")
def test_nothing_is_moved():
    x = as_array_impl(counting((3, 4)))
    for view in (
        lax.transpose(x, (1, 0)),
        lax.reshape(x, (2, 6)),
        lax.rev(x, (0,)),
        lax.expand_dims(x, (1,)),
        lax.broadcast(x, (1000,)),
    ):
        assert np.shares_memory(np.asarray(view), np.asarray(x))
        assert not np.asarray(view).flags.writeable
    assert lax.reshape(x, (3, 4)) is x and lax.transpose(x, (0, 1)) is x
    assert lax.expand_dims(x, ()) is x and lax.squeeze(x, ()) is x


def test_but_never_the_memory_of_the_user():
    mine = counting((3, 4))
    for result in (lax.transpose(mine, (1, 0)), lax.reshape(mine, (12,))):
        assert not np.shares_memory(np.asarray(result), mine)


def test_collapse_and_rank():
    x = as_array_impl(counting((2, 3, 4)))
    assert lax.collapse(x, 0, 2).shape == (6, 4) and lax.collapse(x, 1).shape == (2, 12)
    assert lax.collapse(x, -2).shape == (2, 12)
    assert lax.broadcast_to_rank(x, 5).shape == (1, 1, 2, 3, 4)
    for it in (x, np.ones((2, 3)), 2.0, np.float64(2)):
        for rank in (0, 2):
            assert isinstance(lax.broadcast_to_rank(it, rank), Array)
    assert lax.broadcast(x, (5, 6)).shape == (5, 6, 2, 3, 4)


def test_parameters_are_plain():
    from minijax.arrays.array import shape_rules
    from minijax.core import EvalTrace, set_current_trace

    class Look(EvalTrace):
        def process_primitive(self, primitive, args, params):
            assert hash(tuple(params.items())) and primitive in shape_rules
            for value in params.values():
                assert all(type(size) is int for size in value)
            return super().process_primitive(primitive, args, params)

    x = as_array_impl(counting((3, 4)))
    with set_current_trace(Look()):
        lax.reshape(x, np.array([4, 3])), lax.transpose(x, np.array([1, 0]))
        lax.broadcast_in_dim(x, [np.int64(2), 3, 4], np.arange(1, 3))
        lax.rev(x, [np.int8(0)]), lax.squeeze(lax.expand_dims(x, [0]), np.array([0]))


def test_helpers():
    assert [canonicalize_axis(axis, 3) for axis in (0, 2, -1, -3)] == [0, 2, 2, 0]
    for axis in (3, -4):
        with pytest.raises(ValueError, match="out of bounds for array of dimension 3"):
            canonicalize_axis(axis, 3)
    assert remove_axes("abcd", [1, 3]) == ("a", "c")


def test_a_broadcast_along_no_axes_is_no_equation():
    for number in (np.float32(3), 3.0, np.ones(2)):
        program = minijax.make_jaxpr(lambda x=number: lax.broadcast(x, ()))()
        assert not program.eqns


def test_a_clone_is_an_array_of_its_own():
    x = lax.broadcast(3.0, (2,))
    assert x.clone() is not x and x.clone().tolist() == [3.0, 3.0]
