"""Types, their lattice, and the table of promotions that JAX has filled in."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

from minijax.arrays import array as lattice
from minijax.arrays import dtypes
from minijax.arrays.dtypes import enable_x64
from minijax.lax.reductions import promote_types

TABLE = json.loads((Path(__file__).parent / "data" / "promotion.json").read_text())
NODES = list(lattice.ABOVE)
NARROW = {dtype.name for dtype in dtypes.WIDE_DTYPES}
MEETING = [node for node in NODES if node not in NARROW]  # each meets each


@pytest.mark.parametrize("a", NODES)
@pytest.mark.parametrize("bits", ["32", "64"])
def test_promotion_is_jax_s(a, bits):
    with enable_x64(bits == "64"):
        for b in NODES:
            if "bfloat16" in (a, b) and dtypes.bfloat16 is None:
                continue
            nodes = [n if n.endswith("*") else dtypes.canonicalize_dtype(n).name
                     for n in (a, b)]  # fmt: skip
            if TABLE[bits][a][b] is None:
                with pytest.raises(lattice.TypePromotionError, match="astype"):
                    lattice.dtype_lattice_join(*nodes)
                continue
            dtype, weak = dtypes.dtype_of_lattice_node(
                lattice.dtype_lattice_join(*nodes)
            )
            assert [dtype.name, weak] == TABLE[bits][a][b], (a, b)


def test_joins_do_not_depend_on_order():
    for a, b, c in itertools.product(MEETING, repeat=3):
        whole = lattice.dtype_lattice_join(a, b, c)
        assert lattice.dtype_lattice_join(a, lattice.dtype_lattice_join(b, c)) == whole
        assert lattice.dtype_lattice_join(lattice.dtype_lattice_join(a, b), c) == whole
        assert lattice.dtype_lattice_join(c, b, a) == whole
    assert all(lattice.dtype_lattice_join(a, a) == a for a in NODES)


def test_joins_lie_above():
    for a, b in itertools.product(MEETING, repeat=2):
        assert lattice.dtype_lattice_join(a, b) in lattice.all_above(
            a
        ) & lattice.all_above(b)


@pytest.mark.parametrize(
    ("given", "narrow", "wide"),
    [
        (int, "int32", "int64"), (float, "float32", "float64"), (bool, "bool", "bool"),
        (complex, "complex64", "complex128"), ("uint64", "uint32", "uint64"),
        (np.float16, "float16", "float16"), (np.dtype("int64"), "int32", "int64"),
    ],
)  # fmt: skip
def test_canonical_types(given, narrow, wide):
    assert dtypes.canonicalize_dtype(given).name == narrow
    with enable_x64():
        assert dtypes.canonicalize_dtype(given).name == wide


def test_a_type_that_is_not_available_draws_a_warning():
    with pytest.warns(UserWarning, match="float64 in zeros .* becomes float32"):
        assert dtypes.check_dtype("float64", "zeros") == np.float32
    with enable_x64():
        assert dtypes.check_dtype("float64", "zeros") == np.float64
    assert dtypes.check_dtype(float, "zeros") == np.float32


@pytest.mark.parametrize("dtype", [object, "U3", "datetime64[s]", np.void])
def test_types_that_hold_no_numbers(dtype):
    with pytest.raises(TypeError, match="zeros"):
        dtypes.check_dtype(dtype, "zeros")
    with pytest.raises(TypeError):
        dtypes.lattice_node(dtype)


def test_kinds():
    kinds = {name: dtypes.dtype_kind(np.dtype(name)) for name in dtypes.SHORT_NAMES}
    assert kinds["bool"] == "b" and kinds["uint8"] == "u" and kinds["int64"] == "i"
    assert kinds["float16"] == "h" and kinds["float32"] == kinds["float64"] == "f"
    assert kinds["complex64"] == "c" and dtypes.dtype_kind(np.dtype("U1")) == "0"
    assert dtypes.dtype_kind(dtypes.float0) == "0"


def test_tangents_of_discrete_types_are_float0():
    assert (
        dtypes.tangent_dtype_of_primal("int32")
        == dtypes.tangent_dtype_of_primal(bool)
        == dtypes.float0
    )
    assert dtypes.tangent_dtype_of_primal("complex64") == np.complex64
    assert dtypes.short_dtype_name(dtypes.float0) == "float0"


def test_promote_types_keeps_what_is_named():
    assert promote_types("int32", "int64") == np.int64
    assert promote_types("uint32", "int32") == np.int32
    assert promote_types(int, "float16") == np.float16
    assert promote_types(float, "int8") == np.float64


@pytest.mark.skipif(dtypes.bfloat16 is None, reason="ml_dtypes is not installed")
def test_bfloat16_is_a_float():
    bfloat16 = dtypes.bfloat16
    assert dtypes.is_real_floating(bfloat16) and dtypes.is_inexact(bfloat16)
    assert dtypes.short_dtype_name(bfloat16) == "bf16"
    for kind in (np.floating, np.inexact, np.number, np.generic, bfloat16):
        assert dtypes.issubdtype(bfloat16, kind)
    assert not dtypes.issubdtype(bfloat16, np.integer)
    assert not dtypes.issubdtype(bfloat16, np.float32)


def test_issubdtype_is_numpy_s_elsewhere():
    assert dtypes.issubdtype("float32", np.floating)
    assert not dtypes.issubdtype("int8", np.floating)
    assert dtypes.issubdtype(np.int8, np.signedinteger)


def test_the_numbers_of_numpy_get_the_dtype_in_force():
    assert dtypes.canonical_dtype_of_array(np.ones(2)) == np.float32
    with enable_x64():
        assert dtypes.canonical_dtype_of_array(np.int64(1)) == np.int64
    with pytest.raises(TypeError, match="<U1 is not a valid array type"):
        dtypes.canonical_dtype_of_array(np.array(["a"]))
