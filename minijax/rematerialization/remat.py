"""Rematerialization: calls of programs that are run again for their derivative.

References: ``jax.checkpoint``; ``remat_p`` in ``jax._src.ad_checkpoint``, the rules
of ``jit_p`` in ``jax._src.pjit``.
"""

# Made from chapters/11_remat_upper.md by `make chapter`;
# edit the chapter, not this file.
# Amended in chapters/11_own_rules_rest.md: jvp_call_rule, transpose_call_rule,
#   dce_call_rule, _partial_eval (5c88594d).
# Amended in chapters/28_indexing_rest.md: checkpoint (ee2ba6fc).

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from minijax._lazy import wraps
from minijax.arrays.array import shape_rules
from minijax.batching.vmap import higher_order_primitives, vmap_rules
from minijax.core import Primitive, RuleTable, impl_rules, set_current_trace
from minijax.custom_derivatives.custom_jvp_vjp import callee_rules, transparent_calls
from minijax.forward_mode.jvp import jvp_rules
from minijax.jaxprs.jaxpr import ClosedJaxpr, jaxpr_as_fun
from minijax.linearization.linearize import partial_eval_rules
from minijax.numpy.operands import as_array
from minijax.pytrees.api_util import holds_refs
from minijax.pytrees.argument_checks import refs_in
from minijax.rematerialization.caching import weakref_memoize
from minijax.rematerialization.jaxpr_transforms import (
    batch_jaxpr,
    behind_barrier,
    broadcast_flag,
    closed_jaxpr_of_call,
    cotangent_avals,
    dce_all_outputs,
    dce_closed_jaxpr,
    dce_rules,
    declared_cotangent_avals,
    eqn_has_effects,
    flags_per_leaf,
    flatten_traced_args,
    has_effects,
    inline_calls_by_rule,
    is_saveable,
    jvp_jaxpr,
    jvp_operand_flags,
    map_operand_flags,
    partial_eval_operand_flags,
    partition_list,
    prune_inputs,
    remat_options,
    scatter_by_mask,
    select_where,
    trace_flat_fun,
    transpose_jaxpr,
)
from minijax.rematerialization.partial_eval import PartialEvalResult, partial_eval_jaxpr
from minijax.reverse_mode.backward_pass import UndefinedPrimal, transpose_rules

# Rematerialisation: calls of programs that are run again for their derivative.

remat_p = Primitive("remat2")
remat_p.multiple_results = True
higher_order_primitives.add(remat_p)
impl_rules[remat_p] = lambda *args, jaxpr, **params: jaxpr_as_fun(jaxpr)(*args)
shape_rules[remat_p] = lambda *avals, jaxpr, **params: jaxpr.out_avals


# Rules of primitives that call a program: each is a call of a transformed program.


def jvp_call_rule(primitive, per_operand=jvp_operand_flags):
    """Return the jvp rule of a primitive that calls its parameter `jaxpr`.

    Args:
      primitive: the `Primitive`.
      per_operand: for parameters that are lists with an entry for each operand. It is
        called with the parameters, and a function that makes such a list for the
        new operands; returns the new parameters.
    """

    def rule(primals, tangents, jaxpr, **params):
        moving = tuple([tangent is not None for tangent in tangents])
        program, moves = jvp_jaxpr(jaxpr, moving)
        operands = *primals, *select_where(moving, tangents)
        params = per_operand(params, lambda x: [*x, *select_where(moving, x)])
        outs = primitive.bind_all(*operands, jaxpr=program, **params)
        return outs[: len(moves)], scatter_by_mask(moves, outs[len(moves) :])

    return rule


def batch_call_rule(primitive):
    """Return the batching rule of a primitive that calls its parameter `jaxpr`."""

    def rule(axis, args, dims, jaxpr, **params):
        program, dims_out = batch_jaxpr(jaxpr, axis, tuple(dims))
        return primitive.bind_all(*args, jaxpr=program, **params), list(dims_out)

    return rule


def transpose_call_rule(
    primitive, types=cotangent_avals, per_operand=map_operand_flags
):
    """Return the transpose rule of a primitive that calls its parameter `jaxpr`."""

    def rule(cts, *operands, jaxpr, **params):
        linear = tuple([isinstance(x, UndefinedPrimal) for x in operands])
        given = types(cts, jaxpr.out_avals)
        program, arrives = transpose_jaxpr(jaxpr, linear, given)
        values, _ = partition_list(linear, operands)
        cts = select_where(given, cts)
        new = [None] * len(cts)
        params = per_operand(params, lambda x: [*partition_list(linear, x)[0], *new])
        arrived = primitive.bind_all(*values, *cts, jaxpr=program, **params)
        return scatter_by_mask(linear, scatter_by_mask(arrives, arrived))

    return rule


def dce_call_rule(per_operand=map_operand_flags):
    """Return the dce rule of a primitive that calls its parameter `jaxpr`."""

    def rule(eqn, used):
        program, needed = dce_closed_jaxpr(eqn.params["jaxpr"], used)
        params = per_operand(eqn.params, lambda given: select_where(needed, given))
        return eqn.replace(
            invars=select_where(needed, eqn.invars),
            outvars=select_where(used, eqn.outvars),
            params=params | {"jaxpr": prune_inputs(program, needed)},
        )

    return rule


jvp_rules[remat_p] = jvp_call_rule(remat_p)
vmap_rules[remat_p] = batch_call_rule(remat_p)
transpose_rules[remat_p] = transpose_call_rule(remat_p, declared_cotangent_avals)
dce_rules[remat_p] = dce_call_rule()


class RematSplit(NamedTuple):
    """A program, or an equation, of which a policy keeps something.

    Attributes:
      known: what returns the kept values after its results.
      staged: what takes them after its inputs; None if nothing is left to do.
      residuals: the variables of these values.
    """

    known: Any
    staged: Any
    residuals: list


def run_again(known, values, parts):
    """Return the program from values that are known to what the tape has to know.

    It runs the known half again for its residuals, and gives them to the unknown half.

    Args:
      known: a `ClosedJaxpr`, what is left to do of the known half of `parts`.
      values: the variables that the new program takes: inputs of `known`, and results
        of it that a policy has kept.
      parts: a `PartialEvalResult`.

    Returns:
      A `ClosedJaxpr` from `values`, and the unknown inputs.
    """
    places = [*known.invars[: len(parts.known.invars)], *known.outvars]
    needed = [places[source] for source in parts.sources]
    body = known.jaxpr.replace(invars=values, outvars=needed)
    first, later = jaxpr_as_fun(ClosedJaxpr(body, known.consts)), parts.unknown
    avals = [*body.in_avals, *later.in_avals[len(needed) :]]
    later, ours = jaxpr_as_fun(later), len(values)
    return trace_flat_fun(lambda *xs: later(*first(*xs[:ours]), *xs[ours:]), avals)


@weakref_memoize
def split_and_recompute(closed, in_unknown, policy):
    """Split a program so that its residuals are inputs, and what a policy keeps.

    Both halves lose what nothing uses.

    Args:
      closed: a `ClosedJaxpr`.
      in_unknown: for each input whether it is unknown.
      policy: what may be kept; None keeps nothing.
    """
    parts = partial_eval_jaxpr(closed, in_unknown)
    # What may be kept?
    looks_in = policy or has_effects(closed)
    plainly = RematSplit(parts.known, parts.known, [])
    saved = remat_partial_eval(parts.known, policy) if looks_in else plainly
    # What does the program that runs again need of it?
    values = [*saved.residuals, *saved.known.invars]
    again, needed = dce_all_outputs(run_again(saved.staged, values, parts))
    needed, tangents = needed[: len(values)], needed[len(values) :]
    again = prune_inputs(again, [*needed, *[True] * len(tangents)])
    # The program that runs now returns the known results, and what is needed.
    chosen, count = select_where(needed, values), parts.out_unknown.count(False)
    more = [value for value in chosen if value not in saved.known.invars]
    jaxpr = saved.known.jaxpr
    jaxpr = jaxpr.replace(outvars=[*jaxpr.outvars[:count], *more])
    now, _ = dce_all_outputs(ClosedJaxpr(jaxpr, saved.known.consts))
    there = [*jaxpr.invars, *jaxpr.outvars]
    return PartialEvalResult(
        now, again, parts.out_unknown, tuple(map(there.index, chosen))
    )


def _partial_eval(trace, primitive, args, in_unknown, params):
    parts = split_and_recompute(params["jaxpr"], tuple(in_unknown), params["policy"])
    known_args, unknown_args = partition_list(in_unknown, args)
    with set_current_trace(trace.parent):
        known_outs = list(map(as_array, jaxpr_as_fun(parts.known)(*known_args)))
    residuals = parts.residuals(known_args, known_outs)
    params = partial_eval_operand_flags(params, parts, in_unknown)
    params = params | {"jaxpr": parts.unknown, "differentiated": True}
    with set_current_trace(trace.tape):
        unknown_outs = primitive.bind_all(*residuals, *unknown_args, **params)
    return parts.results(known_outs, unknown_outs)


partial_eval_rules[remat_p] = _partial_eval


def _callee(eqn):
    closed = eqn.params["jaxpr"]
    flags = broadcast_flag(eqn.params["prevent_cse"], len(closed.invars))
    again = eqn.params["differentiated"] and any(flags)
    return behind_barrier(closed, flags) if again else closed


callee_rules[remat_p] = _callee


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

    What its derivative needs besides is computed again when it is needed. If it uses
    references, it is called as it is.

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

    @wraps(fun)
    def fun_remat(*args, **kwargs):
        if holds_refs((args, kwargs)):
            return fun(*args, **kwargs)
        call, statics = flatten_traced_args(fun, args, kwargs, static_argnums, names)
        jaxpr, consts, out_tree = closed_jaxpr_of_call(call, statics)
        if refs_in(consts):
            return fun(*args, **kwargs)
        how = params | {"prevent_cse": flags_per_leaf(flags, call, len(consts))}
        outs = remat_p.bind(*consts, *call.leaves, jaxpr=jaxpr, **how)
        return out_tree.unflatten(outs)

    return fun_remat


def policy_allows_saving(policy, eqn):
    """Return whether results of an equation may be kept; those of effects have to."""
    avals = [x.aval for x in eqn.invars]
    if policy is None or eqn_has_effects(eqn):
        return eqn_has_effects(eqn)
    return is_saveable(policy(eqn.primitive, *avals, **eqn.params))


def save_outputs(eqn, policy):
    """Return the `RematSplit` of an equation: results are kept, or computed again."""
    if policy_allows_saving(policy, eqn):
        return RematSplit(eqn, None, eqn.outvars)
    return RematSplit(eqn, eqn, [])


# Rules ``rule(eqn, policy)`` return a `RematSplit`: a loop has one, which looks inside.
remat_partial_eval_rules: RuleTable = RuleTable("keep", default=save_outputs)


@weakref_memoize
def remat_partial_eval(closed, policy):
    """Return the `RematSplit` of a program."""
    # A policy is asked about what plain calls do. Rules of other calls would be lost.
    closed = inline_calls_by_rule(
        closed, {each: callee_rules[each] for each in transparent_calls}
    )
    found = [
        remat_partial_eval_rules[eqn.primitive](eqn, policy) for eqn in closed.eqns
    ]
    kept = [var for each in found for var in each.residuals]
    now, rest = [each.known for each in found], [each.staged for each in found]
    jaxpr, rest = closed.jaxpr, [eqn for eqn in rest if eqn is not None]
    now = jaxpr.replace(eqns=now, outvars=[*jaxpr.outvars, *kept])
    again = jaxpr.replace(eqns=rest, invars=[*jaxpr.invars, *kept])
    now, again = (ClosedJaxpr(each, closed.consts) for each in (now, again))
    return RematSplit(now, again, kept)
