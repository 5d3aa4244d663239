"""The namespace of an array, and what the Array API standard lets one ask it.

Importing this module fills the table `minijax.core.methods`.

Reference: ``jax.numpy.__array_namespace_info__``.
"""

# Made from chapters/03_numpy_rest.md by `make chapter`;
# edit the chapter, not this file.

from importlib import import_module

import numpy as np

from minijax.arrays.dtypes import canonicalize_dtype
from minijax.arrays.placement import devices
from minijax.catalogue.standard import _DTYPES_OF, _VERSION, _members
from minijax.core import methods


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


methods["__array_namespace__"] = _array_namespace
