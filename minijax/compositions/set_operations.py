"""Sets made of two sets.

Reference: ``jax.numpy.union1d``, ``jax.numpy.intersect1d``.
"""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

from typing import Any, NamedTuple

from minijax import numpy as jnp
from minijax.arrays.checks import as_integer
from minijax.compositions.sets import SIZE_OF_UNIQUE, distinct, unique
from minijax.core import Array
from minijax.lax.promotion import promote_dtypes
from minijax.numpy.shapes import arraylike
from minijax.typing import ArrayLike


def _two(name, ar1, ar2):
    """Return both arrays as rows of one dtype."""
    both = promote_dtypes(arraylike(name, ar1), arraylike(name, ar2))
    return [x.reshape(-1) for x in both]


def _as_set(x, assume_unique):
    """Return the values of `x`, where they stood, and which of them are real."""
    if assume_unique:
        return x, jnp.arange(len(x)), jnp.ones(len(x), bool)
    values, index, _, counts = distinct(x, size=len(x), fill_value=0)
    return values, index, counts > 0


def merged(sets: Any) -> Any:
    """Sort the real values of two sets into one row.

    Returns:
      The values, where each stood in its own array, from which set it is, and for each
      whether it is real.
    """
    values, places, real = (jnp.concatenate(parts) for parts in zip(*sets))
    owner = jnp.concatenate([jnp.full(len(s[0]), i) for i, s in enumerate(sets)])
    order = jnp.lexsort((owner, values, jnp.logical_not(real)))
    return values[order], places[order], owner[order], real[order]


def _scalar(fill_value):
    """Return what fills places, which is one value, or None."""
    if fill_value is None or not (shape := jnp.shape(fill_value)):
        return fill_value
    raise ValueError(f"fill_value is a scalar here; its shape is {shape}.")


def _selected(values, wanted, size, fill_value):
    """Return the values that are wanted, `size` of them, and which ones are real."""
    count = wanted.sum()
    fill_value = None if size is None else _scalar(fill_value)
    size = as_integer(count if size is None else size, "size", SIZE_OF_UNIQUE)
    if not len(values):
        nothing = jnp.full(size, 0 if fill_value is None else fill_value)
        return nothing.astype(values.dtype), jnp.zeros(size, int), jnp.zeros(size, bool)
    [found] = jnp.nonzero(wanted, size=size, fill_value=len(values))
    there = jnp.arange(size) < count
    kept = values.at[found].get(mode="fill", fill_value=0)
    if fill_value is None and size:
        smallest = jnp.where(there, kept, kept[0])
        fill_value = jnp.where(count > 0, smallest.min(), 0)
    fill_value = jnp.asarray(0 if fill_value is None else fill_value)
    return jnp.where(there, kept, fill_value.astype(kept.dtype)), found, there


def union1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Return the values that are in either array, once each, in ascending order.

    Args:
      ar1, ar2: arrays, whose elements are taken in a row.
      size: how many to return; by default all, for which the arrays have to be known.
      fill_value: what stands behind them; the smallest by default.

    Reference: ``jax.numpy.union1d``.
    """
    both = jnp.concatenate(_two("union1d", ar1, ar2))
    return unique(both, size=size, fill_value=fill_value)


def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Any:
    """Return the values that are in both arrays, once each, in ascending order.

    Args:
      ar1, ar2: arrays, whose elements are taken in a row.
      assume_unique: whether neither has a value twice.
      return_indices: whether to return as well where they stand first in each array.
      size: how many to return; by default all, for which the arrays have to be known.
      fill_value: what stands behind them; the smallest by default. Places are filled
        with the length of their array.

    Reference: ``jax.numpy.intersect1d``.
    """
    arrays = _two("intersect1d", ar1, ar2)
    values, places, _, real = merged([_as_set(x, assume_unique) for x in arrays])
    none = jnp.zeros(min(1, len(values)), bool)
    twice = jnp.concatenate([(values[1:] == values[:-1]) & real[1:], none])
    kept, found, there = _selected(values, twice, size, fill_value)
    if not return_indices:
        return kept
    first, second = (
        jnp.where(there, places.at[found + i].get(mode="fill", fill_value=0), len(x))
        for i, x in enumerate(arrays)
    )
    return kept, first, second


def setxor1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Return the values that are in one array only, in ascending order.

    Args:
      ar1, ar2: arrays, whose elements are taken in a row.
      assume_unique: whether neither has a value twice.
      size: how many to return; by default all, for which the arrays have to be known.
      fill_value: what stands behind them; the smallest by default.

    Reference: ``jax.numpy.setxor1d``.
    """
    arrays = _two("setxor1d", ar1, ar2)
    values, _, _, real = merged([_as_set(x, assume_unique) for x in arrays])
    same = (values[1:] == values[:-1]) & real[1:] & real[:-1]
    none = jnp.zeros(min(1, len(values)), bool)
    after, before = jnp.concatenate([same, none]), jnp.concatenate([none, same])
    alone = real & jnp.logical_not(after | before)
    return _selected(values, alone, size, fill_value)[0]


def setdiff1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Return the values of the first array that are not in the second.

    Args:
      ar1, ar2: arrays, whose elements are taken in a row.
      assume_unique: whether neither has a value twice; then they keep their order.
      size: how many to return; by default all, for which the arrays have to be known.
      fill_value: what stands behind them; 0 by default.

    Reference: ``jax.numpy.setdiff1d``.
    """
    x, y = arraylike("setdiff1d", ar1).reshape(-1), arraylike("setdiff1d", ar2)
    values, _, real = _as_set(x, assume_unique)
    wanted = real & jnp.logical_not(jnp.isin(values, y))
    fill = 0 if fill_value is None else _scalar(fill_value)
    return _selected(values, wanted, size, fill)[0]


class _UniqueAllResult(NamedTuple):
    """Values, where they stand first, which each element is, and how often."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class _UniqueCountsResult(NamedTuple):
    """Values, and how often each occurs."""

    values: Array
    counts: Array


class _UniqueInverseResult(NamedTuple):
    """Values, and which of them each element is."""

    values: Array
    inverse_indices: Array


def unique_all(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> _UniqueAllResult:
    """Return each value once, with everything that `unique` knows of it.

    Reference: ``jax.numpy.unique_all``.
    """
    how: Any = {"equal_nan": False, "size": size, "fill_value": fill_value}
    return _UniqueAllResult(*unique(x, True, True, True, **how))


def unique_counts(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> _UniqueCountsResult:
    """Return each value once, and how often it occurs.

    Reference: ``jax.numpy.unique_counts``.
    """
    how: Any = {"equal_nan": False, "size": size, "fill_value": fill_value}
    return _UniqueCountsResult(*unique(x, return_counts=True, **how))


def unique_inverse(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> _UniqueInverseResult:
    """Return each value once, and which of them each element is.

    Reference: ``jax.numpy.unique_inverse``.
    """
    how: Any = {"equal_nan": False, "size": size, "fill_value": fill_value}
    return _UniqueInverseResult(*unique(x, return_inverse=True, **how))


def unique_values(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array:
    """Return each value once.

    Reference: ``jax.numpy.unique_values``.
    """
    return unique(x, equal_nan=False, size=size, fill_value=fill_value)
