# Made from chapters/02_arrays.md by `make chapter`;
# edit the chapter, not this file.
"""Abstract values: what is known of an array without looking at its numbers.

Reference: ``jax.core.ShapedArray``, ``jax.typeof``.
"""

import math
from typing import Any

import numpy as np

from minijax.arrays.dtypes import (
    DTYPES,
    NARROW,
    PYTHON_TYPES,
    canonicalize_dtype,
    float0,
)
from minijax.arrays.interchange import Record, rule_of_class
from minijax.arrays.settings import config
from minijax.core import methods


class ShapedArray(Record):
    """The shape and dtype of an array, and whether the dtype is weak.

    Args:
      shape: tuple of sizes.
      dtype: NumPy dtype.
      weak_type: True for what came from Python scalars alone: such a value gives way
        to the dtype of what it meets.

    Reference: ``jax.core.ShapedArray``.
    """

    __slots__ = ("dtype", "shape", "weak_type")

    def __init__(self, shape, dtype, weak_type=False):
        self.shape = tuple(shape)
        self.dtype = np.dtype(dtype)
        self.weak_type = weak_type

    ndim = property(lambda self: len(self.shape), doc="Number of axes.")
    size = property(lambda self: math.prod(self.shape), doc="Number of elements.")


# From types to functions which give a value of the type its abstract value.
aval_rules: dict = {}


def typeof(x: Any) -> ShapedArray:
    """Return the abstract value of an array, a tracer or a scalar.

    Raises:
      TypeError: if `x` is none of them.
      ValueError: if `x` is a masked array, since arrays have no masks.

    Reference: ``jax.typeof``.
    """
    if type(x) in aval_rules:
        return aval_rules[type(x)](x)
    aval = getattr(x, "aval", None)
    return rule_of_class(aval_rules, x)(x) if aval is None else aval


def _weak_scalar(kind):
    wide = np.dtype(PYTHON_TYPES[kind])
    avals = {
        True: ShapedArray((), wide, True),
        False: ShapedArray((), NARROW[wide], True),
    }
    return lambda x: avals[config.jax_enable_x64]


def _numpy_aval(x):
    if type(x) is not np.ndarray and hasattr(x, "filled"):
        raise ValueError(
            "numpy masked arrays are not supported: their masks would be lost. "
            "Use arr.filled() to convert the value to a standard numpy array."
        )
    if x.dtype not in DTYPES and x.dtype != float0:
        known = ", ".join(map(str, DTYPES))
        raise TypeError(f"dtype {x.dtype} is not a valid array type, of {known}.")
    return ShapedArray(x.shape, canonicalize_dtype(x.dtype))


aval_rules[bool] = lambda x: ShapedArray((), bool)
aval_rules[int] = _weak_scalar(int)
aval_rules[float] = _weak_scalar(float)
aval_rules[complex] = _weak_scalar(complex)
aval_rules[np.ndarray] = _numpy_aval
aval_rules[np.generic] = _numpy_aval


PYTHON_SCALARS = (bool, int, float, complex)


def is_python_scalar(x):
    """Return whether `x` is a Python number, and not one of NumPy's."""
    return isinstance(x, PYTHON_SCALARS) and not isinstance(x, np.generic)


methods["shape"] = property(lambda x: x.aval.shape)
methods["dtype"] = property(lambda x: x.aval.dtype)
methods["ndim"] = property(lambda x: x.aval.ndim)
methods["size"] = property(lambda x: x.aval.size)
methods["itemsize"] = property(lambda x: x.aval.dtype.itemsize)
methods["nbytes"] = property(lambda x: x.aval.size * x.aval.dtype.itemsize)
methods["weak_type"] = property(lambda x: x.aval.weak_type)
