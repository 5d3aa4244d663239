# Made from chapters/07_jaxprs.md by `make chapter`;
# edit the chapter, not this file.
"""Writing down what a function does: the trace that makes jaxprs.

Every operation that is bound while it is current becomes an equation; none is
evaluated.

Reference: ``DynamicJaxprTrace`` in ``jax._src.interpreters.partial_eval``.
"""

import numpy as np

from minijax import lax
from minijax.arrays.array import asarray_impl, shape_rules
from minijax.arrays.avals import typeof
from minijax.core import (
    Trace,
    Tracer,
    current_trace,
    impl_rules,
    lifetime,
    refuse_dead_tracers,
)
from minijax.errors import TracerArrayConversionError
from minijax.jaxprs.jaxpr import Jaxpr, JaxprEqn, Literal, Var
from minijax.jaxprs.latest import Latest


class JaxprTracer(Tracer):
    """A stand-in for all arrays of one type: it is a variable of the jaxpr.

    Attributes:
      variable: its `Var`, or a `Literal` for a scalar made on the way.
      aval: the variable's `ShapedArray`.
    """

    __slots__ = ("aval", "variable")

    def __init__(self, trace, variable):
        self._trace, self.variable, self.aval = trace, variable, variable.aval

    def concrete(self):
        """Return None: there is no array behind this tracer yet."""
        return None

    def provenance(self):
        """Say which function is being written down, and what this value depends on."""
        return self._trace.provenance(self.variable)

    def __repr__(self):
        return f"JaxprTracer({self.aval.str_short()})"

    def __array__(self, *args, **kwargs):
        raise TracerArrayConversionError(
            f"NumPy asked {self!r} for an array, and there is none yet. "
            f"{self.provenance()} Use the function of minijax.numpy instead of numpy's."
        )


class Origin:
    """What a trace writes down: a function, on behalf of a transformation.

    Args:
      transformation: its name, such as ``"make_jaxpr"``.
      function: the name of the user's function.
      argument_names: a function that returns the names of all flat arguments.
    """

    def __init__(self, transformation=None, function=None, argument_names=None):
        self.transformation, self.function = transformation, function
        self.argument_names = argument_names

    def describe(self, positions):
        """Return two sentences about a value made from the arguments at `positions`."""
        who = self.transformation or "A transformation"
        whom = f"the function {self.function!r}" if self.function else "a function"
        first = f"{who} is writing down {whom} without running it."
        return f"{first} {self._why(positions)}"

    def _why(self, positions):
        if not positions:
            return "Even what does not depend on its arguments is written down."
        if self.argument_names is None:
            return "This value depends on its arguments."
        names = self.argument_names()
        used = " and ".join(names[position] for position in positions)
        plural = "s" if len(positions) > 1 else ""
        return f"This value depends on the argument{plural} {used}."


# What returns the place in the user's program that is running: an equation's `source`.
source_finder = Latest(lambda: None)


class JaxprTrace(Trace):
    """Writes down each operation as an equation.

    Args:
      parent: the trace that was current before; nothing is passed on to it.
      origin: an `Origin`, for messages.
    """

    def __init__(self, parent, origin=None):
        self.parent, self.origin = parent, origin or Origin()
        self.eqns, self.invars = [], []
        self.constants = {}  # from an array's identity to (variable, value, array)

    def new_input(self, aval):
        """Return a tracer for a new argument of the jaxpr."""
        self.invars.append(Var(aval))
        return JaxprTracer(self, self.invars[-1])

    def atom(self, x):
        """Return what stands for `x` in an equation: a variable, or a scalar itself."""
        if isinstance(x, JaxprTracer) and x._trace is self:
            return x.variable
        if isinstance(x, (np.generic, np.ndarray)) and x.ndim == 0:
            aval = typeof(x)
            return Literal(x.astype(aval.dtype, copy=False)[()], aval)
        if isinstance(x, (bool, int, float, complex)):
            return Literal(x)
        return self.constant(x)

    def stage_value(self, x):
        """Return a tracer for a scalar that was made while this trace is current."""
        aval = typeof(x)
        number = np.asarray(x).astype(aval.dtype)[()]
        is_weak = aval.weak_type and typeof(number.item()) == aval
        return JaxprTracer(self, Literal(number.item() if is_weak else number, aval))

    def constant(self, x):
        """Return the variable of an array, or a tracer, that came from outside."""
        if id(x) not in self.constants:
            value = x if isinstance(x, Tracer) else asarray_impl(x)
            self.constants[id(x)] = Var(typeof(x)), value, x
        return self.constants[id(x)][0]

    def process_primitive(self, primitive, args, params):
        """Write down an equation, and return tracers for its results."""
        invars = [self.atom(arg) for arg in args]
        avals = shape_rules[primitive](*[atom.aval for atom in invars], **params)
        outvars = [Var(aval) for aval in avals]
        if primitive is lax.convert_element_type_p and isinstance(invars[0], Literal):
            results = impl_rules[primitive](invars[0].val, **params)
            return [self.stage_value(result) for result in results]
        source = source_finder.value()
        self.eqns.append(JaxprEqn(invars, outvars, primitive, params, source))
        return [JaxprTracer(self, var) for var in outvars]

    def to_jaxpr(self, outs):
        """Return the jaxpr whose results are `outs`, and the list of its constants."""
        refuse_dead_tracers("return", outs)
        outvars = [self.atom(out) for out in outs]
        constants = self.constants.values()
        constvars = [var for var, _, _ in constants]
        jaxpr = Jaxpr(constvars, self.invars, outvars, self.eqns)
        return jaxpr, [value for _, value, _ in constants]

    def provenance(self, var):
        """Say what is being written down, and which arguments `var` depends on."""
        needed = {var}
        for eqn in reversed(self.eqns):
            if needed.intersection(eqn.outvars):
                needed.update(eqn.invars)
        positions = [i for i, var in enumerate(self.invars) if var in needed]
        return self.origin.describe(positions)


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
        outs = fun(*map(trace.new_input, avals))
        return trace.to_jaxpr(outs)
