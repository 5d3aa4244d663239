"""Collectives: sums, means and extremes over a named axis, and permutations of it.

Reference: the parallel operators of ``jax.lax``.
"""

# Made from chapters/06_vmap_rest.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Sequence
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax import lax
from minijax.arrays.avals import typeof
from minijax.batching.named_axes import (
    axis_names,
    axis_size,
    collective,
    group_size,
    grouped,
    names_and_groups,
    outermost_first,
)
from minijax.batching.rules import insert_axis
from minijax.core import Primitive
from minijax.forward.rules import jvp_rules, linear_rule
from minijax.tree_util import tree_map

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
        return primitive.bind(x, axis_name=others)[0] if others else x, None

    def other(axis, x, dim, **params):
        return primitive.bind(x, **params)[0], dim

    def shape(x, axis_name, axis_index_groups=None):
        alike = () if axis_index_groups else axis_name  # groups have different values
        same = x.manual_axis_type.without(alike)
        return [x.update(weak_type=False, manual_axis_type=same)]

    collective(primitive, shape, own, other)


def strong(x):
    """Return `x` with a dtype that is not weak, as that of a reduction."""
    return lax.convert_element_type(x, typeof(x).dtype) if typeof(x).weak_type else x


def multiple(size, x):
    """Return the sum of `size` values equal to `x`, in the dtype of `x`."""
    return lax.mul(lax.convert_element_type(size, typeof(x).dtype), x)


reduce_over_axis(psum_p, lax.reduce_sum, multiple)
reduce_over_axis(pmax_p, lax.reduce_max, lambda size, x: x)
reduce_over_axis(pmin_p, lax.reduce_min, lambda size, x: x)


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
    groups = grouped(names, axis_index_groups)
    return tree_map(partial(_sum_leaf, names, groups), x)


def _sum_leaf(names, groups, x):
    if isinstance(x, (bool, int, float, complex)):
        return x * group_size(names, **groups)
    if typeof(x).dtype == bool:
        x = lax.convert_element_type(x, np.int32)
    return psum_p.bind(x, axis_name=names, **groups)[0]


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
    how = {"axis_name": names} | grouped(names, axis_index_groups)
    return tree_map(lambda leaf: pmax_p.bind(leaf, **how)[0], x)


def pmin(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """Return the least `x` of all examples along a named axis.

    Reference: ``jax.lax.pmin``; the arguments are those of `psum`.
    """
    names = axis_names(axis_name)
    how = {"axis_name": names} | grouped(names, axis_index_groups)
    return tree_map(lambda leaf: pmin_p.bind(leaf, **how)[0], x)


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
    names = outermost_first(names)
    perm = tuple((int(source), int(destination)) for source, destination in perm)
    _check_permutation(perm, axis_size(names))
    return tree_map(
        lambda leaf: ppermute_p.bind(leaf, axis_name=names, perm=perm)[0], x
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
        x, dim = insert_axis(x, 0, axis.size), 0
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


collective(
    ppermute_p,
    lambda x, axis_name, perm: [x],
    _permute_own,
    lambda axis, x, dim, **params: (ppermute_p.bind(x, **params)[0], dim),
)


jvp_rules[psum_p] = linear_rule(psum_p)
jvp_rules[ppermute_p] = linear_rule(ppermute_p)
NO_EXTREMES = (
    "The extreme of a named axis has no derivative, as in JAX; take the maximum of "
    "what all_gather returns instead."
)
jvp_rules.reasons.update({pmax_p: NO_EXTREMES, pmin_p: NO_EXTREMES})
