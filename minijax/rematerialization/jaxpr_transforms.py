"""Programs from programs: jvp, batching, transposition, inlining, dead code.

Each function takes a `ClosedJaxpr` and returns another, and remembers it.

References: ``jvp_jaxpr``, ``batch_jaxpr``, ``dce_jaxpr`` in
``jax._src.interpreters``, ``inline_jaxpr_into_trace`` in
``jax._src.interpreters.partial_eval``, ``jax.lax.optimization_barrier``,
``jax.ad_checkpoint.Saveable``, ``Recompute``, ``Offloadable``,
``jax._src.ad_checkpoint``.
"""

# Made from chapters/11_own_rules_ground.md by `make chapter`;
# edit the chapter, not this file.
# Amended in chapters/28_indexing_rest.md: _traced_call (88f25a3b).

from collections.abc import Sequence
from typing import Any, NamedTuple

from minijax.arrays.array import as_array_impl, shape_rules, typeof
from minijax.arrays.dtypes import is_inexact
from minijax.batching.vmap import batch_dim_to_front, batch_flat_fun, vmap_rules
from minijax.core import (
    Primitive,
    RuleTable,
    Trace,
    Tracer,
    current_trace,
    impl_rules,
    set_current_trace,
)
from minijax.diagnostics.tracebacks import source_line_readers
from minijax.forward_mode.jvp import jvp_flat_fun, jvp_rules, zeros_like_tangent_aval
from minijax.jaxprs.jaxpr import (
    ClosedJaxpr,
    JaxprEqn,
    Literal,
    jaxpr_as_fun,
    trace_to_jaxpr,
)
from minijax.jaxprs.pretty_printer import jaxprs_in_params
from minijax.jaxprs.types import TraceProvenance, weak_type_converter
from minijax.linearization.linearize import linear_dce_hook
from minijax.pytrees.api_util import FlatCall
from minijax.pytrees.tree_operations import broadcast_prefix
from minijax.pytrees.tree_util import tree_flatten
from minijax.rematerialization.caching import (
    cache_for_object,
    cache_key_of_value,
    trace_context,
    weakref_cache,
    weakref_memoize,
)
from minijax.reverse_mode.backward_pass import (
    UndefinedPrimal,
    backward_pass,
    instantiate_cotangent,
    transpose_rules,
)

# Programs made from programs: what each transformation does to a whole jaxpr.


def partition_list(mask, values):
    """Return two lists: the values where `mask` is False, and where it is True."""
    pairs = list(zip(mask, values, strict=True))
    return [x for true, x in pairs if not true], [x for true, x in pairs if true]


def select_where(mask, values):
    """Return the list of the values where `mask` is True."""
    return [x for true, x in zip(mask, values, strict=True) if true]


def merge_lists(mask, no, yes):
    """Return the list of which `partition_list` gives these two."""
    no, yes = iter(no), iter(yes)
    return [next(yes if chosen else no) for chosen in mask]


def scatter_by_mask(mask, values):
    """Return a list with `values` where `mask` is True, and None elsewhere."""
    values = iter(values)
    return [next(values) if chosen else None for chosen in mask]


def broadcast_flag(flag, count):
    """Return one flag for each of `count` things, of a single flag or of them all."""
    return (flag,) * count if isinstance(flag, bool) else tuple(flag)


def close_jaxpr(jaxpr, closed):
    """Close a jaxpr over those constants of `closed` that it still has."""
    values = dict(zip(closed.constvars, closed.consts))
    return ClosedJaxpr(jaxpr, [values[var] for var in jaxpr.constvars])


def prune_inputs(closed, kept):
    """Return a program without those inputs that are not `kept` and not needed."""
    invars = select_where(kept, closed.invars)
    return ClosedJaxpr(closed.jaxpr.replace(invars=invars), closed.consts)


@weakref_memoize
def convert_constvars_closed(closed):
    """Return a program whose first inputs are the constants of another one."""
    jaxpr = closed.jaxpr
    invars = jaxpr.constvars + jaxpr.invars
    return ClosedJaxpr(jaxpr.replace(constvars=[], invars=invars), [])


def trace_flat_fun(program, avals):
    """Return the `ClosedJaxpr` of a function from flat arguments to a list."""
    return ClosedJaxpr(*trace_to_jaxpr(program, avals))


@weakref_memoize
def jvp_jaxpr(closed, moving, instantiate=False):
    """Return the program of values and tangents.

    Args:
      closed: a `ClosedJaxpr`.
      moving: for each input whether it has a tangent.
      instantiate: whether zero tangents of results are written out: one flag, or one
        for each result. Integers have no tangents in any case.

    Returns:
      A `ClosedJaxpr` from all inputs, and the tangents of the moving ones, to all
      results, and the tangents of some; and a tuple that says which.
    """
    count, moves = len(closed.invars), []
    wanted = broadcast_flag(instantiate, len(closed.outvars))

    def program(*flat):
        tangents = scatter_by_mask(moving, flat[count:])
        outs, slopes = jvp_flat_fun(jaxpr_as_fun(closed), flat[:count], tangents)
        slopes = list(map(_written_out, outs, slopes, wanted, closed.out_avals))
        moves.extend(slope is not None for slope in slopes)
        return outs + [slope for slope in slopes if slope is not None]

    avals = closed.in_avals + select_where(moving, closed.in_avals)
    return ClosedJaxpr(*trace_to_jaxpr(program, avals)), tuple(moves)


def _written_out(out, slope, wanted, aval):
    needed = slope is None and wanted and is_inexact(aval.dtype)
    return (
        weak_type_converter.value(zeros_like_tangent_aval(out), typeof(out))
        if needed
        else slope
    )


@weakref_memoize
def batch_jaxpr(closed, axis, dims, to_front=False):
    """Return the program of all examples at once.

    Args:
      closed: a `ClosedJaxpr`.
      axis: the `MappedAxis`.
      dims: for each input its mapped axis, or None.
      to_front: whether results get the mapped axis in front, be they mapped or not:
        one flag, or one for each result.

    Returns:
      A `ClosedJaxpr`, and a tuple with the mapped axis of each result, or None.
    """
    fronts, places = broadcast_flag(to_front, len(closed.outvars)), []

    def program(*values):
        outs, found = batch_flat_fun(jaxpr_as_fun(closed), values, dims, axis)
        places.extend(0 if front else dim for front, dim in zip(fronts, found))
        return [
            batch_dim_to_front(out, dim, axis.size) if front else out
            for front, out, dim in zip(fronts, outs, found)
        ]

    avals = [_batched(aval, dim, axis.size) for aval, dim in zip(closed.in_avals, dims)]
    return ClosedJaxpr(*trace_to_jaxpr(program, avals)), tuple(places)


def _batched(aval, dim, size):
    if dim is None:
        return aval
    return aval.update(shape=(*aval.shape[:dim], size, *aval.shape[dim:]))


def cotangent_avals(cts, out_avals=()):
    """Return the abstract value of each cotangent, and None for zero."""
    return tuple([None if ct is None else typeof(ct) for ct in cts])


def declared_cotangent_avals(cts, out_avals):
    """Return the abstract value of each result with a cotangent, and None for zero."""
    return tuple([ct if ct is None else a for ct, a in zip(cts, out_avals)])


@weakref_memoize
def transpose_jaxpr(closed, linear, given, instantiate=False):
    """Return the program that runs a linear one backwards.

    Args:
      closed: a `ClosedJaxpr`.
      linear: for each input whether the program is linear in it.
      given: what `cotangent_avals` or `declared_cotangent_avals` says of the results'
        cotangents.
      instantiate: whether zero cotangents of linear inputs are written out: one flag,
        or one for each of them.

    Returns:
      A `ClosedJaxpr` from the values of the other inputs, and the cotangents that are
      given, to cotangents of linear inputs; and a tuple that says of which.
    """
    known_avals, linear_avals = partition_list(linear, closed.in_avals)
    places, count = list(map(UndefinedPrimal, linear_avals)), len(known_avals)
    wanted, arrives = broadcast_flag(instantiate, len(linear_avals)), []

    def program(*flat):
        operands = merge_lists(linear, flat[:count], places)
        cts = scatter_by_mask(given, flat[count:])
        cts = backward_pass(closed.jaxpr, closed.consts, operands, cts)
        cts = [
            instantiate_cotangent(aval, ct) if dense else ct
            for dense, aval, ct in zip(wanted, linear_avals, select_where(linear, cts))
        ]
        arrives.extend(ct is not None for ct in cts)
        return [ct for ct in cts if ct is not None]

    avals = known_avals + select_where(given, given)
    return ClosedJaxpr(*trace_to_jaxpr(program, avals)), tuple(arrives)


def has_effects(jaxpr):
    """Return whether running a jaxpr does more than return results.

    Args:
      jaxpr: a `Jaxpr` or a `ClosedJaxpr`.
    """
    return any(map(eqn_has_effects, jaxpr.eqns))


def eqn_has_effects(eqn):
    """Return whether an equation does more than return results."""
    return effect_rules[eqn.primitive](eqn)


def _acts_inside(eqn):
    """Return whether a program in an equation does more than return results."""
    return any(map(has_effects, jaxprs_in_params(eqn.params)))


# Rules ``rule(eqn)`` say whether an equation does more than return results.
effect_rules: RuleTable = RuleTable("effect", default=_acts_inside)


# Rules ``rule(eqn, used)`` return an equation without those results that are not used,
# and without what only they need: a primitive that contains a program has one.
dce_rules: RuleTable = RuleTable("dce", default=lambda eqn, used: eqn)


def dce_jaxpr(jaxpr, used):
    """Return a jaxpr without the equations, and constants, that nothing needs.

    Args:
      jaxpr: a `Jaxpr`.
      used: for each result whether it is needed; the others go.
    """
    outvars = select_where(used, jaxpr.outvars)
    needed, eqns = set(_variables(outvars)), []
    for eqn in reversed(jaxpr.eqns):
        mask = tuple([var in needed for var in eqn.outvars])
        if not any(mask) and not eqn_has_effects(eqn):
            continue
        less = dce_rules[eqn.primitive](eqn, mask)
        if not all(mask) or len(less.invars) < len(eqn.invars):
            eqn = less  # otherwise programs that are one object stay one
        eqns.append(eqn)
        needed.update(_variables(eqn.invars))
    constvars = [var for var in jaxpr.constvars if var in needed]
    return jaxpr.replace(constvars=constvars, outvars=outvars, eqns=eqns[::-1])


def _variables(atoms):
    return [atom for atom in atoms if not isinstance(atom, Literal)]


def dce_all_outputs(closed):
    """Return `dce_closed_jaxpr` of a program whose results are all needed."""
    return dce_closed_jaxpr(closed, (True,) * len(closed.outvars))


@weakref_memoize
def dce_closed_jaxpr(closed, used):
    """Return a program without what its `used` results do not need.

    Args:
      closed: a `ClosedJaxpr`.
      used: for each result whether it is needed; the others go.

    Returns:
      A `ClosedJaxpr` with the same inputs, and a tuple: for each of them whether it is
      still needed.
    """
    jaxpr = dce_jaxpr(closed.jaxpr, used)
    read = {x for eqn in jaxpr.eqns for x in eqn.invars}.union(jaxpr.outvars)
    return close_jaxpr(jaxpr, closed), tuple([var in read for var in jaxpr.invars])


def _needed(jaxpr, consts):
    """Return a jaxpr without what no result needs, and the constants that it reads."""
    less = dce_jaxpr(jaxpr, (True,) * len(jaxpr.outvars))
    values = dict(zip(jaxpr.constvars, consts))
    return less, [values[var] for var in less.constvars]


linear_dce_hook.value = _needed


# Programs in the place of equations that stand for them.


class InlineTrace(Trace):
    """Runs the programs that equations stand for; all else goes to its parent.

    Args:
      parent: the trace around.
      rules: a dictionary from primitives to functions ``rule(eqn)``, which return the
        `ClosedJaxpr` of an equation.
    """

    def __init__(self, parent, rules):
        self.parent, self.rules = parent, rules

    def process_primitive(self, primitive, args, params):
        if primitive not in self.rules:
            with set_current_trace(self.parent):
                return primitive.bind_all(*args, **params)
        program = self.rules[primitive](JaxprEqn([], [], primitive, params))
        with set_current_trace(self):
            return jaxpr_as_fun(program)(*args)


def inline_calls_by_rule(closed, rules):
    """Return a program with those of `rules` in the place of equations."""

    def program(*flat):
        with set_current_trace(InlineTrace(current_trace(), rules)):
            return jaxpr_as_fun(closed)(*flat)

    return trace_flat_fun(program, closed.in_avals)


# Barriers: values that no optimisation sees through (optimization barrier).

optimization_barrier_p = Primitive("optimization_barrier")
optimization_barrier_p.multiple_results = True
impl_rules[optimization_barrier_p] = lambda *xs: list(map(as_array_impl, xs))
shape_rules[optimization_barrier_p] = lambda *avals: list(avals)
vmap_rules[optimization_barrier_p] = lambda axis, args, dims: (
    optimization_barrier_p.bind(*args),
    list(dims),
)


def optimization_barrier(operand: Any) -> Any:
    """Return a tree of arrays as it is; all of it is there before any of it is used.

    Reference: ``jax.lax.optimization_barrier``.
    """
    leaves, tree = tree_flatten(operand)
    return tree.unflatten(_behind(leaves))


def _behind(values):
    """Put one barrier in front of all values that are not None."""
    held = [value for value in values if value is not None]
    found = iter(optimization_barrier_p.bind(*held) if held else [])
    return [None if value is None else next(found) for value in values]


jvp_rules[optimization_barrier_p] = lambda primals, tangents: (
    _behind(primals),
    _behind(tangents),
)
transpose_rules[optimization_barrier_p] = lambda cts, *operands: _behind(cts)


@weakref_memoize
def behind_barrier(closed, flags):
    """Return a program that uses the flagged inputs when all of them are there."""

    def program(*flat):
        free, held = partition_list(flags, flat)
        held = optimization_barrier_p.bind(*held) if held else held
        return jaxpr_as_fun(closed)(*merge_lists(flags, free, held))

    return trace_flat_fun(program, closed.in_avals)


# What a rematerialisation policy answers, and what a call says of each operand.


class _Word:
    """An answer that is as good as a bool."""

    def __init__(self, name, kept):
        self.name, self.kept = name, kept

    def __bool__(self):
        return self.kept

    def __repr__(self):
        return self.name


Saveable, Recompute = _Word("Saveable", True), _Word("Recompute", False)


class Offloadable(NamedTuple):
    """The answer that a value is to be moved from one memory to another.

    Reference: ``jax.ad_checkpoint.Offloadable``.
    """

    src: Any
    dst: Any


def is_saveable(answer):
    """Return what a policy has answered, as a bool.

    Raises:
      NotImplementedError: if it is `Offloadable`.
      TypeError: if it is anything else.
    """
    if isinstance(answer, (bool, _Word)):
        return bool(answer)
    if isinstance(answer, Offloadable):
        raise NotImplementedError(
            f"A policy has answered {answer}, and arrays have one memory here. Answer "
            "ad_checkpoint.Saveable, or Recompute."
        )
    raise TypeError(
        "Value returned by a remat policy should be a bool or ad_checkpoint.Recompute, "
        f"ad_checkpoint.Saveable or ad_checkpoint.Offloadable(...). Got {answer} of "
        f"type {type(answer)}."
    )


def map_operand_flags(params, choose):
    """Return parameters with flags for other operands; new ones are protected."""
    flags = params.get("prevent_cse", True)  # only a checkpointed call has any
    if isinstance(flags, bool):
        return params
    found = [True if flag is None else flag for flag in choose(flags)]
    return params | {"prevent_cse": tuple(found)}


def jvp_operand_flags(params, choose):
    """Return parameters with flags for all operands, and for some of their tangents."""

    def longer(flags):
        return [*flags, *[None] * (len(choose(flags)) - len(flags))]

    return map_operand_flags(params, longer)


def partial_eval_operand_flags(params, parts, in_unknown):
    """Return parameters with flags for residuals of a `PartialEvalResult`."""

    def chosen(flags):
        known, later = partition_list(in_unknown, flags)
        known = dict(enumerate(known))
        return [*map(known.get, parts.sources), *later]

    return map_operand_flags(params, chosen)


# The program of a checkpointed call, kept with its function; options, checked.

_programs = weakref_cache()


def _traced_call(call):
    """Return the program of a call, its first operands, and the result's structure."""
    origin = TraceProvenance(call.name, call.fun_name, call.names)
    written = trace_to_jaxpr(call, call.avals, origin, threads=True)
    closed = ClosedJaxpr(*written)
    return convert_constvars_closed(closed), closed.consts, call.out_tree


def closed_jaxpr_of_call(call, statics):
    """Return `_traced_call` of a call; it is kept with the function, if that can be.

    Args:
      call: a `FlatCall`.
      statics: what the program depends on besides, a tuple.
    """
    key = call.in_tree, tuple(call.avals), statics, trace_context()
    try:
        once = cache_for_object(_programs, call.fun)
        hash(key)
    except TypeError:  # no hash, or no weak references
        return _traced_call(call)
    write, check = (lambda: _traced_call(call)), (lambda found: not _traced(found[1]))
    return once.get(key, write, check)


source_line_readers.add(closed_jaxpr_of_call, keeps=True)


def _traced(values):
    """Return whether one of the values belongs to a trace."""
    return any(isinstance(value, Tracer) for value in values)


def flatten_traced_args(fun, args, kwargs, static_argnums, static_names):
    """Return the `FlatCall` of what is traced, and the static arguments, a tuple."""
    moving = _moving_positions(static_argnums, args)
    fixed = {name: kwargs.pop(name) for name in sorted(static_names & kwargs.keys())}
    options = {"argnums": moving, "constants": fixed}
    call = FlatCall("checkpoint", fun, args, kwargs, **options)
    static = [(i, args[i]) for i in range(len(args)) if i not in moving]
    return call, cache_key_of_value((*static, *fixed.items()))


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


def remat_options(prevent_cse, policy, concrete):
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


def flags_per_leaf(flags, call, consts):
    """Return one flag, or one for each operand: first for what is closed over."""
    if isinstance(flags, bool):
        return flags
    args, kwargs = call.in_tree.unflatten(call.leaves)
    whole = (args, kwargs) if kwargs else args
    return (*[False] * consts, *broadcast_prefix(flags, whole))
