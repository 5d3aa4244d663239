"""The program of a checkpointed call, kept with its function; options, checked.

Reference: ``jax._src.ad_checkpoint``.
"""

# Made from chapters/11_own_rules_ground.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Sequence

from minijax.core import Tracer
from minijax.diagnostics.user_lines import readers
from minijax.forgetting.programs import without_consts
from minijax.forgetting.remembering import (
    cache_by_object,
    key_of_value,
    once_of,
    trace_context,
)
from minijax.jaxprs.jaxpr import ClosedJaxpr
from minijax.jaxprs.origins import Origin
from minijax.jaxprs.staging import trace_to_jaxpr
from minijax.pytrees.api_util import FlatCall
from minijax.pytrees.operations import broadcast_prefix

_programs = cache_by_object()


def _traced_call(call):
    """Return the program of a call, its first operands, and the result's structure."""
    origin = Origin(call.name, call.fun_name, call.names)
    closed = ClosedJaxpr(*trace_to_jaxpr(call, call.avals, origin))
    return without_consts(closed), closed.consts, call.out_tree


def program_of_call(call, statics):
    """Return `_traced_call` of a call; it is kept with the function, if that can be.

    Args:
      call: a `FlatCall`.
      statics: what the program depends on besides, a tuple.
    """
    key = call.in_tree, tuple(call.avals), statics, trace_context()
    try:
        once = once_of(_programs, call.fun)
        hash(key)
    except TypeError:  # no hash, or no weak references
        return _traced_call(call)
    write, check = (lambda: _traced_call(call)), (lambda found: not _traced(found[1]))
    return once.get(key, write, check)


readers.add(program_of_call, keeps=True)


def _traced(values):
    """Return whether one of the values belongs to a trace."""
    return any(isinstance(value, Tracer) for value in values)


def traced_arguments(fun, args, kwargs, static_argnums, static_names):
    """Return the `FlatCall` of what is traced, and the static arguments, a tuple."""
    moving = _moving_positions(static_argnums, args)
    fixed = {name: kwargs.pop(name) for name in sorted(static_names & kwargs.keys())}
    options = {"argnums": moving, "constants": fixed}
    call = FlatCall("checkpoint", fun, args, kwargs, **options)
    static = [(i, args[i]) for i in range(len(args)) if i not in moving]
    return call, key_of_value((*static, *fixed.items()))


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


def flags_of_leaves(flags, call, consts):
    """Return one flag, or one for each operand: first for what is closed over."""
    if isinstance(flags, bool):
        return flags
    args, kwargs = call.in_tree.unflatten(call.leaves)
    whole = (args, kwargs) if kwargs else args
    return (*[False] * consts, *broadcast_prefix(flags, whole))
