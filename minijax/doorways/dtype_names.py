"""The namespace of data types.

Reference: ``jax.dtypes``.
"""

# Made from chapters/14_callbacks_rest.md by `make chapter`;
# edit the chapter, not this file.

from typing import Any

import numpy as np

from minijax import numpy as jnp
from minijax.arrays import dtypes as known_dtypes
from minijax.arrays.avals import typeof
from minijax.arrays.dtypes import extended as extended
from minijax.arrays.dtypes import float0 as float0
from minijax.arrays.dtypes import from_node, lattice_node
from minijax.arrays.lattice import join
from minijax.numpy.scalar_types import finfo as finfo
from minijax.numpy.scalar_types import iinfo as iinfo
from minijax.switches.promotion import TypePromotionError as TypePromotionError

bfloat16 = known_dtypes.bfloat16


def canonicalize_dtype(dtype: Any, allow_extended_dtype: bool = False) -> np.dtype:
    """Return the NumPy dtype in force for `dtype`: 64 bits become 32 by default.

    Args:
      dtype: anything that NumPy takes for a dtype; Python's types mean 64 bits.
      allow_extended_dtype: whether it may be one that is no number.

    Raises:
      ValueError: if it is an extended dtype, and these are not allowed.

    Reference: ``jax.dtypes.canonicalize_dtype``.
    """
    canonical = known_dtypes.canonicalize_dtype(dtype)
    if canonical in known_dtypes.EXTENDED and not allow_extended_dtype:
        raise ValueError(
            "Internal: canonicalize_dtype called on extended dtype "
            f"{known_dtypes.name_of(canonical)} with allow_extended_dtype=False"
        )
    return canonical


def issubdtype(a: Any, b: Any) -> bool:
    """Return whether type `a` is of the kind `b`.

    Reference: ``jax.dtypes.issubdtype``.
    """
    return jnp.issubdtype(a, b)


def result_type(*args: Any, return_weak_type_flag: bool = False) -> Any:
    """Return the dtype that arrays, numbers and dtypes have together.

    Args:
      *args: arrays, numbers or dtypes.
      return_weak_type_flag: whether to return, besides, whether it is weak.

    Reference: ``jax.dtypes.result_type``.
    """
    if not return_weak_type_flag:
        return jnp.result_type(*args)
    return from_node(join(*map(_node, args)))


def _node(x):
    is_type = isinstance(x, type | str | np.dtype)
    weak = x in (int, float, complex) if is_type else typeof(x).weak_type
    return lattice_node(jnp.result_type(x), weak)


_SCALARS = {"b": bool, "i": int, "u": int, "h": float, "f": float, "c": complex}


def scalar_type_of(x: Any) -> type:
    """Return Python's type of numbers that an array, a number or a dtype is like.

    Raises:
      TypeError: if it is like none.

    Reference: ``jax.dtypes.scalar_type_of``.
    """
    kind = known_dtypes.kind_of(jnp.result_type(x))
    if kind not in _SCALARS:
        raise TypeError(f"Invalid scalar value {x}")
    return _SCALARS[kind]


def itemsize_bits(dtype: Any) -> int:
    """Return the number of bits of an element.

    Raises:
      ValueError: if `dtype` is None, or no type of numbers.

    Reference: ``jax.dtypes.itemsize_bits``.
    """
    if dtype is None:
        raise ValueError("dtype cannot be None.")
    if known_dtypes.kind_of(np.dtype(dtype)) not in _SCALARS:
        raise ValueError(f"unexpected input: {dtype=}")
    return np.dtype(dtype).itemsize * 8
