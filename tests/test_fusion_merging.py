"""Numbers that do not go to memory are rounded as if they did."""

import numpy as np
import pytest

from minijax.fusion.merging import is_bitcastable, memory_round_trip
from minijax.kernels.builder import Buffer, KernelBuilder, contiguous_view
from minijax.kernels.ir import Parameter
from minijax.kernels.loop_nests import interpret
from tests import array_cases as cases

F32 = np.dtype("float32")


def between(dtype):
    """All numbers of a half, those between two of them, and their neighbours."""
    with np.errstate(all="ignore"):
        halves = np.arange(2**16, dtype="uint16").view(dtype).astype(F32)
        middles = (halves[:-1] + halves[1:]) / 2
        numbers = np.concatenate([halves, middles])
        return np.concatenate(
            [numbers, np.nextafter(numbers, F32.type(np.inf)), np.nextafter(numbers, 0)]
        ).astype(F32)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_halves(name):
    dtype = cases.dtype_of(name)
    x = between(dtype)
    k = KernelBuilder("round", x.shape)
    node = k.load(contiguous_view(Buffer("x", F32, x.size), F32, x.shape))
    parameter = Parameter("half", dtype, x.size)
    k.store(
        contiguous_view(Buffer("out", F32, x.size), F32, x.shape),
        memory_round_trip(k, node, parameter, parameter),
    )
    memory = {"x": x, "out": np.empty_like(x)}
    interpret(k.kernel()[0], memory)
    with np.errstate(all="ignore"):
        wanted = x.astype(dtype).astype(F32)
    assert np.array_equal(memory["out"], wanted, equal_nan=True)
    assert np.array_equal(np.signbit(memory["out"]), np.signbit(wanted))


@pytest.mark.parametrize(
    "made, read, wanted",
    [
        ("float32", "float32", True),
        ("float32", "int32", True),
        ("float32", "float64", False),
        ("bool", "int8", False),
        ("float16", "float16", True),
        ("float16", "int16", False),
        ("float32", "uint32", True),
    ],
)
def test_same_bits(made, read, wanted):
    assert is_bitcastable(np.dtype(made), np.dtype(read)) is wanted
