"""Programs of which a part is known, under the names that JAX has for them.

Reference: ``jax.interpreters.partial_eval``.
"""

# Made from chapters/14_callbacks_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax.arrays.array import typeof
from minijax.core import current_trace, set_current_trace, trace_scope
from minijax.jaxprs.jaxpr import JaxprTrace, trace_to_jaxpr
from minijax.jaxprs.jaxpr import JaxprTracer as JaxprTracer
from minijax.linearization.linearize import PartialEvalTrace
from minijax.rematerialization import jaxpr_transforms
from minijax.rematerialization.jaxpr_transforms import select_where

DynamicJaxprTracer = JaxprTracer


class PartialVal(tuple):
    """A value that is known, ``(None, value)``, or its type, ``(aval, None)``."""

    __slots__ = ()

    @classmethod
    def known(cls, const):
        """Return a value that is known: an array, a number or a tracer."""
        return cls((None, const))

    @classmethod
    def unknown(cls, aval):
        """Return what stands for all values of a type, a `ShapedArray`."""
        return cls((aval, None))

    def is_known(self):
        """Return whether there is a value."""
        return self[0] is None

    def get_known(self):
        """Return the value, or None."""
        return self[1]

    def get_aval(self):
        """Return the type."""
        return typeof(self[1]) if self.is_known() else self[0]


def _check_each(flags, count, name):
    """Return a flag for each of `count` values; one flag stands for all."""
    flags = [flags] * count if isinstance(flags, bool) else list(flags)
    if len(flags) != count:
        raise ValueError(f"`{name}` has {len(flags)} flags for {count} values.")
    return flags


def trace_to_jaxpr_nounits(fun, pvals, instantiate=False):
    """Run what is known of a function, and write down the rest.

    Args:
      fun: a `WrappedFun` from flat arguments to a list.
      pvals: for each argument a `PartialVal`.
      instantiate: whether results that are known are written down all the same; one
        flag for all, or one for each.

    Returns:
      A `Jaxpr` from the unknown arguments to the unknown results, the list of
      `PartialVal` of all results, and the values of its constants: what it needs of
      what is known.

    Raises:
      TypeError: if an argument is no `PartialVal`.
      ValueError: if `instantiate` does not fit the results.

    Reference: ``jax.interpreters.partial_eval.trace_to_jaxpr_nounits``.
    """
    for i, pval in enumerate(pvals):
        if not isinstance(pval, PartialVal):
            raise TypeError(f"pvals[{i}] should be a PartialVal, not {pval!r}.")
    parent = current_trace()
    with trace_scope(JaxprTrace(parent)) as tape:
        split = PartialEvalTrace(parent, tape)
        args = [x if aval is None else tape.new_input(aval) for aval, x in pvals]
        with set_current_trace(split):
            outs = list(fun.call_wrapped(*args))
        wanted = _check_each(instantiate, len(outs), "instantiate")
        wanted = [split.is_unknown(out) or flag for out, flag in zip(outs, wanted)]
        jaxpr, consts = tape.to_jaxpr(select_where(wanted, outs))
    unknown = iter(jaxpr.out_avals)
    pairs = zip(outs, wanted)
    found = [(next(unknown), None) if later else (None, out) for out, later in pairs]
    return jaxpr, list(map(PartialVal, found)), consts


def trace_to_jaxpr_dynamic(
    fun, in_avals, *, keep_inputs=None, lower=False, auto_dce=False
):
    """Write down what a function does.

    Args:
      fun: a `WrappedFun` from flat arguments to a list.
      in_avals: the types of the arguments.
      keep_inputs: for each of them whether `fun` is called with it; by default, all.
      lower: accepted for compatibility.
      auto_dce: whether to leave out what no result needs.

    Returns:
      A `Jaxpr`, the types of its results, and the values of its constants.

    Reference: ``jax.interpreters.partial_eval.trace_to_jaxpr_dynamic``.
    """
    kept = [True] * len(in_avals) if keep_inputs is None else list(keep_inputs)

    def flat(*tracers):
        return list(fun.call_wrapped(*select_where(kept, tracers)))

    jaxpr, consts = trace_to_jaxpr(flat, list(in_avals))
    if auto_dce:
        values = dict(zip(jaxpr.constvars, consts))
        jaxpr, _ = dce_jaxpr(jaxpr, True, True)
        consts = [values[var] for var in jaxpr.constvars]
    return jaxpr, list(jaxpr.out_avals), consts


def dce_jaxpr(jaxpr, used_outputs, instantiate=False):
    """Return a program without what only other results need.

    Args:
      jaxpr: a `Jaxpr`.
      used_outputs: for each result whether it is needed, or one flag for all.
      instantiate: for each argument whether it stays also if nothing needs it.

    Returns:
      A `Jaxpr`, and for each argument whether it has stayed.

    Raises:
      ValueError: if there are too few or too many flags.

    Reference: ``jax.interpreters.partial_eval.dce_jaxpr``.
    """
    used = _check_each(used_outputs, len(jaxpr.outvars), "used_outputs")
    stay = _check_each(instantiate, len(jaxpr.invars), "instantiate")
    less = jaxpr_transforms.dce_jaxpr(jaxpr, tuple(used))
    read = {id(x) for eqn in less.eqns for x in eqn.invars}
    read |= {id(x) for x in less.outvars}
    stay = [flag or id(var) in read for flag, var in zip(stay, jaxpr.invars)]
    return less.replace(invars=select_where(stay, jaxpr.invars)), stay
