"""The rules of while: derivatives, batches, splitting, and no transposition.

Reference: the rules of ``while_p`` in ``jax._src.lax.control_flow.loops``.
"""

# Made from chapters/15_while_upper.md by `make chapter`;
# edit the chapter, not this file.

from minijax.batching.rules import vmap_rules
from minijax.branches.rewiring import place_axis, rewired, vmap_program_at
from minijax.branches.selecting import refuse_io
from minijax.branches.settling import settle
from minijax.branches.while_loops import parts_of_while, while_p
from minijax.core import set_current_trace
from minijax.emitted.emission import python_rules
from minijax.emitted.in_place import hand_over
from minijax.forgetting.programs import (
    jvp_program,
    merge,
    only,
    partition,
    spread,
    vmap_program,
)
from minijax.forgetting.splitting import split_program
from minijax.forward.rules import jvp_rules, zeros_like_tangent
from minijax.linear.linearization import split_rules
from minijax.reverse.transposition import transpose_rules


def _while_jvp(primals, tangents, cond_nconsts, cond_jaxpr, body_nconsts, body_jaxpr):
    counts = cond_nconsts, body_nconsts
    *_, carry = parts_of_while(primals, *counts)
    _, const_tangents, carry_tangents = parts_of_while(tangents, *counts)
    body, consts_move, moves = _moving_body(body_jaxpr, const_tangents, carry_tangents)
    _, const_tangents = partition(consts_move, const_tangents)
    _, carry_tangents = partition(moves, map(_written_out, carry, carry_tangents))
    avals = body.in_avals[len(body.in_avals) - len(carry_tangents) :]
    outs = while_p.bind(
        *[*primals[: sum(counts)], *const_tangents, *carry, *carry_tangents],
        cond_nconsts=cond_nconsts,
        cond_jaxpr=_ignoring(cond_jaxpr, avals),
        body_nconsts=body_nconsts + len(const_tangents),
        body_jaxpr=_consts_first(body, body_nconsts, len(carry), len(const_tangents)),
    )
    return outs[: len(carry)], spread(moves, outs[len(carry) :])


def _moving_body(body, const_tangents, carry_tangents):
    """Return the jvp of a body, which of its constants move, and which of its carry."""
    flags = [tangent is not None for tangent in const_tangents]
    consts = tuple(flags)
    start = tuple([tangent is not None for tangent in carry_tangents])
    moves = settle(lambda moves: jvp_program(body, consts + moves, moves)[1], start)
    return jvp_program(body, consts + moves, moves)[0], consts, moves


jvp_rules[while_p] = _while_jvp


def _ignoring(closed, avals):
    """Return a program with further inputs at its end, which it ignores."""
    return rewired(closed, [*range(len(closed.invars)), *avals])


def _consts_first(body, num_consts, num_carry, num_tangents):
    """Bring the tangents of the constants, which follow the carry, in front of it."""
    places, front = [*range(len(body.invars))], num_consts + num_carry
    tangents = places[front : front + num_tangents]
    carry = places[num_consts:front] + places[front + num_tangents :]
    return rewired(body, places[:num_consts] + tangents + carry)


def _written_out(primal, tangent):
    return zeros_like_tangent(primal) if tangent is None else tangent


def _while_vmap(axis, args, dims, cond_nconsts, cond_jaxpr, body_nconsts, body_jaxpr):
    counts = cond_nconsts, body_nconsts
    test_dims, body_dims, carry_dims = parts_of_while(tuple(dims), *counts)
    mapped = _mapped_carry(axis, body_jaxpr, body_dims, carry_dims)
    _, [pred_dim] = vmap_program(cond_jaxpr, axis, test_dims + _at(0, mapped))
    if pred_dim is None:
        places = _at(cond_jaxpr.out_avals[0].ndim, mapped)
    else:
        refuse_io("a loop that ends for each by itself", cond_jaxpr, body_jaxpr)
        pred_dim, places = 0, (0,) * len(mapped)
    *_, carry = parts_of_while(args, *counts)
    spots = zip(carry, carry_dims, places)
    outs = while_p.bind(
        *args[: sum(counts)],
        *[place_axis(x, dim, place, axis.size) for x, dim, place in spots],
        cond_nconsts=cond_nconsts,
        cond_jaxpr=vmap_program_at(cond_jaxpr, axis, test_dims + places, (pred_dim,)),
        body_nconsts=body_nconsts,
        body_jaxpr=vmap_program_at(body_jaxpr, axis, body_dims + places, places),
    )
    return outs, list(places)


def _mapped_carry(axis, body, body_dims, carry_dims):
    """Return for each part of the carry whether it is mapped in some round."""

    def step(mapped):
        return _are_mapped(vmap_program(body, axis, body_dims + _at(0, mapped))[1])

    return settle(step, _are_mapped(carry_dims))


def _at(place, flags):
    return tuple([place if flag else None for flag in flags])


def _are_mapped(dims):
    return tuple([dim is not None for dim in dims])


vmap_rules[while_p] = _while_vmap


def write_while(writer, eqn, operands, results):
    """Write a loop; where examples stop at different steps, each keeps its carry."""
    test, body = eqn.params["cond_jaxpr"], eqn.params["body_jaxpr"]
    counts = eqn.params["cond_nconsts"], eqn.params["body_nconsts"]
    test_consts, consts, carry = parts_of_while(operands, *counts)
    state = [writer.name("carry") if name == "_" else name for name in results]
    writer.assign(state, carry)
    [pred] = test.out_avals
    with writer.block("while True:"):
        [going] = writer.inline(test, test_consts + state)
        writer.line(f"if not {going}{'.any()' if pred.ndim else ''}:")
        writer.line("    break")
        stepped = writer.inline(body, consts + state)
        if pred.ndim:
            ranks = [var.aval.ndim - pred.ndim for var in eqn.outvars]
            stepped = [
                f"np.where({_with_axes(going, rank)}, {new}, {old})"
                for new, old, rank in zip(stepped, state, ranks)
            ]
        hand_over(writer, body, stepped, state)


def _with_axes(going, count):
    return f"{going}[..., {', '.join(['None'] * count)}]" if count else going


python_rules[while_p] = write_while


def _while_split(split, primitive, args, on_tape, params):
    """Run what the tape has no part in, now; the tape runs the whole loop again."""
    with set_current_trace(split.tape):
        tape_outs = primitive.bind(*args, **params)
    later, loop = _known_loop(tuple(on_tape), **params)
    if loop is None:
        return tape_outs
    known_args, _ = partition(later, args)
    with set_current_trace(split.parent):
        known_outs = while_p.bind(*known_args, **loop)
    later = later[len(later) - len(tape_outs) :]
    return merge(later, known_outs, only(later, tape_outs))


split_rules[while_p] = _while_split


def _known_loop(on_tape, cond_nconsts, cond_jaxpr, body_nconsts, body_jaxpr):
    """Return which operands the tape has a part in, and the loop of the others.

    The loop is the parameters of its equation; None if nothing is left of it.
    """
    parts = parts_of_while(on_tape, cond_nconsts, body_nconsts)
    test_later, body_later, carry_later = parts

    def split_body(later):
        return split_program(body_jaxpr, body_later + later, later)

    carry_later = settle(lambda later: split_body(later).out_on_tape, carry_later)
    later = test_later + body_later + carry_later
    test = split_program(cond_jaxpr, test_later + carry_later)
    if test.out_on_tape[0] or all(carry_later):
        return later, None
    body = split_body(carry_later).known
    results = range(carry_later.count(False))
    return later, {
        "cond_nconsts": test_later.count(False),
        "cond_jaxpr": test.known,
        "body_nconsts": body_later.count(False),
        "body_jaxpr": rewired(body, range(len(body.invars)), results),
    }


def _while_transpose(*operands, **params):
    raise ValueError(
        "Reverse-mode differentiation does not work for lax.while_loop or "
        "lax.fori_loop with dynamic start/stop values: backwards, "
        "each step needs values of the step that it undoes, and how many there will be "
        "to keep is not known. Use lax.scan, lax.fori_loop with bounds that are Python "
        "numbers, or forward mode (minijax.jvp, minijax.jacfwd)."
    )


transpose_rules[while_p] = _while_transpose
