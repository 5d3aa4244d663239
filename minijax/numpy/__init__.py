"""NumPy's functions on arrays that can be transformed.

Reference: ``jax.numpy``.
"""

# Made from chapters/03_numpy_ground.md by `make chapter`;
# edit the chapter, not this file.

from importlib import import_module

from minijax._lazy import namespace

__array_api_version__ = "2024.12"
__getattr__, __dir__ = namespace(__name__)


def __array_namespace_info__():
    """Return what the Array API standard lets one ask: dtypes, devices, limits."""
    return import_module("minijax.numpy.array_api").NamespaceInfo()
