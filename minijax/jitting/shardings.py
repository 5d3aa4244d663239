"""Shardings that a user of jit asks for, for operands and results.

Reference: ``in_shardings`` and ``out_shardings`` of ``jax.jit``.
"""

# Made from chapters/12_jit_ground.md by `make chapter`;
# edit the chapter, not this file.

from itertools import repeat

from minijax._registry import Registry
from minijax.arrays.interchange import ids_of, spot_of
from minijax.arrays.sharding_types import Sharding, completions
from minijax.batching.trace import program_primitives
from minijax.forgetting.remembering import remembered
from minijax.jaxprs.latest import Latest
from minijax.jaxprs.printing import jaxprs_in_params
from minijax.jaxprs.shape_structs import ShapeDtypeStruct, struct_of
from minijax.pytrees.functions import tree_map
from minijax.pytrees.operations import flatten_axes


class _Unspecified:
    """Stands for a sharding that is left open."""

    def __repr__(self):
        return "UnspecifiedValue"

    def __reduce__(self):
        return "UNSPECIFIED"


UNSPECIFIED = _Unspecified()


def check_shardings(option, shardings):
    """Return a tree of shardings; None becomes `UNSPECIFIED`.

    Args:
      option: ``"in_shardings"`` or ``"out_shardings"``.
      shardings: a tree of `Sharding` and None.

    Raises:
      TypeError: if a leaf is neither.
    """
    if shardings is None or shardings is UNSPECIFIED:
        return UNSPECIFIED
    if isinstance(shardings, Sharding):
        return shardings
    return tree_map(
        lambda leaf: _leaf_of(option, leaf), shardings, is_leaf=lambda x: x is None
    )


def _leaf_of(option, leaf):
    if leaf is None or leaf is UNSPECIFIED:
        return UNSPECIFIED
    if isinstance(leaf, Sharding):
        return leaf
    if type(leaf) in completions:
        return completions[type(leaf)](option, leaf)
    raise TypeError(
        f"{option} leaf specifications are expected to be Shardings or None, but got "
        f"{leaf} of type {type(leaf).__name__}. The sharding of a device is "
        "minijax.sharding.SingleDeviceSharding(device)."
    )


def in_shardings_of(shardings, call):
    """Return a tuple with a sharding for each leaf of the arguments.

    Args:
      shardings: what `check_shardings` returns, a prefix of the positional arguments.
      call: a `FlatCall`.

    Raises:
      ValueError: if it is no prefix, or if arguments are given by name.
    """
    args, kwargs = call.in_tree.children()
    if shardings is UNSPECIFIED:
        return (UNSPECIFIED,) * call.in_tree.num_leaves
    if kwargs.children() or call.constants:
        raise ValueError(
            "jit does not support kwargs when in_shardings is specified: its entries "
            "belong to positional arguments. Give all arguments by position."
        )
    shardings = tuple(shardings) if isinstance(shardings, list) else shardings
    return tuple(flatten_axes("jit in_shardings", shardings, args))


def out_shardings_of(shardings, out_tree):
    """Return a tuple with a sharding for each leaf of the result.

    Raises:
      ValueError: if the tree of shardings is no prefix of the result.
    """
    return tuple(flatten_axes("jit out_shardings", shardings, out_tree))


def sharding_params(**shardings):
    """Return those parameters of a call in which a sharding is specified."""
    return {
        name: leaves
        for name, leaves in shardings.items()
        if any(leaf is not UNSPECIFIED for leaf in leaves)
    }


_SHARDINGS = "in_shardings", "out_shardings"


def devices_asked(params):
    """Yield the devices that the parameters of a call ask for."""
    if params.get("device"):
        yield params["device"]
    for name in _SHARDINGS:
        for sharding in params.get(name, ()):
            if sharding is not UNSPECIFIED:
                yield sharding.placement.device


def on_one_device(params):
    """Return parameters of a call that names its device instead of its shardings.

    A transformed call has other operands and results, and runs where the call would.
    """
    if not any(name in params for name in _SHARDINGS):
        return params
    rest = {name: params[name] for name in params if name not in _SHARDINGS}
    return rest | {"device": next(devices_asked(params))}


@remembered
def wishes_inside(closed):
    """Return where calls inside have to run: pairs of a text and a `Placement`."""
    return [*dict.fromkeys(_wishes_in(closed.jaxpr, set()))]


# By primitive: functions of its parameters that return the devices it asks for.
device_askers: dict = Registry()

# What returns a program that brings operands and results where parameters of its call
# say it: a function of the program and these, ``in_shardings`` and ``out_shardings``.
program_placed = Latest(lambda closed, params: closed)


def _wishes_in(jaxpr, seen):
    for eqn in jaxpr.eqns:
        calls = eqn.primitive in program_primitives
        ask = device_askers.get(eqn.primitive, devices_asked if calls else None)
        for device in ask(eqn.params) if ask else ():
            yield f"{eqn.primitive} inside jit", device.committed
        for inner in jaxprs_in_params(eqn.params) if calls else ():
            if inner not in seen:
                seen.add(inner)
                yield from _wishes_in(inner, seen)


def agreed(wishes):
    """Return the `Placement` that all wishes name, or None if there is no wish.

    Args:
      wishes: pairs of a text, what the wish comes from, and a committed `Placement`.

    Raises:
      ValueError: if two wishes differ.
    """
    first, placement = "", None
    for wish, place in wishes:
        if placement is not None and placement.devices != place.devices:
            raise ValueError(
                f"Received incompatible devices for jitted computation. Got {first} "
                f"with {ids_of(placement)} and {wish} with {ids_of(place)}. Name one "
                "device, or leave the sharding out."
            )
        if placement is None:
            first, placement = wish, place
    return placement and placement.joint


def with_wishes_inside(placement, name, *programs):
    """Return where programs run: at a placement, unless calls in them ask for another.

    Raises:
      ValueError: if calls ask for another device than one that is committed.
    """
    wishes = [(f"an argument of {name}", placement)] if placement.committed else []
    inside = [wish for closed in programs for wish in wishes_inside(closed)]
    return agreed(wishes + inside) or placement


def shardings_of_call(options, call, program):
    """Return the parameters of a call that say where it is to be, a dictionary."""
    if options.in_shardings is options.out_shardings is UNSPECIFIED:
        return {}
    outside = (UNSPECIFIED,) * len(program.captured)
    wanted = in_shardings_of(options.in_shardings, call)
    results = out_shardings_of(options.out_shardings, program.out_tree)
    return sharding_params(in_shardings=outside + wanted, out_shardings=results)


def place_of_leaf(x):
    """Return the placement of an array, or the one that a `ShapeDtypeStruct` names."""
    if isinstance(x, ShapeDtypeStruct):
        return x.sharding and x.sharding.placement
    return spot_of(x)


def structs_of(avals, shardings):
    """Return a list of `ShapeDtypeStruct`; `shardings` are parameters of the call."""
    wanted = dict(shardings).get("out_shardings", repeat(None))
    wanted = (None if x is UNSPECIFIED else x for x in wanted)
    return list(map(struct_of, avals, wanted))
