"""Staging: the trace that writes down what a function does, as a jaxpr.

Every operation that is bound while it is current becomes an equation; none is
evaluated.

Reference: ``DynamicJaxprTrace`` in ``jax._src.interpreters.partial_eval``.
"""

# Made from chapters/07_jaxprs.md by `make chapter`;
# edit the chapter, not this file.
# Amended in chapters/08_errors.md: JaxprTrace.record (16698ab1).
# Amended in chapters/36_replicas.md:
#   EquationTrace.fit, EquationTrace.process_primitive, JaxprTrace.__init__ (38ea7944).

from typing import Any

import numpy as np

from minijax import lax
from minijax.arrays.array import asarray_impl
from minijax.arrays.avals import typeof
from minijax.arrays.dtypes import is_in_force
from minijax.core import (
    Trace,
    Tracer,
    current_trace,
    impl_rules,
    lifetime,
    refuse_dead_tracers,
)
from minijax.jaxprs.jaxpr import Jaxpr, Literal, Var, new_eqn
from minijax.jaxprs.latest import Latest
from minijax.jaxprs.origins import Origin, ValuelessTracer, argument_positions


class JaxprTracer(ValuelessTracer):
    """A stand-in for all arrays of one type: it is a variable of the jaxpr.

    Attributes:
      variable: its `Var`, or a `Literal` for a scalar made on the way.
      aval: the variable's `ShapedArray`.
    """

    __slots__ = ("aval", "variable")

    def __init__(self, trace, variable):
        self._trace, self.variable, self.aval = trace, variable, variable.aval

    def provenance(self):
        """Say which function is being written down, and what this value depends on."""
        trace = self._trace
        positions = argument_positions(self.variable, trace.invars, trace.eqns)
        return trace.origin.describe(positions)


# What returns, for the trace around a program, a function that changes the operands of
# each equation; None where there are no devices that differ.
fitting: Latest = Latest(lambda trace: None)


class EquationTrace(Trace):
    """Writes down each operation on its own tracers as an equation.

    Args:
      parent: the trace that was current before; nothing is passed on to it.
    """

    stages = True
    fit: Any = None

    def __init__(self, parent):
        self.parent, self.invars, self.eqns = parent, [], []

    def new_input(self, aval):
        """Return a tracer for a new argument of the jaxpr."""
        self.invars.append(Var(aval))
        return JaxprTracer(self, self.invars[-1])

    def atom(self, x):
        """Return what stands for `x` in an equation."""
        return x.variable

    def process_primitive(self, primitive, args, params):
        """Write down an equation, and return tracers for its results."""
        if self.fit is not None:
            args = self.fit(primitive, args, params)
        return self.record(new_eqn(primitive, list(map(self.atom, args)), params))

    def record(self, eqn):
        """Keep an equation, and return tracers for its results."""
        self.eqns.append(eqn)
        return [JaxprTracer(self, var) for var in eqn.outvars]


def as_literal(x):
    """Return the `Literal` of a Python or NumPy scalar, and None for another value."""
    if isinstance(x, (np.generic, np.ndarray)) and x.ndim == 0:
        aval = typeof(x)
        return Literal(x.astype(aval.dtype, copy=False)[()], aval)
    return Literal(x) if isinstance(x, (bool, int, float, complex)) else None


def computed_literal(x):
    """Return the `Literal` of a scalar that was computed, with its own type."""
    aval = typeof(x)
    number = np.asarray(x).astype(aval.dtype)[()]
    is_weak = aval.weak_type and typeof(number.item()) == aval
    return Literal(number.item() if is_weak else number, aval)


def converted_literal(eqn):
    """Return the literal that the conversion of a literal gives, None for the rest."""
    if eqn.primitive is not lax.convert_element_type_p:
        return None
    [operand] = eqn.invars
    stays = not is_in_force(eqn.params["new_dtype"])  # read again, it would be narrower
    if stays or not isinstance(operand, Literal):
        return None
    [result] = impl_rules[eqn.primitive](operand.val, **eqn.params)
    return computed_literal(result)


class Constants:
    """The arrays that a function used without receiving them: a variable for each."""

    def __init__(self):
        self.found = {}  # from an array's identity to (variable, value, array)

    def variable(self, x):
        """Return the variable of an array, or a tracer, that came from outside."""
        if id(x) not in self.found:
            value = x if isinstance(x, Tracer) else asarray_impl(x)
            self.found[id(x)] = Var(typeof(x)), value, x
        return self.found[id(x)][0]

    def split(self):
        """Return the list of variables and the list of their values."""
        found = self.found.values()
        return [var for var, _, _ in found], [value for _, value, _ in found]


# What returns the place in the user's program that is running: an equation's `source`.
source_finder: Latest = Latest(lambda: None)


class JaxprTrace(EquationTrace):
    """Writes down each operation, whatever its operands are.

    Args:
      parent: the trace that was current before; nothing is passed on to it.
      origin: an `Origin`, for messages.
    """

    def __init__(self, parent, origin=None):
        super().__init__(parent)
        self.fit, self.constants = fitting.value(parent), Constants()
        self.origin = origin or Origin()

    def atom(self, x):
        """Return what stands for `x` in an equation: a `Var` or a `Literal`."""
        own = isinstance(x, JaxprTracer) and x._trace is self
        return x.variable if own else as_literal(x) or self.constants.variable(x)

    def stage_value(self, x):
        """Return a tracer for a scalar that was made while this trace is current."""
        return JaxprTracer(self, computed_literal(x))

    def record(self, eqn):
        """Keep an equation and its source; convert a literal on the spot."""
        if (literal := converted_literal(eqn)) is not None:
            return [JaxprTracer(self, literal)]
        eqn.source = source_finder.value()
        return super().record(eqn)

    def to_jaxpr(self, outs):
        """Return the jaxpr whose results are `outs`, and the list of its constants."""
        refuse_dead_tracers("return", outs)
        outvars = [self.atom(out) for out in outs]
        constvars, consts = self.constants.split()
        return Jaxpr(constvars, self.invars, outvars, self.eqns), consts


def trace_to_jaxpr(fun, avals, origin=None):
    """Write down what a function does.

    Args:
      fun: function from flat arguments to a list of results.
      avals: `ShapedArray` of each argument.
      origin: an `Origin`, for messages.

    Returns:
      The `Jaxpr`, and the list of values of its `constvars`.
    """
    trace = JaxprTrace(current_trace(), origin)
    with lifetime(trace):
        made = trace.to_jaxpr(fun(*map(trace.new_input, avals)))
    current_trace()  # who reads it lets go of the trace that has ended
    return made
