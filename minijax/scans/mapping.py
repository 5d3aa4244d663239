# Made from chapters/16_scan_upper.md by `make chapter`;
# edit the chapter, not this file.
"""lax.map: a function of one row, for each row, in a loop and perhaps in batches.

Reference: ``jax.lax.map``.
"""

from collections.abc import Callable
from typing import Any

from minijax import lax
from minijax.arrays.avals import typeof
from minijax.batching.trace import vmap
from minijax.forgetting.programs import merge, partition
from minijax.own_rules.batch_rules import custom_vmap
from minijax.pytrees.functions import tree_map
from minijax.pytrees.treedefs import tree_flatten
from minijax.scans.loops import made_once, scan
from minijax.scans.scan_body import count_steps


def _row_step(function):
    return lambda _, row: ((), function()(row))


def _batch_step(function):
    return lambda _, rows: ((), vmap(function())(rows))


def _cut_batches(x, batches, batch_size):
    count, *shape = typeof(x).shape
    end = batches * batch_size
    whole = x if end == count else lax.slice_in_dim(x, 0, end)
    whole = lax.reshape(whole, (batches, batch_size, *shape))
    return whole, None if end == count else lax.slice_in_dim(x, end, None)


def _rows_of_batches(y):
    batches, batch_size, *shape = typeof(y).shape
    return lax.reshape(y, (batches * batch_size, *shape))


def _joined(y, rest):
    return lax.concatenate([_rows_of_batches(y), rest], 0)


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
        return scan(made_once(_row_step, f), (), xs)[1]
    if batch_size < 0:
        raise TypeError(f"lax.map: batch_size has to be at least 0, not {batch_size}.")
    count = count_steps(xs)
    batches = count // batch_size if batch_size else 0
    if batches == 0:
        return vmap(f)(xs)
    leaves, treedef = tree_flatten(xs)
    pieces = [_cut_batches(x, batches, batch_size) for x in leaves]
    whole, rest = (treedef.unflatten(part) for part in zip(*pieces))
    ys = scan(made_once(_batch_step, f), (), whole)[1]
    if count == batches * batch_size:
        return tree_map(_rows_of_batches, ys)
    return tree_map(_joined, ys, vmap(f)(rest))


def sequential_vmap(f: Callable) -> custom_vmap:
    """Return a function whose batch is a loop over the examples.

    Args:
      f: a function of trees of arrays.

    Reference: ``jax.custom_batching.sequential_vmap``.
    """
    f = custom_vmap(f)

    @f.def_vmap
    def rule(axis_size, in_batched, *args):
        leaves, tree = tree_flatten(list(args))
        batched = tree.flatten_up_to(in_batched)
        shared, rows = partition(batched, leaves)

        def one(row):
            return f(*tree.unflatten(merge(batched, shared, row)))

        out = scan(made_once(_row_step, one), (), rows)[1]
        return out, tree_map(lambda leaf: True, out)

    return f
