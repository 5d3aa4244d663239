# Made from chapters/15_branches.md by `make chapter`;
# edit the chapter, not this file.
"""Programs whose inputs and results stand in other places than they were written in.

Rules for control flow need one program with its inputs in another order, with inputs
that it ignores, or without some of its results.
"""

from operator import or_

from minijax.arrays.avals import ShapedArray
from minijax.batching.rules import insert_axis, move_axis
from minijax.jaxprs.jaxpr import ClosedJaxpr, Var, jaxpr_as_fun
from minijax.jitting.programs import stage, vmap_program
from minijax.jitting.remembering import remembered


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


def settle(step, flags):
    """Return the flags that are on in the end, if each one may turn others on.

    Args:
      step: a function from a tuple of flags to the flags that follow from them.
      flags: a tuple of booleans to begin with.
    """
    while (found := tuple(map(or_, flags, step(flags)))) != flags:
        flags = found
    return flags


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
