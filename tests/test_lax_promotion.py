"""The friendly layer: one dtype, one rank."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra import numpy as hnp

from minijax import enable_x64, lax
from minijax.arrays.array import asarray_impl
from minijax.arrays.avals import typeof
from minijax.arrays.checks import broadcast_shapes
from minijax.lax.promotion import (
    check_arraylike,
    common_type,
    is_arraylike,
    lift,
    promote_dtypes,
    promote_dtypes_inexact,
    promote_dtypes_numeric,
    promote_shapes,
)

WEAK, HALF = asarray_impl(2.0), asarray_impl(np.float16([1, 2]))


@pytest.mark.parametrize(
    ("operands", "expected"),
    [
        ((1, 2), ("int32", True)),
        ((1, 2.0), ("float32", True)),
        ((True, 1), ("int32", True)),
        ((True, True), ("bool", False)),
        ((HALF, 1.0), ("float16", False)),
        ((HALF, WEAK), ("float16", False)),
        ((HALF, np.float64(1)), ("float32", False)),
        ((HALF, np.int32(1)), ("float16", False)),
        ((HALF, 1j), ("complex64", False)),
        ((np.int8(1), 1.5), ("float32", True)),
        ((np.int8(1), np.uint8(1)), ("int16", False)),
        ((np.uint32(1), np.int32(1)), ("int32", False)),
    ],
)
def test_common_type(operands, expected):
    dtype, weak = common_type(*operands)
    assert (dtype.name, weak) == expected
    assert common_type(*operands[::-1]) == (dtype, weak)


def test_python_numbers_become_literals():
    array, number = promote_dtypes(HALF, 2)
    assert array is HALF and isinstance(number, np.ndarray) and number == 2
    assert number.dtype == np.float16 and number.shape == ()
    weak, number = promote_dtypes(WEAK, 2)
    assert weak is WEAK and type(number) is float


def test_numbers_that_do_not_fit_wrap_around_or_fail():
    small, number = promote_dtypes(np.uint8(3), 300)
    assert int(number) == 44 and number.dtype == np.uint8
    with pytest.raises(OverflowError):
        promote_dtypes(np.int32(1), 2**40)
    assert np.isinf(promote_dtypes(HALF, 1e10)[1])


def test_inexact_and_numeric():
    assert typeof(promote_dtypes_inexact(np.int8(1))[0]).dtype == np.float32
    assert typeof(promote_dtypes_inexact(HALF)[0]).dtype == np.float16
    [weak] = promote_dtypes_inexact(1)
    assert type(weak) is float
    assert typeof(promote_dtypes_numeric(True)[0]).dtype == np.int32
    assert typeof(promote_dtypes_numeric(np.uint8(1))[0]).dtype == np.uint8


@given(hnp.mutually_broadcastable_shapes(num_shapes=2, min_side=0, max_dims=4))
def test_shapes_broadcast_as_numpy_s(shapes):
    arrays = [np.ones(shape, np.float32) for shape in shapes.input_shapes]
    assert broadcast_shapes(*shapes.input_shapes) == shapes.result_shape
    assert lax.add(*promote_shapes(*arrays)).shape == shapes.result_shape


def test_shapes_that_do_not_meet():
    with pytest.raises(ValueError, match=r"shapes=\[\(2,\), \(3,\)\]"):
        broadcast_shapes((2,), (3,))
    with pytest.raises(ValueError):
        promote_shapes(np.ones((2, 3)), np.ones(2))


def test_scalars_keep_their_rank():
    matrix, number = promote_shapes(np.ones((2, 3)), 1.0)
    assert number == 1.0 and matrix.shape == (2, 3)


def test_what_counts_as_an_array():
    assert all(map(is_arraylike, (1, True, np.int8(1), np.ones(2), HALF)))
    assert not any(map(is_arraylike, ([1], "a", None, object())))
    check_arraylike("sin", 1.0, HALF)
    with pytest.raises(TypeError, match=r"sin requires .*list.* at position 1"):
        check_arraylike("sin", 1.0, [2.0])
    assert lift(HALF) is HALF and repr(lift(1)) == repr(asarray_impl(1))


def test_kept_answers_know_the_switch():
    for wide, expected in [(False, "float32"), (True, "float64"), (False, "float32")]:
        with enable_x64(wide):
            assert common_type(np.int32(1), 1.5)[0] == expected
