"""Changing dtypes, and making arrays from nothing."""

import numpy as np
import pytest

import minijax
from minijax import lax, make_jaxpr
from minijax.arrays.array import ArrayImpl, ShapedArray, as_array_impl
from minijax.arrays.dtypes import enable_x64
from minijax.jitting.compilation import compile_cached
from minijax.lax.arithmetic import astype
from tests import array_cases as cases
from tests.backends_here import HERE


def test_floats_stop_at_the_ends_of_integers():
    x = np.float32([np.nan, np.inf, -np.inf, 1e20, -1.7, 300, -300, 0.9])
    ends = {
        "int32": [0, 2**31 - 1, -(2**31), 2**31 - 1, -1, 300, -300, 0],
        "uint8": [0, 255, 0, 255, 0, 255, 0, 0],
        "int8": [0, 127, -128, 127, -1, 127, -128, 0],
    }
    for dtype, expected in ends.items():
        result = np.asarray(lax.convert_element_type(x, dtype))
        np.testing.assert_array_equal(result, np.array(expected, dtype))


def test_wide_integers():
    with enable_x64():
        x = np.float64([2.0**63, -(2.0**63), 2.0**64, 1e300])
        signed = np.asarray(lax.convert_element_type(x, "int64"))
        assert [*signed] == [2**63 - 1, -(2**63), 2**63 - 1, 2**63 - 1]
        unsigned = np.asarray(lax.convert_element_type(x, "uint64"))
        assert [*unsigned] == [2**63, 0, 2**64 - 1, 2**64 - 1]


@pytest.mark.parametrize("backend", [None, *HERE])
def test_doubles_become_halves_by_way_of_floats(backend):
    """As in XLA: 1 + 2**-11 + 2**-30 is rounded to a half, and then to the even one."""
    with enable_x64():
        x = np.float64([1 + 2**-11 + 2**-30, 1 + 2**-11 + 2**-20, 0.1])
        convert = lambda x: lax.convert_element_type(x, "float16")  # noqa: E731
        program = make_jaxpr(convert)(x)
        found = (
            convert(x) if backend is None else compile_cached(program, backend)(x)[0]
        )
    np.testing.assert_array_equal(found, x.astype("float32").astype("float16"))
    assert float(found[0]) == 1


def test_integers_wrap_around():
    result = np.asarray(lax.convert_element_type(np.int32([70000, -300]), "int8"))
    np.testing.assert_array_equal(result, np.int32([70000, -300]).astype(np.int8))


def test_bools_are_what_is_not_zero():
    x = np.float32([np.nan, 0.0, -0.0, 0.5])
    np.testing.assert_array_equal(
        np.asarray(lax.convert_element_type(x, bool)), [True, False, False, True]
    )


def test_complex_numbers_lose_a_part_with_a_warning():
    z = np.complex64([1 + 1j, 1j])
    with pytest.warns(np.exceptions.ComplexWarning):
        result = np.asarray(lax.convert_element_type(z, np.float32))
    np.testing.assert_array_equal(result, [1, 0])
    assert lax.convert_element_type(np.float32(1), np.complex64).dtype == np.complex64


@pytest.mark.filterwarnings("ignore:Casting complex values")
def test_every_pair_of_types():
    for old in cases.DTYPES:
        for new in cases.DTYPES:
            with enable_x64():
                result = lax.convert_element_type(cases.specimen(old), new)
                assert result.dtype.name == new and not result.weak_type
                back = lax.convert_element_type(result, old)
                assert back.shape == cases.specimen(old).shape


def test_numbers_become_literals():
    half = np.dtype(np.float16)
    assert type(astype(1, np.dtype(np.float32), True)) is float
    assert astype(1.5, half).dtype == half and isinstance(astype(1.5, half), np.ndarray)
    assert int(astype(300, np.dtype(np.uint8))) == 44
    with pytest.raises(OverflowError):
        astype(2**40, np.dtype(np.int32))
    array = as_array_impl(np.float16(1))
    assert astype(array, half) is array
    assert lax.convert_element_type(1.0, np.float32).weak_type is False
    assert isinstance(lax.convert_element_type(np.float32(1), float), ArrayImpl)


@pytest.mark.parametrize(("old", "new"), [("float32", "int32"), ("int16", "float16")])
def test_bits(old, new):
    x = cases.numbers((3, 4), old)
    bits = lax.bitcast_convert_type(x, new)
    assert bits.dtype.name == new
    np.testing.assert_array_equal(np.asarray(bits), x.view(new))
    again = np.asarray(lax.bitcast_convert_type(bits, old))
    np.testing.assert_array_equal(again, x)


def test_bits_of_other_widths():
    x = cases.numbers((3, 4), "float32")
    narrow = lax.bitcast_convert_type(x, np.uint8)
    assert narrow.shape == (3, 4, 4)
    np.testing.assert_array_equal(np.asarray(narrow).reshape(3, 16), x.view(np.uint8))
    np.testing.assert_array_equal(
        np.asarray(lax.bitcast_convert_type(narrow, np.float32)), x
    )
    turned = lax.transpose(as_array_impl(x), (1, 0))
    assert lax.bitcast_convert_type(turned, np.int32).shape == (4, 3)
    with pytest.raises(ValueError, match="last axis of size 2"):
        lax.bitcast_convert_type(np.float16([1, 2, 3]), np.float32)


def test_counting():
    assert repr(lax.iota(int, 3)) == "Array([0, 1, 2], dtype=int32)"
    grid = np.asarray(lax.broadcasted_iota(np.float32, (2, 3), 1))
    np.testing.assert_array_equal(grid, [[0, 1, 2], [0, 1, 2]])
    assert lax.iota(np.float16, 0).shape == (0,)


def test_full():
    assert lax.full((2,), 3).weak_type and not lax.full((2,), 3, int).weak_type
    assert repr(lax.full(2, 3.5, np.int32)) == "Array([3, 3], dtype=int32)"
    assert lax.full((), 1j).shape == () and lax.full((0, 2), True).dtype == bool
    like = lax.full_like(np.int8([1, 2]), 1.5)
    assert like.dtype == np.int8 and [*np.asarray(like)] == [1, 1]
    assert lax.full_like(2.0, 1).weak_type
    assert lax.full_like(np.ones(3), 1, np.int8, (2,)).shape == (2,)
    for described in (
        minijax.ShapeDtypeStruct((2,), "float64", weak_type=True),
        ShapedArray((2,), np.dtype("float32")),
    ):
        like = lax.full_like(described, 1)
        assert repr(like) == "Array([1., 1.], dtype=float32)" and not like.weak_type


@pytest.mark.of_the_cpu("is NumPy's array, whose numbers are one")
def test_full_takes_no_memory():
    million = lax.full((1000, 1000), 1.0)
    assert np.asarray(million).strides == (0, 0)


@pytest.mark.parametrize(
    ("number", "dtype", "expected"),
    [
        (2**31, "int32", -(2**31)),
        (2**40 + 5, "int32", 5),
        (2**63, "int32", 0),
        (-1, "uint8", 255),
        (2**31, "uint32", 2**31),
        (2**40, "float32", 2.0**40),
        (2**100, "float32", 2.0**100),
        (2**40, bool, True),
        (np.int64(2**40 + 2**20), "float32", 2.0**40 + 2**20),
    ],
)
def test_large_numbers_wrap_around(number, dtype, expected):
    for made in (
        lax.convert_element_type(number, dtype),
        lax.full((), number, dtype),
        lax.full_like(np.ones((), dtype), number),
    ):
        assert np.asarray(made).item() == expected
        assert made.dtype == np.dtype(dtype)
    assert np.asarray(lax.full((), 2**31)).item() == -(2**31)


def test_what_fits_no_number_is_refused():
    with pytest.raises(OverflowError):
        lax.convert_element_type(2**64, "int32")
    with pytest.raises(TypeError, match="real part"):
        lax.convert_element_type(1j, "float32")
    assert np.asarray(lax.convert_element_type(1j, bool)).item() is True
