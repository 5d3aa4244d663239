# Made from chapters/15_branches_ground.md by `make chapter`;
# edit the chapter, not this file.
"""Programs whose inputs and results stand in other places than they were written in.

Rules for control flow need one program with its inputs in another order, with inputs
that it ignores, or without some of its results.
"""

import numpy as np

from minijax import lax
from minijax.arrays.avals import ShapedArray, typeof
from minijax.batching.rules import insert_axis, move_axis
from minijax.forgetting.programs import stage, vmap_program
from minijax.forgetting.remembering import remembered
from minijax.jaxprs.jaxpr import ClosedJaxpr, Var, jaxpr_as_fun
from minijax.jaxprs.latest import fitted


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
    zero = np.zeros((), aval.dtype)[()]
    zero = zero.item() if aval.weak_type else zero
    zero = lax.broadcast_in_dim(zero, aval.shape, ()) if aval.shape else zero
    return fitted.value(zero, aval)
