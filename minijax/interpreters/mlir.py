"""Lowerings of primitives, under the names that JAX has for them.

A lowering is called with a context and the operands, and returns the list of results.
Operands and results are tracers of the program that is being compiled.

Reference: ``jax.interpreters.mlir``.
"""

# Made from chapters/40_export_rest.md by `make chapter`;
# edit the chapter, not this file.

from functools import partial
from typing import Any, NamedTuple

from minijax import default_backend, pure_callback, typeof
from minijax.core import impl_rules
from minijax.experimental import io_callback
from minijax.extend.core import ClosedJaxpr, Var, jaxpr_as_fun
from minijax.extend.core.primitives import jit_p
from minijax.extend.rules import callee_rules, python_rules
from minijax.jaxprs.jaxpr import new_eqn, trace_to_jaxpr
from minijax.passes.simplification import inlined_primitives
from minijax.stablehlo.lowering import lower_jaxpr, stablehlo_rules

PLATFORMS = ("cpu", "cuda", "gpu", "rocm", "tpu")
_lowerings: dict = {}  # from a primitive and a platform, or None, to its rule


class ModuleContext:
    """The program that is being compiled."""

    def add_keepalive(self, keepalive):
        """Do nothing: a program here holds what it calls."""


class LoweringRuleContext(NamedTuple):
    """What a lowering is told besides the operands.

    Attributes:
      primitive: whose lowering it is.
      avals_in, avals_out: the types of operands and results.
      module_context: the program.
    """

    primitive: Any
    avals_in: list
    avals_out: list
    module_context: ModuleContext


def lower_fun(fun, multiple_results=True):
    """Return the lowering that does what a function does.

    Args:
      fun: a function of arrays, and of the parameters as keyword arguments.
      multiple_results: whether it returns a list; otherwise, one array.

    Reference: ``jax.interpreters.mlir.lower_fun``.
    """

    def f_lowered(ctx, *args, **params):
        found = fun(*args, **params)
        return list(found) if multiple_results else [found]

    return f_lowered


def register_lowering(prim, rule, platform=None, inline=True, cacheable=True):
    """Let compiled programs do what a lowering says in place of a primitive.

    It is the primitive's evaluation as well, if that has none.

    Args:
      prim: the primitive.
      rule: called with a `LoweringRuleContext`, operands, and parameters as keyword
        arguments; returns the list of results.
      platform: where to use it, in place of that for all platforms.
      inline, cacheable: accepted for compatibility.

    Raises:
      NotImplementedError: for a platform that nobody knows.

    Reference: ``jax.interpreters.mlir.register_lowering``.
    """
    if platform not in (None, *PLATFORMS):
        raise NotImplementedError(
            f"Registering an MLIR lowering rule for primitive {prim} for an unknown "
            f"platform {platform}. Known platforms are: {', '.join(PLATFORMS)}."
        )
    _lowerings[prim, platform] = rule
    callee_rules[prim], stablehlo_rules[prim] = _lowered_program, _write_callee
    python_rules[prim] = python_rules[jit_p]  # as all calls are written
    inlined_primitives.add(prim)
    impl_rules.setdefault(prim, partial(_evaluate, prim))


def _rule_for(primitive):
    platform = default_backend()
    for place in (platform, "gpu" if platform == "cuda" else None, None):
        if (primitive, place) in _lowerings:
            return _lowerings[primitive, place]
    raise NotImplementedError(
        f"MLIR translation rule for primitive '{primitive}' not found for platform "
        f"{platform}: mlir.register_lowering was called for other ones."
    )


def _lowered_program(eqn):
    """Return what the lowering makes of an equation, a `ClosedJaxpr`."""
    rule = _rule_for(eqn.primitive)
    ins, outs = ([atom.aval for atom in atoms] for atoms in (eqn.invars, eqn.outvars))
    ctx = LoweringRuleContext(eqn.primitive, ins, outs, ModuleContext())

    def flat(*args):
        return list(rule(ctx, *args, **eqn.params))

    closed = ClosedJaxpr(*trace_to_jaxpr(flat, ins))
    found = [(aval.shape, aval.dtype) for aval in closed.out_avals]
    if found != [(aval.shape, aval.dtype) for aval in outs]:
        raise TypeError(
            f"The lowering of '{eqn.primitive}' returned {list(closed.out_avals)}, and "
            f"its abstract evaluation promised {outs}."
        )
    return closed


def _evaluate(primitive, *args, **params):
    """Do what the lowering does, one operation after the other."""
    eqn = new_eqn(primitive, [Var(typeof(x)) for x in args], params)
    return jaxpr_as_fun(callee_rules[primitive](eqn))(*args)


def _write_callee(block, eqn, *operands):
    return lower_jaxpr(block, callee_rules[eqn.primitive](eqn), operands)


def emit_python_callback(
    ctx,
    callback,
    token,
    operands,
    operand_avals,
    result_avals,
    *,
    has_side_effect,
    returns_token=True,
    partitioned=False,
    sharding=None,
):
    """Call a function of Python from a lowering.

    Args:
      ctx: the context of the lowering.
      callback: a function from NumPy arrays to a tuple of such.
      token: returned as it is.
      operands, operand_avals: its arguments and their types.
      result_avals: the types of its results.
      has_side_effect: whether each call counts, also if no result is used.
      returns_token, partitioned, sharding: accepted for compatibility.

    Returns:
      The list of results; `token`; and None, since nothing has to be kept alive.

    Reference: ``jax.interpreters.mlir.emit_python_callback``.
    """
    call = io_callback if has_side_effect else pure_callback
    return list(call(callback, list(result_avals), *operands)), token, None
