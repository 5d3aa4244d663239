"""Abstract values."""

import copy

import numpy as np
import pytest

from minijax.arrays.array import ShapedArray, as_array_impl, is_python_scalar, typeof
from minijax.arrays.dtypes import enable_x64


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "ShapedArray(bool[])"),
        (1, "ShapedArray(int32[], weak_type=True)"),
        (1.5, "ShapedArray(float32[], weak_type=True)"),
        (1j, "ShapedArray(complex64[], weak_type=True)"),
        (np.float64(1), "ShapedArray(float32[])"),
        (np.bool_(True), "ShapedArray(bool[])"),
        (np.ones((2, 3), np.int8), "ShapedArray(int8[2,3])"),
        (as_array_impl(2.0), "ShapedArray(float32[], weak_type=True)"),
        (as_array_impl(np.ones(3)), "ShapedArray(float32[3])"),
    ],
)
def test_typeof(value, text):
    assert repr(typeof(value)) == text


def test_typeof_with_64_bits():
    with enable_x64():
        assert str(typeof(1)) == "~int64[]"
        assert str(typeof(np.ones(2))) == "float64[2]"
    assert str(typeof(1)) == "~int32[]"


@pytest.mark.parametrize(
    "value", ["a", None, [1, 2], object(), np.array(["a"]), np.array([None]), {}]
)
def test_typeof_refuses_what_is_no_array(value):
    with pytest.raises(TypeError, match="not a valid (JAX|array) type"):
        typeof(value)


def test_equality_and_hash():
    a, b = ShapedArray((2, 3), "float32"), ShapedArray([2, 3], np.float32)
    assert a == b and hash(a) == hash(b) and len({a, b}) == 1
    assert a != ShapedArray((2, 3), "float32", weak_type=True)
    assert a != ShapedArray((3, 2), "float32") and a != ShapedArray((2, 3), "int32")
    assert a != "float32[2,3]" and copy.deepcopy(a) == a


def test_update_and_sizes():
    aval = ShapedArray((2, 3), "float32", weak_type=True)
    assert aval.update(shape=()) == ShapedArray((), "float32", weak_type=True)
    assert aval.update(dtype="int8", weak_type=False) == ShapedArray((2, 3), "int8")
    assert (aval.ndim, aval.size, aval.str_short()) == (2, 6, "f32[2,3]")
    assert ShapedArray((), bool).size == 1 and ShapedArray((0, 3), bool).size == 0


def test_arrays_are_asked_for_their_aval():
    array = as_array_impl(np.ones((2, 3), np.float16))
    assert (array.shape, array.dtype, array.ndim) == ((2, 3), np.float16, 2)
    assert (array.size, array.itemsize, array.nbytes) == (6, 2, 12)
    assert not array.weak_type and as_array_impl(1).weak_type


def test_numbers_of_numpy_are_not_numbers_of_python():
    assert all(map(is_python_scalar, (True, 1, 1.0, 1j)))
    assert not any(map(is_python_scalar, (np.float64(1), np.bool_(1), np.ones(()))))


@pytest.mark.parametrize("value", [np.ma.masked, np.ma.masked_array([1.0, 2], [0, 1])])
def test_masked_arrays_are_refused(value):
    with pytest.raises(ValueError, match="masked arrays are not supported.*filled"):
        typeof(value)
