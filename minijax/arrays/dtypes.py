# Made from chapters/02_arrays.md by `make chapter`;
# edit the chapter, not this file.
"""Data types: which there are, and what two of them become together.

A number of Python has a kind but no width. Its type is *weak*, is written with a
star, and gives way to the width of what it meets.

Reference: ``jax.dtypes``; the lattice is JAX's, from
https://docs.jax.dev/en/latest/type_promotion.html.
"""

import functools
import warnings

import numpy as np

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


PYTHON_TYPES = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}
PYTHON_NODES = {bool: "bool", int: "int*", float: "float*", complex: "complex*"}
PYTHON_TYPE_OF = {node: kind for kind, node in PYTHON_NODES.items()}
WEAK_NODES = {"i": "int*", "u": "int*", "f": "float*", "h": "float*", "c": "complex*"}
KINDS = {
    dtype: "h" if dtype.itemsize == 2 and dtype.kind in "fV" else dtype.kind
    for dtype in DTYPES
}


def kind_of(dtype):
    """Return one letter: bool, integer, unsigned, half, float, complex; or "0"."""
    return KINDS.get(dtype, "0")


NO_BFLOAT16 = (
    "bfloat16 is a type of the package ml_dtypes, which is not installed: "
    "pip install ml_dtypes, or minijax-book[bfloat16] in place of minijax-book."
)


def as_dtype(dtype):
    """Return what NumPy takes `dtype` for; say what is missing if it is bfloat16."""
    try:
        return np.dtype(dtype)
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
    return NARROW[dtype] if dtype in NARROW and not config.jax_enable_x64 else dtype


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
    dtype = np.dtype(dtype)
    return "float0" if dtype == float0 else DTYPES.get(dtype) or str(dtype)


def check_dtype(dtype, name):
    """Return the dtype that a user has asked for, canonical.

    Args:
      dtype: what the user wrote.
      name: the function that was called.

    Raises:
      TypeError: if there are no arrays of this dtype.
    """
    canonical = canonicalize_dtype(dtype)
    if canonical not in DTYPES and canonical != float0:
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


def issubdtype(arg1, arg2):
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


# From every type to those directly above it.
ABOVE = {
    "bool": ["int*"],
    "int*": ["uint8", "int8"],
    "uint8": ["int16", "uint16"], "uint16": ["int32", "uint32"],
    "uint32": ["int64", "uint64"], "uint64": ["float*"],
    "int8": ["int16"], "int16": ["int32"], "int32": ["int64"], "int64": ["float*"],
    "float*": ["bfloat16", "float16", "complex*"],
    "bfloat16": ["float32"], "float16": ["float32"],
    "float32": ["float64", "complex64"], "float64": ["complex128"],
    "complex*": ["complex64"], "complex64": ["complex128"], "complex128": [],
}  # fmt: skip


@functools.cache
def all_above(node):
    """Return all types that lie above the type `node`, itself included."""
    return frozenset([node]).union(*map(all_above, ABOVE[node]))


@functools.cache
def join(*nodes):
    """Return the lowest type that lies above all `nodes`."""
    common = frozenset.intersection(*map(all_above, nodes))
    [lowest] = [node for node in common if common <= all_above(node)]
    return lowest


def lattice_node(dtype, weak_type=False):
    """Return the place of a dtype in the lattice, such as ``"int32"`` or ``"int*"``."""
    if type(dtype) is type and dtype in PYTHON_NODES:
        return PYTHON_NODES[dtype]
    dtype = as_dtype(dtype)
    if dtype not in DTYPES:
        raise TypeError(f"dtype {dtype} is not a type of numbers")
    return WEAK_NODES.get(kind_of(dtype), "bool") if weak_type else NAMES[dtype]


def from_node(node):
    """Return the dtype in force at a place in the lattice, and whether it is weak."""
    if not node.endswith("*"):
        return canonicalize_dtype(node), False
    return canonicalize_dtype(PYTHON_TYPE_OF[node]), True


def promote_types(a, b):
    """Return the dtype in which values of types `a` and `b` meet.

    A type that is named is not narrowed, even if 64-bit types are off.

    Reference: ``jax.numpy.promote_types``.
    """
    nodes = lattice_node(a), lattice_node(b)
    node = join(*nodes)
    dtype, weak = from_node(node)
    if weak:
        return np.dtype(PYTHON_TYPES[PYTHON_TYPE_OF[node]])
    wide = any(node in map(str, NARROW) for node in nodes)
    return np.dtype(node) if wide else dtype
