"""Sharding rules of gathers, scatters, and slices at computed places.

Reference: GSPMD, https://arxiv.org/abs/2105.04663, section 3.
"""

# Made from chapters/36_replicas_rest.md by `make chapter`;
# edit the chapter, not this file.

import math

from minijax import lax
from minijax.batching.rules import primitives
from minijax.indexing.dimension_numbers import Windows
from minijax.spmd.spreading import Piece, agreed, recut, sharding_rules, whole_shape
from minijax.spmd.spreading_rules import _cut_again


def _own_sizes(sizes, spec):
    """Return what each device has of some sizes."""
    return tuple([
        size // math.prod(map(lax.axis_size, cut)) for size, cut in zip(sizes, spec)
    ])  # fmt: skip


def _at(places, ndim):
    return tuple([places.get(axis, ()) for axis in range(ndim)])


def _whole_windows(windows, ndim, sizes, shape):
    """Return axes of the operand that windows have whole, and where results do."""
    pairs = zip(windows.kept(ndim), windows.inside)
    return {
        axis: place
        for axis, place in pairs
        if sizes[axis] == shape[axis] and axis not in windows.mapped
    }


def _counters(windows, ndim, counting):
    """Return axes of the operand that are walked with indices, and where in results."""
    places = [counting[place] for place in windows.index_shared]
    return dict(zip(windows.shared, places))


def gather_pieces(
    primitive, operand, indices, dimension_numbers, slice_sizes, **params
):  # fmt: skip
    """Take windows of parts, where they have an axis whole; of own indices each."""
    windows, shape = Windows(*dimension_numbers), whole_shape(operand)
    ndim, rank = len(shape), len(windows.inside) + len(indices.spec) - 1
    wide = _whole_windows(windows, ndim, slice_sizes, shape)
    counting = windows.counting(rank)
    shared = _counters(windows, ndim, counting)
    wishes = [[] for _ in range(rank)]
    for axis, place in (wide | shared).items():
        wishes[place].append(operand.spec[axis])
    for place, cut in zip(counting, indices.spec):
        wishes[place].append(cut)
    cuts = agreed(wishes)
    mine = _at({axis: cuts[place] for axis, place in (wide | shared).items()}, ndim)
    theirs = *[cuts[place] for place in counting], ()
    params |= {"slice_sizes": _window(slice_sizes, mine, wide)}
    operands = recut(operand, mine), recut(indices, theirs)
    [y] = primitive.bind(*operands, dimension_numbers=dimension_numbers, **params)
    return [Piece(y, cuts)]


def _window(sizes, spec, wide):
    own = _own_sizes(sizes, spec)
    return tuple([own[i] if i in wide else size for i, size in enumerate(sizes)])


def scatter_pieces(primitive, operand, indices, updates, dimension_numbers, **params):
    """Change parts of an array, where each update has an axis whole."""
    windows, shape = Windows(*dimension_numbers), whole_shape(operand)
    ndim, rank = len(shape), len(updates.spec)
    sizes = windows.sizes(ndim, whole_shape(updates))
    counting = windows.counting(rank)
    wide = _whole_windows(windows, ndim, sizes, shape)
    shared = _counters(windows, ndim, counting)
    places = wide | shared
    cuts = _as_operand(
        operand.spec, {axis: updates.spec[place] for axis, place in places.items()}
    )
    entering = _at({place: cuts[axis] for axis, place in places.items()}, rank)
    theirs = *[entering[place] for place in counting], ()
    parts = recut(operand, cuts), recut(indices, theirs), recut(updates, entering)
    [y] = primitive.bind(*parts, dimension_numbers=dimension_numbers, **params)
    return [_cut_again(Piece(y, cuts), operand.spec)]


def _as_operand(spec, theirs):
    """Return how an operand is cut while updates enter; other axes are whole.

    Args:
      spec: how it is cut, and its result will be again. An update that is cut along
        these mesh axes elsewhere is gathered.
      theirs: for axes that each update has whole, how updates are cut there.
    """
    used = set().union(*spec)
    return agreed([
        [own, () if (used - {*own}) & {*theirs[axis]} else theirs[axis]]
        if axis in theirs else []
        for axis, own in enumerate(spec)
    ])  # fmt: skip


def slice_pieces(primitive, operand, *starts, slice_sizes):
    """Cut out of parts, along axes that the slice has whole."""
    pairs = zip(operand.spec, slice_sizes, whole_shape(operand))
    spec = tuple([cut if size == whole else () for cut, size, whole in pairs])
    own = _own_sizes(slice_sizes, spec)
    values = [recut(operand, spec), *[recut(x, ()) for x in starts]]
    [y] = primitive.bind(*values, slice_sizes=own)
    return [_cut_again(Piece(y, spec), operand.spec)]


def update_pieces(primitive, operand, update, *starts):
    """Put a slice into parts, along axes that it has whole."""
    rows = zip(update.spec, whole_shape(operand), whole_shape(update))
    theirs = {i: cut for i, (cut, whole, size) in enumerate(rows) if size == whole}
    spec = _as_operand(operand.spec, theirs)
    values = [recut(x, spec) for x in (operand, update)]
    [y] = primitive.bind(*values, *[recut(x, ()) for x in starts])
    return [_cut_again(Piece(y, spec), operand.spec)]


sharding_rules[lax.gather_p] = gather_pieces
sharding_rules[lax.dynamic_slice_p] = slice_pieces
sharding_rules[lax.dynamic_update_slice_p] = update_pieces
_scatters = "scatter scatter_add scatter_mul scatter_min scatter_max"
sharding_rules.update(dict.fromkeys(primitives(_scatters), scatter_pieces))
