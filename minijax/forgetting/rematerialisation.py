# Made from chapters/11_remat_upper.md by `make chapter`;
# edit the chapter, not this file.
"""Rematerialisation: calls of programs that are run again for their derivative.

Reference: ``jax.checkpoint``; ``remat_p`` in ``jax._src.ad_checkpoint``.
"""

import functools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from minijax.arrays.array import shape_rules
from minijax.batching.rules import vmap_rules
from minijax.batching.trace import program_primitives
from minijax.core import Primitive, RuleTable, Tracer, impl_rules, set_current_trace
from minijax.diagnostics.user_lines import readers
from minijax.forgetting.barriers import optimization_barrier_p
from minijax.forgetting.decisions import flags_per_operand, flags_with_tangents, is_kept
from minijax.forgetting.opened_calls import inlined
from minijax.forgetting.program_calls import (
    dce_call,
    jvp_call,
    transpose_call,
    vmap_call,
)
from minijax.forgetting.programs import (
    acts,
    dce_rules,
    flags_of,
    has_effects,
    keep_inputs,
    merge,
    only,
    partition,
    prune,
    stage,
    types_declared,
    without_consts,
)
from minijax.forgetting.remembering import (
    cache_by_object,
    once_of,
    remembered,
    trace_context,
)
from minijax.forgetting.splitting import Split, split_program
from minijax.forward.rules import jvp_rules
from minijax.jaxprs.jaxpr import ClosedJaxpr, jaxpr_as_fun
from minijax.jaxprs.origins import Origin
from minijax.jaxprs.staging import trace_to_jaxpr
from minijax.linear.linearization import split_rules
from minijax.operators.operands import as_array
from minijax.own_rules.function_calls import callee_rules, plain_calls
from minijax.pytrees.api_util import FlatCall
from minijax.pytrees.operations import broadcast_prefix
from minijax.reverse.transposition import transpose_rules

remat_p = Primitive("remat2")
program_primitives.add(remat_p)
impl_rules[remat_p] = lambda *args, jaxpr, **params: jaxpr_as_fun(jaxpr)(*args)
shape_rules[remat_p] = lambda *avals, jaxpr, **params: jaxpr.out_avals


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
    params = flags_per_operand(params, partial(_flags_of_split, parts, on_tape))
    params = params | {"jaxpr": parts.unknown, "differentiated": True}
    with set_current_trace(split.tape):
        tape_outs = primitive.bind(*residuals, *tape_args, **params)
    return parts.results(known_outs, tape_outs)


def _flags_of_split(parts, on_tape, given):
    known, later = partition(on_tape, given)
    known = dict(enumerate(known))
    return [*map(known.get, parts.sources), *later]


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
    flags, params = _options(prevent_cse, policy, concrete)
    names = static_argnames
    names = {names} if isinstance(names, str) else {*names}

    @functools.wraps(fun)
    def fun_remat(*args, **kwargs):
        call, statics = _taken_apart(fun, args, kwargs, static_argnums, names)
        jaxpr, consts, out_tree = _written_once(call, statics)
        how = params | {"prevent_cse": _flags_of_leaves(flags, call, len(consts))}
        outs = remat_p.bind(*consts, *call.leaves, jaxpr=jaxpr, **how)
        return out_tree.unflatten(outs)

    return fun_remat


_programs = cache_by_object()


def _written(call):
    """Return the program of a call, its first operands, and the result's structure."""
    origin = Origin(call.name, call.fun_name, call.names)
    closed = ClosedJaxpr(*trace_to_jaxpr(call, call.avals, origin))
    return without_consts(closed), closed.consts, call.out_tree


def _written_once(call, statics):
    """Return `_written` of a call; it is kept with the function, if that can be.

    Args:
      call: a `FlatCall`.
      statics: what the program depends on besides, a tuple.
    """
    key = call.in_tree, tuple(call.avals), statics, trace_context()
    try:
        once = once_of(_programs, call.fun)
        hash(key)
    except TypeError:  # no hash, or no weak references
        return _written(call)
    return once.get(key, lambda: _written(call), lambda found: not _traced(found[1]))


readers.add(_written_once, keeps=True)


def _traced(values):
    """Return whether one of the values belongs to a trace."""
    return any(isinstance(value, Tracer) for value in values)


def _taken_apart(fun, args, kwargs, static_argnums, static_names):
    """Return the `FlatCall` of what is traced, and the static arguments, a tuple."""
    moving = _moving_positions(static_argnums, args)
    fixed = {name: kwargs.pop(name) for name in sorted(static_names & kwargs.keys())}
    options = {"argnums": moving, "constants": fixed}
    call = FlatCall("checkpoint", fun, args, kwargs, **options)
    static = [(i, args[i]) for i in range(len(args)) if i not in moving]
    return call, tuple([(at, type(x), x) for at, x in [*static, *fixed.items()]])


_CONCRETE = (
    "The `concrete` option to `jax.checkpoint` was deprecated in JAX v0.8.2, and "
    "removed in JAX v0.10.0. In its place please use `static_argnums`; for details "
    "refer to https://docs.jax.dev/en/latest/jep/11830-new-remat-checkpoint.html."
)
_STATIC = "the `static_argnums` argument to `jax.checkpoint` / `jax.remat` "


def _moving_positions(static, args):
    """Return the positions of the arguments that are traced."""
    static = (static,) if type(static) is int else static
    if type(static) is not tuple or any(type(at) is not int for at in static):
        wanted = "must be an int, tuple of ints or, bool, but got value "
        raise TypeError(f"{_STATIC}{wanted}{static}")
    count = len(args)
    if not all(-count <= at < count for at in static):
        raise ValueError(
            f"{_STATIC}can only take integer values greater than or equal to "
            f"`-len(args)` and less than `len(args)`, but got {static}, while "
            f"`len(args)` = {count}"
        )
    fixed = {at % count for at in static}
    return tuple([at for at in range(count) if at not in fixed])


def _options(prevent_cse, policy, concrete):
    """Return the flags `prevent_cse`, and the other parameters of `remat_p`."""
    if concrete is not None:
        raise NotImplementedError(_CONCRETE)
    if not isinstance(prevent_cse, (bool, Sequence)):
        raise TypeError(
            "prevent_cse must be a bool or tuple of bools, got "
            f"type(prevent_cse)={type(prevent_cse)}"
        )
    flags = prevent_cse if isinstance(prevent_cse, bool) else tuple(prevent_cse)
    return flags, {"policy": policy, "differentiated": False}


def _flags_of_leaves(flags, call, consts):
    """Return one flag, or one for each operand: first for what is closed over."""
    if isinstance(flags, bool):
        return flags
    args, kwargs = call.in_tree.unflatten(call.leaves)
    whole = (args, kwargs) if kwargs else args
    return (*[False] * consts, *broadcast_prefix(flags, whole))


def remat(
    fun: Callable[..., Any],
    *,
    prevent_cse: bool | Sequence[bool] = True,
    policy: Callable[..., bool] | None = None,
    static_argnums: int | tuple[int, ...] = (),
    concrete: Any = None,
) -> Callable[..., Any]:
    """Return what `checkpoint` returns.

    Reference: ``jax.remat``.
    """
    return checkpoint(
        fun,
        prevent_cse=prevent_cse,
        policy=policy,
        static_argnums=static_argnums,
        concrete=concrete,
    )


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
