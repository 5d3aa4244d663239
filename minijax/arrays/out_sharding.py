"""Where a result lies on a mesh: the argument `out_sharding` of many functions."""

# Made from chapters/02_arrays_ground.md by `make chapter`;
# edit the chapter, not this file.

import functools
import inspect
from collections.abc import Callable
from typing import Any

from minijax._registry import Registry


def _is_without_mesh(sharding):
    """Return whether it is what types say of arrays that no mesh cuts."""
    return getattr(getattr(sharding, "mesh", None), "empty", False)


# By type of what says how a result lies on a mesh: functions of the name of what was
# called, its result and the wish, which return the result there.
result_placers: dict = Registry()


def place_result(name: str, x: Any, out_sharding: Any) -> Any:
    """Return a result, placed on a mesh as the caller wants it.

    Args:
      name: of the function that was called, for errors.
      x: its result, an array.
      out_sharding: a `NamedSharding`, a `PartitionSpec` for the mesh of the context, or
        None; a sharding by a mesh without axes says nothing either.

    Raises:
      TypeError: if it is something else.
      ValueError: if there is no mesh for a specification, or it has not its axes.
    """
    if out_sharding is None or _is_without_mesh(out_sharding):
        return x
    place = result_placers.get(type(out_sharding))
    if place is None:
        raise TypeError(
            f"`out_sharding` argument of {name} only supports instances of "
            f"`NamedSharding` or `PartitionSpec`. Got {out_sharding!r} of type: "
            f"{type(out_sharding)}"
        )
    return place(name, x, out_sharding)


def with_out_sharding(function: Callable) -> Callable:
    """Return a function whose result lies where its parameter `out_sharding` says.

    Args:
      function: has the parameter in its signature, and need not look at it.
    """
    found = inspect.signature(function).parameters
    order = [*found].index("out_sharding")
    by_position = found["out_sharding"].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD

    @functools.wraps(function)
    def placed(*args, **kwargs):
        result, wanted = function(*args, **kwargs), kwargs.get("out_sharding")
        if by_position and len(args) > order:
            wanted = args[order]
        if wanted is None:
            return result
        return place_result(placed.__name__, result, wanted)

    return placed


# The code of what stands between such a function and its caller.
PLACED_CODE = with_out_sharding(lambda out_sharding: None).__code__
