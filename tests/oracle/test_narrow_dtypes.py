"""Arrays of integers of four bits and floats of eight: refused or equal, as in JAX."""

import jax
import numpy as np
import pytest

import minijax
from tests.commands import LONG
from tests.narrow_cases import CASES, DTYPES, numbers

FOLDS = "reduce_and reduce_or reduce_xor".split()
# Computed here, and refused by JAX, as `book/differences.md` says.
OURS = {"abs", *FOLDS, *(f"{name} of none" for name in FOLDS)}
# What XLA gets wrong: a compiler that aborts, rows that are not in order, bits that are
# not there, the greatest float of four bits beyond all integers; and NaN in a type that
# has none, or infinity as a start.
WRONG = {
    **dict.fromkeys(("int2", "uint2"), ("concatenate", "pad", "sort", "searchsorted")),
    "int4": ("population_count",),
    **{name: ("cumlogsumexp",) for name in DTYPES if name.endswith(("fn", "fnuz"))},
    "float4_e2m1fn": ("to ", "asin", "acos", "cumlogsumexp"),
}
SOME = "int2 int4 uint4 float4_e2m1fn float8_e4m3fn float8_e5m2".split()
TYPES = DTYPES if LONG else SOME


def made(m, case, dtype):
    """What a library makes of a case: an error, or arrays."""
    try:
        found = CASES[case](m, m.numpy.asarray(numbers(dtype)).astype(dtype))
        return m.tree.map(np.asarray, found)
    except Exception as error:
        return error


def close(ours, theirs):
    """Whether arrays have the same types, and numbers but for the last bit."""
    if (ours.dtype, ours.shape) != (theirs.dtype, theirs.shape):
        return False
    if ours.dtype.name[:5] != "float":
        return np.array_equal(ours, theirs)
    eps = float(minijax.numpy.finfo(ours.dtype).eps)
    pair = [np.asarray(x, np.float32) for x in (ours, theirs)]
    return np.allclose(*pair, rtol=2 * eps, atol=1e-30, equal_nan=True)


@pytest.mark.parametrize("case", CASES)
def test_cases(case):
    for dtype in TYPES:
        if any(word in case for word in WRONG.get(dtype, ())):
            continue
        if "int" in dtype and case in OURS:
            continue
        ours, theirs = made(minijax, case, dtype), made(jax, case, dtype)
        lacking = isinstance(theirs, jax.errors.JaxRuntimeError)  # XLA has no code
        if lacking:
            assert not isinstance(ours, Exception), (dtype, ours)
        elif isinstance(theirs, Exception):
            assert isinstance(ours, Exception), (dtype, theirs)
        else:
            assert not isinstance(ours, Exception), (dtype, ours)
            pairs = zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True)
            assert all(close(*pair) for pair in pairs), (dtype, ours, theirs)
