"""Types, equations and traces, for those who extend the package.

Reference: ``jax.extend.core``.
"""

# Made from chapters/14_callbacks_rest.md by `make chapter`;
# edit the chapter, not this file.

import weakref
from typing import Any

import numpy as np

from minijax.arrays.avals import ShapedArray, typeof
from minijax.arrays.dtypes import DTYPES, tangent_dtype
from minijax.batching.trace import BatchTrace
from minijax.core import EvalTrace, Trace, Tracer, _current_trace, current_trace
from minijax.core import set_current_trace as set_current_trace
from minijax.errors import ConcretizationTypeError
from minijax.errors import (
    InconclusiveDimensionOperation as InconclusiveDimensionOperation,
)
from minijax.extents import Extent
from minijax.jaxprs.jaxpr import JaxprEqn, Var
from minijax.jaxprs.staging import JaxprTrace

array_types = {np.ndarray, *(dtype.type for dtype in DTYPES)}


class DropVar(Var):
    """A variable for a result that no equation uses.

    Programs written down here have a `Var` there, and the printer writes it as ``_``.

    Reference: ``jax.extend.core.DropVar``.
    """

    __slots__ = ()


class Effect:
    """What an equation does besides its results; programs here list no effects.

    Reference: ``jax.extend.core.Effect``.
    """


Effects = frozenset[Effect]
no_effects: Effects = frozenset()


def concrete_or_error(force: Any, val: Any, context: str = "") -> Any:
    """Return ``force(val)``, for a tracer of what it stands for.

    Args:
      force: a function, such as `int`; None to return `val`.
      val: an array, a tracer or a Python object.
      context: why the value is needed, for the message.

    Raises:
      ConcretizationTypeError: if `val` is a tracer without numbers.

    Reference: ``jax.extend.core.concrete_or_error``.
    """
    value = val.concrete() if hasattr(val, "concrete") else val
    if value is None and isinstance(val, Tracer):
        raise ConcretizationTypeError(
            "Abstract tracer value encountered where concrete value is expected: "
            f"{val!r}. {context}"
        )
    return value if force is None else force(value)


def find_top_trace(_: Any) -> Trace:
    """Return the current trace, whatever the operands are.

    Reference: ``jax.extend.core.find_top_trace``.
    """
    return current_trace()


class _OpaqueTraceState:
    """Which trace was current; equal to another if that is the same one."""

    __slots__ = ("trace",)

    def __init__(self, trace):
        self.trace = weakref.ref(trace)

    def __eq__(self, other):
        return isinstance(other, _OpaqueTraceState) and self.trace == other.trace

    def __hash__(self):
        return hash(self.trace)


def get_opaque_trace_state(convention: Any = None) -> _OpaqueTraceState:
    """Return what can be compared, later, with the trace that is current then.

    Reference: ``jax.extend.core.get_opaque_trace_state``.
    """
    return _OpaqueTraceState(current_trace())


class take_current_trace(Extent):
    """Compute at once inside a ``with`` block, which is given the trace from before.

    Reference: ``jax.extend.core.take_current_trace``.
    """

    __slots__ = ()

    def __init__(self):
        super().__init__(_current_trace, EvalTrace())

    def __enter__(self):
        before = current_trace()
        super().__enter__()
        return before

    def again(self):
        """Return what can be entered like this one, once more."""
        return take_current_trace()


def gensym() -> type[Var]:
    """Return a function from abstract values to new variables.

    Reference: ``jax.extend.core.gensym``.
    """
    return Var


def new_jaxpr_eqn(
    invars: Any,
    outvars: Any,
    primitive: Any,
    params: Any,
    effects: Any,
    source_info: Any = None,
    ctx: Any = None,
) -> JaxprEqn:
    """Return an equation; `effects` and `ctx` are not kept.

    Reference: ``jax.extend.core.new_jaxpr_eqn``.
    """
    primitive = getattr(primitive, "inner", primitive)
    return JaxprEqn([*invars], [*outvars], primitive, dict(params), source_info)


def mapped_aval(size: int, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """Return the type of one example, from that of a batch of `size` along `axis`.

    Reference: ``jax.extend.core.mapped_aval``.
    """
    if axis is None:
        return aval
    assert aval.shape[axis] == size
    shape = [*aval.shape]
    del shape[axis]
    return aval.update(shape=tuple(shape))


def unmapped_aval(
    size: int, axis: int | None, aval: ShapedArray, explicit_mesh_axis: Any = None
) -> ShapedArray:
    """Return the type of a batch of `size` along `axis`, from that of one example.

    Reference: ``jax.extend.core.unmapped_aval``.
    """
    if axis is None:
        return aval
    shape = (*aval.shape[:axis], size, *aval.shape[axis:])
    return aval.update(shape=shape)


def primal_dtype_to_tangent_dtype(primal_dtype: Any) -> np.dtype:
    """Return the type of derivatives of a type: float0 for integers and bools.

    Reference: ``jax.extend.core.primal_dtype_to_tangent_dtype``.
    """
    return tangent_dtype(primal_dtype)


def valid_jaxtype(x: Any) -> bool:
    """Return whether `x` is an array, a tracer or a number.

    Reference: ``jax.extend.core.valid_jaxtype``.
    """
    try:
        typeof(x)
    except TypeError:
        return False
    return True


def _traces():
    trace = current_trace()
    while trace is not None:
        yield trace
        trace = trace.parent


def unsafe_am_i_under_a_jit_DO_NOT_USE() -> bool:
    """Return whether a program is being written down.

    Reference: ``jax.extend.core.unsafe_am_i_under_a_jit_DO_NOT_USE``.
    """
    return any(isinstance(trace, JaxprTrace) for trace in _traces())


def unsafe_am_i_under_a_vmap_DO_NOT_USE() -> bool:
    """Return whether the current trace, or one under it, maps over a batch.

    Reference: ``jax.extend.core.unsafe_am_i_under_a_vmap_DO_NOT_USE``.
    """
    return any(isinstance(trace, BatchTrace) for trace in _traces())


def unsafe_get_axis_names_DO_NOT_USE() -> list:
    """Return the names of the axes that are mapped over, the outermost first.

    Reference: ``jax.extend.core.unsafe_get_axis_names_DO_NOT_USE``.
    """
    axes = [trace.axis.name for trace in _traces() if hasattr(trace, "axis")]
    return [name for name in reversed(axes) if name is not None]


def nonempty_axis_env_DO_NOT_USE() -> bool:
    """Return whether an axis with a name is mapped over.

    Reference: ``jax.extend.core.nonempty_axis_env_DO_NOT_USE``.
    """
    return bool(unsafe_get_axis_names_DO_NOT_USE())
