"""shard_map as a function: it reads meshes and specifications around the primitive.

Reference: ``jax.shard_map``.
"""

# Made from chapters/36_replicas_ground.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Callable, Set
from functools import wraps
from typing import Any

import numpy as np

from minijax.core import Array
from minijax.mesh_maps.bodies import run_mapped
from minijax.pytrees.call_checks import check_callable
from minijax.pytrees.operations import flatten_axes
from minijax.pytrees.treedefs import tree_flatten, tree_leaves


def shard_map(
    f: Callable[..., Any] | None = None,
    /,
    *,
    out_specs: Any,
    in_specs: Any = None,
    mesh: Any = None,
    axis_names: Set[Any] = frozenset(),
    check_vma: bool = True,
) -> Any:
    """Return a function that runs `f` once on each device of a mesh, on its blocks.

    Args:
      f: a function of trees of arrays, the blocks of one device. Without it, the
        result is a decorator.
      out_specs: how results are put together from the blocks that the devices return:
        a tree prefix of the result, of `PartitionSpec`.
      in_specs: how arguments are dealt out: a tree prefix of the tuple of arguments.
        What has None there goes to all devices: an array is whole, and anything else
        is handed to `f` as it is.
      mesh: a `Mesh`; by default that of the context.
      axis_names: the axes of the mesh that collectives in `f` may name; all of them
        by default. Along the others, the devices do the same.
      check_vma: whether types say along which axes values may vary, so that results
        which are to be the same are, and gradients of what is the same are summed.

    Raises:
      TypeError: if `f` is not callable, or the specs are none.
      ValueError: if there is no mesh, or specs do not fit the arrays or the mesh.

    Reference: ``jax.shard_map``.
    """
    how = {"out_specs": out_specs, "in_specs": in_specs, "mesh": mesh}
    how |= {"axis_names": axis_names, "check_vma": check_vma}
    if f is None:
        return lambda f: shard_map(f, **how)
    check_callable(f)

    @wraps(f)
    def wrapped(*args):
        moving, specs, run = _without_static(f, args, in_specs)
        return run_mapped(run, moving, **how | {"in_specs": specs})

    return wrapped


def _without_static(f, args, in_specs):
    """Take out of the arguments what is no array and has None as its specification.

    Returns:
      The other arguments, their specifications, and a function of them.
    """
    if in_specs is None or None not in tree_leaves(in_specs, _is_none):
        return args, in_specs, f
    specs = (*in_specs,) if isinstance(in_specs, list) else in_specs
    specs = flatten_axes("shard_map in_specs", specs, args)
    leaves, tree = tree_flatten(args)
    moves = [
        spec is not None or isinstance(x, Array | np.ndarray)
        for x, spec in zip(leaves, specs)
    ]

    @wraps(f)
    def run(*moving):
        rest = iter(moving)
        return f(*tree.unflatten(next(rest) if m else x for x, m in zip(leaves, moves)))

    pairs = [pair for pair, moved in zip(zip(leaves, specs), moves) if moved]
    return tuple([x for x, _ in pairs]), tuple([spec for _, spec in pairs]), run


def _is_none(x):
    return x is None
