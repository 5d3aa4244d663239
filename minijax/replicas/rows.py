"""Rows of a mesh: who meets in a collective over some of its axes, and gets what."""

# Made from chapters/36_replicas_ground.md by `make chapter`;
# edit the chapter, not this file.

from functools import cache, reduce
from math import prod

import numpy as np

from minijax.batching.named_axes import unbound_axis


def places(shape, rank):
    """Return the index of a replica along each axis; the last counts fastest."""
    found = {}
    for name, size in reversed(shape.items()):
        rank, found[name] = divmod(rank, size)
    return found


@cache
def _row(shape, rank, names):
    shape = dict(shape)
    mine, fixed = places(shape, rank), set(shape).difference(names)
    ranks = range(prod(shape.values()))
    row = [r for r in ranks if all(places(shape, r)[x] == mine[x] for x in fixed)]
    return tuple(sorted(row, key=lambda r: [places(shape, r)[x] for x in names]))


class Groups(tuple):
    """Behind names of axes: which of those who differ along them meet each other."""


def among(axis_name, axis_index_groups=None, **params):
    """Return who meets in a collective with these parameters, as `row_of` takes it."""
    return (*axis_name, Groups(axis_index_groups)) if axis_index_groups else axis_name


def row_of(shape, rank, names):
    """Return the ranks of the replicas that differ from one along `names` alone.

    Args:
      shape: dictionary from the names of the axes to their sizes.
      rank: of a replica.
      names: a tuple of them, with `Groups` behind them if not all of these meet.

    Raises:
      NameError: if there is no axis of such a name.
    """
    names, groups = [x for x in names if type(x) is not Groups], names[-1]
    for name in names:
        if name not in shape:
            raise unbound_axis(name)
    row = _row(tuple(shape.items()), rank, tuple(names))
    if type(groups) is not Groups:
        return row
    mine = row.index(rank)
    return next(tuple([row[i] for i in group]) for group in groups if mine in group)


def fold(function):
    """Return how a reduction combines: all replicas get the same array."""
    return lambda xs: [reduce(function, xs)] * len(xs)


def gather_blocks(xs, axis_size, all_gather_dimension, tiled):
    """Return all arrays as one, for each replica."""
    join = np.concatenate if tiled else np.stack
    return [join(xs, all_gather_dimension)] * len(xs)


def _parts(x, size, axis, tiled):
    """Return the parts of an array along an axis, one for each replica."""
    parts = np.split(x, size, axis)
    return parts if tiled else [part.squeeze(axis) for part in parts]


def sum_and_scatter(xs, axis_size, scatter_dimension, tiled):
    """Return for each replica its part of the sum."""
    return _parts(reduce(np.add, xs), len(xs), scatter_dimension, tiled)


def swap_blocks(xs, axis_size, split_axis, concat_axis, tiled):
    """Return for each replica the parts that all others have for it."""
    join = np.concatenate if tiled else np.stack
    sent = [_parts(x, len(xs), split_axis, tiled) for x in xs]
    return [join(parts, concat_axis) for parts in zip(*sent)]


def permute_blocks(xs, perm):
    """Return for each replica the array of its source, or zeros."""
    source = {destination: source for source, destination in perm}
    zeros = np.zeros_like(xs[0])
    return [xs[source[i]] if i in source else zeros for i in range(len(xs))]
