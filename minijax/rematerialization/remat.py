"""Rematerialization: calls of programs that are run again for their derivative.

References: ``jax.checkpoint``; ``remat_p`` in ``jax._src.ad_checkpoint``, the rules
of ``jit_p`` in ``jax._src.pjit``.
"""

# Made from chapters/11_remat_upper.md by `make chapter`;
# edit the chapter, not this file.

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from minijax.arrays.array import shape_rules
from minijax.batching.vmap import program_primitives, vmap_rules
from minijax.core import Primitive, RuleTable, impl_rules, set_current_trace
from minijax.custom_derivatives.custom_jvp_vjp import callee_rules, plain_calls
from minijax.forward_mode.jvp import jvp_rules
from minijax.jaxprs.jaxpr import ClosedJaxpr, jaxpr_as_fun
from minijax.linearization.linearize import split_rules
from minijax.numpy.operands import as_array
from minijax.rematerialization.caching import remembered
from minijax.rematerialization.jaxpr_transforms import (
    Split,
    acts,
    dce_program,
    dce_rules,
    flags_of,
    flags_of_leaves,
    flags_of_split,
    flags_per_operand,
    flags_with_tangents,
    has_effects,
    inlined,
    is_kept,
    jvp_program,
    keep_inputs,
    merge,
    only,
    optimization_barrier_p,
    partition,
    program_of_call,
    prune,
    remat_options,
    split_program,
    spread,
    stage,
    traced_arguments,
    transpose_program,
    types_declared,
    types_given,
    vmap_program,
)
from minijax.reverse_mode.backward_pass import Linear, transpose_rules

# Rematerialisation: calls of programs that are run again for their derivative.

remat_p = Primitive("remat2")
program_primitives.add(remat_p)
impl_rules[remat_p] = lambda *args, jaxpr, **params: jaxpr_as_fun(jaxpr)(*args)
shape_rules[remat_p] = lambda *avals, jaxpr, **params: jaxpr.out_avals


# Rules of primitives that call a program: each is a call of a transformed program.


def vmap_call(primitive):
    """Return the batching rule of a primitive that calls its parameter `jaxpr`."""

    def rule(axis, args, dims, jaxpr, **params):
        program, dims_out = vmap_program(jaxpr, axis, tuple(dims))
        return primitive.bind(*args, jaxpr=program, **params), list(dims_out)

    return rule


def unchanged(params, choose):
    """Return parameters, none of which says something about each operand."""
    return params


def jvp_call(primitive, per_operand=unchanged):
    """Return the jvp rule of a primitive that calls its parameter `jaxpr`.

    Args:
      primitive: the `Primitive`.
      per_operand: called with the parameters, and a function from what they say about
        the operands to what they are to say; returns the parameters.
    """

    def rule(primals, tangents, jaxpr, **params):
        moving = tuple([tangent is not None for tangent in tangents])
        program, moves = jvp_program(jaxpr, moving)
        params = per_operand(params, lambda given: [*given, *only(moving, given)])
        operands = *primals, *only(moving, tangents)
        outs = primitive.bind(*operands, jaxpr=program, **params)
        return outs[: len(moves)], spread(moves, outs[len(moves) :])

    return rule


def transpose_call(primitive, per_operand=unchanged, types=types_given):
    """Return the transpose rule of a primitive that calls its parameter `jaxpr`."""

    def rule(cts, *operands, jaxpr, **params):
        linear = tuple([isinstance(x, Linear) for x in operands])
        given = types(cts, jaxpr.out_avals)
        program, arrives = transpose_program(jaxpr, linear, given)
        values, _ = partition(linear, operands)
        cts = only(given, cts)
        new = [None] * len(cts)
        params = per_operand(params, lambda x: [*partition(linear, x)[0], *new])
        arrived = primitive.bind(*values, *cts, jaxpr=program, **params)
        return spread(linear, spread(arrives, arrived))

    return rule


def dce_call(per_operand=unchanged):
    """Return the dce rule of a primitive that calls its parameter `jaxpr`."""

    def rule(eqn, used):
        program, needed = dce_program(eqn.params["jaxpr"], used)
        params = per_operand(eqn.params, lambda given: only(needed, given))
        return eqn.replace(
            invars=only(needed, eqn.invars),
            outvars=only(used, eqn.outvars),
            params=params | {"jaxpr": keep_inputs(program, needed)},
        )

    return rule


jvp_rules[remat_p] = jvp_call(remat_p, flags_with_tangents)
vmap_rules[remat_p] = vmap_call(remat_p)
transpose_rules[remat_p] = transpose_call(remat_p, flags_per_operand, types_declared)
dce_rules[remat_p] = dce_call(flags_per_operand)


class Keeping(NamedTuple):
    """A program, or an equation, of which a policy keeps something.

    Attributes:
      now: what returns the kept values after its results.
      again: what takes them after its inputs; None if nothing is left to do.
      kept: the variables of these values.
    """

    now: Any
    again: Any
    kept: list


def run_again(known, values, parts):
    """Return the program from values that are known to what the tape has to know.

    Args:
      known: a `ClosedJaxpr`, the known half of `parts`, or what is left to do of it.
      values: its inputs, in another order.
      parts: a `Split`.

    Returns:
      A `ClosedJaxpr` from `values`, and the inputs on the tape.
    """
    places = [*known.invars[: len(parts.known.invars)], *known.outvars]
    needed = [places[source] for source in parts.sources]
    body = known.jaxpr.replace(invars=values, outvars=needed)
    first, later = jaxpr_as_fun(ClosedJaxpr(body, known.consts)), parts.unknown
    avals = [*body.in_avals, *later.in_avals[len(needed) :]]
    later, ours = jaxpr_as_fun(later), len(values)
    return stage(lambda *xs: later(*first(*xs[:ours]), *xs[ours:]), avals)


@remembered
def forgetful_split(closed, on_tape, policy):
    """Split a program so that its residuals are inputs, and what a policy keeps.

    Args:
      closed: a `ClosedJaxpr`.
      on_tape: for each input whether only the tape will know it.
      policy: what may be kept; None keeps nothing.
    """
    parts = split_program(closed, on_tape)
    # What may be kept?
    looks_in = policy or has_effects(closed)
    plainly = Keeping(parts.known, parts.known, [])
    known = keeping(parts.known, policy) if looks_in else plainly
    # What does the program that runs again need of it?
    values = [*known.kept, *known.now.invars]
    again, needed = prune(run_again(known.again, values, parts))
    needed, tangents = needed[: len(values)], needed[len(values) :]
    again = keep_inputs(again, [*needed, *[True] * len(tangents)])
    # The program that runs now returns the known results, and what is needed.
    chosen, count = only(needed, values), parts.out_on_tape.count(False)
    more = [value for value in chosen if value not in known.now.invars]
    jaxpr = known.now.jaxpr
    jaxpr = jaxpr.replace(outvars=[*jaxpr.outvars[:count], *more])
    now, _ = prune(ClosedJaxpr(jaxpr, known.now.consts))
    there = [*jaxpr.invars, *jaxpr.outvars]
    return Split(now, again, parts.out_on_tape, tuple(map(there.index, chosen)))


def _split(split, primitive, args, on_tape, params):
    parts = forgetful_split(params["jaxpr"], tuple(on_tape), params["policy"])
    known_args, tape_args = partition(on_tape, args)
    with set_current_trace(split.parent):
        known_outs = list(map(as_array, jaxpr_as_fun(parts.known)(*known_args)))
    residuals = parts.residuals(known_args, known_outs)
    params = flags_of_split(params, parts, on_tape)
    params = params | {"jaxpr": parts.unknown, "differentiated": True}
    with set_current_trace(split.tape):
        tape_outs = primitive.bind(*residuals, *tape_args, **params)
    return parts.results(known_outs, tape_outs)


split_rules[remat_p] = _split


def checkpoint(
    fun: Callable[..., Any],
    *,
    prevent_cse: bool | Sequence[bool] = True,
    policy: Callable[..., bool] | None = None,
    static_argnums: int | tuple[int, ...] = (),
    static_argnames: str | Sequence[str] = (),
    concrete: Any = None,
) -> Callable[..., Any]:
    """Return a function that keeps its arguments for its derivative, and little else.

    What its derivative needs besides is computed again when it is needed.

    Args:
      fun: a function of trees of arrays.
      prevent_cse: whether compilers are kept from merging what is computed again with
        what was computed before. Of several flags, one for each argument, that of an
        argument says whether what is computed from it alone may be merged.
      policy: from a primitive, the abstract values of its operands and its parameters
        to whether its results may be kept; see `checkpoint_policies`.
      static_argnums: positions of arguments that are not traced.
      static_argnames: names of keyword arguments that are not traced.

    Raises:
      TypeError, ValueError: for options that do not fit.
      NotImplementedError: if `concrete` is given.

    Reference: ``jax.checkpoint``.
    """
    flags, params = remat_options(prevent_cse, policy, concrete)
    names = static_argnames
    names = {names} if isinstance(names, str) else {*names}

    @functools.wraps(fun)
    def fun_remat(*args, **kwargs):
        call, statics = traced_arguments(fun, args, kwargs, static_argnums, names)
        jaxpr, consts, out_tree = program_of_call(call, statics)
        how = params | {"prevent_cse": flags_of_leaves(flags, call, len(consts))}
        outs = remat_p.bind(*consts, *call.leaves, jaxpr=jaxpr, **how)
        return out_tree.unflatten(outs)

    return fun_remat


def keeps(policy, eqn):
    """Return whether results of an equation may be kept; those of effects have to."""
    avals = [x.aval for x in eqn.invars]
    if policy is None or acts(eqn):
        return acts(eqn)
    return is_kept(policy(eqn.primitive, *avals, **eqn.params))


def keep_results(eqn, policy):
    """Return the `Keeping` of an equation whose results are kept, or computed again."""
    if keeps(policy, eqn):
        return Keeping(eqn, None, eqn.outvars)
    return Keeping(eqn, eqn, [])


# Rules ``rule(eqn, policy)`` return a `Keeping`: a loop has one, which looks inside.
keep_rules: RuleTable = RuleTable("keep", default=keep_results)


@remembered
def keeping(closed, policy):
    """Return the `Keeping` of a program."""
    # A policy is asked about what plain calls do. Rules of other calls would be lost.
    closed = inlined(closed, {each: callee_rules[each] for each in plain_calls})
    found = [keep_rules[eqn.primitive](eqn, policy) for eqn in closed.eqns]
    kept = [var for each in found for var in each.kept]
    now, rest = [each.now for each in found], [each.again for each in found]
    jaxpr, rest = closed.jaxpr, [eqn for eqn in rest if eqn is not None]
    now = jaxpr.replace(eqns=now, outvars=[*jaxpr.outvars, *kept])
    again = jaxpr.replace(eqns=rest, invars=[*jaxpr.invars, *kept])
    now, again = (ClosedJaxpr(each, closed.consts) for each in (now, again))
    return Keeping(now, again, kept)


@remembered
def behind_barrier(closed, flags):
    """Return a program that uses the flagged inputs when all of them are there."""

    def program(*flat):
        free, held = partition(flags, flat)
        held = optimization_barrier_p.bind(*held) if held else held
        return jaxpr_as_fun(closed)(*merge(flags, free, held))

    return stage(program, closed.in_avals)


def _callee(eqn):
    closed = eqn.params["jaxpr"]
    flags = flags_of(eqn.params["prevent_cse"], len(closed.invars))
    again = eqn.params["differentiated"] and any(flags)
    return behind_barrier(closed, flags) if again else closed


callee_rules[remat_p] = _callee
