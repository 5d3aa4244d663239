"""Shape structs: the type of an array where there is no array.

Reference: ``jax.ShapeDtypeStruct``.
"""

# Made from chapters/07_jaxprs_ground.md by `make chapter`;
# edit the chapter, not this file.

import math
from functools import partial

import numpy as np

from minijax.arrays.avals import ShapedArray, typeof
from minijax.arrays.dtypes import as_dtype, canonicalize_dtype
from minijax.arrays.sharding_types import ManualAxisType, Sharding
from minijax.core import Array, Tracer

_ARRAYS = (Array, np.ndarray, np.generic)


class ShapeDtypeStruct:
    """The shape and dtype of an array, without an array.

    Args:
      shape: sequence of sizes.
      dtype: NumPy dtype, or its name.
      sharding: a `Sharding`, where the array is to be, or None.
      weak_type: True for what comes from Python scalars alone.
      manual_axis_type: the `ManualAxisType` of the array, or None.

    Raises:
      ValueError: if there is no dtype, or `sharding` is none.
      TypeError: if `manual_axis_type` is none.

    Reference: ``jax.ShapeDtypeStruct``.
    """

    __slots__ = ("dtype", "manual_axis_type", "shape", "sharding", "weak_type")

    def __init__(
        self, shape, dtype, *, sharding=None, weak_type=False, manual_axis_type=None
    ):
        if dtype is None:
            raise ValueError("ShapeDtypeStruct: dtype must be specified.")
        _check_class("sharding", sharding, Sharding, ValueError)
        _check_class("manual_axis_type", manual_axis_type, ManualAxisType, TypeError)
        values = tuple(shape), as_dtype(dtype), sharding, weak_type, manual_axis_type
        for name, value in zip(self._parts, values):
            object.__setattr__(self, name, value)

    _parts = "shape", "dtype", "sharding", "weak_type", "manual_axis_type"

    def __setattr__(self, name, value):
        raise RuntimeError(
            f"Cannot reassign attributes ({name}) of immutable ShapeDtypeStruct objects"
        )

    @classmethod
    def like(cls, x):
        """Return the type of an array or number, and where it is if committed.

        Args:
          x: an array, a tracer, a number, or anything with a shape and a dtype.
        """
        if isinstance(x, ShapeDtypeStruct | ShapedArray):
            return x if isinstance(x, cls) else struct_of(x)
        is_placed = not isinstance(x, Tracer) and getattr(x, "committed", True)
        sharding = getattr(x, "sharding", None) if is_placed else None
        if hasattr(x, "shape") and hasattr(x, "dtype") and not isinstance(x, _ARRAYS):
            return cls(x.shape, canonicalize_dtype(x.dtype), sharding=sharding)
        return struct_of(typeof(x), sharding)

    @property
    def ndim(self):
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self):
        """The number of elements."""
        return math.prod(self.shape)

    def __len__(self):
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def update(self, **changes):
        """Return a copy with other parts, by the names that the class takes."""
        parts = {name: getattr(self, name) for name in self._parts} | changes
        return ShapeDtypeStruct(**parts)

    def __reduce__(self):
        named = {name: getattr(self, name) for name in self._parts[2:]}
        return partial(ShapeDtypeStruct, **named), (self.shape, self.dtype)

    def _key(self):
        return tuple([getattr(self, name) for name in self._parts])

    def __eq__(self, other):
        return isinstance(other, ShapeDtypeStruct) and self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    def __repr__(self):
        named = f"shape={self.shape}, dtype={self.dtype.name}"
        rest = [(name, getattr(self, name)) for name in self._parts[2:]]
        said = [f", {name}={value!r}" for name, value in rest if value]
        return f"ShapeDtypeStruct({named}{''.join(said)})"


def _check_class(name, value, kind, error):
    if not isinstance(value, kind | None):
        raise error(
            f"{name} of a ShapeDtypeStruct should be an instance of "
            f"minijax.sharding.{kind.__name__}, or None. Got {value} of type "
            f"{type(value)}."
        )


def struct_of(aval, sharding=None):
    """Return the `ShapeDtypeStruct` of an abstract value, with a sharding perhaps."""
    axes = None if aval.manual_axis_type.empty else aval.manual_axis_type
    how = {"weak_type": aval.weak_type, "manual_axis_type": axes}
    return ShapeDtypeStruct(aval.shape, aval.dtype, sharding=sharding, **how)
