"""Arrays of a byte and less: in all backends, and where arrays come from and go to."""

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import jit, lax, make_jaxpr, tree
from minijax.arrays.array import TypePromotionError
from minijax.arrays.dtypes import WIDE_DTYPES
from minijax.jitting.compilation import compile_cached
from tests.backends_here import in_turn
from tests.commands import LONG
from tests.narrow_cases import CASES, DTYPES, numbers

pytestmark = pytest.mark.skipif(not WIDE_DTYPES, reason="needs ml_dtypes")


def made(case, dtype):
    """What a case makes of numbers when it runs operation by operation, or None."""
    try:
        with minijax.disable_jit():
            return CASES[case](minijax, jnp.asarray(numbers(dtype)).astype(dtype))
    except (TypeError, ValueError):
        return None


@pytest.mark.parametrize("case", CASES)
def test_backends_agree(case):
    place = [*CASES].index(case)
    for dtype in DTYPES if LONG else (DTYPES[place % 4], DTYPES[4 + place % 9]):
        wanted = made(case, dtype)
        if wanted is None or "numbers" in case:
            continue
        x = jnp.asarray(numbers(dtype)).astype(dtype)
        closed = make_jaxpr(lambda x: CASES[case](minijax, x))(x)
        for backend in in_turn(place, 2):
            found = compile_cached(closed, backend)(x)
            for mine, other in zip(found, tree.leaves(wanted), strict=True):
                assert mine.dtype == other.dtype
                pair = [np.asarray(y).astype(np.complex64) for y in (mine, other)]
                np.testing.assert_allclose(*pair, rtol=1e-6)


def test_four_bits_wrap_around():
    x = jnp.array([7, -8, 3], "int4")
    assert (x + x).tolist() == [-2, 0, 6] == jit(lambda x: x + x)(x).tolist()
    assert (x * x).tolist() == [1, 0, -7]
    assert jnp.array([100.0, -100, jnp.nan]).astype("int4").tolist() == [7, -8, 0]


@pytest.mark.parametrize("dtype", ["int2", "uint4", "float8_e4m3fn", "float8_e5m2"])
def test_bits_come_back(dtype):
    """Bytes become numbers of fewer bits, and bytes again."""
    whole = jnp.arange(256, dtype="uint8")
    parts = lax.bitcast_convert_type(whole, dtype)
    assert np.array_equal(lax.bitcast_convert_type(parts, "uint8"), whole)
    short = lax.bitcast_convert_type(jnp.arange(-50, 50, dtype="int16"), dtype)
    assert lax.bitcast_convert_type(short, "int16").tolist() == [*range(-50, 50)]


@pytest.mark.parametrize("dtype", ["int4", "uint2", "float8_e5m2", "float4_e2m1fn"])
def test_no_other_type_is_met_by_chance(dtype):
    x = jnp.ones(2, dtype)
    for other in (jnp.bfloat16(1), jnp.ones(2, "uint4"), jnp.complex64(1)):
        if other.dtype != x.dtype:
            with pytest.raises(TypePromotionError, match="astype"):
                x + other
    assert (x + 1).dtype == (x * True).dtype == x.dtype


@pytest.mark.parametrize("dtype", DTYPES)
def test_copies(dtype, tmp_path):
    x = jnp.asarray(numbers(dtype)).astype(dtype)
    assert dtype in repr(x) and minijax.device_put(x).dtype == x.dtype
    assert np.array_equal(jnp.array(np.asarray(x)), x)
    jnp.save(tmp_path / "x.npy", x)
    assert x.nbytes == 6 and jnp.zeros_like(x).dtype == x.dtype
