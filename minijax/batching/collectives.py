"""Named axes and their collectives: psum, all_gather, all_to_all and their kin.

Inside ``vmap(f, axis_name="i")``, `f` sees one example; a *collective* such as
``lax.psum(x, "i")`` uses the `x` of all of them. It is a primitive with the parameter
`axis_name`, a tuple of names. The trace whose axis has such a name answers it; others
pass it on.

References: ``jax.lax.axis_index``, ``jax.lax.axis_size``, the parallel operators of
``jax.lax``.
"""

# Made from chapters/06_vmap_rest.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Sequence
from functools import partial
from itertools import groupby
from math import prod
from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax import lax
from minijax.arrays.array import ShapedArray, shape_rules, typeof
from minijax.arrays.numerics import canonicalize_axis
from minijax.batching.vmap import (
    batch_dim_to_front,
    broadcast_batch_dim,
    mapped_aval_of,
    move_one_axis,
    shift_axes_past_batch,
    vmap_rules,
)
from minijax.core import Array, Primitive, current_trace, impl_rules
from minijax.forward_mode.jvp import jvp_rules, linear_jvp
from minijax.lax.arithmetic import astype
from minijax.tree_util import tree_map

# Named axes: how operations talk across the examples of a vmap.


def named_axis_size(name):
    """Return the size of the innermost mapped axis that is called `name`.

    Raises:
      NameError: if neither the current trace nor one below it maps such an axis.
    """
    trace = current_trace()
    while trace is not None:
        axis = getattr(trace, "axis", None)
        if axis is not None and axis.name is not None and axis.name == name:
            return axis.size
        trace = trace.parent
    raise unbound_axis_error(name)


def unbound_axis_error(name):
    """Return the error of a collective whose axis name no vmap has given."""
    return NameError(
        f"unbound axis name: {name}. Names are given to axes by "
        f"vmap(..., axis_name={name!r}), by pmap in the same way, and by the mesh of a "
        "shard_map; they hold inside the mapped function."
    )


def raise_unbound_axis(*args, axis_name, **params):
    """Raise, as the impl rule of all collectives: no trace below maps the axis."""
    raise unbound_axis_error(axis_name[0])


def def_collective(primitive, shape, own, other):
    """Give a primitive with one operand its first rules.

    Args:
      primitive: a primitive with the parameter `axis_name`.
      shape: its shape rule.
      own: the vmap rule of an axis that it names, called as ``own(axis, x, dim,
        **params)``; returns the result and its mapped axis.
      other: the vmap rule of any other axis, called in the same way.
    """

    def rule(axis, args, dims, **params):
        shape(*map(mapped_aval_of, args, dims), **params)  # its checks, on one example
        answer = own if axis.name in params["axis_name"] else other
        if answer is own and "axis_index_groups" in params:
            raise NotImplementedError(
                f"{primitive} under vmap takes no axis_index_groups: reshape, and give "
                "the groups an axis and a name of their own."
            )
        result, dim = answer(axis, *args, *dims, **params)
        return [result], [dim]

    shape_rules[primitive] = shape
    impl_rules[primitive] = raise_unbound_axis
    vmap_rules[primitive] = rule


# Collectives: sums, means and extremes over a named axis, and permutations of it.

psum_p: Primitive = Primitive("psum")
pmax_p, pmin_p = Primitive("pmax"), Primitive("pmin")


def reduce_over_axis(primitive, fold, repeat):
    """Make a collective from `fold`, a reduction of one array along axes.

    Args:
      repeat: what folding `size` equal values `x` gives, called as ``repeat(size, x)``.
    """

    def own(axis, x, dim, axis_name):
        x = repeat(axis.size, x) if dim is None else strong(fold(x, (dim,)))
        others = tuple(name for name in axis_name if name != axis.name)
        return primitive.bind(x, axis_name=others) if others else x, None

    def other(axis, x, dim, **params):
        return primitive.bind(x, **params), dim

    def shape(x, axis_name, axis_index_groups=None):
        alike = () if axis_index_groups else axis_name  # groups have different values
        same = x.manual_axis_type.without(alike)
        return [x.update(weak_type=False, manual_axis_type=same)]

    def_collective(primitive, shape, own, other)


def strong(x):
    """Return `x` with a dtype that is not weak, as that of a reduction."""
    return lax.convert_element_type(x, typeof(x).dtype) if typeof(x).weak_type else x


def psum_of_unmapped(size, x):
    """Return the sum of `size` values equal to `x`, in the dtype of `x`.

    Of weak ones a number stays weak, and an array does not, as in JAX.
    """
    number = typeof(x).dtype.type(size).item()  # Python's: it takes the type of `x`
    return lax.mul(number, strong(x) if typeof(x).ndim else x)


reduce_over_axis(psum_p, lax.reduce_sum, psum_of_unmapped)
reduce_over_axis(pmax_p, lax.reduce_max, lambda size, x: x)
reduce_over_axis(pmin_p, lax.reduce_min, lambda size, x: x)


def canonical_axis_order(names):
    """Return names of mapped axes in their order around, as in a mesh, a tuple."""
    trace, around = current_trace(), []
    while trace is not None:
        axis = getattr(trace, "axis", None)
        if axis is not None and axis.name in names and axis.name not in around:
            around.append(axis.name)
        trace = trace.parent
    return tuple(reversed(around))


def axis_names(axis_name):
    """Return a tuple of different names, each of which is that of a mapped axis."""
    names = tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,)
    for name in names:
        named_axis_size(name)
    if len(set(names)) < len(names):
        raise ValueError(f"duplicate axis name in axis_name={axis_name!r}")
    return names


def axis_index_groups_params(names, axis_index_groups):
    """Return the parameter that groups of examples are, in a dictionary; or {}.

    Raises:
      ValueError: if an index of the axes is in no group, or in two.
    """
    if axis_index_groups is None:
        return {}
    groups, size = tuple(map(tuple, axis_index_groups)), axis_size(names)
    if sorted(i for group in groups for i in group) != list(range(size)):
        raise ValueError(
            "axis_index_groups must cover all indices exactly once: those of "
            f"{' and '.join(map(repr, names))} are 0 to {size - 1}, got {groups}."
        )
    return {"axis_index_groups": groups}


def axis_group_size(names, axis_index_groups=None):
    """Return how many examples meet: those of the axes, or of each group of them.

    Raises:
      ValueError: if groups are not of one size.
    """
    sizes = {len(group) for group in axis_index_groups or ()}
    if len(sizes) > 1:
        raise ValueError(
            "axis_index_groups must all have the same size here, got "
            f"{axis_index_groups}."
        )
    return sizes.pop() if sizes else axis_size(names)


def axis_size(axis_name: Any) -> int:
    """Return the number of examples along a named axis, a Python int.

    Args:
      axis_name: a name, or a tuple of names whose sizes are multiplied.

    Raises:
      NameError: if no axis of that name is mapped here.

    Reference: ``jax.lax.axis_size``.
    """
    return prod(map(named_axis_size, axis_names(axis_name)))


def psum(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """Return the sum of `x` over all examples along a named axis.

    Args:
      x: a pytree of arrays. Python numbers are multiplied by the size of the axis and
        stay Python numbers, so that ``psum(1, "i")`` is the size of the axis.
      axis_name: the name given to ``vmap``, or a tuple of names.
      axis_index_groups: lists of indices of the axis, of those that are added up;
        devices know them, and ``vmap`` does not.

    Raises:
      NameError: if no axis of that name is mapped here.
      ValueError: if an index is in no group, or in two.
      NotImplementedError: if there are groups, under ``vmap``.

    Reference: ``jax.lax.psum``.
    """
    names = axis_names(axis_name)
    groups = axis_index_groups_params(names, axis_index_groups)
    return tree_map(partial(_sum_leaf, names, groups), x)


def _sum_leaf(names, groups, x):
    if isinstance(x, (bool, int, float, complex)):
        return x * axis_group_size(names, **groups)
    if typeof(x).dtype == bool:
        x = lax.convert_element_type(x, np.int32)
    return psum_p.bind(x, axis_name=names, **groups)


def pmean(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """Return the mean of `x` over all examples along a named axis.

    Reference: ``jax.lax.pmean``; the arguments are those of `psum`.
    """
    total = psum(x, axis_name, axis_index_groups=axis_index_groups)
    size = psum(1, axis_name, axis_index_groups=axis_index_groups)
    return tree_map(lambda leaf: jnp.divide(leaf, size), total)


def pmax(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """Return the greatest `x` of all examples along a named axis.

    Reference: ``jax.lax.pmax``; the arguments are those of `psum`.
    """
    names = axis_names(axis_name)
    how = {"axis_name": names} | axis_index_groups_params(names, axis_index_groups)
    return tree_map(lambda leaf: pmax_p.bind(leaf, **how), x)


def pmin(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """Return the least `x` of all examples along a named axis.

    Reference: ``jax.lax.pmin``; the arguments are those of `psum`.
    """
    names = axis_names(axis_name)
    how = {"axis_name": names} | axis_index_groups_params(names, axis_index_groups)
    return tree_map(lambda leaf: pmin_p.bind(leaf, **how), x)


def names_and_groups(function, axis_name, axis_index_groups=None):
    """Return a tuple of names, and the parameters of groups.

    Raises:
      ValueError: if there is no name, or if there are groups of several ones.
    """
    names = axis_names(axis_name)
    if not names or (axis_index_groups is not None and len(names) > 1):
        amount = "at least one axis name" if not names else "one axis name with groups"
        raise ValueError(f"{function} takes {amount}, got {axis_name!r}")
    return names, axis_index_groups_params(names, axis_index_groups)


def axis_index_shape_rule(axis_name):
    """Return the type of an index, which does not depend on the axis."""
    return [ShapedArray((), np.int32)]


axis_index_p = Primitive("axis_index")
shape_rules[axis_index_p] = axis_index_shape_rule
impl_rules[axis_index_p] = raise_unbound_axis
vmap_rules[axis_index_p] = lambda axis, args, dims, axis_name: (
    [lax.iota(np.int32, axis.size)],
    [0],
)


def axis_index(axis_name: Any) -> Array:
    """Return which example this is along a named axis, an int32 scalar.

    Args:
      axis_name: a name, or a tuple of names; then the last one counts fastest.

    Raises:
      NameError: if no axis of that name is mapped here.

    Reference: ``jax.lax.axis_index``.
    """
    first, *others = axis_names(axis_name)
    index = axis_index_p.bind(axis_name=(first,))
    for name in others:
        inner = axis_index_p.bind(axis_name=(name,))
        index = index * axis_size(name) + inner
    return index


jvp_rules.reasons[axis_index_p] = "It has no operands, so it has no tangent."


ppermute_p: Primitive = Primitive("ppermute")


def ppermute(x: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Any:
    """Send each example's `x` to another example along a named axis.

    Args:
      x: a pytree of arrays.
      axis_name: the name given to ``vmap``, or a tuple of names of axes of a mesh.
      perm: pairs ``(source, destination)`` of indices, each used at most once. Of
        several names, in whatever order, the last axis of the mesh counts fastest.

    Returns:
      What was sent to this example; zeros if nothing was.

    Raises:
      NameError: if no axis of that name is mapped here.
      ValueError: if an index is out of range or used twice.
      NotImplementedError: if there are several names, and one of them is of ``vmap``.

    Reference: ``jax.lax.ppermute``.
    """
    names, _ = names_and_groups("ppermute", axis_name)
    names = canonical_axis_order(names)
    perm = tuple((int(source), int(destination)) for source, destination in perm)
    _check_permutation(perm, axis_size(names))
    return tree_map(
        lambda leaf: ppermute_p.bind(leaf, axis_name=names, perm=perm), x
    )


def _check_permutation(perm, size):
    for indices in zip(*perm):
        if len(set(indices)) < len(indices):
            raise ValueError(
                f"ppermute sources and destinations must be unique, got {perm}."
            )
        if not all(0 <= index < size for index in indices):
            raise ValueError(
                f"ppermute indices must be at least 0 and less than the axis size "
                f"{size}, got {perm}."
            )


def _permute_own(axis, x, dim, axis_name, perm):
    if len(axis_name) > 1:
        raise NotImplementedError(
            f"ppermute over {axis_name}, of which {axis.name!r} is an axis of vmap: "
            "permute along one name after the other, or take rows of what "
            "all_gather over these names returns."
        )
    if dim is None and len(perm) == axis.size:
        return x, None
    if dim is None:
        x, dim = broadcast_batch_dim(x, 0, axis.size), 0
    if not axis.size:
        return x, dim
    source = {destination: source for source, destination in perm}
    sources = [source.get(i) for i in range(axis.size)]
    runs = [[s for _, s in run] for _, run in groupby(enumerate(sources), _distance)]
    return lax.concatenate([_run_of_examples(x, dim, run) for run in runs], dim), dim


def _distance(pair):
    destination, source = pair
    return None if source is None else source - destination


def _run_of_examples(x, dim, sources):
    """Return consecutive examples; zeros where nothing was sent."""
    if sources[0] is not None:
        return lax.slice_in_dim(x, sources[0], sources[-1] + 1, axis=dim)
    shape = list(typeof(x).shape)
    shape[dim] = len(sources)
    return lax.full(shape, 0, typeof(x).dtype)


def_collective(
    ppermute_p,
    lambda x, axis_name, perm: [x],
    _permute_own,
    lambda axis, x, dim, **params: (ppermute_p.bind(x, **params), dim),
)


# Collectives that move data between the examples along a named axis.

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
        x, dim = broadcast_batch_dim(x, place, axis.size), place
    x = move_one_axis(x, dim, place)
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
    [place] = shift_axes_past_batch([all_gather_dimension], dim)
    result = all_gather_p.bind(x, all_gather_dimension=place, tiled=tiled, **params)
    return result, dim + (not tiled and place <= dim)


def_collective(all_gather_p, _gather_shape, _gather_own, _gather_other)


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
      to: ``"varying"``; or ``"invarying"``, for a result that is known to be the same
        for all examples. It is a sum then, to which each adds its own part.

    Raises:
      NameError: if no axis of that name is mapped here.
      ValueError: if `axis` is out of bounds, or `to` is another word.
      NotImplementedError: for ``"reduced"``, and for groups with ``"invarying"``.

    Reference: ``jax.lax.all_gather``.
    """
    if to not in ("varying", "invarying", "reduced"):
        raise ValueError(
            f"all_gather: `to` is 'varying', 'invarying' or 'reduced', not {to!r}."
        )
    names, groups = names_and_groups("all_gather", axis_name, axis_index_groups)
    if to == "reduced" or (to == "invarying" and groups):
        raise NotImplementedError(
            f"all_gather has no to={to!r}{' with axis_index_groups' * bool(groups)}. "
            "A type here says along which axes a value varies, and no more."
        )

    def gather(leaf):
        place = canonicalize_axis(axis, typeof(leaf).ndim + (not tiled))
        if to == "invarying":
            return _gathered_sum(leaf, names, place, tiled)
        for i, name in enumerate(reversed(names)):  # the last one counts fastest
            leaf = _gather(leaf, (name,), place, tiled, groups)
            leaf = _merge_axes(leaf, place) if i and not tiled else leaf
        return leaf

    return tree_map(gather, x)


def _gathered_sum(x, names, place, tiled):
    """Return the parts of all examples as a sum: each adds its own, and zeros."""
    aval, size = typeof(x), axis_group_size(names)
    shape = (*aval.shape[:place], size, *aval.shape[place:])
    others = [i for i in range(len(shape)) if i != place]
    counted = lax.broadcast_in_dim(lax.iota(np.int32, size), shape, [place])
    own = lax.eq(counted, lax.broadcast_in_dim(axis_index(names), shape, []))
    parts = lax.broadcast_in_dim(x, shape, others)
    total = psum(lax.select(own, parts, lax.full(shape, 0, aval.dtype)), names)
    total = astype(total, aval.dtype)  # bools have been counted
    return _merge_axes(total, place) if tiled else total


def _gather(x, names, place, tiled, groups):
    return all_gather_p.bind(
        x,
        axis_name=names,
        axis_size=axis_group_size(names, **groups),
        all_gather_dimension=place,
        tiled=tiled,
        **groups,
    )


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
    total = lax.mul(x, axis.size) if dim is None else lax.reduce_sum(x, (dim,))
    if tiled:
        total = _split_axis(total, scatter_dimension, axis.size)
    return total, scatter_dimension


def _scatter_other(axis, x, dim, scatter_dimension, tiled, **params):
    [place] = shift_axes_past_batch([scatter_dimension], dim)
    result = reduce_scatter_p.bind(x, scatter_dimension=place, tiled=tiled, **params)
    return result, dim - (not tiled and place < dim)


def_collective(reduce_scatter_p, _scatter_shape, _scatter_own, _scatter_other)


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
        size = axis_group_size(names, **groups)
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
        axis_size=axis_group_size(names, **groups),
        scatter_dimension=place,
        tiled=tiled,
        **groups,
    )


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
    x = batch_dim_to_front(x, dim, axis.size)
    if tiled:
        x = _split_axis(x, split_axis + 1, axis.size)
    x = move_one_axis(x, split_axis + 1, 0)  # who receives; who sends is axis 1 now
    x = move_one_axis(x, 1, concat_axis + 1)
    return _merge_axes(x, concat_axis + 1) if tiled else x, 0


def _exchange_other(axis, x, dim, split_axis, concat_axis, **params):
    places = {"split_axis": split_axis + 1, "concat_axis": concat_axis + 1}
    return all_to_all_p.bind(move_one_axis(x, dim, 0), **places, **params), 0


def_collective(all_to_all_p, _exchange_shape, _exchange_own, _exchange_other)


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
    groups = axis_index_groups_params(names, axis_index_groups)
    axes = (split_axis, concat_axis)
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
    return all_to_all_p.bind(
        x,
        axis_name=names,
        axis_size=axis_group_size(names, **groups),
        split_axis=split_axis,
        concat_axis=concat_axis,
        tiled=tiled,
        **groups,
    )


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
    {p: linear_jvp(p) for p in (all_gather_p, reduce_scatter_p, all_to_all_p)}
)


jvp_rules[psum_p] = linear_jvp(psum_p)
jvp_rules[ppermute_p] = linear_jvp(ppermute_p)
NO_EXTREMES = (
    "The extreme of a named axis has no derivative, as in JAX; take the maximum of "
    "what all_gather returns instead."
)
jvp_rules.reasons.update({pmax_p: NO_EXTREMES, pmin_p: NO_EXTREMES})
