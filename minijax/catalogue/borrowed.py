"""What is NumPy's own: printing, files, and classes of dtypes.

Reference: ``jax.numpy.printoptions``, ``jax.numpy.load``.
"""

# Made from chapters/03_numpy_rest.md by `make chapter`;
# edit the chapter, not this file.

from typing import Any

import numpy as np

from minijax.arrays import dtypes
from minijax.core import Array
from minijax.numpy.creation import asarray

array_repr, array_str = np.array_repr, np.array_str
save, savez = np.save, np.savez
character, flexible, object_ = np.character, np.flexible, np.object_
ComplexWarning = np.exceptions.ComplexWarning


def get_printoptions() -> Any:
    """Return how NumPy prints arrays, and these.

    Reference: ``jax.numpy.get_printoptions``.
    """
    return np.get_printoptions()


def set_printoptions(*args: Any, **kwargs: Any) -> None:
    """Set how NumPy prints arrays, and these.

    Reference: ``jax.numpy.set_printoptions``.
    """
    np.set_printoptions(*args, **kwargs)


def printoptions(*args: Any, **kwargs: Any) -> Any:
    """Return a context in which arrays are printed in another way.

    Reference: ``jax.numpy.printoptions``.
    """
    return np.printoptions(*args, **kwargs)


def load(file: Any, *args: Any, **kwargs: Any) -> Any:
    """Return the array, or the arrays, in a file that `save` or `savez` wrote.

    Reference: ``jax.numpy.load``.
    """
    found = np.load(file, *args, **kwargs)
    if dtypes.bfloat16 is not None and getattr(found, "dtype", None) == "V2":
        found = found.view(dtypes.bfloat16)  # a type that NumPy's files do not name
    return asarray(found) if isinstance(found, np.ndarray) else found


def frombuffer(
    buffer: Any, dtype: Any = float, count: int = -1, offset: int = 0
) -> Array:
    """Return the numbers that lie in some bytes.

    Reference: ``jax.numpy.frombuffer``.
    """
    return asarray(np.frombuffer(buffer, dtype, count, offset))


def fromstring(string: str, dtype: Any = float, count: int = -1, *, sep: str) -> Array:
    """Return the numbers that stand in a text, with `sep` between them.

    Reference: ``jax.numpy.fromstring``.
    """
    return asarray(np.fromstring(string, dtype, count, sep=sep))


def _impure(name):
    def refused(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            f"jnp.{name}() is not implemented because it may be non-pure and thus "
            "unsafe for use with JIT and other JAX transformations. Consider using "
            f"jnp.asarray(np.{name}(...)) instead."
        )

    refused.__doc__ = f"""Raise NotImplementedError.

    Reference: ``jax.numpy.{name}``.
    """
    refused.__name__ = refused.__qualname__ = name
    return refused


fromfile, fromiter = map(_impure, ("fromfile", "fromiter"))
