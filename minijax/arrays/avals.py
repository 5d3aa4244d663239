"""Abstract values: what is known of an array without looking at its numbers.

Reference: ``jax.core.ShapedArray``, ``jax.typeof``.
"""

# Made from chapters/02_arrays.md by `make chapter`;
# edit the chapter, not this file.

import functools
import math
from typing import Any

import numpy as np

from minijax._registry import Registry
from minijax.arrays.checks import rule_of_class
from minijax.arrays.dtypes import canonicalize_dtype, dtype_of_numbers
from minijax.arrays.interchange import Record
from minijax.arrays.settings import config


class ShapedArray(Record):
    """The shape and dtype of an array, and whether the dtype is weak.

    Args:
      shape: tuple of sizes.
      dtype: NumPy dtype.
      weak_type: True for what came from Python scalars alone: such a value gives way
        to the dtype of what it meets.
      manual_axis_type: a `ManualAxisType`, for programs on many devices.

    Reference: ``jax.core.ShapedArray``.
    """

    __slots__ = ()

    ndim = property(lambda self: len(self.shape), doc="Number of axes.")
    size = property(lambda self: math.prod(self.shape), doc="Number of elements.")


# From types to functions which give a value of the type its abstract value.
aval_rules: dict = Registry()


def typeof(x: Any) -> ShapedArray:
    """Return the abstract value of an array, a tracer or a scalar.

    Raises:
      TypeError: if `x` is none of them.
      ValueError: if `x` is a masked array, since arrays have no masks.

    Reference: ``jax.typeof``.
    """
    aval = getattr(x, "aval", None)
    if type(aval) is ShapedArray:
        return aval
    if aval is None:
        rule = aval_rules.get(type(x)) or rule_of_class(aval_rules, x)
        return rule(x)
    return ShapedArray(aval.shape, aval.dtype, aval.weak_type)  # that of real JAX


PYTHON_SCALARS = (bool, int, float, complex)


def is_python_scalar(x):
    """Return whether `x` is a Python number, and not one of NumPy's."""
    return isinstance(x, PYTHON_SCALARS) and not isinstance(x, np.generic)


@functools.cache
def _weak_scalar(kind, wide):  # `wide`, for the cache: the dtype depends on it
    return ShapedArray((), canonicalize_dtype(kind), weak_type=True)


aval_rules[bool] = lambda x: ShapedArray((), bool)
aval_rules[int] = lambda x: _weak_scalar(int, config.jax_enable_x64)
aval_rules[float] = lambda x: _weak_scalar(float, config.jax_enable_x64)
aval_rules[complex] = lambda x: _weak_scalar(complex, config.jax_enable_x64)
aval_rules[np.ndarray] = lambda x: ShapedArray(x.shape, dtype_of_numbers(x))
aval_rules[np.generic] = aval_rules[np.ndarray]
