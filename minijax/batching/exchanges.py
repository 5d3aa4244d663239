"""Collectives that move data between the examples along a named axis.

Reference: the parallel operators of ``jax.lax``.
"""

# Made from chapters/06_vmap_rest.md by `make chapter`;
# edit the chapter, not this file.

from typing import Any

from minijax import lax
from minijax.arrays.avals import typeof
from minijax.arrays.checks import canonicalize_axis
from minijax.batching.collectives import multiple
from minijax.batching.named_axes import (
    axis_names,
    axis_size,
    collective,
    group_size,
    grouped,
    names_and_groups,
)
from minijax.batching.rules import at_front, beside, insert_axis, move_axis
from minijax.core import Primitive
from minijax.forward.rules import jvp_rules, linear_rule
from minijax.tree_util import tree_map

all_gather_p: Primitive = Primitive("all_gather")


def _gather_shape(x, axis_size, all_gather_dimension, tiled, **params):
    shape = list(x.shape)
    if tiled:
        shape[all_gather_dimension] *= axis_size
    else:
        shape.insert(all_gather_dimension, axis_size)
    return [x.update(shape=shape)]


def _gather_own(axis, x, dim, axis_name, axis_size, all_gather_dimension, tiled):
    place = all_gather_dimension
    if dim is None:
        x, dim = insert_axis(x, place, axis.size), place
    x = move_axis(x, dim, place)
    return _merge_axes(x, place) if tiled else x, None


def _merge_axes(x, axis):
    """Join `axis` and the one after it."""
    shape = typeof(x).shape
    merged = shape[axis] * shape[axis + 1]
    return lax.reshape(x, (*shape[:axis], merged, *shape[axis + 2 :]))


def _split_axis(x, axis, size):
    """Split `axis` in two, the first of which has `size`."""
    shape = typeof(x).shape
    pieces = (size, shape[axis] // size)
    return lax.reshape(x, (*shape[:axis], *pieces, *shape[axis + 1 :]))


def _gather_other(axis, x, dim, all_gather_dimension, tiled, **params):
    [place] = beside([all_gather_dimension], dim)
    results = all_gather_p.bind(x, all_gather_dimension=place, tiled=tiled, **params)
    return results[0], dim + (not tiled and place <= dim)


collective(all_gather_p, _gather_shape, _gather_own, _gather_other)


def all_gather(
    x: Any,
    axis_name: Any,
    *,
    axis_index_groups: Any = None,
    axis: int = 0,
    tiled: bool = False,
    to: str = "varying",
) -> Any:
    """Return the `x` of all examples along a named axis.

    Args:
      x: a pytree of arrays.
      axis_name: the name given to ``vmap``, or a tuple of names; then the last one
        counts fastest.
      axis_index_groups: groups of equal size, see `psum`.
      axis: where the examples are put in the results.
      tiled: whether they are joined along an axis of `x`, not stacked along a new one.
      to: ``"varying"``.

    Raises:
      NameError: if no axis of that name is mapped here.
      ValueError: if `axis` is out of bounds, or `to` is another word.

    Reference: ``jax.lax.all_gather``.
    """
    if to != "varying":
        raise ValueError(f'all_gather is to="varying" alone, got to={to!r}.')
    names, groups = names_and_groups("all_gather", axis_name, axis_index_groups)

    def gather(leaf):
        place = canonicalize_axis(axis, typeof(leaf).ndim + (not tiled))
        for i, name in enumerate(reversed(names)):  # the last one counts fastest
            leaf = _gather(leaf, (name,), place, tiled, groups)
            leaf = _merge_axes(leaf, place) if i and not tiled else leaf
        return leaf

    return tree_map(gather, x)


def _gather(x, names, place, tiled, groups):
    return all_gather_p.bind(
        x,
        axis_name=names,
        axis_size=group_size(names, **groups),
        all_gather_dimension=place,
        tiled=tiled,
        **groups,
    )[0]


reduce_scatter_p: Primitive = Primitive("reduce_scatter")


def _scatter_shape(x, axis_size, scatter_dimension, tiled, **params):
    _check_divisible("psum_scatter", x, scatter_dimension, axis_size, tiled)
    shape = list(x.shape)
    if tiled:
        shape[scatter_dimension] //= axis_size
    else:
        del shape[scatter_dimension]
    return [x.update(shape=shape)]


def _refuse_bools(function, x):
    """Raise if the elements of `x` are bools."""
    if x.dtype == bool:
        raise TypeError(
            f"{function} does not accept dtype bool, got {x}: bools are not added. "
            "Cast them to integers with .astype(int)."
        )


def _check_divisible(function, x, dimension, axis_size, tiled):
    """Raise unless one axis of `x` can be dealt out to the examples."""
    size = x.shape[dimension]
    if tiled and size % axis_size:
        raise ValueError(
            f"{function} with tiled=True deals out axis {dimension} of {x} in equal "
            f"parts, so {size} has to be divisible by the axis size {axis_size}."
        )
    if not tiled and size != axis_size:
        raise ValueError(
            f"{function} deals out axis {dimension} of {x}, one entry to each example, "
            f"so its size has to be equal to the axis size {axis_size}."
        )


def _scatter_own(axis, x, dim, axis_name, axis_size, scatter_dimension, tiled):
    total = multiple(axis.size, x) if dim is None else lax.reduce_sum(x, (dim,))
    if tiled:
        total = _split_axis(total, scatter_dimension, axis.size)
    return total, scatter_dimension


def _scatter_other(axis, x, dim, scatter_dimension, tiled, **params):
    [place] = beside([scatter_dimension], dim)
    [result] = reduce_scatter_p.bind(x, scatter_dimension=place, tiled=tiled, **params)
    return result, dim - (not tiled and place < dim)


collective(reduce_scatter_p, _scatter_shape, _scatter_own, _scatter_other)


def psum_scatter(
    x: Any,
    axis_name: Any,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: Any = None,
    tiled: bool = False,
) -> Any:
    """Return this example's part of the sum of `x` over a named axis.

    Args:
      x: a pytree of arrays.
      axis_name: the name given to ``vmap``, or a tuple of names; then the last one
        counts fastest.
      scatter_dimension: the axis of `x` that is dealt out; its size is that of the
        named axis, and it is gone from the result.
      axis_index_groups: groups of equal size, see `psum`.
      tiled: whether that axis stays, and each example gets an equal part of it.

    Raises:
      NameError: if no axis of that name is mapped here.
      TypeError: if `x` has bools, which are not added; `psum` counts them.
      ValueError: if the axis cannot be dealt out.

    Reference: ``jax.lax.psum_scatter``.
    """
    names, groups = names_and_groups("psum_scatter", axis_name, axis_index_groups)

    def scatter(leaf):
        _refuse_bools("psum_scatter", typeof(leaf))
        place = canonicalize_axis(scatter_dimension, typeof(leaf).ndim)
        size = group_size(names, **groups)
        _check_divisible("psum_scatter", typeof(leaf), place, size, tiled)
        in_steps = len(names) > 1 and not tiled  # each but the last leaves a part
        for name in names:
            leaf = _scatter(leaf, (name,), place, tiled or in_steps, groups)
        return lax.squeeze(leaf, (place,)) if in_steps else leaf

    return tree_map(scatter, x)


def _scatter(x, names, place, tiled, groups):
    return reduce_scatter_p.bind(
        x,
        axis_name=names,
        axis_size=group_size(names, **groups),
        scatter_dimension=place,
        tiled=tiled,
        **groups,
    )[0]


all_to_all_p: Primitive = Primitive("all_to_all")


def _exchange_shape(x, axis_size, split_axis, concat_axis, tiled, **params):
    _check_divisible("all_to_all", x, split_axis, axis_size, tiled)
    shape = list(x.shape)
    if tiled:
        shape[split_axis] //= axis_size
        shape[concat_axis] *= axis_size
    else:
        del shape[split_axis]
        shape.insert(concat_axis, axis_size)
    return [x.update(shape=shape)]


def _exchange_own(axis, x, dim, axis_name, axis_size, split_axis, concat_axis, tiled):
    x = at_front(x, dim, axis.size)
    if tiled:
        x = _split_axis(x, split_axis + 1, axis.size)
    x = move_axis(x, split_axis + 1, 0)  # who receives; who sends is axis 1 now
    x = move_axis(x, 1, concat_axis + 1)
    return _merge_axes(x, concat_axis + 1) if tiled else x, 0


def _exchange_other(axis, x, dim, split_axis, concat_axis, **params):
    places = {"split_axis": split_axis + 1, "concat_axis": concat_axis + 1}
    return all_to_all_p.bind(move_axis(x, dim, 0), **places, **params)[0], 0


collective(all_to_all_p, _exchange_shape, _exchange_own, _exchange_other)


def all_to_all(
    x: Any,
    axis_name: Any,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: Any = None,
    tiled: bool = False,
) -> Any:
    """Exchange: each example sends a part of `x` to every other one.

    Args:
      x: a pytree of arrays.
      axis_name: the name given to ``vmap``, or a tuple of names; then the last one
        counts fastest.
      split_axis: the axis of `x` that is dealt out; its size is that of the named
        axis, and it is gone from the result.
      concat_axis: the axis of the result along which the received parts lie.
      axis_index_groups: groups of equal size, see `psum`.
      tiled: whether `split_axis` stays, dealt out in equal parts, and the parts are
        joined along the existing `concat_axis`.

    Raises:
      NameError: if no axis of that name is mapped here.
      ValueError: if the axis cannot be dealt out.

    Reference: ``jax.lax.all_to_all``.
    """
    names = axis_names(axis_name)
    groups, axes = grouped(names, axis_index_groups), (split_axis, concat_axis)
    if groups and len(names) > 1:
        raise NotImplementedError(f"all_to_all of groups takes one name, got {names}")

    def exchange(leaf):
        split, concat = [canonicalize_axis(i, typeof(leaf).ndim) for i in axes]
        return _exchange(leaf, names, split, concat, tiled, **groups)

    return tree_map(exchange, x)


def _exchange(x, names, split_axis, concat_axis, tiled, **groups):
    """Exchange along the last names first, then along the first one."""
    if len(names) != 1:
        return _exchange_twice(x, names, split_axis, concat_axis, tiled) if names else x
    [result] = all_to_all_p.bind(
        x,
        axis_name=names,
        axis_size=group_size(names, **groups),
        split_axis=split_axis,
        concat_axis=concat_axis,
        tiled=tiled,
        **groups,
    )
    return result


def _exchange_twice(x, names, split_axis, concat_axis, tiled):
    """Exchange along the first of several names, which counts slowest."""
    _check_divisible("all_to_all", typeof(x), split_axis, axis_size(names), tiled)
    x = _split_axis(x, split_axis, axis_size(names[0]))
    concat = concat_axis + (concat_axis >= split_axis)
    x = _exchange(x, names[1:], split_axis + 1, concat, tiled)
    split = split_axis + (not tiled and concat_axis < split_axis)
    x = _exchange(x, names[:1], split, concat, True)
    shape = typeof(x).shape
    return lax.reshape(x, (*shape[:split], *shape[split + 1 :]))


jvp_rules.update(
    {p: linear_rule(p) for p in (all_gather_p, reduce_scatter_p, all_to_all_p)}
)
