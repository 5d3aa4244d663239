"""Programs whose inputs and results stand in other places than they were written in.

Rules for control flow need one program with its inputs in another order, with inputs
that it ignores, or without some of its results.
"""

# Made from chapters/15_branches_ground.md by `make chapter`;
# edit the chapter, not this file.

from collections import Counter

import numpy as np

from minijax import lax
from minijax.arrays.array import primitive_rules
from minijax.arrays.avals import ShapedArray, typeof
from minijax.arrays.dtypes import EXTENDED, is_in_force
from minijax.batching.rules import insert_axis, move_axis, vmap_rules
from minijax.core import Primitive
from minijax.forgetting.programs import (
    only,
    spread,
    stage,
    transpose_program,
    vmap_program,
)
from minijax.forgetting.remembering import remembered
from minijax.forward.rules import jvp_rules
from minijax.jaxprs.jaxpr import ClosedJaxpr, Var, jaxpr_as_fun
from minijax.jaxprs.latest import fitted
from minijax.lax.conversion import astype
from minijax.reverse.transposition import transpose_rules


def rewired(closed, inputs, results=None):
    """Return a program with other inputs and results.

    Args:
      closed: a `ClosedJaxpr`.
      inputs: for each new input its place among the old ones, or the `ShapedArray` of
        one that the program ignores.
      results: places among the old results; None for all of them.
    """
    everything = tuple(range(len(closed.outvars)))
    inputs = tuple(inputs)
    results = everything if results is None else tuple(results)
    if (inputs, results) == (tuple(range(len(closed.invars))), everything):
        return closed
    return _rewired(closed, inputs, results)


@remembered
def _rewired(closed, inputs, results):
    invars = [
        Var(place) if isinstance(place, ShapedArray) else closed.invars[place]
        for place in inputs
    ]
    outvars = [closed.outvars[place] for place in results]
    jaxpr = closed.jaxpr.replace(invars=invars, outvars=outvars)
    return ClosedJaxpr(jaxpr, closed.consts)


def with_common_inputs(programs):
    """Give programs the same inputs in front: all that one of them has captured.

    Args:
      programs: a list of `Program`, each with the values that it has captured.

    Returns:
      The list of `ClosedJaxpr`, and the list of the captured values.
    """
    captured = {id(x): x for program in programs for x in program.captured}
    joined = []
    for closed, own, *_ in programs:
        places = {id(x): place for place, x in enumerate(own)}
        front = [places.get(key, typeof(x)) for key, x in captured.items()]
        joined.append(rewired(closed, [*front, *range(len(own), len(closed.invars))]))
    return joined, list(captured.values())


def unchanged(closed):
    """Return, for each result, which input it is; None for one that is computed."""
    places = {var: place for place, var in enumerate(closed.invars)}
    return [places.get(atom) for atom in closed.outvars]


def agreed(places):
    """Return the place that all programs name, or None."""
    return places[0] if len(set(places)) == 1 else None


def computed_only(programs):
    """Return programs without the results that all of them hand on, and their inputs.

    Returns:
      A tuple of `ClosedJaxpr`, and for each of the old results the place of the input
      that it is, or None for one that the new programs return.
    """
    passed = list(map(agreed, zip(*map(unchanged, programs))))
    computed = [i for i, place in enumerate(passed) if place is None]
    inputs = range(len(programs[0].invars))
    return tuple([rewired(program, inputs, computed) for program in programs]), passed


@remembered
def vmap_program_at(closed, axis, dims, places):
    """Return the program of all examples, with the mapped axes of results in place.

    Args:
      closed: a `ClosedJaxpr`.
      axis: the `MappedAxis`.
      dims: for each input its mapped axis, or None.
      places: for each result the place of its mapped axis; None where it has none.
    """
    program, found = vmap_program(closed, axis, dims)

    def placed(*values):
        outs = jaxpr_as_fun(program)(*values)
        spots = zip(outs, found, places)
        return [place_axis(out, dim, place, axis.size) for out, dim, place in spots]

    return stage(placed, program.in_avals)


def place_axis(x, dim, place, size):
    """Return `x` with its mapped axis `dim` at `place`; None stands for no axis."""
    if place is None:
        return x
    return insert_axis(x, place, size) if dim is None else move_axis(x, dim, place)


def zeros(aval):
    """Return the zeros of an abstract value; a scalar needs no operation."""
    if not is_in_force(aval.dtype):
        zero = lax.full(aval.shape, astype(0, aval.dtype, aval.weak_type))
        return fitted.value(zero, aval)
    zero = np.zeros((), aval.dtype)[()]
    zero = zero.item() if aval.weak_type else zero
    zero = lax.broadcast_in_dim(zero, aval.shape, ()) if aval.shape else zero
    return fitted.value(zero, aval)


def for_any(flags):
    """Return, of a tuple of flags for each program, those that any of them has."""
    return tuple(map(any, zip(*flags)))


def transposed_alike(programs, linear, given):
    """Return the transposes of programs, all with results for the same inputs.

    Args:
      programs: a sequence of `ClosedJaxpr` of one type.
      linear: for each of their inputs whether they are linear in it.
      given: the types of the cotangents, as `types_given` returns them.

    Returns:
      A tuple of `ClosedJaxpr`, and for each linear input whether a cotangent arrives.
    """
    pairs = [transpose_program(program, linear, given) for program in programs]
    arrives = for_any([arrived for _, arrived in pairs])
    avals = only(arrives, only(linear, programs[0].in_avals))
    filled = [
        _fill_zeros(program, tuple(only(arrives, made)), tuple(avals))
        for program, made in pairs
    ]
    return tuple(filled), arrives


@remembered
def _fill_zeros(closed, made, avals):
    """Return a program with zeros among its results.

    Args:
      closed: a `ClosedJaxpr`.
      made: for each result whether `closed` makes it; the others are zeros.
      avals: the types of all results.
    """

    def program(*args):
        outs = spread(made, jaxpr_as_fun(closed)(*args))
        return [zeros(a) if out is None else out for a, out in zip(avals, outs)]

    return stage(program, closed.in_avals)


def numbered(avals):
    """Return pairs of each type and how often it came before."""
    seen = Counter()
    pairs = []
    for aval in avals:
        pairs.append((aval, seen[aval]))
        seen[aval] += 1
    return pairs


def common_slots(groups):
    """Find slots for values of which each group has others.

    Args:
      groups: for each group the list of the types of its values.

    Returns:
      The types of the slots, and for each group the slots of its values. Values of one
      type in different groups share a slot.
    """
    keys = [numbered(group) for group in groups]
    slots = list(dict.fromkeys(key for group in keys for key in group))
    places = [tuple(map(slots.index, group)) for group in keys]
    return tuple([aval for aval, _ in slots]), places


empty_p = Primitive("empty2")
primitive_rules(
    empty_p,
    lambda dtype: [ShapedArray((), dtype)],
    lambda xp, dtype: xp.zeros((), dtype),
)

vmap_rules.reasons[empty_p] = "It has no operands, so no example differs."
jvp_rules.reasons[empty_p] = "It has no operands, so it has no tangent."
transpose_rules.reasons[empty_p] = "It has no operands that a cotangent could go to."


@remembered
def fill_slots(known, count, sources, slots, places):
    """Return a known program that returns a value for every slot.

    Args:
      known: the `ClosedJaxpr` of a `Split`.
      count: how many of its results are no residuals.
      sources: where its residuals are, among its inputs and results.
      slots: the types of all slots.
      places: the slot of each residual. The others get a value that is never read.
    """

    def program(*args):
        outs = jaxpr_as_fun(known)(*args)
        found, filled = [*args, *outs], list(map(_empty, slots))
        for source, place in zip(sources, places):
            filled[place] = found[source]
        return outs[:count] + filled

    return stage(program, known.in_avals)


def _empty(aval):
    if aval.dtype in EXTENDED:
        return lax.full(aval.shape, 0, aval.dtype)
    [scalar] = empty_p.bind(dtype=aval.dtype)
    return lax.broadcast_in_dim(scalar, aval.shape, ()) if aval.shape else scalar


def with_slots(parts):
    """Return the known programs and the unknown ones, with slots between them."""
    avals = [part.unknown.in_avals[: len(part.sources)] for part in parts]
    slots, places = common_slots(avals)
    count = parts[0].out_on_tape.count(False)
    pairs = list(zip(parts, places))
    known = [fill_slots(p.known, count, p.sources, slots, own) for p, own in pairs]
    unknown = [read_slots(p.unknown, slots, own) for p, own in pairs]
    return tuple(known), tuple(unknown)


def read_slots(unknown, slots, places):
    """Return an unknown program that is given all slots and reads its own."""
    front = [places.index(i) if i in places else aval for i, aval in enumerate(slots)]
    return rewired(unknown, [*front, *range(len(places), len(unknown.invars))])
