"""Programs as data: jaxprs, the trace that writes them down, make_jaxpr.

A *jaxpr* is a program in its plainest form: inputs, one equation after the other, each
of which names its results and is never changed, and outputs.

Every operation that is bound while it is current becomes an equation; none is
evaluated.

References: ``jax.extend.core`` (``Jaxpr``, ``ClosedJaxpr``, ``JaxprEqn``, ``Var``,
``Literal``, ``jaxpr_as_fun``), ``jax.core.eval_jaxpr``, ``DynamicJaxprTrace`` in
``jax._src.interpreters.partial_eval``, ``jax.make_jaxpr``, ``jax.eval_shape``.
"""

# Made from chapters/07_jaxprs.md by `make chapter`;
# edit the chapter, not this file.
# Amended in chapters/07_jaxprs_rest.md: make_jaxpr, eval_shape (702fd474).
# Amended in chapters/07_jaxprs_rest.md: JaxprTracer.provenance, JaxprTrace.__init__,
#   trace_to_jaxpr, _stage (3cc1951e).
# Amended in chapters/07_jaxprs_rest.md: JaxprTrace.stage_value, JaxprTrace.record
#   (26427f2f).
# Amended in chapters/07_jaxprs_rest.md: EquationTrace.stages (2ede4274).
# Amended in chapters/07_jaxprs_rest.md: trace_to_jaxpr (2566035e).
# Amended in chapters/08_errors.md: EquationTrace.record (a2752cdc).
# Amended in chapters/12_jit_rest.md: eval_shape (fa34353e).
# Amended in chapters/28_indexing_rest.md: Constants.__init__, Constants.variable,
#   JaxprTrace.to_jaxpr, trace_to_jaxpr, _stage (3e096b86).
# Amended in chapters/28_indexing_rest.md: abstractify, _flat_call, eval_shape
#   (00cedaa5).
# Amended in chapters/36_replicas_ground.md: abstractify (11b79ed5).
# Amended in chapters/36_replicas.md: EquationTrace.fit,
#   EquationTrace.process_primitive, JaxprTrace.__init__ (88292979).

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from minijax import lax
from minijax._lazy import wraps
from minijax._registry import Registry
from minijax.arrays.array import ShapedArray, as_array_impl, convert_literal, typeof
from minijax.arrays.devices import NO_MANUAL_AXES
from minijax.arrays.dtypes import canonicalize_dtype, is_canonical_dtype
from minijax.arrays.numerics import canonicalize_int_tuple
from minijax.batching.vmap import MappedAxis
from minijax.core import (
    Trace,
    Tracer,
    check_leaked_tracers,
    current_trace,
    impl_rules,
    set_current_trace,
    trace_scope,
)
from minijax.jaxprs.pretty_printer import (
    EquationText,
    LiteralText,
    ProgramText,
    Replaceable,
    VarText,
    check_number,
)
from minijax.jaxprs.types import (
    AbstractTracer,
    Hook,
    ShapeDtypeStruct,
    TraceProvenance,
    ancestor_argument_positions,
    infer_out_avals,
    struct_of,
)
from minijax.pytrees.api_util import FlatCall, Loan, holds_refs, returning_refs
from minijax.pytrees.argument_checks import (
    check_callable,
    is_ref,
    read_refs,
    resolve_argnums,
)
from minijax.pytrees.tree_util import tree_map
from minijax.typing import P

# Programs as data: variables, equations, jaxprs, and how to run one.


class Var(VarText):
    """A variable: one object for its definition and all of its uses.

    It has no name. The printer gives it a letter.

    Args:
      aval: the `ShapedArray` of the values that it stands for.
    """

    __slots__ = ("aval",)

    def __init__(self, aval):
        self.aval = aval


@dataclasses.dataclass(slots=True, eq=False, repr=False)
class JaxprEqn(EquationText, Replaceable):
    """One operation: ``outvars = primitive[params] invars``.

    Attributes:
      invars: list of operands, each a `Var` or a `Literal`.
      outvars: list of the variables that the results define.
      primitive: the `Primitive`.
      params: its parameters, a dictionary with hashable values.
      source: the place in the user's program that bound it; None where none was sought.
    """

    invars: list
    outvars: list
    primitive: object
    params: dict
    source: object = None


def new_eqn(primitive, invars, params):
    """Return the equation of an operation; its shape rule gives the results' types.

    Args:
      primitive: a `Primitive`.
      invars: list of operands, each a `Var` or a `Literal`.
      params: dictionary of its parameters.
    """
    avals = infer_out_avals(primitive, [atom.aval for atom in invars], params)
    return JaxprEqn(invars, [Var(aval) for aval in avals], primitive, params)


@dataclasses.dataclass(slots=True, eq=False, repr=False, weakref_slot=True)
class Jaxpr(ProgramText, Replaceable):
    """A program: ``{ lambda constvars ; invars. let eqns in outvars }``.

    Attributes:
      constvars: list of variables for the arrays that the program has picked up.
      invars: list of variables for the arguments.
      outvars: list of results, each a `Var` or a `Literal`.
      eqns: list of `JaxprEqn`, in the order in which they were bound.
    """

    constvars: list
    invars: list
    outvars: list
    eqns: list


# Staging: the trace that writes down what a function does, as a jaxpr.


class JaxprTracer(AbstractTracer):
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
        positions = ancestor_argument_positions(self.variable, trace.invars, trace.eqns)
        return trace.origin.describe(positions)


# What returns the place in the user's program that is running: an equation's `source`.
source_info_hook: Hook = Hook(lambda: None)


# What returns, for the trace around a program, a function that changes the operands of
# each equation; None where there are no devices that differ.
result_converter: Hook = Hook(lambda trace: None)


class EquationTrace(Trace):
    """Writes down each operation on its own tracers as an equation.

    Args:
      parent: the trace that was current before; nothing is passed on to it.
    """

    # `is_staged` asks: written down, or done?
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
        """Keep an equation and its source, and return tracers for its results."""
        eqn.source = source_info_hook.value()
        self.eqns.append(eqn)
        return [JaxprTracer(self, var) for var in eqn.outvars]


class Literal(LiteralText):
    """A scalar that is written into an equation in place of a variable.

    Args:
      val: a Python scalar or a NumPy scalar.
      aval: its `ShapedArray`, by default that of `val`.
    """

    __slots__ = ("aval", "val")

    def __init__(self, val, aval=None):
        self.val, self.aval = val, typeof(val) if aval is None else aval

    @property
    def value(self):
        """The number, with the type that it had when it was written down."""
        return convert_literal(self.val, self.aval)


def as_literal(x):
    """Return the `Literal` of a number, Python's or NumPy's without axes, or None."""
    if isinstance(x, (np.generic, np.ndarray)) and x.ndim == 0:
        aval = typeof(x)
        return Literal(x.astype(aval.dtype, copy=False)[()], aval)
    return Literal(x) if isinstance(x, (bool, int, float, complex)) else None


class Constants:
    """The arrays that a function used without receiving them: a variable for each."""

    def __init__(self):
        self.found = {}  # from an array's identity to (variable, value, array)
        # From a reference to what it holds by now; None if references may not be used.
        self.states = None

    def variable(self, x):
        """Return the variable of an array, a tracer or a reference from outside."""
        if id(x) not in self.found:
            value = x if isinstance(x, Tracer) or is_ref(x) else as_array_impl(x)
            aval = x._aval if is_ref(x) else typeof(x)
            self.found[id(x)] = Var(aval), value, x
        return self.found[id(x)][0]

    def split(self):
        """Return the list of variables and the list of their values."""
        found = self.found.values()
        return [var for var, _, _ in found], [value for _, value, _ in found]


def computed_literal(x):
    """Return the `Literal` of a scalar that was computed, with its own type."""
    aval = typeof(x)
    number = np.asarray(x, aval.dtype)[()]  # raises if no such integer fits
    is_weak = aval.weak_type and typeof(number.item()) == aval
    return Literal(number.item() if is_weak else number, aval)


def converted_literal(eqn):
    """Return the literal that the conversion of a literal gives, None for the rest."""
    if eqn.primitive is not lax.convert_element_type_p:
        return None
    [operand] = eqn.invars
    stays = not is_canonical_dtype(
        eqn.params["new_dtype"]
    )  # read again, it would be narrower
    if stays or not isinstance(operand, Literal):
        return None
    [result] = impl_rules[eqn.primitive](operand.val, **eqn.params)
    return computed_literal(result)


class JaxprTrace(EquationTrace):
    """Writes down each operation, whatever its operands are.

    Args:
      parent: the trace that was current before; nothing is passed on to it.
    """

    def __init__(self, parent, origin=None):
        super().__init__(parent)
        self.fit, self.constants = result_converter.value(parent), Constants()
        self.origin = origin or TraceProvenance()

    def atom(self, x):
        """Return what stands for `x` in an equation: a `Var` or a `Literal`."""
        own = isinstance(x, JaxprTracer) and x._trace is self
        return x.variable if own else as_literal(x) or self.constants.variable(x)

    def to_jaxpr(self, outs):
        """Return the jaxpr whose results are `outs`, and the list of its constants.

        The references among its constants have a result each, after all others.
        """
        check_leaked_tracers("return", outs)
        finals = (self.constants.states or {}).values()
        outvars = [self.atom(out) for out in [*outs, *finals]]
        constvars, consts = self.constants.split()
        return Jaxpr(constvars, self.invars, outvars, self.eqns), consts

    def stage_value(self, x):
        """Return a tracer for a scalar that was made while this trace is current."""
        return JaxprTracer(self, computed_literal(x))

    def record(self, eqn):
        """Keep an equation; convert a literal on the spot."""
        if (literal := converted_literal(eqn)) is not None:
            return [JaxprTracer(self, literal)]
        return super().record(eqn)


def trace_to_jaxpr(fun, avals, origin=None, threads=False):
    """Write down what a function does.

    Args:
      fun: function from flat arguments to a list of results.
      avals: `ShapedArray` of each argument.
      origin: a `TraceProvenance`, for messages.
      threads: whether it may use references from outside: they are constants then, and
        what they hold in the end follows the results.

    Returns:
      The `Jaxpr`, and the list of values of its `constvars`.
    """
    trace = JaxprTrace(current_trace(), origin)
    trace.constants.states = {} if threads else None
    with trace_scope(trace):
        made = trace.to_jaxpr(fun(*map(trace.new_input, avals)))
    current_trace()  # who reads it lets go of the trace that has ended
    return made


def eval_jaxpr(jaxpr, consts, *args):
    """Run a jaxpr: bind its equations, one after the other, under the current trace.

    Args:
      jaxpr: a `Jaxpr`.
      consts: values of its `constvars`.
      *args: values of its `invars`: arrays, scalars or tracers.

    Returns:
      The list of its results.

    Raises:
      TypeError: if there are too few or too many values.
    """
    check_number("constants", jaxpr.constvars, consts)
    check_number("arguments", jaxpr.invars, args)
    values = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args]))

    def read(atom):
        return atom.value if isinstance(atom, Literal) else values[atom]

    for eqn in jaxpr.eqns:
        results = eqn.primitive.bind_all(*map(read, eqn.invars), **eqn.params)
        values.update(zip(eqn.outvars, results, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


class ClosedJaxpr(ProgramText):
    """A jaxpr together with the values of its `constvars`.

    Args:
      jaxpr: a `Jaxpr`.
      consts: list of arrays, one for each of its `constvars`.
    """

    __slots__ = ("__weakref__", "consts", "jaxpr")

    def __init__(self, jaxpr, consts):
        check_number("constants", jaxpr.constvars, consts)
        self.jaxpr, self.consts = jaxpr, list(consts)

    constvars = property(lambda self: self.jaxpr.constvars)
    invars = property(lambda self: self.jaxpr.invars)
    outvars = property(lambda self: self.jaxpr.outvars)
    eqns = property(lambda self: self.jaxpr.eqns)
    # JAX's other name of the constants.
    literals = property(lambda self: self.consts)

    def replace(self, jaxpr=None, consts=None):
        """Return a copy with another jaxpr or other constants."""
        jaxpr = self.jaxpr if jaxpr is None else jaxpr
        return ClosedJaxpr(jaxpr, self.consts if consts is None else consts)


def jaxpr_as_fun(closed_jaxpr: ClosedJaxpr) -> Callable[..., list]:
    """Return the function, from arrays to a list of arrays, that a jaxpr describes.

    Args:
      closed_jaxpr: a `ClosedJaxpr`.
    """
    return partial(eval_jaxpr, closed_jaxpr.jaxpr, closed_jaxpr.consts)


def abstractify(x):
    """Return the abstract value of an array, or of anything with a shape and a dtype.

    Args:
      x: array, scalar, tracer, `ShapeDtypeStruct`, `ShapedArray`, …

    Raises:
      TypeError: if `x` has no type that an array can have.
    """
    try:
        return typeof(x)
    except TypeError:
        if is_ref(x) or not (hasattr(x, "shape") and hasattr(x, "dtype")):
            raise
    dtype, weak_type = canonicalize_dtype(x.dtype), getattr(x, "weak_type", False)
    axes = getattr(x, "manual_axis_type", None) or NO_MANUAL_AXES
    shape = canonicalize_int_tuple(x.shape, "Shapes")
    return ShapedArray(shape, dtype, weak_type, manual_axis_type=axes)


# Looking at a function's program, or at its types alone, without running it.


def _stage(name, call):
    origin = TraceProvenance(name, call.fun_name, call.names)
    jaxpr, consts = trace_to_jaxpr(call, call.avals, origin, threads=True)
    return ClosedJaxpr(jaxpr, read_refs(consts))


def _flat_call(name, fun, args, kwargs, static_argnums):
    static = resolve_argnums(name, static_argnums, len(args), error=ValueError)
    for position in static:
        try:
            hash(args[position])
        except TypeError as error:
            raise ValueError(
                f"{name}: static argument {position} is a {type(args[position])}, "
                "which has no hash. Static arguments must be hashable: pass a tuple "
                "instead of a list, or do not make this argument static."
            ) from error
    varying = tuple(i for i in range(len(args)) if i not in static)
    if holds_refs(([args[i] for i in varying], kwargs)):
        loan = Loan(name, fun, args, kwargs)
        fun, args, kwargs = returning_refs(fun), loan.args, loan.kwargs
    return FlatCall(name, fun, args, kwargs, argnums=varying, typeof=abstractify)


class AxisEnvTrace(Trace):
    """Gives a name and a size to an axis that no vmap maps, and passes everything on.

    Args:
      parent: the trace that was current before.
      axis: a `MappedAxis`.
    """

    def __init__(self, parent, axis):
        self.parent, self.axis = parent, axis

    def process_primitive(self, primitive, args, params):
        """Bind the operation under the parent."""
        with set_current_trace(self.parent):
            return primitive.bind_all(*args, **params)


def _named_axes(axis_env):
    trace = current_trace()
    for name, size in axis_env:
        trace = AxisEnvTrace(trace, MappedAxis(name, size))
    return trace


def make_jaxpr(
    fun: Callable[P, Any],
    static_argnums: int | Sequence[int] = (),
    axis_env: Any = None,
    return_shape: bool = False,
) -> Callable[P, Any]:
    """Return a function that writes down the program of `fun` instead of running it.

    Args:
      fun: function on pytrees of arrays.
      static_argnums: int or sequence of ints: positional arguments that `fun` receives
        as they are. They stand in the jaxpr with the values they have; they must have
        a hash.
      axis_env: sequence of pairs (axis name, size), for collectives in `fun`.
      return_shape: whether to return, besides, the pytree of `ShapeDtypeStruct` that
        describes the result of `fun`.

    Returns:
      A function of the arguments of `fun`, of which only shapes and dtypes matter (a
      leaf may be a `ShapeDtypeStruct`), to a `ClosedJaxpr`.

    Raises:
      TypeError: if a leaf of the arguments or the result is no array.
      ValueError: if a static argument has no hash.

    Reference: ``jax.make_jaxpr``.
    """
    check_callable(fun)

    def make_jaxpr_f(*args, **kwargs):
        call = _flat_call("make_jaxpr", fun, args, kwargs, static_argnums)
        with set_current_trace(_named_axes(axis_env or ())):
            jaxpr = _stage("make_jaxpr", call)
        return (jaxpr, _shapes(call, jaxpr)) if return_shape else jaxpr

    name = getattr(fun, "__name__", "a function")
    make_jaxpr_f.__name__ = f"make_jaxpr({name})"
    make_jaxpr_f.__qualname__ = f"make_jaxpr({getattr(fun, '__qualname__', name)})"
    return make_jaxpr_f


def _shapes(call, jaxpr):
    return call.output(list(map(struct_of, jaxpr.out_avals)))


def _traced_types(fun):
    """Return `fun` with a new variable for each `ShapeDtypeStruct` of its result."""

    def traced(x):
        is_type = isinstance(x, ShapeDtypeStruct)
        return current_trace().new_input(abstractify(x)) if is_type else x

    return wraps(fun)(lambda *args, **kwargs: tree_map(traced, fun(*args, **kwargs)))


# From classes of functions that know their types to functions that ask one of them.
eval_shape_rules: dict = Registry()


def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return the shapes and dtypes that ``fun(*args, **kwargs)`` has, without arrays.

    Args:
      fun: function on pytrees of arrays.
      *args, **kwargs: its arguments; leaves may be `ShapeDtypeStruct`, and so may
        leaves of its result. References stay as they are.

    Returns:
      The result of `fun` with a `ShapeDtypeStruct` in place of each array.

    Reference: ``jax.eval_shape``.
    """
    if holds_refs((args, kwargs)):
        loan = Loan("eval_shape", fun, args, kwargs)
        return eval_shape(returning_refs(fun), *loan.args, **loan.kwargs)[0]
    for kind in type(fun).__mro__:
        if kind in eval_shape_rules:
            return eval_shape_rules[kind](fun, *args, **kwargs)
    call = FlatCall("eval_shape", fun, args, kwargs, typeof=abstractify)
    call.fun = _traced_types(fun)
    return _shapes(call, _stage("eval_shape", call))
