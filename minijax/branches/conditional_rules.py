# Made from chapters/15_branches.md by `make chapter`;
# edit the chapter, not this file.
"""The rules of cond: derivatives, batches, splitting, transposition.

Reference: the rules of ``cond_p`` in ``jax._src.lax.control_flow.conditionals``.
"""

from collections import Counter

import numpy as np

from minijax import lax
from minijax.arrays.array import primitive_rules
from minijax.arrays.avals import ShapedArray
from minijax.batching.rules import at_front, move_axis, vmap_rules
from minijax.branches.conditionals import cond_p
from minijax.branches.rewiring import rewired, zeros
from minijax.branches.selecting import choose, refuse_io
from minijax.core import Primitive, set_current_trace
from minijax.forgetting.programs import (
    dce_program,
    dce_rules,
    jvp_program,
    keep_inputs,
    partition,
    spread,
    stage,
    transpose_program,
    vmap_program,
)
from minijax.forgetting.remembering import remembered
from minijax.forgetting.splitting import split_program
from minijax.forward.rules import jvp_rules
from minijax.jaxprs.jaxpr import jaxpr_as_fun
from minijax.linear.linearization import split_rules
from minijax.own_rules.stopped_gradients import stop_gradient_p
from minijax.reverse.transposition import Linear, transpose_rules


def for_any(flags):
    """Return, of one tuple of flags for each branch, the flags that any of them has."""
    return tuple(map(any, zip(*flags)))


def _cond_jvp(primals, tangents, branches):
    moving = tuple([tangent is not None for tangent in tangents[1:]])
    moves = for_any([jvp_program(branch, moving)[1] for branch in branches])
    derived = tuple([jvp_program(branch, moving, moves)[0] for branch in branches])
    _, moving_tangents = partition(moving, tangents[1:])
    outs = cond_p.bind(*primals, *moving_tangents, branches=derived)
    return outs[: len(moves)], spread(moves, outs[len(moves) :])


jvp_rules[cond_p] = _cond_jvp


def _run_one(axis, index, operands, dims, branches):
    """Run the same branch for all examples."""
    pairs = zip(operands, dims)
    operands = [x if dim is None else move_axis(x, dim, 0) for x, dim in pairs]
    dims = tuple([None if dim is None else 0 for dim in dims])
    mapped = [vmap_program(branch, axis, dims)[1] for branch in branches]
    fronts = for_any([[dim is not None for dim in found] for found in mapped])
    batched = tuple([vmap_program(b, axis, dims, fronts)[0] for b in branches])
    outs = cond_p.bind(index, *operands, branches=batched)
    return outs, [0 if front else None for front in fronts]


def _cond_vmap(axis, args, dims, branches):
    (index, *operands), (index_dim, *dims) = args, dims
    if index_dim is None:
        return _run_one(axis, index, operands, dims, branches)
    operands = [at_front(x, dim, axis.size) for x, dim in zip(operands, dims)]
    return _run_all(axis, at_front(index, index_dim, axis.size), operands, branches)


vmap_rules[cond_p] = _cond_vmap


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


# From dtypes that have no zero to functions from a `ShapedArray` to some value of it.
fillers: dict = {}


def _empty(aval):
    if aval.dtype in fillers:
        return fillers[aval.dtype](aval)
    [scalar] = empty_p.bind(dtype=aval.dtype)
    return lax.broadcast_in_dim(scalar, aval.shape, ()) if aval.shape else scalar


def split_branches(branches, on_tape):
    """Split programs so that a result is on the tape in all of them or in none."""
    found = [split_program(branch, on_tape).out_on_tape for branch in branches]
    return [split_program(branch, on_tape, for_any(found)) for branch in branches]


def _with_slots(parts):
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


vmap_rules.reasons[empty_p] = "It has no operands, so no example differs."
jvp_rules.reasons[empty_p] = "It has no operands, so it has no tangent."
transpose_rules.reasons[empty_p] = "It has no operands that a cotangent could go to."


def _cond_split(split, primitive, args, on_tape, params):
    """Run the known part now, and leave a choice of the unknown parts to the tape."""
    if on_tape[0]:
        with set_current_trace(split.tape):
            return primitive.bind(*args, **params)
    parts = split_branches(params["branches"], tuple(on_tape[1:]))
    known, unknown = _with_slots(parts)
    known_args, tape_args = partition(on_tape, args)
    with set_current_trace(split.parent):
        outs = cond_p.bind(*known_args, branches=known)
    residuals = outs[parts[0].out_on_tape.count(False) :]
    with set_current_trace(split.tape):
        tape_outs = cond_p.bind(args[0], *residuals, *tape_args, branches=unknown)
    return parts[0].results(outs, tape_outs)


split_rules[cond_p] = _cond_split


def _cond_transpose(cotangents, index, *operands, branches):
    linear = tuple([isinstance(x, Linear) for x in operands])
    given = tuple([ct is not None for ct in cotangents])
    pairs = [transpose_program(branch, linear, given) for branch in branches]
    arrives = for_any([arrived for _, arrived in pairs])
    _, avals = partition(linear, branches[0].in_avals)
    avals = tuple(partition(arrives, avals)[1])
    backwards = [
        fill_zeros(program, tuple(partition(arrives, made)[1]), avals)
        for program, made in pairs
    ]
    values, (_, cts) = partition(linear, operands)[0], partition(given, cotangents)
    arrived = cond_p.bind(index, *values, *cts, branches=tuple(backwards))
    return [None, *spread(linear, spread(arrives, arrived))]


transpose_rules[cond_p] = _cond_transpose


@remembered
def fill_zeros(closed, made, avals):
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


def _cond_dce(eqn, used):
    pruned = [dce_program(branch, used) for branch in eqn.params["branches"]]
    needed = for_any([needs for _, needs in pruned])
    branches = tuple([keep_inputs(program, needed) for program, _ in pruned])
    index, *operands = eqn.invars
    return eqn.replace(
        invars=[index, *partition(needed, operands)[1]],
        outvars=partition(used, eqn.outvars)[1],
        params={"branches": branches},
    )


dce_rules[cond_p] = _cond_dce


def _run_all(axis, index, operands, branches):
    """Run every branch on all examples, and choose among the results."""
    refuse_io("a cond whose predicate differs between examples", *branches)
    results = []
    for number, branch in enumerate(branches):
        program, _ = vmap_program(branch, axis, (0,) * len(operands), True)
        mine = lax.eq(index, np.int32(number))
        sheltered = [choose(mine, stop_gradient_p.bind(x)[0], x) for x in operands]
        results.append(jaxpr_as_fun(program)(*sheltered))
    outs = [choose(index, *cases) for cases in zip(*results)]
    return outs, [0] * len(outs)
