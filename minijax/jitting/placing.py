"""Where a program runs: on the device of the arguments that matter.

Reference: the device assignment of ``jax.jit``.
"""

# Made from chapters/12_jit_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax.arrays.interchange import apart
from minijax.arrays.placement import default_placement
from minijax.forgetting.programs import prune
from minijax.jitting.shardings import UNSPECIFIED, agreed, wishes_inside


def where_to_run(params, places, labels=None):
    """Return the `Placement` of a program and its results.

    Args:
      params: of a call: ``jaxpr``, ``name``, perhaps ``device``, ``keep_unused``,
        ``in_shardings`` and ``out_shardings``.
      places: the placement of each operand, None for what has none.
      labels: what messages call the operands.

    Raises:
      ValueError: if operands that matter, results and functions inside are committed to
        different devices.
    """
    if params.get("device"):
        return params["device"].committed.joint
    closed, name = params["jaxpr"], params["name"]
    refuse_contradictions(params.get("in_shardings", ()), places, closed, labels)
    places = asked_for(params.get("in_shardings"), places)
    if not params.get("keep_unused"):
        places = [place if need else None for place, need in zip(places, needs(closed))]
    found = [place.joint for place in places if place and place.committed]
    committed = {place.devices: place for place in reversed(found)}
    if len(committed) > 1:
        raise apart(name, closed.in_avals, places, labels)
    wishes = [(label_of(closed, name, places, labels), x) for x in committed.values()]
    outs = asked_for(params.get("out_shardings"), [None] * len(closed.out_avals))
    wishes += [("explicit output sharding", place) for place in outs if place]
    return agreed(wishes + wishes_inside(closed)) or default_placement()


def refuse_contradictions(shardings, places, closed, labels):
    """Raise if an operand is committed to be cut in another way than was asked for."""
    for i, (asked, place) in enumerate(zip(shardings, places)):
        if asked is UNSPECIFIED or not place or not place.committed:
            continue
        aval, found = closed.in_avals[i], place.sharding
        several = len(place.devices) > 1 or len(asked.device_set) > 1
        if several and not asked.is_equivalent_to(found, aval.ndim):
            raise ValueError(
                "Sharding passed to jit does not match the sharding on the respective "
                f"arg. Got jit sharding: {asked},\narg sharding: {found} for arg "
                f"{labels[i] if labels else i} of type {aval.str_short()}. device_put "
                "cuts it anew, or leave the sharding out."
            )


def label_of(closed, name, places, labels):
    """Return what messages say of the first operand that is committed."""
    i = next(i for i, place in enumerate(places) if place and place.committed)
    aval, label = closed.in_avals[i], labels[i] if labels else f"args[{i}]"
    shape = aval.update(weak_type=False)
    return f"argument {label} of {name} with shape {shape} and"


def asked_for(shardings, places):
    """Return the placements of operands or results, as their shardings overrule them.

    Args:
      shardings: one for each, some of them `UNSPECIFIED`; or None.
      places: a `Placement` or None for each.
    """
    if shardings is None:
        return places
    pairs = zip(shardings, places)
    return [old if new is UNSPECIFIED else new.placement for new, old in pairs]


def needs(closed):
    """Return for each input of a program whether a result needs it."""
    return prune(closed)[1]
