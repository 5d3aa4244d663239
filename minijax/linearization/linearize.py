"""Linearization: a jvp whose linear half is written down instead of done.

Reference: ``jax.linearize``; Radul et al., *You Only Linearize Once: Tangents
Transpose to Gradients* (POPL 2023).
"""

# Made from chapters/09_linearize.md by `make chapter`;
# edit the chapter, not this file.
# Amended in chapters/11_own_rules_ground.md: linearize (32c05d83).
# Amended in chapters/11_own_rules_ground.md: PartialEvalTrace.process_primitive
#   (a1d6337e).

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.arrays.array import typeof
from minijax.arrays.dtypes import float0, is_inexact, tangent_dtype_of_primal
from minijax.core import RuleTable, Trace, current_trace, set_current_trace, trace_scope
from minijax.diagnostics.tracebacks import api_boundary
from minijax.forward_mode.jvp import JVPTrace, full_scalar_like, jvp_flat_fun
from minijax.jaxprs.jaxpr import JaxprTrace, JaxprTracer, eval_jaxpr
from minijax.jaxprs.types import Hook
from minijax.numpy.operands import as_array
from minijax.pytrees.api_util import FlatCall, flatten_like
from minijax.pytrees.argument_checks import zeros_of_tangent
from minijax.pytrees.tree_operations import Partial


def default_partial_eval(trace, primitive, args, in_unknown, params):
    """Leave an operation to the tape, all of it."""
    with set_current_trace(trace.tape):
        return primitive.bind_all(*args, **params)


# ``rule(trace, primitive, args, in_unknown, params)`` does now what can be done now.
partial_eval_rules: RuleTable = RuleTable("split", default=default_partial_eval)


class PartialEvalTrace(Trace):
    """Does now what can be done now, and writes down the rest.

    Args:
      parent: the trace that gets every operation on known values.
      tape: the `JaxprTrace` that gets every operation on one of its own tracers.
    """

    def __init__(self, parent, tape):
        self.parent, self.tape = parent, tape

    def is_unknown(self, x):
        """Whether `x` is unknown now: a tracer of this tape."""
        return isinstance(x, JaxprTracer) and x._trace is self.tape

    def process_primitive(self, primitive, args, params):
        unknown = [self.is_unknown(arg) for arg in args]
        if any(unknown):
            return partial_eval_rules[primitive](self, primitive, args, unknown, params)
        with set_current_trace(self.parent):
            return primitive.bind_all(*args, **params)


class LinearizeTrace(JVPTrace):
    """Forward mode over a `PartialEvalTrace`: only what is on its tape moves."""

    def pack(self, primal, tangent):
        moves = self.parent.is_unknown(tangent)
        return super().pack(primal, tangent if moves else None)


UNKNOWN_RESULT = (  # JAX's words, slip included
    "Linearization failed to produce known values for all output primals. This is "
    "typically caused by attempting to differentiate a function uses an operation that "
    "does not support reverse-mode autodiff."
)


def linearize_flat(f, primals, num_outs=None):
    """Run a function, and write down how its results move with its arguments.

    Args:
      f: a function from arrays to a list: its results, perhaps followed by other data.
      primals: list of arrays and scalars.
      num_outs: a function that returns, once `f` has run, how many of the items are
        results; without it, all are.

    Returns:
      The list that `f` returned; a `Jaxpr` from the tangents of the inexact primals
      to the tangents of the results; and the values of its constants. An integer
      result has the literal 0.0 in place of a tangent.
    """
    parent = current_trace()
    with trace_scope(JaxprTrace(parent)) as tape:
        directions = [_direction(tape, typeof(primal)) for primal in primals]
        trace = PartialEvalTrace(parent, tape)
        outs, tangents = jvp_flat_fun(f, primals, directions, LinearizeTrace(trace))
        count = len(outs) if num_outs is None else num_outs()
        if any(map(trace.is_unknown, outs[:count])):
            raise ValueError(UNKNOWN_RESULT)
        jaxpr, consts = tape.to_jaxpr(list(map(_dense, outs[:count], tangents)))
    return outs, jaxpr, consts


def _direction(tape, aval):
    return tape.new_input(aval) if is_inexact(aval.dtype) else None


def _dense(out, tangent):
    aval = typeof(out)
    if tangent is not None:
        return tangent
    if not is_inexact(aval.dtype):
        return 0.0
    return zeros_of_tangent(aval) if aval.shape else full_scalar_like(out, 0)


def _tangent_aval(call, i, tangent):
    primal = call.avals[i]
    expected = primal.shape, tangent_dtype_of_primal(primal.dtype)
    is_float0 = isinstance(tangent, np.ndarray) and tangent.dtype == float0
    given = tangent if is_float0 else typeof(tangent)
    if (given.shape, given.dtype) != expected:
        raise ValueError(
            "linearized function called on tangent values inconsistent with the "
            f"original primal values: {call.name_of(i)} was of type {primal}, so "
            f"the tangent there needs shape {expected[0]} and dtype "
            f"{_name(expected[1])}, not {given.shape} and {_name(given.dtype)}."
        )
    return given


def _name(dtype):
    return "float0" if dtype == float0 else dtype.name


def _tangent_of_result(aval, tangent):
    if not is_inexact(aval.dtype):
        return np.zeros(aval.shape, float0)
    return as_array(tangent)


class LinearMap:
    """The derivative of a function at a point, as a function of tangents.

    Args:
      call: the `FlatCall` of the function.
      out_avals: the abstract values of its results.
      jaxpr: from the tangents of its inexact arguments to those of its results.
    """

    def __init__(self, call, out_avals, jaxpr):
        self.call, self.out_avals, self.jaxpr = call, out_avals, jaxpr

    def __repr__(self):
        return f"LinearMap({self.call.fun_name}, {self.jaxpr!r})"

    @api_boundary
    def __call__(self, consts, *tangents):
        """Return the tangents of the results, a tree like the function's result."""
        leaves = flatten_like(
            self.call.args_tree, tangents, "tangents", "primals", TypeError
        )
        moving = [
            leaf
            for i, leaf in enumerate(leaves)
            if _tangent_aval(self.call, i, leaf).dtype != float0
        ]
        outs = eval_jaxpr(self.jaxpr, consts, *moving)
        return self.call.output(list(map(_tangent_of_result, self.out_avals, outs)))


# Returns a derivative's program without what no result needs, and its constants.
linear_dce_hook: Hook = Hook(lambda jaxpr, consts: (jaxpr, consts))


def linearize(
    fun: Callable[..., Any], *primals: Any, has_aux: bool = False
) -> tuple[Any, ...]:
    """Evaluate a function and get its derivative at that point as a linear function.

    Args:
      fun: a function of trees of arrays that returns a tree of arrays, or, with
        `has_aux`, a pair of such a tree and other data.
      *primals: its arguments.
      has_aux: whether `fun` returns such a pair.

    Returns:
      The pair ``(fun(*primals), f_jvp)``, or the triple with the other data. `f_jvp`
      takes tangents of the structure, shapes and dtypes of `primals` (``float0`` for
      integers) and returns those of the result. It does not evaluate `fun` again: it
      keeps what it needs of the first evaluation, its *residuals*. It is a tree, whose
      leaves are the residuals.

    Raises:
      TypeError: if `fun` cannot be called or a leaf is no array or scalar. `f_jvp`
        raises it if the structure differs, and a ValueError for a shape or dtype.

    Reference: ``jax.linearize``.
    """
    call = FlatCall("linearize", fun, primals, has_aux=has_aux)
    outs, jaxpr, consts = linearize_flat(call, call.leaves, lambda: call.num_outs)
    jaxpr, consts = linear_dce_hook.value(jaxpr, consts)
    out_avals = [typeof(out) for out in outs[: call.num_outs]]
    results = call.output(outs), Partial(LinearMap(call, out_avals, jaxpr), consts)
    return (*results, call.aux(outs)) if has_aux else results
