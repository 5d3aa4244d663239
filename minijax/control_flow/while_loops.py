"""while_loop, its rules, and the fixed point of what changes in it.

References: ``jax.lax.while_loop``, the loops over ``carry_nz``, ``carry_uk``,
``carry_batched`` in the rules of ``while_p``, ``scan_p`` in
``jax._src.lax.control_flow.loops``, the rules of ``while_p`` in
``jax._src.lax.control_flow.loops``.
"""

# Made from chapters/15_while_upper.md by `make chapter`;
# edit the chapter, not this file.
# Amended in chapters/28_indexing_rest.md: _write_loop, _write_both, while_loop
#   (0a46110f).

from collections.abc import Callable
from operator import or_
from typing import Any

from minijax.arrays.array import shape_rules
from minijax.arrays.dtypes import config
from minijax.arrays.transfer import transfer_operands
from minijax.batching.vmap import higher_order_primitives, vmap_rules
from minijax.control_flow.common import (
    batch_jaxpr_axes,
    check_carry_type,
    closed_jaxpr_with_io,
    forwarded_inputs,
    move_bdim,
    promote_weak_typed_inputs,
    raise_if_io_effect,
    select_by_index,
    thread_refs,
)
from minijax.control_flow.conditionals import convert_weak_type
from minijax.core import Primitive, impl_rules, set_current_trace
from minijax.errors import ConcretizationTypeError
from minijax.forward_mode.jvp import jvp_rules, zeros_like_tangent_aval
from minijax.jitting.compilation import (
    compile_cached,
    loop_placement,
    trace_call,
    user_out_avals,
)
from minijax.jitting.primitive import check_jaxpr_operands
from minijax.lax.reductions import as_array_operand
from minijax.linearization.linearize import partial_eval_rules
from minijax.python_backend.codegen import python_rules
from minijax.python_backend.codegen_rules import assign_outputs
from minijax.pytrees.api_util import FlatCall
from minijax.pytrees.argument_checks import is_ref, read_refs, refs_in, write_refs
from minijax.pytrees.tree_util import tree_map
from minijax.rematerialization.jaxpr_transforms import (
    batch_jaxpr,
    dce_closed_jaxpr,
    jvp_jaxpr,
    merge_lists,
    partition_list,
    scatter_by_mask,
    select_where,
)
from minijax.rematerialization.partial_eval import partial_eval_jaxpr
from minijax.reverse_mode.backward_pass import transpose_rules

# while_loop: repetition until a condition fails, as an equation.

while_p: Primitive = Primitive("while")
while_p.multiple_results = True
higher_order_primitives.add(while_p)


def repeat_while(test, step, cond_consts, body_consts, carry):
    """Run the executables of a condition and of a body; return the last carry."""
    while (going := test(*cond_consts, *carry)[0]).any():
        stepped = step(*body_consts, *carry)
        carry = [_unless_done(going, old, new) for old, new in zip(carry, stepped)]
    return carry


def _unless_done(going, old, new):
    """Return `new`, but `old` for those examples of a batch whose loop has ended."""
    return select_by_index(going, old, new) if going.ndim else new


def split_while_args(values, cond_nconsts, body_nconsts):
    """Return constants of the condition, constants of the body, and the carry."""
    end = cond_nconsts + body_nconsts
    return values[:cond_nconsts], values[cond_nconsts:end], values[end:]


def while_shape_rule(*avals, cond_nconsts, cond_jaxpr, body_nconsts, body_jaxpr):
    """Return the types of the carry, after comparing them with what the body takes."""
    *consts, carry = split_while_args(avals, cond_nconsts, body_nconsts)
    check_jaxpr_operands("The condition", cond_jaxpr.in_avals, [*consts[0], *carry])
    check_jaxpr_operands("The body", body_jaxpr.in_avals, [*consts[1], *carry])
    return body_jaxpr.out_avals


def _while_impl(*args, cond_nconsts, cond_jaxpr, body_nconsts, body_jaxpr):
    placement = loop_placement(args, while_p, cond_jaxpr, body_jaxpr)
    args = transfer_operands(args, placement.device)
    cond_consts, body_consts, carry = split_while_args(args, cond_nconsts, body_nconsts)
    test = compile_cached(cond_jaxpr, placement=placement)
    step = compile_cached(body_jaxpr, placement=placement)
    carry = repeat_while(test, step, cond_consts, body_consts, carry)
    return [
        convert_weak_type(as_array_operand(x), aval)
        for x, aval in zip(carry, body_jaxpr.out_avals)
    ]


shape_rules[while_p] = while_shape_rule
impl_rules[while_p] = _while_impl


def _write_loop(cond_fun, body_fun, call):
    """Return the initial carry, the condition's `Program` and the body's."""
    test, body = _write_both(cond_fun, body_fun, call)
    out_avals = user_out_avals(body)
    [in_tree] = call.args_tree.children()
    if len(out_avals) == len(call.avals):
        leaves, changed = promote_weak_typed_inputs(call.leaves, call.avals, out_avals)
        if changed:
            call = FlatCall("while_loop", body_fun, (in_tree.unflatten(leaves),))
            test, body = _write_both(cond_fun, body_fun, call)
    results = body.out_tree, user_out_avals(body)
    check_carry_type("while_loop", body_fun, in_tree, call.avals, *results)
    return call.leaves, test, body


def _write_both(cond_fun, body_fun, call):
    test = trace_call(FlatCall("while_loop", cond_fun, call.args), hoist=True)
    test = _reading_only(test)
    _check_answer(test)
    return test, trace_call(call, hoist=True)


def _check_answer(test):
    """Raise if a condition does not return a boolean scalar."""
    avals = test.closed.out_avals
    found = [(aval.shape, aval.dtype) for aval in avals]
    if test.out_tree.kind is None and found == [((), bool)]:
        return
    returned = ", ".join(map(str, avals))
    if test.out_tree.kind is not None:
        returned = f"{test.out_tree} of ({returned})"
    raise TypeError(
        "while_loop: cond_fun must return a boolean scalar, but got output type(s) "
        f"{returned}. Compare, or take jnp.all or jnp.any."
    )


def _bind_while(test, body, carry):
    """Bind a loop; what its body hands on unchanged becomes a constant of the body."""
    condition, fixed = _fixed_carry(test, body)
    kept, constants = partition_list(fixed, carry)
    own, moving, _ = _places(test, fixed)
    condition = closed_jaxpr_with_io(condition, own + moving)
    own, moving, still = _places(body, fixed)
    results, _ = partition_list(fixed, range(len(carry)))
    outs = while_p.bind(
        *[*test.captured, *constants, *body.captured, *kept],
        cond_nconsts=len(test.captured),
        cond_jaxpr=condition,
        body_nconsts=len(constants) + len(body.captured),
        body_jaxpr=closed_jaxpr_with_io(body.closed, still + own + moving, results),
    )
    return merge_lists(fixed, outs, map(as_array_operand, constants))


def _fixed_carry(test, body):
    """Return the condition, and for each part of the carry whether it is a constant."""
    program, asked = dce_closed_jaxpr(test.closed, (True,))
    first = len(body.captured)
    same = [place == first + i for i, place in enumerate(forwarded_inputs(body.closed))]
    fixed = [a and not b for a, b in zip(same, asked[len(test.captured) :])]
    return (program if any(fixed) else test.closed), fixed


def _places(program, fixed):
    """Return where a program has what it captured, the moving and the fixed carry."""
    first = len(program.captured)
    moving, still = partition_list(fixed, range(first, first + len(fixed)))
    return [*range(first)], [*moving], [*still]


def _reading_only(test):
    """Return a condition that returns nothing for references, or raise if it writes."""
    count = test.out_tree.num_leaves
    pairs = zip(test.captured, test.closed.invars)
    given = [(x, var) for x, var in pairs if is_ref(x)]
    for (ref, before), after in zip(given, test.closed.outvars[count:]):
        if before is not after:
            raise NotImplementedError(
                f"while_loop: cond_fun writes to {ref!r}. It is asked once more than "
                "body_fun runs; a condition can read references, and body_fun write."
            )
    inputs = range(len(test.closed.invars))
    closed = closed_jaxpr_with_io(test.closed, inputs, range(count))
    return test._replace(closed=closed)


def while_loop(
    cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any
) -> Any:
    """Apply a function again and again, as long as a condition holds.

    Args:
      cond_fun: function from the carry to a boolean scalar.
      body_fun: function from the carry to a carry of the same structure, shapes and
        dtypes.
      init_val: the first carry, a tree of arrays. A number without a dtype of its own
        takes on that of the carry which the body returns.

    Returns:
      The first carry for which the condition does not hold.

    Raises:
      TypeError: if a function cannot be called, the condition is no boolean scalar, or
        the carry changes its type on the way; the message names the leaves.
      NotImplementedError: if the condition writes to a reference.

    Reference: ``jax.lax.while_loop``.
    """
    if not (callable(cond_fun) and callable(body_fun)):
        raise TypeError("while_loop: cond_fun and body_fun must be callable.")
    if config.jax_disable_jit:
        try:
            return _in_python(cond_fun, body_fun, init_val)
        except ConcretizationTypeError:
            pass  # the carry stands for many examples: no Python loop follows them
    call = FlatCall("while_loop", body_fun, (init_val,))
    leaves, test, body = _write_loop(cond_fun, body_fun, call)
    refs, count = refs_in(body.captured), len(leaves)
    test = thread_refs(test, refs, count, None)
    test = test._replace(captured=read_refs(test.captured))
    body = thread_refs(body, refs, count, count)
    outs = _bind_while(test, body, [*leaves, *read_refs(refs)])
    return body.out_tree.unflatten(write_refs(refs, outs))


def _in_python(cond_fun, body_fun, carry):
    carry = tree_map(as_array_operand, carry)
    while cond_fun(carry):
        carry = tree_map(as_array_operand, body_fun(carry))
    return carry


# The least fixed point of flags that turn one another on.


def settle(step, flags):
    """Return the flags that are on in the end, if each one may turn others on.

    Args:
      step: a function from a tuple of flags to the flags that follow from them.
      flags: a tuple of booleans to begin with.
    """
    while (found := tuple(map(or_, flags, step(flags)))) != flags:
        flags = found
    return flags


# The rules of while: derivatives, batches, splitting, and no transposition.


def _moving_body(body, const_tangents, carry_tangents):
    """Return the jvp of a body, which of its constants move, and which of its carry."""
    flags = [tangent is not None for tangent in const_tangents]
    consts = tuple(flags)
    start = tuple([tangent is not None for tangent in carry_tangents])
    moves = settle(lambda moves: jvp_jaxpr(body, consts + moves, moves)[1], start)
    return jvp_jaxpr(body, consts + moves, moves)[0], consts, moves


def _while_jvp(primals, tangents, cond_nconsts, cond_jaxpr, body_nconsts, body_jaxpr):
    counts = cond_nconsts, body_nconsts
    *_, carry = split_while_args(primals, *counts)
    _, const_tangents, carry_tangents = split_while_args(tangents, *counts)
    body, consts_move, moves = _moving_body(body_jaxpr, const_tangents, carry_tangents)
    _, const_tangents = partition_list(consts_move, const_tangents)
    _, carry_tangents = partition_list(moves, map(_written_out, carry, carry_tangents))
    avals = body.in_avals[len(body.in_avals) - len(carry_tangents) :]
    outs = while_p.bind(
        *[*primals[: sum(counts)], *const_tangents, *carry, *carry_tangents],
        cond_nconsts=cond_nconsts,
        cond_jaxpr=_ignoring(cond_jaxpr, avals),
        body_nconsts=body_nconsts + len(const_tangents),
        body_jaxpr=_consts_first(body, body_nconsts, len(carry), len(const_tangents)),
    )
    return outs[: len(carry)], scatter_by_mask(moves, outs[len(carry) :])


def _ignoring(closed, avals):
    """Return a program with further inputs at its end, which it ignores."""
    return closed_jaxpr_with_io(closed, [*range(len(closed.invars)), *avals])


def _consts_first(body, num_consts, num_carry, num_tangents):
    """Bring the tangents of the constants, which follow the carry, in front of it."""
    places, front = [*range(len(body.invars))], num_consts + num_carry
    tangents = places[front : front + num_tangents]
    carry = places[num_consts:front] + places[front + num_tangents :]
    return closed_jaxpr_with_io(body, places[:num_consts] + tangents + carry)


def _written_out(primal, tangent):
    return zeros_like_tangent_aval(primal) if tangent is None else tangent


jvp_rules[while_p] = _while_jvp


def _while_vmap(axis, args, dims, cond_nconsts, cond_jaxpr, body_nconsts, body_jaxpr):
    counts = cond_nconsts, body_nconsts
    test_dims, body_dims, carry_dims = split_while_args(tuple(dims), *counts)
    mapped = _mapped_carry(axis, body_jaxpr, body_dims, carry_dims)
    _, [pred_dim] = batch_jaxpr(cond_jaxpr, axis, test_dims + _at(0, mapped))
    if pred_dim is None:
        # behind the axes of outer batches, which a vector of answers has already
        places = _at(cond_jaxpr.out_avals[0].ndim, mapped)
    else:
        raise_if_io_effect(
            "a loop that ends for each by itself", cond_jaxpr, body_jaxpr
        )
        pred_dim, places = 0, (0,) * len(mapped)
    *_, carry = split_while_args(args, *counts)
    spots = zip(carry, carry_dims, places)
    outs = while_p.bind(
        *args[: sum(counts)],
        *[move_bdim(x, dim, place, axis.size) for x, dim, place in spots],
        cond_nconsts=cond_nconsts,
        cond_jaxpr=batch_jaxpr_axes(cond_jaxpr, axis, test_dims + places, (pred_dim,)),
        body_nconsts=body_nconsts,
        body_jaxpr=batch_jaxpr_axes(body_jaxpr, axis, body_dims + places, places),
    )
    return outs, list(places)


def _mapped_carry(axis, body, body_dims, carry_dims):
    """Return for each part of the carry whether it is mapped in some round."""

    def step(mapped):
        return _are_mapped(batch_jaxpr(body, axis, body_dims + _at(0, mapped))[1])

    return settle(step, _are_mapped(carry_dims))


def _at(place, flags):
    return tuple([place if flag else None for flag in flags])


def _are_mapped(dims):
    return tuple([dim is not None for dim in dims])


vmap_rules[while_p] = _while_vmap


def write_while(emitter, eqn, operands, results):
    """Write a loop; where examples stop at different steps, each keeps its carry."""
    test, body = eqn.params["cond_jaxpr"], eqn.params["body_jaxpr"]
    counts = eqn.params["cond_nconsts"], eqn.params["body_nconsts"]
    test_consts, consts, carry = split_while_args(operands, *counts)
    state = [emitter.name("carry") if name == "_" else name for name in results]
    emitter.assign(state, carry)
    [pred] = test.out_avals
    with emitter.block("while True:"):
        [going] = emitter.inline(test, test_consts + state)
        emitter.line(f"if not {going}{'.any()' if pred.ndim else ''}:")
        emitter.line("    break")
        stepped = emitter.inline(body, consts + state)
        if pred.ndim:
            ranks = [var.aval.ndim - pred.ndim for var in eqn.outvars]
            stepped = [
                f"np.where({_with_axes(going, rank)}, {new}, {old})"
                for new, old, rank in zip(stepped, state, ranks)
            ]
        assign_outputs(emitter, body, stepped, state)


def _with_axes(going, count):
    return f"{going}[..., {', '.join(['None'] * count)}]" if count else going


python_rules[while_p] = write_while


def _partial_eval_while(trace, primitive, args, in_unknown, params):
    """Run what is known now; the tape runs the whole loop again."""
    with set_current_trace(trace.tape):
        unknown_outs = primitive.bind_all(*args, **params)
    later, loop = _known_loop(tuple(in_unknown), **params)
    if loop is None:
        return unknown_outs
    known_args, _ = partition_list(later, args)
    with set_current_trace(trace.parent):
        known_outs = while_p.bind(*known_args, **loop)
    later = later[len(later) - len(unknown_outs) :]
    return merge_lists(later, known_outs, select_where(later, unknown_outs))


partial_eval_rules[while_p] = _partial_eval_while


def _known_loop(in_unknown, cond_nconsts, cond_jaxpr, body_nconsts, body_jaxpr):
    """Return which operands are unknown, and the loop of the others.

    The loop is the parameters of its equation; None if nothing is left of it.
    """
    parts = split_while_args(in_unknown, cond_nconsts, body_nconsts)
    test_later, body_later, carry_later = parts

    def partial_eval_body(later):
        return partial_eval_jaxpr(body_jaxpr, body_later + later, later)

    def step(later):
        return partial_eval_body(later).out_unknown

    carry_later = settle(step, carry_later)
    later = test_later + body_later + carry_later
    test = partial_eval_jaxpr(cond_jaxpr, test_later + carry_later)
    if test.out_unknown[0] or all(carry_later):
        return later, None
    body = partial_eval_body(carry_later).known
    results = range(carry_later.count(False))
    return later, {
        "cond_nconsts": test_later.count(False),
        "cond_jaxpr": test.known,
        "body_nconsts": body_later.count(False),
        "body_jaxpr": closed_jaxpr_with_io(body, range(len(body.invars)), results),
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
