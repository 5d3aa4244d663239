"""The most frequent value, ranks, and the standard error of a mean.

Reference: ``jax.scipy.stats``.
"""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

import math
from typing import Any, NamedTuple

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.arrays.checks import canonicalize_axis, size_along
from minijax.batching.trace import vmap
from minijax.core import Array
from minijax.lax.promotion import check_arraylike, promote_dtypes_inexact
from minijax.typing import ArrayLike

_METHODS = "average", "min", "max", "dense", "ordinal"


class ModeResult(NamedTuple):
    """Most frequent values, and how frequent they are."""

    mode: Array
    count: Array


def _check_nan_policy(name, policy):
    if policy not in ("propagate", "omit", "raise"):
        raise ValueError(
            f"Illegal nan_policy value {policy!r}; expected one of "
            "{'propagate', 'omit', 'raise'}"
        )
    if policy != "propagate":
        raise NotImplementedError(
            f"{name} does not look for NaN, as nan_policy={policy!r} asks. Use "
            "nan_policy='propagate', and look for them with jnp.isnan before."
        )


def mode(
    a: ArrayLike,
    axis: int | None = 0,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """Return the most frequent value along an axis, the least where several are.

    All NaN are one value, and a large one.

    Args:
      a: an array.
      axis: along which; None for all axes.
      nan_policy: has to be ``"propagate"``.
      keepdims: whether to keep the axis, of size 1.

    Returns:
      A named tuple ``(mode, count)``.

    Reference: ``jax.scipy.stats.mode``.
    """
    _check_nan_policy("mode", nan_policy)
    check_arraylike("mode", a)
    x = jnp.atleast_1d(a)
    shape = [1] * x.ndim if keepdims else []
    if axis is None:
        x = x.reshape(-1, 1)
    else:
        axis = canonicalize_axis(axis, x.ndim)
        shape = [*x.shape[:axis], *[1] * keepdims, *x.shape[axis + 1 :]]
        x = jnp.moveaxis(x, axis, 0)
        x = x.reshape(len(x), math.prod(x.shape[1:]))
    if not x.size:
        dtype = jnp.result_type(float)
        return ModeResult(jnp.full(shape, np.nan, dtype), jnp.zeros(shape, dtype))
    values, counts = vmap(_most_frequent, 1)(x)
    return ModeResult(values.reshape(shape), counts.reshape(shape))


def _most_frequent(x):
    ordered = lax.sort(x)
    if len(x) > 32:
        behind = jnp.searchsorted(ordered, ordered, side="right")
        counts = behind - jnp.searchsorted(ordered, ordered)
    else:
        counts = _equal(ordered[:, None], ordered).sum(1)
    place = counts.argmax()
    return ordered[place], counts[place]


def _equal(x, y):
    """Return where two numbers are equal, or both NaN."""
    return (x == y) | ((x != x) & (y != y))


def rankdata(
    a: ArrayLike,
    method: str = "average",
    *,
    axis: int | None = None,
    nan_policy: str = "propagate",
) -> Array:
    """Return the ranks of values, from 1 on.

    Args:
      a: an array.
      method: which rank equal values get: the ``"average"``, ``"min"`` or ``"max"`` of
        theirs, ``"dense"`` ranks without gaps, or ``"ordinal"`` ones, all different.
      axis: along which; None for the flattened array.
      nan_policy: has to be ``"propagate"``: with a NaN, all ranks are NaN.

    Reference: ``jax.scipy.stats.rankdata``.
    """
    _check_nan_policy("rankdata", nan_policy)
    check_arraylike("rankdata", a)
    if method not in _METHODS:
        raise ValueError(f"unknown method '{method}'")
    if axis is not None:
        return jnp.apply_along_axis(rankdata, axis, a, method)
    return _ranks(jnp.ravel(a), method)


def _ranks(x, method):
    dtype = jnp.result_type(float)
    order = jnp.argsort(x)
    places = jnp.argsort(order)
    ordered = x[order]
    if method == "ordinal":
        ranks = places + 1
    elif method == "dense":
        new = jnp.concatenate([jnp.ones(1, bool), ordered[1:] != ordered[:-1]])
        ranks = new.cumsum()[: len(x)][places]
    else:
        first = jnp.searchsorted(ordered, x) + 1
        last = jnp.searchsorted(ordered, x, side="right")
        ranks = {"min": first, "max": last, "average": (first + last) / 2}[method]
    return jnp.where(jnp.isnan(x).any(), np.nan, ranks.astype(dtype))


def sem(
    a: ArrayLike,
    axis: int | None = 0,
    ddof: int = 1,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Array:
    """Return the standard error of the mean.

    Args:
      a: an array.
      axis: along which; None for all axes.
      ddof: what is subtracted from the count in the standard deviation.
      nan_policy: ``"propagate"``, or ``"omit"`` to leave NaN out.
      keepdims: whether to keep the axis, of size 1.

    Reference: ``jax.scipy.stats.sem``.
    """
    check_arraylike("sem", a)
    [x] = promote_dtypes_inexact(jnp.asarray(a))
    how: dict = {"ddof": ddof, "keepdims": keepdims}
    if nan_policy == "propagate":
        count = x.size if axis is None else size_along(x, axis)
        return x.std(axis, **how) / np.sqrt(count).astype(x.dtype)
    if nan_policy == "omit":
        counts = jnp.logical_not(jnp.isnan(x)).sum(axis, keepdims=keepdims)
        return jnp.nanstd(x, axis, **how) / jnp.sqrt(counts).astype(x.dtype)
    raise ValueError(f"{nan_policy} is not supported")
