"""Convolutions and correlations of signals.

Reference: ``jax.scipy.signal``, ``jax.numpy.convolve``.
"""

# Made from chapters/30_windows_upper.md by `make chapter`;
# edit the chapter, not this file.

from typing import Any

from minijax import lax
from minijax.arrays.avals import typeof
from minijax.arrays.dtypes import canonicalize_dtype
from minijax.core import Array
from minijax.lax.promotion import promote_dtypes, promote_dtypes_inexact
from minijax.typing import ArrayLike
from minijax.windows.convolution import conv_general_dilated

_MODES = "full", "same", "valid"


def _check_mode(mode):
    """Raise a ValueError unless a mode is a known one."""
    if mode not in _MODES:
        raise ValueError(f"mode must be one of {list(_MODES)}, got {mode!r}.")


def _pads_of(mode, size, longer, window):
    """Return the padding of a row for a mode.

    Args:
      size: how many results there are if the mode is "same".
      longer, window: lengths of the row, and of what slides over it.
    """
    if mode == "full":
        return window - 1, window - 1
    if mode == "valid":
        return 0, 0
    low = window - 1 - (longer + window - size - 1) // 2
    return low, size + window - 1 - longer - low


def _slid(x, window, padding, precision, preferred_element_type=None):
    """Multiply the windows of an array of any rank by numbers, and sum."""
    axes = 0, 1
    found = conv_general_dilated(
        lax.expand_dims(x, axes),
        lax.expand_dims(window, axes),
        (1,) * typeof(x).ndim,
        padding,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )
    return lax.squeeze(found, axes)


def convolve(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "full",
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """Convolve two rows of numbers: slide one, reversed, over the other.

    Args:
      mode: ``"full"``, wherever they overlap; ``"same"``, as many as the longer one
        has; ``"valid"``, where the shorter one is inside.
      preferred_element_type: the dtype of the result; integers stay integers then.

    Raises:
      ValueError: if one is no row, or is empty.

    Reference: ``jax.numpy.convolve``.
    """
    a, v = _rows("convolve", a, v, mode, preferred_element_type)
    if a.shape[0] < v.shape[0]:
        a, v = v, a
    pads = [_pads_of(mode, a.shape[0], a.shape[0], v.shape[0])]
    return _slid(
        a, lax.rev(v, (0,)), pads, precision, _preferred(preferred_element_type)
    )


def correlate(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "valid",
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """Correlate two rows of numbers: slide the conjugate of one over the other.

    Args:
      mode: as for `convolve`.

    Raises:
      ValueError: if one is no row, or is empty.

    Reference: ``jax.numpy.correlate``.
    """
    a, v = _rows("correlate", a, v, mode, preferred_element_type)
    v, turned = _conjugated(v), a.shape[0] < v.shape[0]
    if turned:
        a, v = v, a
    pads = [_pads_of(mode, a.shape[0], a.shape[0], v.shape[0])]
    found = _slid(a, v, pads, precision, _preferred(preferred_element_type))
    return lax.rev(found, (0,)) if turned else found


def _preferred(dtype):
    return None if dtype is None else canonicalize_dtype(dtype)


def _conjugated(x):
    """Return the conjugates of complex numbers, and real ones as they are."""
    return lax.conj(x) if typeof(x).dtype.kind == "c" else x


def _rows(name, a, v, mode, preferred):
    _check_mode(mode)
    if typeof(a).ndim != 1 or typeof(v).ndim != 1:
        raise ValueError(
            f"{name}() only supports 1-dimensional inputs, got shapes "
            f"{typeof(a).shape} and {typeof(v).shape}."
        )
    if not typeof(a).size or not typeof(v).size:
        raise ValueError(
            f"{name}: inputs cannot be empty, got shapes {typeof(a).shape} and "
            f"{typeof(v).shape}."
        )
    return (promote_dtypes_inexact if preferred is None else promote_dtypes)(a, v)
