"""JAX's core, dtypes and extend.core: names for those who extend the package.

References: ``jax.extend.core.Primitive``, ``jax.core``, ``jax.extend.core``,
``jax.dtypes``, ``jax.extend.core.primitives``, ``jax.extend.backend``,
``jax.extend.source_info_util``.
"""

# Made from chapters/14_callbacks_rest.md by `make chapter`;
# edit the chapter, not this file.

import functools
import weakref
from collections.abc import MutableMapping
from typing import Any, TypeAlias

import numpy as np

from minijax import core, lax
from minijax import numpy as jnp
from minijax.arrays import dtypes as known_dtypes
from minijax.arrays.array import ShapedArray as ShapedArray
from minijax.arrays.array import TypePromotionError as TypePromotionError
from minijax.arrays.array import dtype_lattice_join, typeof
from minijax.arrays.config import ensure_compile_time_eval as ensure_compile_time_eval
from minijax.arrays.devices import Device, default_backend, default_placement, devices
from minijax.arrays.dtypes import (
    SHORT_DTYPE_NAMES,
    dtype_of_lattice_node,
    lattice_node,
    tangent_dtype_of_primal,
)
from minijax.arrays.dtypes import extended as extended
from minijax.arrays.dtypes import float0 as float0
from minijax.arrays.interchange import AbstractValue
from minijax.arrays.transfer import local_devices
from minijax.batching.collectives import all_gather_p as all_gather_p
from minijax.batching.collectives import all_to_all_p as all_to_all_p
from minijax.batching.collectives import axis_index_p as axis_index_p
from minijax.batching.collectives import pmax_p as pmax_p
from minijax.batching.collectives import pmin_p as pmin_p
from minijax.batching.collectives import ppermute_p as ppermute_p
from minijax.batching.collectives import psum_p as psum_p
from minijax.batching.vmap import BatchTrace
from minijax.context_values import ContextValue
from minijax.core import EvalTrace, Trace, Tracer, _current_trace, current_trace
from minijax.core import Primitive as Primitive
from minijax.core import set_current_trace as set_current_trace
from minijax.custom_derivatives.custom_jvp_vjp import (
    custom_jvp_call_p as custom_jvp_call_p,
)
from minijax.custom_derivatives.custom_jvp_vjp import custom_lin_p as custom_lin_p
from minijax.custom_derivatives.custom_jvp_vjp import (
    custom_vjp_call_p as custom_vjp_call_p,
)
from minijax.custom_derivatives.custom_jvp_vjp import stop_gradient_p as stop_gradient_p
from minijax.custom_derivatives.linear_solves import linear_solve_p as linear_solve_p
from minijax.diagnostics.tracebacks import source_line_readers, user_line
from minijax.errors import ConcretizationTypeError
from minijax.errors import (
    InconclusiveDimensionOperation as InconclusiveDimensionOperation,
)
from minijax.jaxprs.jaxpr import JaxprEqn, JaxprTrace, Literal, Var
from minijax.jaxprs.jaxpr import eval_jaxpr as eval_jaxpr
from minijax.jitting.api import clear_caches
from minijax.jitting.primitive import jit_p as jit_p
from minijax.lax import abs_p as abs_p
from minijax.lax import acos_p as acos_p
from minijax.lax import acosh_p as acosh_p
from minijax.lax import add_p as add_p
from minijax.lax import and_p as and_p
from minijax.lax import argmax_p as argmax_p
from minijax.lax import argmin_p as argmin_p
from minijax.lax import asin_p as asin_p
from minijax.lax import asinh_p as asinh_p
from minijax.lax import atan2_p as atan2_p
from minijax.lax import atan_p as atan_p
from minijax.lax import atanh_p as atanh_p
from minijax.lax import bitcast_convert_type_p as bitcast_convert_type_p
from minijax.lax import broadcast_in_dim_p as broadcast_in_dim_p
from minijax.lax import cbrt_p as cbrt_p
from minijax.lax import ceil_p as ceil_p
from minijax.lax import clamp_p as clamp_p
from minijax.lax import clz_p as clz_p
from minijax.lax import complex_p as complex_p
from minijax.lax import concatenate_p as concatenate_p
from minijax.lax import conj_p as conj_p
from minijax.lax import convert_element_type_p as convert_element_type_p
from minijax.lax import copy_p as copy_p
from minijax.lax import cos_p as cos_p
from minijax.lax import cosh_p as cosh_p
from minijax.lax import cumlogsumexp_p as cumlogsumexp_p
from minijax.lax import cummax_p as cummax_p
from minijax.lax import cummin_p as cummin_p
from minijax.lax import cumprod_p as cumprod_p
from minijax.lax import cumsum_p as cumsum_p
from minijax.lax import digamma_p as digamma_p
from minijax.lax import div_p as div_p
from minijax.lax import dot_general_p as dot_general_p
from minijax.lax import eq_p as eq_p
from minijax.lax import erf_inv_p as erf_inv_p
from minijax.lax import erf_p as erf_p
from minijax.lax import erfc_p as erfc_p
from minijax.lax import exp2_p as exp2_p
from minijax.lax import exp_p as exp_p
from minijax.lax import expm1_p as expm1_p
from minijax.lax import floor_p as floor_p
from minijax.lax import ge_p as ge_p
from minijax.lax import gt_p as gt_p
from minijax.lax import imag_p as imag_p
from minijax.lax import integer_pow_p as integer_pow_p
from minijax.lax import iota_p as iota_p
from minijax.lax import is_finite_p as is_finite_p
from minijax.lax import le_p as le_p
from minijax.lax import lgamma_p as lgamma_p
from minijax.lax import log1p_p as log1p_p
from minijax.lax import log_p as log_p
from minijax.lax import logistic_p as logistic_p
from minijax.lax import lt_p as lt_p
from minijax.lax import max_p as max_p
from minijax.lax import min_p as min_p
from minijax.lax import mul_p as mul_p
from minijax.lax import ne_p as ne_p
from minijax.lax import neg_p as neg_p
from minijax.lax import nextafter_p as nextafter_p
from minijax.lax import not_p as not_p
from minijax.lax import or_p as or_p
from minijax.lax import pad_p as pad_p
from minijax.lax import population_count_p as population_count_p
from minijax.lax import pow_p as pow_p
from minijax.lax import real_p as real_p
from minijax.lax import reduce_and_p as reduce_and_p
from minijax.lax import reduce_max_p as reduce_max_p
from minijax.lax import reduce_min_p as reduce_min_p
from minijax.lax import reduce_or_p as reduce_or_p
from minijax.lax import reduce_precision_p as reduce_precision_p
from minijax.lax import reduce_prod_p as reduce_prod_p
from minijax.lax import reduce_sum_p as reduce_sum_p
from minijax.lax import reduce_xor_p as reduce_xor_p
from minijax.lax import rem_p as rem_p
from minijax.lax import reshape_p as reshape_p
from minijax.lax import rev_p as rev_p
from minijax.lax import round_p as round_p
from minijax.lax import rsqrt_p as rsqrt_p
from minijax.lax import select_n_p as select_n_p
from minijax.lax import shift_left_p as shift_left_p
from minijax.lax import shift_right_arithmetic_p as shift_right_arithmetic_p
from minijax.lax import shift_right_logical_p as shift_right_logical_p
from minijax.lax import sign_p as sign_p
from minijax.lax import sin_p as sin_p
from minijax.lax import sinh_p as sinh_p
from minijax.lax import slice_p as slice_p
from minijax.lax import sqrt_p as sqrt_p
from minijax.lax import square_p as square_p
from minijax.lax import squeeze_p as squeeze_p
from minijax.lax import sub_p as sub_p
from minijax.lax import tan_p as tan_p
from minijax.lax import tanh_p as tanh_p
from minijax.lax import transpose_p as transpose_p
from minijax.lax import xor_p as xor_p
from minijax.numpy.scalar_types import finfo as finfo
from minijax.numpy.scalar_types import iinfo as iinfo
from minijax.rematerialization.policies import name_p as name_p
from minijax.rematerialization.remat import remat_p as remat_p


class RuleView(MutableMapping):
    """A table of rules as a dictionary from primitives to rules in JAX's form.

    Args:
      table: a `RuleTable`.
    """

    def __init__(self, table):
        self.table, self.given = table, {}

    def to_table(self, primitive, rule):
        """Return a rule of the table for one in JAX's form."""
        raise NotImplementedError

    def from_table(self, primitive, rule):
        """Return a rule in JAX's form for one of the table."""
        raise NotImplementedError

    def __setitem__(self, primitive, rule):
        made = self.to_table(primitive, rule)
        self.table[primitive], self.given[primitive] = made, (rule, made)

    def __getitem__(self, primitive):
        if primitive not in self.table:
            raise KeyError(primitive)
        found = self.table[primitive]
        rule, made = self.given.get(primitive, (None, None))
        return rule if made is found else self.from_table(primitive, found)

    def __delitem__(self, primitive):
        del self.table[primitive]
        self.given.pop(primitive, None)

    def __contains__(self, primitive):
        return primitive in self.table

    def __iter__(self):
        return iter(self.table)

    def __len__(self):
        return len(self.table)


# What ``jax.core`` has besides traces and tracers.

AbstractValue = AbstractValue
Atom: TypeAlias = Var | Literal
ParamDict = dict[str, Any]
Value = Any
eval_context = ensure_compile_time_eval


def max_dim(d1: int, d2: int) -> int:
    """Return the larger one of two sizes of axes.

    Reference: ``jax.core.max_dim``.
    """
    return max(d1, d2)


def min_dim(d1: int, d2: int) -> int:
    """Return the smaller one of two sizes of axes.

    Reference: ``jax.core.min_dim``.
    """
    return min(d1, d2)


# Types, equations and traces, for those who extend the package.

array_types = {np.ndarray, *(dtype.type for dtype in SHORT_DTYPE_NAMES)}


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


class TraceTag:
    """What marks a transformation; one is equal to every other.

    Reference: ``jax.extend.core.TraceTag``.
    """

    def __eq__(self, other):
        return isinstance(other, TraceTag)

    def __hash__(self):
        return hash(TraceTag)


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


class take_current_trace(ContextValue):
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
    return tangent_dtype_of_primal(primal_dtype)


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


# The namespace of data types.


bfloat16 = known_dtypes.bfloat16


def canonicalize_dtype(dtype: Any, allow_extended_dtype: bool = False) -> np.dtype:
    """Return the NumPy dtype in force for `dtype`: 64 bits become 32 by default.

    Args:
      dtype: anything that NumPy takes for a dtype; Python's types mean 64 bits.
      allow_extended_dtype: whether it may be one that is no number.

    Raises:
      ValueError: if it is an extended dtype, and these are not allowed.

    Reference: ``jax.dtypes.canonicalize_dtype``.
    """
    canonical = known_dtypes.canonicalize_dtype(dtype)
    if canonical in known_dtypes.EXTENDED_DTYPES and not allow_extended_dtype:
        raise ValueError(
            "Internal: canonicalize_dtype called on extended dtype "
            f"{known_dtypes.dtype_name(canonical)} with allow_extended_dtype=False"
        )
    return canonical


def issubdtype(a: Any, b: Any) -> bool:
    """Return whether type `a` is of the kind `b`.

    Reference: ``jax.dtypes.issubdtype``.
    """
    return jnp.issubdtype(a, b)


def result_type(*args: Any, return_weak_type_flag: bool = False) -> Any:
    """Return the dtype that arrays, numbers and dtypes have together.

    Args:
      *args: arrays, numbers or dtypes.
      return_weak_type_flag: whether to return, besides, whether it is weak.

    Reference: ``jax.dtypes.result_type``.
    """
    if not return_weak_type_flag:
        return jnp.result_type(*args)
    return dtype_of_lattice_node(dtype_lattice_join(*map(_node, args)))


def _node(x):
    is_type = isinstance(x, type | str | np.dtype)
    weak = x in (int, float, complex) if is_type else typeof(x).weak_type
    return lattice_node(jnp.result_type(x), weak)


_SCALARS = {"b": bool, "i": int, "u": int, "h": float, "f": float, "c": complex}


def scalar_type_of(x: Any) -> type:
    """Return Python's type of numbers that an array, a number or a dtype is like.

    Raises:
      TypeError: if it is like none.

    Reference: ``jax.dtypes.scalar_type_of``.
    """
    kind = known_dtypes.dtype_kind(jnp.result_type(x))
    if kind not in _SCALARS:
        raise TypeError(f"Invalid scalar value {x}")
    return _SCALARS[kind]


def itemsize_bits(dtype: Any) -> int:
    """Return the number of bits of an element.

    Raises:
      ValueError: if `dtype` is None, or no type of numbers.

    Reference: ``jax.dtypes.itemsize_bits``.
    """
    if dtype is None:
        raise ValueError("dtype cannot be None.")
    if known_dtypes.dtype_kind(np.dtype(dtype)) not in _SCALARS:
        raise ValueError(f"unexpected input: {dtype=}")
    return np.dtype(dtype).itemsize * 8


class _Inlined(core.Primitive):
    """A call of a function that is done at once, in whatever trace is current."""

    call_primitive = multiple_results = True

    def bind_all(self, *args, subfuns, **params):
        """Return the list of results of the one function in `subfuns`."""
        [fun] = subfuns
        return list(fun.call_wrapped(*args))


call_p, closed_call_p = _Inlined("call"), _Inlined("closed_call")


# Primitives of arithmetic, arrays, calls and collectives.

add_jaxvals_p = lax.add_any_p


# Backends, as libraries ask for them: what there is to compute on.


class Backend:
    """A platform and its devices.

    Attributes:
      platform: its name.
    """

    def __init__(self, platform: str) -> None:
        self.platform = platform

    def devices(self) -> list[Device]:
        """Return its devices."""
        return devices(self.platform)

    def local_devices(self) -> list[Device]:
        """Return those of this process, which are all."""
        return local_devices(backend=self.platform)

    def device_count(self) -> int:
        """Return how many there are."""
        return len(self.devices())

    def local_device_count(self) -> int:
        """Return how many this process has."""
        return len(self.local_devices())

    def process_index(self) -> int:
        """Return the number of this process: there is one."""
        return 0

    def __repr__(self) -> str:
        return f"Backend({self.platform!r})"


@functools.cache
def _backend(platform):
    return Backend(platform)


def get_backend(platform: str | None = None) -> Backend:
    """Return a platform, by default the one that is computed on.

    Raises:
      RuntimeError: if there is none of this name.

    Reference: ``jax.extend.backend.get_backend``.
    """
    return _backend(devices(platform or default_backend())[0].platform)


def backends() -> dict[str, Backend]:
    """Return the platforms that there are, by name.

    Reference: ``jax.extend.backend.backends``.
    """
    return {"cpu": get_backend("cpu")}


def get_default_device() -> Device:
    """Return the device on which results lie that nothing else places.

    Reference: ``jax.extend.backend.get_default_device``.
    """
    [device] = default_placement().sharding.device_set
    return device


def clear_backends() -> None:
    """Forget all compiled programs; devices stay.

    Reference: ``jax.extend.backend.clear_backends``.
    """
    clear_caches()


# Where in the user's program an equation was written, for those who make equations.


def current() -> Any:
    """Return the place in the user's program that runs now, or None.

    Equations that ``minijax.extend.core.new_jaxpr_eqn`` makes keep it.

    Reference: ``jax.extend.source_info_util.current``.
    """
    return user_line()


def new_source_info() -> None:
    """Return what an equation of no place has.

    Reference: ``jax.extend.source_info_util.new_source_info``.
    """
    return


def summarize(source_info: Any, num_frames: int = 1) -> str:
    """Return the file, the line and the function of a place.

    Reference: ``jax.extend.source_info_util.summarize``.
    """
    return source_info.spell(source_info.file) if source_info and num_frames else ""


def register_exclusion(path: str) -> None:
    """Count a file as a library's: lines of its callers are the user's.

    Reference: ``jax.extend.source_info_util.register_exclusion``.
    """
    source_line_readers[path] = set()
