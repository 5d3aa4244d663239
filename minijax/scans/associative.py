"""Associative scan: a parallel prefix in about 2 log2(n) rounds instead of n steps.

Reference: ``jax.lax.associative_scan``; G. Blelloch, *Prefix Sums and Their
Applications* (1990).
"""

# Made from chapters/16_scan_upper.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Callable
from typing import Any

from minijax import lax
from minijax.arrays.avals import typeof
from minijax.forward.programs import cut
from minijax.pytrees.treedefs import tree_flatten
from minijax.scans.arguments import common_axis, on_leaves


def every_second(xs, start, limit, axis):
    """Return the elements `start`, `start` + 2, … before `limit` of each array."""
    return [cut(x, axis, start, limit, 2) for x in xs]


def interleave(x, y, axis):
    """Return the elements of `x` and `y` in turn; `x` may have one more than `y`."""
    shape, size = typeof(y).shape, typeof(y).shape[axis]
    more = typeof(x).shape[axis] > size
    both = [cut(x, axis, 0, size) if more else x, y]
    columns = [lax.expand_dims(part, (axis + 1,)) for part in both]
    pairs = lax.concatenate(columns, axis + 1)
    result = lax.reshape(pairs, (*shape[:axis], 2 * size, *shape[axis + 1 :]))
    last = [cut(x, axis, size, size + 1)] if more else []
    result = lax.concatenate([result, *last], axis)
    return lax.convert_element_type(result, result.dtype)  # never weak, as in JAX


def combine_prefixes(combine, xs, axis):
    """Combine all prefixes of arrays along an axis: neighbours first, then the pairs.

    Args:
      combine: a function of two lists of arrays.
      xs: list of arrays.
      axis: the axis.
    """
    size = typeof(xs[0]).shape[axis]
    if size < 2:
        return xs
    first = every_second(xs, 0, size - 1, axis)
    pairs = combine(first, every_second(xs, 1, size, axis))
    odd = combine_prefixes(combine, pairs, axis)
    even = [cut(x, axis, 0, 1) for x in xs]
    if size > 2:
        before = odd if size % 2 else [cut(x, axis, 0, size // 2 - 1) for x in odd]
        later = combine(before, every_second(xs, 2, size, axis))
        even = [lax.concatenate(both, axis) for both in zip(even, later)]
    return [interleave(x, y, axis) for x, y in zip(even, odd)]


def associative_scan(
    fn: Callable, elems: Any, reverse: bool = False, axis: int = 0
) -> Any:
    """Combine the elements along an axis, and keep every partial result.

    Args:
      fn: an associative function. It gets two trees like `elems`, each with some of the
        elements, and combines the first with the first, the second with the second …
      elems: a tree of arrays that have the same size along `axis`.
      reverse: whether to begin with the last element.
      axis: the axis, the same one for all arrays.

    Returns:
      A tree like `elems`. Its element i combines the elements 0 to i; with `reverse`,
      the last to the element i, in this order.

    Raises:
      TypeError: if `fn` cannot be called, or changes shapes or dtypes.
      ValueError: if there is no such axis, if sizes along it differ, or if `fn` returns
        more or fewer arrays than `elems` has.

    Reference: ``jax.lax.associative_scan``.
    """
    if not callable(fn):
        raise TypeError(f"associative_scan: fn is {fn!r}, which cannot be called.")
    axis = common_axis(elems, axis)
    leaves, treedef = tree_flatten(elems)
    if reverse:
        leaves = [lax.rev(leaf, (axis,)) for leaf in leaves]
    results = combine_prefixes(on_leaves(fn, treedef), leaves, axis)
    if reverse:
        results = [lax.rev(result, (axis,)) for result in results]
    return treedef.unflatten(results)
