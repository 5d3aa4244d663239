"""Values, primitives, rule tables and traces: how a running function is watched.

A *primitive* is an operation with a name and no meaning. A *rule table* is one
meaning: it maps primitives to rules. A *trace* decides which table is asked, and
`Primitive.bind` hands every operation to the current trace.

The same machinery in JAX: ``jax._src.core`` (``Primitive``, ``Trace``, ``Tracer``,
``set_current_trace``).
"""

# Made from chapters/01_interception.md by `make chapter`;
# edit the chapter, not this file.
# Amended in chapters/02_arrays_ground.md: current_trace (10be9aed).
# Amended in chapters/03_numpy_ground.md: Trace.stages (54c954d8).
# Amended in chapters/03_numpy_ground.md: Array.__hash__, Array.__array_priority__
#   (cbb56c6a).
# Amended in chapters/03_numpy_rest.md: Tracer.__copy__, Tracer.__deepcopy__,
#   Tracer.__reduce__, Tracer.__format__, Tracer.__array__ (09049ab0).
# Amended in chapters/07_jaxprs_ground.md: RuleTable.__init__, RuleTable.__missing__
#   (6a1a3087).
# Amended in chapters/07_jaxprs_ground.md: EvalTrace.process_primitive (369f0a18).
# Amended in chapters/07_jaxprs_rest.md: Primitive.call_primitive,
#   Primitive.get_bind_params (8236823b).
# Amended in chapters/08_errors_rest.md: trace_scope (e7073957).
# Amended in chapters/14_callbacks_rest.md: Primitive.__getattr__, Primitive.bind
#   (7b820953).
# Amended in chapters/14_callbacks_rest.md: Trace.main (1a340ba1).

from functools import partial

from minijax._lazy import namespace
from minijax._registry import Operators, Registry
from minijax.context_values import ContextValue, context_variable, current_context_value
from minijax.errors import (
    ConcretizationTypeError,
    TracerArrayConversionError,
    UnexpectedTracerError,
)


class Array(Operators):
    """What every array is to its user: operators, methods and properties.

    Floors above enter them into the table `tracer_methods`, so that one definition
    serves concrete arrays and tracers alike.
    """

    __slots__ = ()
    __hash__ = None  # since == compares numbers
    __array_priority__ = 100  # ndarray * Array is ours: NumPy's operators step back


# From names to methods ``method(primitive, ...)`` that higher floors give primitives.
primitive_methods = Registry()


# From names to functions that make a method, of what is registered when it is read.
primitive_rules = Registry()


class Primitive:
    """An operation known by its name; what it does stands in the rule tables.

    Attributes:
      multiple_results: whether `bind` returns the list of its results, or the only one.
    """

    multiple_results = False
    call_primitive = False  # whether JAX counts it among its calls

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return self.name

    def bind_all(self, *args, **params):
        """Hand the operation to the current trace and return the list of its results.

        It is for code that takes any primitive as it comes.

        Args:
          *args: the operands: numbers, arrays, tracers.
          **params: everything about the operation that is not an operand.
        """
        check_leaked_tracers(self, args)
        results = current_trace().process_primitive(self, args, params)
        if type(results) is not list:
            raise TypeError(f"A rule of '{self}' returned {results!r}, not a list.")
        return results

    def bind(self, *args, **params):
        """Do as `bind_all`; return a single result without a list around it."""
        results = self.bind_all(*args, **params)
        if self.multiple_results:
            return results
        if not results:
            raise TypeError(
                f"A rule of '{self}' returned no results, and bind is to return one. "
                f"With {self}.multiple_results = True it returns the list."
            )
        return results[0]

    def get_bind_params(self, params):
        """Return the keyword arguments of `bind` for the parameters of an equation."""
        return params

    def __getattr__(self, name):
        if name in primitive_rules:
            return primitive_rules[name](self)
        if name not in primitive_methods:
            raise AttributeError(f"'{type(self).__name__}' has no attribute '{name}'")
        return partial(primitive_methods[name], self)


class RuleTable(Registry):
    """One meaning for programs: a dictionary from primitives to rules.

    Args:
      name: the name of this meaning, for example ``"jvp"``.

    Attributes:
      reasons: for primitives without a rule on purpose, why, in one sentence. A reason
        no longer counts once there is a rule.
    """

    def __init__(self, name, default=None):
        """Make a table; `default` is the rule of primitives that have none."""
        super().__init__()
        self.name, self.default, self.reasons = name, default, {}
        rule_tables.append(self)

    def __missing__(self, primitive):
        if self.default is not None:
            return self.default
        advice = f"Add one: {self.name}_rules[{primitive}_p] = ..."
        raise NotImplementedError(
            f"The {self.name} rule of '{primitive}' is not implemented. "
            + self.reasons.get(primitive, advice)
        )


# Of all columns, in the order in which they were made.
rule_tables = []
# Rules ``rule(*args, **params)`` return the results of a primitive.
impl_rules = RuleTable("impl")


class Trace:
    """One way to run a program: `process_primitive` says what an operation means here.

    Attributes:
      parent: the trace that was current before, to which work may be passed on.
    """

    parent = None
    # The lock that is held as long as the trace is in use, if that has an end.
    life = None
    # Whether it is in use.
    alive = property(lambda self: self.life is None or self.life.locked())
    # Whether operations are written down, instead of being done.
    stages = False
    # What marks the transformation that a trace belongs to: the trace itself.
    main = property(lambda self: self)

    def process_primitive(self, primitive, args, params):
        """Return the list of results of `primitive` applied to `args`."""
        raise NotImplementedError(f"{type(self).__name__} has no process_primitive")


# Functions ``watcher(primitive, args, params, results)`` that see what was computed.
bind_listeners = []


class EvalTrace(Trace):
    """The bottom of every chain of traces: it computes."""

    def process_primitive(self, primitive, args, params):
        results = impl_rules[primitive](*args, **params)
        for watcher in bind_listeners:
            watcher(primitive, args, params, results)
        return results


class Tracer(Array):
    """A stand-in for an array, which a trace lets a function hold.

    Args:
      trace: the trace that made it, and the only one that looks inside.
    """

    __slots__ = ("__weakref__", "_trace")

    def __init__(self, trace):
        self._trace = trace

    def __repr__(self):
        return f"{type(self).__name__}({type(self._trace).__name__})"

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        raise ConcretizationTypeError(f"{self!r} cannot be pickled: it has no value.")

    def __format__(self, spec):
        if not spec:
            return str(self)
        raise TypeError(
            f"unsupported format string passed to {type(self).__name__}.__format__: a "
            "tracer has no numbers to print. debug.print prints them when it has."
        )

    def __array__(self, *args, **kwargs):
        raise TracerArrayConversionError(
            "The numpy.ndarray conversion method __array__() was called on traced "
            f"array {self!r}, which NumPy cannot see. Use the function of "
            "minijax.numpy instead of the one of numpy."
        )


_current_trace = context_variable("current_trace", EvalTrace())


def current_trace():
    """Return the trace that meets the next operation of this thread."""
    extent = _current_trace.get()
    if extent.before is None or (extent.begun and extent.lock.locked()):
        return extent.value
    return current_context_value(_current_trace).value  # a block is over


def set_current_trace(trace):
    """Let `trace` meet every operation that is bound inside a ``with`` block."""
    return ContextValue(_current_trace, trace)


# Functions ``listener(trace)`` that are told of each trace that begins.
scope_listeners: list = []


def trace_scope(trace):
    """Make `trace` current for a ``with`` block, and dead ever after."""
    for listener in scope_listeners:
        listener(trace)
    block = set_current_trace(trace)
    trace.life = block.lock
    return block


def check_leaked_tracers(primitive, args):
    """Raise if a tracer among `args` has outlived the transformation that made it."""
    for arg in args:
        if isinstance(arg, Tracer) and not arg._trace.alive:
            raise UnexpectedTracerError(
                f"Encountered an unexpected tracer: '{primitive}' was applied to "
                f"{arg!r}. A transformed function had a side effect, by which this "
                "stand-in has left it. Return it from that function instead of storing "
                "it in global state: a variable, an attribute, a list or a closure."
            )


class MethodTable(Registry):
    """Names, and the functions or properties that `Array` has under them."""

    def enter(self, name, value):
        super().enter(name, value)
        setattr(Array, name, value)


# From names to methods of arrays and of all that stands for one.
tracer_methods = MethodTable()

__getattr__, __dir__ = namespace(__name__)
