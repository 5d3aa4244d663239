"""Functions along one axis of a mesh, and functions under axes of another type.

References: ``jax.smap``, ``jax.sharding.auto_axes``, ``jax.sharding.explicit_axes``.
"""

# Made from chapters/36_replicas_rest.md by `make chapter`;
# edit the chapter, not this file.

import operator
from collections.abc import Callable
from functools import partial, wraps
from typing import Any

from minijax.jitting.compilation import UNSPECIFIED
from minijax.pytrees.argument_checks import check_callable
from minijax.pytrees.tree_operations import tree_map
from minijax.sharding.named_sharding import PartitionSpec, get_mesh
from minijax.sharding.pmap import shard_map
from minijax.spmd.programs import reshard


def smap(
    f: Callable[..., Any] | None = None,
    /,
    *,
    in_axes: Any = UNSPECIFIED,
    out_axes: Any,
    axis_name: Any,
) -> Any:
    """Run `f` on each device along one axis of the mesh of the context, on its blocks.

    Args:
      f: a function of trees of arrays. Without it, the result is a decorator.
      in_axes: which axis of each argument is dealt out: an integer, None for an
        argument that all devices have whole, or a tuple, with a tree prefix of each
        argument.
      out_axes: along which axis the blocks of results are joined, as a tree prefix of
        the result; None for what is the same on all devices.
      axis_name: the axis of the mesh. The others stay automatic.

    Raises:
      ValueError: if there is no mesh in the context, or an axis is negative.
      TypeError: if an axis is neither an integer nor None, if there are no `in_axes`
        (they are read off types of Explicit axes in JAX), or several names.

    Reference: ``jax.smap``.
    """
    if in_axes is UNSPECIFIED:
        raise TypeError("smap needs in_axes: no type here says how arguments are cut.")
    if f is None:
        how = {"in_axes": in_axes, "out_axes": out_axes, "axis_name": axis_name}
        return lambda f: smap(f, **how)
    check_callable(f)
    if isinstance(axis_name, (tuple, list, set, frozenset)):
        raise TypeError(f"smap takes the name of one axis, and got {axis_name!r}.")

    def specs(what, axes):
        spec = partial(_spec_of_axis, what, axis_name)
        return tree_map(spec, axes, is_leaf=lambda axis: axis is None)

    sides = {"in_specs": ("in_axes", in_axes), "out_specs": ("out_axes", out_axes)}
    how = {side: specs(*axes) for side, axes in sides.items()}

    @wraps(f)
    def wrapped(*args):
        if get_mesh().empty:
            raise ValueError(
                "smap runs along an axis of the mesh of the context, and there is "
                "none. Use `with minijax.set_mesh(mesh):`."
            )
        return shard_map(f, axis_names={axis_name}, **how)(*args)

    return wrapped


def _spec_of_axis(what, name, axis):
    if axis is None:
        return PartitionSpec()
    try:
        axis = operator.index(axis)
    except TypeError:
        raise TypeError(
            f"smap {what} must be integers or None, in a tree that is a prefix, but "
            f"got {axis!r}."
        ) from None
    if axis < 0:
        raise ValueError(f"smap {what} count from the front, and got {axis}.")
    return PartitionSpec(*[None] * axis, name)


def _check_axes(what, axes):
    names = (axes,) if isinstance(axes, str) else axes or ()
    there = get_mesh().axis_names
    if missing := [name for name in names if name not in there]:
        raise ValueError(f"{what}: the mesh has the axes {there}, not {missing}.")


def _wanted(what, keyword, given, default):
    if given is None and default is None:
        raise TypeError(f"{what}: Missing required keyword argument: {keyword!r}")
    return default if given is None else given


def _resharded_in_mesh(xs, shardings):
    return xs if get_mesh().empty else reshard(xs, shardings)


def auto_axes(
    f: Callable[..., Any] | None = None,
    /,
    *,
    axes: str | tuple[str, ...] | None = None,
    out_sharding: Any = None,
) -> Any:
    """Run `f` under axes of the type Auto, and have its results in a sharding.

    Args:
      f: a function of trees of arrays. Without it, the result is a decorator.
      axes: which axes of the mesh: all axes behave as Auto axes here.
      out_sharding: of the results, a tree prefix of them. A call may have another one,
        as its keyword argument `out_sharding`.

    Raises:
      TypeError: from that function, if there is no `out_sharding`.
      ValueError: from that function, if the mesh has no such axes.

    Reference: ``jax.sharding.auto_axes``.
    """
    default = out_sharding
    if f is None:
        return lambda f: auto_axes(f, axes=axes, out_sharding=default)

    @wraps(f)
    def wrapped(*args, out_sharding=None, **kwargs):
        wanted = _wanted("auto_axes", "out_sharding", out_sharding, default)
        _check_axes("auto_axes", axes)
        return _resharded_in_mesh(f(*args, **kwargs), wanted)

    return wrapped


def explicit_axes(
    f: Callable[..., Any] | None = None,
    /,
    *,
    axes: str | tuple[str, ...] | None = None,
    in_sharding: Any = None,
) -> Any:
    """Run `f` on arguments that have been brought into a sharding.

    Args:
      f: a function of trees of arrays. Without it, the result is a decorator.
      axes: which axes of the mesh are Explicit in JAX; here they stay Auto.
      in_sharding: of the arguments, a tree prefix of their tuple. A call may have
        another one, as its keyword argument `in_sharding`.

    Raises:
      TypeError: from that function, if there is no `in_sharding`.
      ValueError: from that function, if the mesh has no such axes.

    Reference: ``jax.sharding.explicit_axes``.
    """
    default = in_sharding
    if f is None:
        return lambda f: explicit_axes(f, axes=axes, in_sharding=default)

    @wraps(f)
    def wrapped(*args, in_sharding=None, **kwargs):
        wanted = _wanted("explicit_axes", "in_sharding", in_sharding, default)
        _check_axes("explicit_axes", axes)
        return f(*_resharded_in_mesh(args, wanted), **kwargs)

    return wrapped
