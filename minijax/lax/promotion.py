"""From anything that a user writes to operands that ``minijax.lax`` accepts.

``1 + x`` mixes dtypes and shapes; primitives do not. Here operands are given one dtype,
by the lattice of `minijax.arrays.lattice`, and one rank, by new axes of size 1.

Reference: type promotion and broadcasting of ``jax.numpy``.
"""

# Made from chapters/02_arrays_rest.md by `make chapter`;
# edit the chapter, not this file.

from typing import Any

import numpy as np

from minijax.arrays.array import asarray_impl
from minijax.arrays.avals import PYTHON_SCALARS, typeof
from minijax.arrays.dtypes import (
    EXTENDED,
    NARROW,
    PYTHON_OF_NODE,
    PYTHON_TYPES,
    from_node,
    is_inexact,
    lattice_node,
    name_of,
)
from minijax.arrays.interchange import refuse_promise
from minijax.arrays.lattice import common_type as common_type
from minijax.arrays.lattice import join
from minijax.core import Array
from minijax.lax.broadcasting import promote_shapes as promote_shapes
from minijax.lax.conversion import astype
from minijax.lax.conversion import promote_dtypes as promote_dtypes

ARRAYLIKE = (Array, np.ndarray, np.generic, *PYTHON_SCALARS)


def is_arraylike(x):
    """Return whether `x` is an array, a tracer, a NumPy array or a number."""
    return isinstance(x, ARRAYLIKE)


def check_arraylike(name, *args):
    """Raise a TypeError that names the function and the place of a non-array."""
    for position, arg in enumerate(args):
        if not isinstance(arg, ARRAYLIKE):
            refuse_promise(arg)
            raise TypeError(
                f"{name} requires ndarray or scalar arguments, got {type(arg)} at "
                f"position {position}."
            )


def lift(x):
    """Return a number or NumPy array as an array; an array or tracer as it is."""
    return x if isinstance(x, Array) else asarray_impl(x)


def to_inexact_dtype(dtype):
    """Return the float dtype in which functions of integers of a dtype are computed."""
    if is_inexact(dtype):
        return dtype
    if dtype in EXTENDED:
        raise TypeError(f"dtype {name_of(dtype)} is not a type of numbers")
    return np.dtype("float64" if dtype.itemsize == 8 else "float32")


def promote_dtypes_inexact(*args):
    """Give `args` their common dtype, or the float dtype of these integers."""
    dtype, weak_type = common_type(*args)
    return [astype(arg, to_inexact_dtype(dtype), weak_type) for arg in args]


def is_settled(promote, x, y):
    """Return whether a promotion, and that of shapes, leaves two operands as they are.

    Args:
      promote: one of the functions of this module.
      x, y: operands of any kind.
    """
    if not (isinstance(x, Array) and isinstance(y, Array)):
        return False
    a, b = typeof(x), typeof(y)
    if a is not b:
        one_type = a.dtype is b.dtype and a.weak_type is b.weak_type
        if not one_type or (a.shape != b.shape and a.shape and b.shape):
            return False
    if promote is promote_dtypes:
        return a.dtype.kind != "b" or not a.weak_type
    return promote is promote_dtypes_inexact and is_inexact(a.dtype)


def promote_dtypes_numeric(*args):
    """Give `args` their common dtype, or ``int32`` if that is bool."""
    dtype, weak_type = common_type(*args)
    dtype = np.dtype("int32") if dtype.kind == "b" else dtype
    return [astype(arg, dtype, weak_type) for arg in args]


def promote_types(a: Any, b: Any) -> np.dtype:
    """Return the dtype in which values of types `a` and `b` meet.

    A type that is named is not narrowed, even if 64-bit types are off.

    Reference: ``jax.numpy.promote_types``.
    """
    nodes = lattice_node(a), lattice_node(b)
    node = join(*nodes)
    dtype, weak = from_node(node)
    if weak:
        return np.dtype(PYTHON_TYPES[PYTHON_OF_NODE[node]])
    wide = any(node in map(str, NARROW) for node in nodes)
    return np.dtype(node) if wide else dtype
