# Made from chapters/02b_numpy.md by `make chapter`;
# edit the chapter, not this file.
"""The methods of arrays: ``x.sum()`` is ``jnp.sum(x)``.

Importing this module fills the table `minijax.core.methods`.

Reference: ``jax.Array``.
"""

import numpy as np

from minijax import lax
from minijax.dtypes import check_dtype
from minijax.errors import ConcretizationTypeError
from minijax.numpy.arithmetic import around
from minijax.numpy.creation import astype, copy
from minijax.numpy.joining import repeat
from minijax.numpy.matrices import diagonal
from minijax.numpy.products import dot
from minijax.numpy.reductions import REDUCTIONS
from minijax.numpy.selection import clip
from minijax.numpy.shapes import (
    matrix_transpose,
    ravel,
    reshape,
    squeeze,
    swapaxes,
    transpose,
)
from minijax.numpy.statistics import STATISTICS
from minijax.numpy.ufuncs import conjugate, imag, real
from minijax.operators import concrete, register
from minijax.transfer import device_put

register(REDUCTIONS | STATISTICS)
register({
    "clip": clip,
    "conj": conjugate,
    "conjugate": conjugate,
    "copy": copy,
    "diagonal": diagonal,
    "dot": dot,
    "flatten": ravel,
    "ravel": ravel,
    "repeat": repeat,
    "round": around,
    "squeeze": squeeze,
    "swapaxes": swapaxes,
    "T": property(transpose),
    "mT": property(matrix_transpose),
    "real": property(real),
    "imag": property(imag),
})  # fmt: skip


def reshape_method(x, *shape, order="C"):
    """Give the elements a new shape: ``x.reshape(2, 3)`` or ``x.reshape((2, 3))``."""
    return reshape(x, shape[0] if len(shape) == 1 else shape, order)


def transpose_method(x, *axes):
    """Reorder the axes: ``x.transpose(1, 0)`` or ``x.transpose((1, 0))``."""
    if len(axes) == 1 and (axes[0] is None or np.iterable(axes[0])):
        [axes] = axes
    return transpose(x, axes or None)


def astype_method(x, dtype, copy=False, device=None):
    """Convert to another dtype; None stands for the default float."""
    return device_put(astype(x, dtype, copy=copy), device)


def to_device(x, device):
    """Return the array on another device."""
    return device_put(x, device)


def item(x, *place):
    """Return one element as a number of Python; the only one, or the one at `place`.

    Args:
      x: array; as a tracer, a ConcretizationTypeError is raised.
      *place: its index, or its position in row-major order.
    """
    return np.asarray(concrete(x, ConcretizationTypeError, "item()")).item(*place)


def tolist(x):
    """Return the elements as numbers in nested lists."""
    return np.asarray(concrete(x, ConcretizationTypeError, "tolist()")).tolist()


def tobytes(x, order="C"):
    """Return the bytes of the elements in row-major order."""
    return np.asarray(concrete(x, ConcretizationTypeError, "tobytes()")).tobytes(order)


def view(x, dtype=None):
    """Read the bits of the elements as another dtype; the last axis takes the change.

    Args:
      x: array of n axes.
      dtype: one of the same width, or of another, if the last axis can be divided.
    """
    if dtype is None:
        return x
    dtype = check_dtype(dtype, "view")
    ratio = dtype.itemsize / x.dtype.itemsize
    if ratio > 1:
        x = reshape(x, (*x.shape[:-1], -1, int(ratio)))
    bits = lax.bitcast_convert_type(x, dtype)
    return reshape(bits, (*x.shape[:-1], -1)) if ratio < 1 else bits


def at(x):
    """Raise the error for ``x.at[index].set(y)``."""
    raise NotImplementedError(
        "x.at[index].set(y) needs the primitive scatter, which arrives with chapter "
        "14; until then jnp.where(mask, y, x) makes the new array."
    )


register({
    "reshape": reshape_method,
    "transpose": transpose_method,
    "astype": astype_method,
    "to_device": to_device,
    "item": item,
    "tolist": tolist,
    "tobytes": tobytes,
    "view": view,
    "at": property(at),
})  # fmt: skip
