"""Data types: which there are, and which are in force.

A Python number has a kind but no width: `PYTHON_TYPES` says how wide it is at its
widest.

Reference: ``jax.dtypes``.
"""

# Made from chapters/02_arrays_ground.md by `make chapter`;
# edit the chapter, not this file.

import warnings
from typing import Any

import numpy as np

from minijax._registry import Registry
from minijax.arrays.settings import config

try:
    from ml_dtypes import bfloat16
except ModuleNotFoundError:
    bfloat16 = None

SHORT_NAMES = {
    "bool": "bool", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64",
    "float16": "f16", "float32": "f32", "float64": "f64",
    "complex64": "c64", "complex128": "c128",
}  # fmt: skip

DTYPES = {np.dtype(name): short for name, short in SHORT_NAMES.items()}
if bfloat16 is not None:
    DTYPES[np.dtype(bfloat16)] = "bf16"
NAMES = {dtype: dtype.name for dtype in DTYPES}  # dtype.name itself takes its time

# The type of tangents of integers: it has no values, and no arithmetic.
float0 = np.dtype([("float0", np.void, 0)])

# From NumPy's dtypes of what is no number, such as keys of generators, to ours. Shapes
# may be changed; arithmetic and NumPy's sight of the elements are refused.
EXTENDED: dict = Registry()


class extended(np.void):  # type: ignore[misc]  # as np.record is one
    """The kind of dtypes of what is no number: ``issubdtype(x.dtype, extended)``.

    Reference: ``jax.dtypes.extended``.
    """


class ExtendedDType:
    """A dtype of what is no number. It is written by its name, and not as NumPy would.

    It equals the dtype of its buffers, and NumPy takes the one for the other.

    Args:
      name: string.
      dtype: NumPy dtype of the elements in memory.
    """

    __slots__ = ("dtype", "name")

    def __init__(self, name, dtype):
        self.name, self.dtype = name, dtype

    def __getattr__(self, name):
        return getattr(self.dtype, name)

    def __eq__(self, other):
        return self.dtype == other

    def __hash__(self):
        return hash(self.dtype)

    def __repr__(self):
        return self.name

    def __reduce__(self):
        return known_dtype, (self.dtype,)


def known_dtype(dtype):
    """Return the dtype of arrays that NumPy takes `dtype` for."""
    dtype = np.dtype(dtype)
    return dtype if dtype.isbuiltin else EXTENDED.get(dtype, dtype)


def name_of(dtype):
    """Return the name of a dtype in texts of arrays."""
    return "float0" if dtype == float0 else known_dtype(dtype).name


PYTHON_TYPES = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}
KINDS = {
    dtype: "h" if dtype.itemsize == 2 and dtype.kind in "fV" else dtype.kind
    for dtype in DTYPES
}


def kind_of(dtype):
    """Return one letter: bool, integer, unsigned, half, float, complex; x; or "0".

    The letter of extended dtypes is "x".
    """
    return KINDS.get(dtype) or ("x" if dtype in EXTENDED else "0")


NO_BFLOAT16 = (
    "bfloat16 is a type of the package ml_dtypes, which is not installed: "
    "pip install ml_dtypes, or minijax-book[bfloat16]."
)


def as_dtype(dtype):
    """Return what NumPy takes `dtype` for; say what is missing if it is bfloat16."""
    try:
        return known_dtype(dtype)
    except TypeError:
        if bfloat16 is None and dtype == "bfloat16":
            raise TypeError(NO_BFLOAT16) from None
        raise


NARROW = {np.dtype(wide): np.dtype(narrow) for wide, narrow in [
    ("int64", "int32"), ("uint64", "uint32"), ("float64", "float32"),
    ("complex128", "complex64"),
]}  # fmt: skip


def canonicalize_dtype(dtype):
    """Return the NumPy dtype in force for `dtype`: 64 bits become 32 by default.

    Args:
      dtype: anything that NumPy takes for a dtype; Python's types mean 64 bits.
    """
    dtype = as_dtype(PYTHON_TYPES.get(dtype, dtype) if type(dtype) is type else dtype)
    return dtype if is_in_force(dtype) else NARROW[dtype]


def is_in_force(dtype):
    """Return whether new numbers can have a NumPy dtype: 64 bits by a switch only."""
    return dtype not in NARROW or config.jax_enable_x64


def is_float(dtype):
    """Return whether `dtype` is a real floating-point type."""
    return kind_of(np.dtype(dtype)) in "hf"


def is_inexact(dtype):
    """Return whether `dtype` is a floating-point or complex type."""
    return kind_of(np.dtype(dtype)) in "hfc"


def tangent_dtype(dtype):
    """Return the type of tangents of `dtype`: itself, or float0 if it is discrete."""
    return np.dtype(dtype) if is_inexact(dtype) else float0


def short_name(dtype):
    """Return the spelling of jaxprs: ``f32`` for float32."""
    dtype = known_dtype(dtype)
    if dtype == float0:
        return "float0"
    return DTYPES.get(dtype) or str(dtype)


def check_dtype(dtype, name):
    """Return the dtype that a user has asked for, canonical.

    Args:
      dtype: what the user wrote.
      name: the function that was called.

    Raises:
      TypeError: if there are no arrays of this dtype.
      ValueError: if it is an array.
    """
    if hasattr(dtype, "aval"):
        raise ValueError(
            f"{name} was asked for an array as its dtype, {dtype!r}; instead of "
            "dtype=x use dtype=x.dtype."
        )
    canonical = canonicalize_dtype(dtype)
    if canonical not in DTYPES and canonical != float0 and canonical not in EXTENDED:
        raise TypeError(
            f"{name} was asked for dtype {dtype!r}; arrays hold numbers and bools: "
            + ", ".join(map(str, DTYPES))
        )
    if dtype not in PYTHON_TYPES and np.dtype(dtype) != canonical:
        warnings.warn(
            f"Explicitly requested dtype {np.dtype(dtype)} in {name} is not available "
            f"and becomes {canonical}: 64-bit types are off. To have them, "
            'minijax.config.update("jax_enable_x64", True).',
            stacklevel=3,
        )
    return canonical


def dtype_of_numbers(x):
    """Return the dtype in force for the numbers of a NumPy array or scalar.

    Raises:
      TypeError: if there are no arrays of its dtype.
      ValueError: if it is a masked array, since arrays have no masks.
    """
    if type(x) is not np.ndarray and hasattr(x, "filled"):
        raise ValueError(
            "numpy masked arrays are not supported: their masks would be lost. "
            "Use arr.filled() to convert the value to a standard numpy array."
        )
    if x.dtype not in DTYPES and x.dtype != float0:
        known = ", ".join(map(str, DTYPES))
        name = known_dtype(x.dtype)
        raise TypeError(f"dtype {name} is not a valid array type, of {known}.")
    return canonicalize_dtype(x.dtype)


def issubdtype(arg1: Any, arg2: Any) -> bool:
    """Return whether type `arg1` is of the kind `arg2`; bfloat16 counts as floating.

    Args:
      arg1: a dtype.
      arg2: a dtype, or a kind such as ``numpy.floating``.

    Reference: ``jax.numpy.issubdtype``.
    """
    halves = () if bfloat16 is None else (bfloat16, np.dtype(bfloat16))
    if arg1 in halves and isinstance(arg2, type) and issubclass(arg2, np.generic):
        return arg2 is bfloat16 or issubclass(np.floating, arg2)
    return np.issubdtype(arg1, arg2)


ALIGNED, LONG = 64, 2**12  # bytes: the longest vector; what is long enough to care


def is_long(x):
    """Return whether it matters where the numbers of an array of NumPy begin."""
    plain = isinstance(x, np.ndarray) and x.flags.c_contiguous
    return plain and x.nbytes >= LONG and not x.dtype.hasobject


def aligned_copy(x, dtype):
    """Return a copy of an array that begins where the vectors of a processor may."""
    room = np.empty(x.size * dtype.itemsize + ALIGNED, np.uint8)
    start = -room.ctypes.data % ALIGNED
    copy = np.ndarray(x.shape, dtype, room, start)
    copy[...] = x
    return copy


PYTHON_NODES = {bool: "bool", int: "int*", float: "float*", complex: "complex*"}
PYTHON_OF_NODE = {node: kind for kind, node in PYTHON_NODES.items()}
WEAK_NODES = {"i": "int*", "u": "int*", "f": "float*", "h": "float*", "c": "complex*"}


def lattice_node(dtype, weak_type=False):
    """Return the place of a dtype in the lattice, such as ``"int32"`` or ``"int*"``."""
    if type(dtype) is type and dtype in PYTHON_NODES:
        return PYTHON_NODES[dtype]
    dtype = as_dtype(dtype)
    if dtype not in DTYPES:
        error = ValueError if dtype in EXTENDED else TypeError
        raise error(f"dtype {name_of(dtype)} is not a type of numbers: it meets none")
    return WEAK_NODES.get(kind_of(dtype), "bool") if weak_type else NAMES[dtype]


def from_node(node):
    """Return the dtype in force at a place in the lattice, and whether it is weak."""
    if not node.endswith("*"):
        return canonicalize_dtype(node), False
    return canonicalize_dtype(PYTHON_OF_NODE[node]), True
