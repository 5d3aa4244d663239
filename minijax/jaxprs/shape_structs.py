# Made from chapters/07_jaxprs_ground.md by `make chapter`;
# edit the chapter, not this file.
"""The type of an array where there is no array.

Reference: ``jax.ShapeDtypeStruct``.
"""

import math

from minijax.arrays.dtypes import as_dtype


class ShapeDtypeStruct:
    """The shape and dtype of an array, without an array.

    Args:
      shape: sequence of sizes.
      dtype: NumPy dtype, or its name.
      weak_type: True for what comes from Python scalars alone.

    Reference: ``jax.ShapeDtypeStruct``.
    """

    __slots__ = ("dtype", "shape", "weak_type")

    def __init__(self, shape, dtype, *, weak_type=False):
        if dtype is None:
            raise ValueError("ShapeDtypeStruct: dtype must be specified.")
        self.shape, self.dtype = tuple(shape), as_dtype(dtype)
        self.weak_type = weak_type

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
        """Return a copy with another `shape`, `dtype` or `weak_type`."""
        parts = {name: getattr(self, name) for name in self.__slots__} | changes
        return ShapeDtypeStruct(**parts)

    def _key(self):
        return self.shape, self.dtype, self.weak_type

    def __eq__(self, other):
        return isinstance(other, ShapeDtypeStruct) and self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    def __repr__(self):
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name}{weak})"
