"""Arrays: text, immutability, what others receive of them, evaluation."""

import copy
import pickle
import weakref
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from minijax import lax
from minijax.arrays.array import (
    ArrayImpl,
    ShapedArray,
    as_array_impl,
    asbuffer,
    def_shape_and_impl,
    eval_rules,
    shape_rules,
    typeof,
)
from minijax.arrays.devices import devices
from minijax.arrays.dtypes import canonicalize_dtype, enable_x64
from minijax.core import Primitive, Tracer, impl_rules
from minijax.dlpack import from_dlpack, is_supported_dtype
from minijax.errors import UnexpectedTracerError
from tests import array_cases as cases

NUMBERS = hnp.arrays(
    st.sampled_from([np.int8, np.uint16, np.int32, np.float32, np.complex64, np.bool_]),
    hnp.array_shapes(min_dims=0, min_side=0, max_side=4),
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1, "Array(1, dtype=int32, weak_type=True)"),
        (True, "Array(True, dtype=bool)"),
        (1j, "Array(0.+1.j, dtype=complex64, weak_type=True)"),
        (np.zeros((0, 3)), "Array([], shape=(0, 3), dtype=float32)"),
        (np.float16([1, 2.5]), "Array([1. , 2.5], dtype=float16)"),
        (
            np.arange(12.0).reshape(3, 4),
            "Array([[ 0.,  1.,  2.,  3.],\n       [ 4.,  5.,  6.,  7.],\n"
            "       [ 8.,  9., 10., 11.]], dtype=float32)",
        ),
    ],
)
def test_repr_is_jax_s(value, text):
    assert repr(as_array_impl(value)) == text


def test_text_and_formats():
    assert str(as_array_impl(np.arange(3))) == "[0 1 2]"
    assert f"{as_array_impl(1.5):.3f}" == "1.500"
    assert f"{as_array_impl(np.arange(2))}" == "[0 1]"
    with pytest.raises(TypeError):
        f"{as_array_impl(np.arange(2)):.3f}"


@given(NUMBERS)
def test_there_and_back(numbers):
    array = as_array_impl(numbers)
    np.testing.assert_array_equal(np.asarray(array), numbers)
    assert np.asarray(array).dtype == numbers.dtype == array.dtype


@given(NUMBERS)
def test_nobody_else_holds_the_buffer(numbers):
    array = as_array_impl(numbers)
    assert not np.shares_memory(np.asarray(array), numbers)
    before = numbers.copy()
    numbers[...] = 0
    np.testing.assert_array_equal(np.asarray(array), before)


def test_views_are_read_only():
    array = as_array_impl(np.ones(3))
    for view in (np.asarray(array), np.array(array, copy=None), np.asarray(array).T):
        assert not view.flags.writeable
        with pytest.raises(ValueError):
            view.flags.writeable = True
    own = np.array(array)
    own[0] = 7
    assert np.asarray(array)[0] == 1
    assert np.asarray(array, np.int8).dtype == np.int8
    with pytest.raises(ValueError):
        np.asarray(array, np.int8, copy=False)


def test_dlpack():
    array = as_array_impl(np.arange(3, dtype=np.float32))
    borrowed = np.from_dlpack(array)
    np.testing.assert_array_equal(borrowed, [0, 1, 2])
    if borrowed.flags.writeable:
        borrowed[0] = 7
    assert np.asarray(array)[0] == 0
    assert array.__dlpack_device__() == (1, 0)

    class Old:
        __dlpack_device__ = array.__dlpack_device__

        def __dlpack__(self, **kwargs):
            return array.__dlpack__()

    copied = np.from_dlpack(Old())
    assert not np.shares_memory(copied, np.asarray(array))


@pytest.mark.of_the_cpu("shares the memory of NumPy")
@pytest.mark.parametrize("value", [2.0, np.ones((2, 3), np.float16), np.zeros((0,))])
def test_pickle_and_copy(value):
    array = as_array_impl(value)
    again = pickle.loads(pickle.dumps(array))
    assert repr(again) == repr(array) and again.device is array.device
    for other in (copy.copy(array), copy.deepcopy(array)):
        assert other is not array and repr(other) == repr(array)
        assert np.shares_memory(other, array) == (array.size > 0)


@pytest.mark.parametrize("kind", "float64 int64 uint64 complex128".split())
def test_a_pickle_of_64_bits_is_read_in_the_dtype_in_force(kind):
    numbers = np.array([1, 2, 3], kind)
    with enable_x64():
        arrays = as_array_impl(numbers), as_array_impl(numbers[0])
        written = pickle.dumps(arrays)
        assert [x.dtype for x in pickle.loads(written)] == [kind, kind]
    for again, array in zip(pickle.loads(written), arrays):
        assert again.dtype == canonicalize_dtype(kind) == np.asarray(again).dtype
        assert again.aval.dtype == again.dtype and again.weak_type == array.weak_type
        assert np.array_equal(again, array)


def test_64_bits():
    numbers = np.array([1 / 3])
    assert as_array_impl(numbers).dtype == np.float32
    with enable_x64():
        array = as_array_impl(numbers)
    assert array.dtype == np.float64 and np.asarray(array)[0] == 1 / 3


def test_a_python_number_must_fit():
    with pytest.raises(OverflowError):
        as_array_impl(2**40)
    with enable_x64():
        assert np.asarray(as_array_impl(2**40)) == 2**40


def test_a_tracer_has_no_buffer():
    with pytest.raises(UnexpectedTracerError, match="no numbers"):
        asbuffer(Tracer(None))


def test_evaluate_asks_the_shape_rule_first():
    twice_p = Primitive("twice")
    twice_p.multiple_results = True
    def_shape_and_impl(
        twice_p,
        lambda x: [x.update(dtype=np.int8), x],
        lambda xp, x: [x + x, xp.negative(x)],
    )
    first, second = twice_p.bind(np.float32([1, 2]))
    assert (first.dtype, second.dtype) == (np.int8, np.float32)
    np.testing.assert_array_equal(np.asarray(first), [2, 4])
    assert all(isinstance(result, ArrayImpl) for result in (first, second))
    del shape_rules[twice_p], impl_rules[twice_p], eval_rules[twice_p]


def test_no_warnings_from_arithmetic():

    big = np.float32([3e38, -1, 0])
    lax.mul(big, big), lax.log(big), lax.div(big, np.zeros(3, np.float32))
    lax.mul(np.int32(2**30), np.int32(4)), lax.convert_element_type(big, np.int8)


@pytest.mark.filterwarnings("ignore:Casting complex values")
@pytest.mark.parametrize("program", cases.PROGRAMS)
def test_programs_run_and_are_frozen(program):
    import minijax

    names = cases.environment(minijax, lax, as_array_impl)
    results = eval(program, names)
    for result in results if isinstance(results, list) else [results]:
        if isinstance(result, ArrayImpl):
            assert typeof(result) == ShapedArray(*aval_of_buffer(result))
            flags = getattr(result._buffer, "flags", None)  # a card's buffer has none
            assert flags is None or not flags.writeable


def aval_of_buffer(array):
    """What the buffer itself says: shape, dtype (and the array's weakness)."""
    return array._buffer.shape, array._buffer.dtype, array.weak_type


@pytest.mark.parametrize("program", cases.MISTAKES)
def test_mistakes_are_told(program):
    import minijax

    expected = (TypeError, ValueError, IndexError, AttributeError, RuntimeError)
    with pytest.raises(expected) as caught:
        eval(program, cases.environment(minijax, lax, as_array_impl))
    assert len(str(caught.value)) > 12


def test_weak_references():
    array, ended = as_array_impl(np.ones(3)), []
    reference = weakref.ref(array, ended.append)
    assert reference() is array
    del array
    assert reference() is None and ended == [reference]


class Lender:
    """An exporter of an age: what it knows of DLPack is what it accepts."""

    def __init__(self, x, kind=1, **accepted):
        self.x, self.kind, self.accepted = x, kind, accepted

    def __dlpack__(self, **kwargs):
        if kwargs.keys() - self.accepted.keys():
            raise TypeError(f"unexpected keyword arguments {kwargs}")
        return self.x.__dlpack__(**{**kwargs, **self.accepted})

    def __dlpack_device__(self):
        return (self.kind, 0)


@pytest.mark.parametrize("accepted", [{}, {"stream": None}, {"max_version": (1, 0)}])
def test_from_dlpack_of_old_and_new_exporters(accepted):
    numbers = np.arange(6, dtype=np.float32).reshape(2, 3)
    array = from_dlpack(Lender(numbers, **accepted))
    assert repr(array) == repr(as_array_impl(numbers))
    assert np.shares_memory(array, numbers)


def test_from_dlpack_shares_or_copies():
    numbers = np.arange(6, dtype=np.int32)
    for copy_, shared in ((None, True), (False, True), (True, False)):
        array = from_dlpack(numbers, copy=copy_, device=devices()[0])
        assert np.shares_memory(array, numbers) == shared
        assert numbers.flags.writeable and not np.asarray(array).flags.writeable
    wide = from_dlpack(numbers.astype(np.int64))
    assert wide.dtype == np.int32
    odd = np.zeros(9, np.uint8)[1:].view(np.float32)
    assert not np.shares_memory(from_dlpack(odd), odd)
    with pytest.raises(ValueError, match="copy=False"):
        from_dlpack(odd, copy=False)


@pytest.mark.of_the_cpu("shares the memory of NumPy")
@pytest.mark.parametrize("name", ["bool", "uint8", "float16", "bfloat16", "complex64"])
def test_arrays_are_lent_and_borrowed(name):
    array = as_array_impl(np.ones((2, 0, 3) if name == "uint8" else (), name))
    assert is_supported_dtype(name)
    for lender in (array, Lender(array)):
        assert repr(from_dlpack(lender)) == repr(array)
    assert np.shares_memory(from_dlpack(array), array) == (array.size > 0)
    capsules = array.__dlpack__(), array.__dlpack__(max_version=(1, 0))
    assert ["versioned" in repr(capsule) for capsule in capsules] == [False, True]


@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        ([1, 2], TypeError, "__dlpack__"),
        (Lender(np.ones(2), 77), TypeError, "77"),
        (Lender(np.ones(2), 2), RuntimeError, "cuda"),
        (np.array(["a"]), BufferError, "DLPack"),
    ],
)
def test_what_from_dlpack_refuses(x, error, message):
    with pytest.raises(error, match=message):
        from_dlpack(x)


def test_arrays_are_not_lent_to_other_devices():
    array = as_array_impl(np.ones(2))
    with pytest.raises(BufferError):
        array.__dlpack__(dl_device=(17, 0))


def test_the_floor_has_the_ninety_five_primitives_that_its_pages_speak_of():
    names = "arithmetic", "elementwise", "reductions", "shapes"
    modules = [import_module(f"minijax.lax.{name}") for name in names]
    values = [value for module in modules for value in vars(module).values()]
    primitives = {value for value in values if isinstance(value, Primitive)}
    assert len(primitives) == 95 and primitives <= shape_rules.keys()
