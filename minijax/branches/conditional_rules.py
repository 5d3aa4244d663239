"""The rules of cond: derivatives, batches, splitting, transposition.

Reference: the rules of ``cond_p`` in ``jax._src.lax.control_flow.conditionals``.
"""

# Made from chapters/15_branches.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax import lax
from minijax.batching.rules import at_front, move_axis, vmap_rules
from minijax.branches.conditionals import cond_p
from minijax.branches.rewiring import for_any, transposed_alike, with_slots
from minijax.branches.selecting import choose, refuse_io
from minijax.core import set_current_trace
from minijax.forgetting.programs import (
    dce_program,
    dce_rules,
    jvp_program,
    keep_inputs,
    only,
    partition,
    spread,
    types_given,
    vmap_program,
)
from minijax.forgetting.splitting import split_program
from minijax.forward.rules import jvp_rules
from minijax.jaxprs.jaxpr import jaxpr_as_fun
from minijax.linear.linearization import split_rules
from minijax.own_rules.stopped_gradients import stop_gradient_p
from minijax.reverse.transposition import Linear, transpose_rules


def _cond_jvp(primals, tangents, branches):
    moving = tuple([tangent is not None for tangent in tangents[1:]])
    moves = for_any([jvp_program(branch, moving)[1] for branch in branches])
    derived = tuple([jvp_program(branch, moving, moves)[0] for branch in branches])
    moving_tangents = only(moving, tangents[1:])
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


def _cond_dce(eqn, used):
    pruned = [dce_program(branch, used) for branch in eqn.params["branches"]]
    needed = for_any([needs for _, needs in pruned])
    branches = tuple([keep_inputs(program, needed) for program, _ in pruned])
    index, *operands = eqn.invars
    return eqn.replace(
        invars=[index, *only(needed, operands)],
        outvars=only(used, eqn.outvars),
        params={"branches": branches},
    )


dce_rules[cond_p] = _cond_dce


def _cond_vmap(axis, args, dims, branches):
    (index, *operands), (index_dim, *dims) = args, dims
    if index_dim is None:
        return _run_one(axis, index, operands, dims, branches)
    operands = [at_front(x, dim, axis.size) for x, dim in zip(operands, dims)]
    return _run_all(axis, at_front(index, index_dim, axis.size), operands, branches)


vmap_rules[cond_p] = _cond_vmap


def split_branches(branches, on_tape):
    """Split programs so that a result is on the tape in all of them or in none."""
    found = [split_program(branch, on_tape).out_on_tape for branch in branches]
    return [split_program(branch, on_tape, for_any(found)) for branch in branches]


def _cond_split(split, primitive, args, on_tape, params):
    """Run the known part now, and leave a choice of the unknown parts to the tape."""
    if on_tape[0]:
        with set_current_trace(split.tape):
            return primitive.bind(*args, **params)
    parts = split_branches(params["branches"], tuple(on_tape[1:]))
    known, unknown = with_slots(parts)
    known_args, tape_args = partition(on_tape, args)
    with set_current_trace(split.parent):
        outs = cond_p.bind(*known_args, branches=known)
    slots = outs[parts[0].out_on_tape.count(False) :]
    with set_current_trace(split.tape):
        tape_outs = cond_p.bind(args[0], *slots, *tape_args, branches=unknown)
    return parts[0].results(outs, tape_outs)


split_rules[cond_p] = _cond_split


def _cond_transpose(cotangents, index, *operands, branches):
    linear = tuple([isinstance(x, Linear) for x in operands])
    given = types_given(cotangents)
    backwards, arrives = transposed_alike(branches, linear, given)
    values, _ = partition(linear, operands)
    arrived = cond_p.bind(index, *values, *only(given, cotangents), branches=backwards)
    return [None, *spread(linear, spread(arrives, arrived))]


transpose_rules[cond_p] = _cond_transpose


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
