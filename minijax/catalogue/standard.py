"""Questions of the Array API standard: which kinds of dtypes there are.

Reference: ``jax.numpy.isdtype``.
"""

# Made from chapters/03_numpy_rest.md by `make chapter`;
# edit the chapter, not this file.

from typing import Any

import numpy as np

from minijax.arrays.dtypes import as_dtype

_VERSION = "2024.12"
_DTYPES_OF = {
    "bool": "bool",
    "signed integer": "int8 int16 int32 int64",
    "unsigned integer": "uint8 uint16 uint32 uint64",
    "real floating": "float16 bfloat16 float32 float64",
    "complex floating": "complex64 complex128",
}
_FAMILIES = {
    "integral": ("signed integer", "unsigned integer"),
    "numeric": (
        "signed integer", "unsigned integer", "real floating", "complex floating"
    ),
}  # fmt: skip


def _members(kind):
    families = _FAMILIES.get(kind, (kind,))
    return " ".join(_DTYPES_OF[each] for each in families).split()


def isdtype(dtype: Any, kind: Any) -> Any:
    """Return whether a dtype is of a kind, or one of several kinds or dtypes.

    Args:
      dtype: a dtype.
      kind: a dtype, a word such as ``"integral"``, or a tuple of such.

    Reference: ``jax.numpy.isdtype``.
    """
    kinds = kind if isinstance(kind, tuple) else (kind,)
    return as_dtype(dtype).name in {name for each in kinds for name in _named(each)}


def _named(kind):
    if isinstance(kind, str) and kind in {**_DTYPES_OF, **_FAMILIES}:
        return _members(kind)
    try:
        return [as_dtype(kind).name]
    except TypeError as error:
        if isinstance(kind, str):
            known = [*_DTYPES_OF, *_FAMILIES]
            raise ValueError(
                f"Unrecognized {kind=} expected one of {known}, or a compatible input "
                "for jnp.dtype()"
            ) from None
        raise TypeError(
            f"Expected kind to be a dtype, string, or tuple; got {kind=}"
        ) from error


def can_cast(from_: Any, to: Any, casting: Any = "safe") -> Any:
    """Return whether values of one dtype may become values of another.

    Reference: ``jax.numpy.can_cast``.
    """
    return np.can_cast(from_, to, casting=casting)


def iterable(y: Any) -> Any:
    """Return whether one can iterate over an object.

    Reference: ``jax.numpy.iterable``.
    """
    return np.iterable(y)
