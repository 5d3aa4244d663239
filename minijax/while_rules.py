# Made from chapters/12_branches.md by `make chapter`;
# edit the chapter, not this file.
"""The rules of while: derivatives, batches, splitting, and no transposition.

Reference: the rules of ``while_p`` in ``jax._src.lax.control_flow.loops``.
"""

from minijax.array import shape_rules
from minijax.avals import typeof
from minijax.batching_rules import vmap_rules
from minijax.conditional_rules import refuse_io
from minijax.core import set_current_trace
from minijax.forward_rules import jvp_rules, zeros_like_tangent
from minijax.linearization import split_rules
from minijax.programs import jvp_program, merge, partition, spread, vmap_program
from minijax.rewiring import place_axis, rewired, settle, vmap_program_at
from minijax.splitting import split_program
from minijax.transposition import transpose_rules
from minijax.while_loops import parts_of_while, while_p


def _while_jvp(primals, tangents, cond_nconsts, cond_jaxpr, body_nconsts, body_jaxpr):
    counts = cond_nconsts, body_nconsts
    moving = tuple([tangent is not None for tangent in tangents])
    _, consts_move, carry_moves = parts_of_while(moving, *counts)
    carry_moves = settle(
        lambda moves: jvp_program(body_jaxpr, consts_move + moves, moves)[1],
        carry_moves,
    )
    step, _ = jvp_program(body_jaxpr, consts_move + carry_moves, carry_moves)
    cond_consts, body_consts, carry = parts_of_while(primals, *counts)
    _, const_rates, rates = parts_of_while(tangents, *counts)
    _, const_rates = partition(consts_move, const_rates)
    _, rates = partition(carry_moves, map(_written_out, carry, rates))
    n, rest = len(body_consts) + len(const_rates), len(step.invars) - len(rates)
    spots = [*range(len(body_consts)), *range(len(body_jaxpr.invars), rest)]
    spots += [*range(len(body_consts), len(body_jaxpr.invars)), *range(rest, rest + len(rates))]
    test = [*range(len(cond_jaxpr.invars)), *step.in_avals[rest:]]
    outs = while_p.bind(
        *[*cond_consts, *body_consts, *const_rates, *carry, *rates],
        cond_nconsts=cond_nconsts,
        cond_jaxpr=rewired(cond_jaxpr, test),
        body_nconsts=n,
        body_jaxpr=rewired(step, spots),
    )
    return outs[: len(carry)], spread(carry_moves, outs[len(carry) :])


def _written_out(primal, tangent):
    return zeros_like_tangent(primal) if tangent is None else tangent


jvp_rules[while_p] = _while_jvp


def _at(place, flags):
    return tuple([place if flag else None for flag in flags])


def _are_mapped(dims):
    return tuple([dim is not None for dim in dims])


def _while_vmap(axis, args, dims, cond_nconsts, cond_jaxpr, body_nconsts, body_jaxpr):
    counts = cond_nconsts, body_nconsts
    test_dims, body_dims, carry_dims = parts_of_while(tuple(dims), *counts)

    def step(mapped):
        dims = body_dims + _at(0, mapped)
        return _are_mapped(vmap_program(body_jaxpr, axis, dims)[1])

    mapped = settle(step, _are_mapped(carry_dims))
    _, pred_dim = vmap_program(cond_jaxpr, axis, test_dims + _at(0, mapped))
    if pred_dim != (None,):
        refuse_io("a while whose examples stop at different steps", cond_jaxpr, body_jaxpr)
    rank = cond_jaxpr.out_avals[0].ndim
    places = _at(rank, mapped) if pred_dim == (None,) else (0,) * len(mapped)
    pred_place = _at(0, _are_mapped(pred_dim))
    *_, carry = parts_of_while(args, *counts)
    carry = [
        place_axis(x, dim, place, axis.size)
        for x, dim, place in zip(carry, carry_dims, places)
    ]
    outs = while_p.bind(
        *[*args[: sum(counts)], *carry],
        cond_nconsts=cond_nconsts,
        cond_jaxpr=vmap_program_at(cond_jaxpr, axis, test_dims + places, pred_place),
        body_nconsts=body_nconsts,
        body_jaxpr=vmap_program_at(body_jaxpr, axis, body_dims + places, places),
    )
    return outs, list(places)


vmap_rules[while_p] = _while_vmap


def _while_split(split, args, on_tape, params):
    """Run what the tape has no part in, now; the tape runs the whole loop again."""
    with set_current_trace(split.tape):
        tape_outs = while_p.bind(*args, **params)
    counts = params["cond_nconsts"], params["body_nconsts"]
    test_later, body_later, carry_later = parts_of_while(tuple(on_tape), *counts)

    def split_body(later):
        return split_program(params["body_jaxpr"], body_later + later, later)

    carry_later = settle(lambda later: split_body(later).out_on_tape, carry_later)
    test = split_program(params["cond_jaxpr"], test_later + carry_later)
    if test.out_on_tape[0] or all(carry_later):
        return tape_outs
    body = split_body(carry_later).known
    known_args, _ = partition(test_later + body_later + carry_later, args)
    with set_current_trace(split.parent):
        known_outs = while_p.bind(
            *known_args,
            cond_nconsts=test_later.count(False),
            cond_jaxpr=test.known,
            body_nconsts=body_later.count(False),
            body_jaxpr=rewired(
                body, range(len(body.invars)), range(carry_later.count(False))
            ),
        )
    return merge(carry_later, known_outs, partition(carry_later, tape_outs)[1])


split_rules[while_p] = _while_split


def _while_transpose(*operands, **params):
    raise ValueError(
        "Reverse-mode differentiation does not work for lax.while_loop, or for "
        "lax.fori_loop with bounds that are not known before the loop runs: backwards, "
        "each step needs values of the step that it undoes, and nobody can say how "
        "many there will be to keep. Use lax.scan, lax.fori_loop with Python numbers as "
        "bounds, or forward mode (minijax.jvp, minijax.jacfwd)."
    )


transpose_rules[while_p] = _while_transpose
