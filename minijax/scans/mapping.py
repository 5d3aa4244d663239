"""lax.map: a function of one row, for each row, in a loop and perhaps in batches.

Reference: ``jax.lax.map``.
"""

# Made from chapters/16_scan_upper.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Callable
from typing import Any

from minijax.batching.trace import vmap
from minijax.pytrees.functions import tree_map
from minijax.pytrees.treedefs import tree_flatten
from minijax.scans.arguments import (
    batch_step,
    count_steps,
    cut_batches,
    joined,
    row_step,
    rows_of_batches,
)
from minijax.scans.loops import scan


def map(f: Callable, xs: Any, *, batch_size: int | None = None) -> Any:
    """Apply a function to each row of some arrays, one row after the other.

    Args:
      f: function from a tree with one row of each array to a tree of arrays.
      xs: tree of arrays, whose leading axes have one size.
      batch_size: how many rows at once are handed to ``vmap(f)``; 0 for all.

    Returns:
      The tree of what `f` returned, with a new leading axis.

    Raises:
      ValueError: if `xs` has no rows, or different numbers of them.
      TypeError: if `batch_size` is negative.

    Reference: ``jax.lax.map``.
    """
    if batch_size is None:
        return scan(row_step(lambda: f), (), xs)[1]
    if batch_size < 0:
        raise TypeError(f"lax.map: batch_size has to be at least 0, not {batch_size}.")
    count = count_steps(xs)
    batches = count // batch_size if batch_size else 0
    if batches == 0:
        return vmap(f)(xs)
    leaves, treedef = tree_flatten(xs)
    pieces = [cut_batches(x, batches, batch_size) for x in leaves]
    whole, rest = (treedef.unflatten(part) for part in zip(*pieces))
    ys = scan(batch_step(lambda: f), (), whole)[1]
    if count == batches * batch_size:
        return tree_map(rows_of_batches, ys)
    return tree_map(joined, ys, vmap(f)(rest))
