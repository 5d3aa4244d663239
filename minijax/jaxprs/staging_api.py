"""Looking at a function's program, or at its types alone, without running it.

Reference: ``jax.make_jaxpr``, ``jax.eval_shape``.
"""

# Made from chapters/07_jaxprs.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from minijax._registry import Registry
from minijax.arrays.avals import ShapedArray, typeof
from minijax.arrays.checks import integers
from minijax.arrays.dtypes import canonicalize_dtype
from minijax.arrays.sharding_types import NO_MANUAL_AXES
from minijax.batching.trace import MappedAxis
from minijax.core import Trace, current_trace, set_current_trace
from minijax.jaxprs.jaxpr import ClosedJaxpr
from minijax.jaxprs.origins import Origin
from minijax.jaxprs.shape_structs import ShapeDtypeStruct, struct_of
from minijax.jaxprs.staging import trace_to_jaxpr
from minijax.pytrees.api_util import FlatCall
from minijax.pytrees.call_checks import check_callable, resolve_argnums
from minijax.pytrees.functions import tree_map
from minijax.typing import P


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
        if not (hasattr(x, "shape") and hasattr(x, "dtype")):
            raise
    dtype, weak_type = canonicalize_dtype(x.dtype), getattr(x, "weak_type", False)
    axes = getattr(x, "manual_axis_type", None) or NO_MANUAL_AXES
    shape = integers(x.shape, "Shapes")
    return ShapedArray(shape, dtype, weak_type, manual_axis_type=axes)


def _stage(name, call):
    origin = Origin(name, call.fun_name, call.names)
    return ClosedJaxpr(*trace_to_jaxpr(call, call.avals, origin))


def _shapes(call, jaxpr):
    return call.output(list(map(struct_of, jaxpr.out_avals)))


def _traced_types(fun):
    """Return `fun` with a new variable for each `ShapeDtypeStruct` of its result."""

    def traced(x):
        is_type = isinstance(x, ShapeDtypeStruct)
        return current_trace().new_input(abstractify(x)) if is_type else x

    return wraps(fun)(lambda *args, **kwargs: tree_map(traced, fun(*args, **kwargs)))


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
    return FlatCall(name, fun, args, kwargs, argnums=varying, typeof=abstractify)


class AxisTrace(Trace):
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
            return primitive.bind(*args, **params)


def _named_axes(axis_env):
    trace = current_trace()
    for name, size in axis_env:
        trace = AxisTrace(trace, MappedAxis(name, size))
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

    make_jaxpr_f.__name__ = f"make_jaxpr({getattr(fun, '__name__', 'a function')})"
    return make_jaxpr_f


# From classes of functions that know their types to functions that ask one of them.
eval_shape_rules: dict = Registry()


def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return the shapes and dtypes that ``fun(*args, **kwargs)`` has, without arrays.

    Args:
      fun: function on pytrees of arrays.
      *args, **kwargs: its arguments; leaves may be `ShapeDtypeStruct`, and so may
        leaves of its result.

    Returns:
      The result of `fun` with a `ShapeDtypeStruct` in place of each array.

    Reference: ``jax.eval_shape``.
    """
    for kind in type(fun).__mro__:
        if kind in eval_shape_rules:
            return eval_shape_rules[kind](fun, *args, **kwargs)
    call = FlatCall("eval_shape", fun, args, kwargs, typeof=abstractify)
    call.fun = _traced_types(fun)
    return _shapes(call, _stage("eval_shape", call))
