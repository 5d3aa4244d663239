# Made from chapters/12_jit_rest.md by `make chapter`;
# edit the chapter, not this file.
"""Where a program runs: on the device of the arguments that matter.

Reference: the device assignment of ``jax.jit``.
"""

from minijax.arrays.interchange import apart, ids_of
from minijax.arrays.placement import default_placement
from minijax.batching.trace import program_primitives
from minijax.forgetting.programs import prune
from minijax.jaxprs.printing import jaxprs_in_params


def where_to_run(params, places, labels=None):
    """Return the `Placement` of a program and its results.

    Args:
      params: of a call: ``jaxpr``, ``name``, perhaps ``device`` and ``keep_unused``.
      places: the placement of each operand, None for what has none.
      labels: what messages call the operands.

    Raises:
      ValueError: if two operands that matter are committed to different devices.
    """
    if params.get("device"):
        return params["device"].committed
    closed, name = params["jaxpr"], params["name"]
    if not params.get("keep_unused"):
        places = [place if need else None for place, need in zip(places, needs(closed))]
    committed = {place for place in places if place and place.committed}
    if len(committed) > 1:
        raise apart(name, closed.in_avals, places, labels)
    placement = next(iter(committed), None)
    for device in devices_inside(closed.jaxpr):
        if placement not in (None, device.committed):
            raise _apart_inside(name, placement, device)
        placement = device.committed
    return placement or default_placement()


def needs(closed):
    """Return for each input of a program whether a result needs it."""
    return prune(closed)[1]


def devices_inside(jaxpr, seen=None):
    """Yield the devices for which functions called in a program were jitted."""
    seen = set() if seen is None else seen
    for eqn in jaxpr.eqns:
        if eqn.primitive in program_primitives:
            if "device" in eqn.params:
                yield eqn.params["device"]
            for inner in jaxprs_in_params(eqn.params):
                if inner not in seen:
                    seen.add(inner)
                    yield from devices_inside(inner, seen)


def _apart_inside(name, placement, device):
    return ValueError(
        "Received incompatible devices for jitted computation. Got an argument of "
        f"{name} with {ids_of(placement)} and jit inside jit with "
        f"{ids_of(device.committed)}. Leave out the device of the inner jit."
    )
