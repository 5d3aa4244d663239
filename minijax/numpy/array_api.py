"""The Array API standard: namespaces of arrays, and questions about kinds of dtypes.

Importing this module fills the table `minijax.core.tracer_methods`.

References: ``jax.numpy.isdtype``, ``jax.numpy.__array_namespace_info__``.
"""

# Made from chapters/03_numpy_rest.md by `make chapter`;
# edit the chapter, not this file.

from importlib import import_module
from typing import Any

import numpy as np

from minijax.arrays.devices import devices
from minijax.arrays.dtypes import NARROW_NAMES, as_dtype, canonicalize_dtype
from minijax.core import tracer_methods

# Questions of the Array API standard: which kinds of dtypes there are.

_VERSION = "2024.12"
_DTYPES_OF = {
    "bool": "bool",
    "signed integer": "int8 int16 int32 int64",
    "unsigned integer": "uint8 uint16 uint32 uint64",
    "real floating": "float16 bfloat16 float32 float64",
    "complex floating": "complex64 complex128",
}
_NARROW_OF = {  # of which there are no arrays, so a namespace does not list them
    "signed integer": NARROW_NAMES[np.signedinteger],
    "unsigned integer": NARROW_NAMES[np.unsignedinteger],
    "real floating": NARROW_NAMES[np.floating],
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
        families = _FAMILIES.get(kind, (kind,))
        narrow = [name for each in families for name in _NARROW_OF.get(each, ())]
        return [*_members(kind), *narrow]
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


# The namespace of an array, and what the Array API standard lets one ask it.


class NamespaceInfo:
    """What the Array API standard lets one ask a namespace.

    Reference: ``jax.numpy.__array_namespace_info__``.
    """

    def capabilities(self):
        """Return what the functions of the namespace can do."""
        return {
            "boolean indexing": False,
            "data-dependent shapes": False,
            "max dimensions": 64,
        }

    def default_device(self):
        """Return the device of arrays that name none; None, as in JAX."""
        return None

    def devices(self):
        """Return all devices, and None for the default one."""
        return [None, *devices()]

    def default_dtypes(self, *, device=None):
        """Return the dtypes of arrays that name none."""
        kinds = {"real floating": float, "complex floating": complex}
        kinds |= {"integral": int, "indexing": int}
        return {kind: canonicalize_dtype(dtype) for kind, dtype in kinds.items()}

    def dtypes(self, *, device=None, kind=None):
        """Return the dtypes of the standard in force, by name; or those of kinds."""
        kinds = [*_DTYPES_OF] if kind is None else kind
        kinds = kinds if isinstance(kinds, (tuple, list)) else (kinds,)
        names = [name for each in kinds for name in _members(each)]
        known = [name for name in names if name not in ("float16", "bfloat16")]
        return {n: np.dtype(n) for n in known if canonicalize_dtype(n) == np.dtype(n)}


def _array_namespace(x, *, api_version=None):
    """Return the module with the functions of arrays.

    Reference: ``jax.Array.__array_namespace__``.
    """
    if api_version not in (None, _VERSION):
        raise ValueError(
            f"{api_version=} is not available; available versions are: {[_VERSION]}"
        )
    return import_module("minijax.numpy")


tracer_methods["__array_namespace__"] = _array_namespace
