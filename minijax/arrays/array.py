"""Arrays and their types: the dtype lattice, abstract values, evaluation on buffers.

A Python number has a kind but no width. Its type is *weak*, is written with a
star, and gives way to the width of what it meets.

References: ``jax.dtypes``; the lattice is JAX's, from
https://docs.jax.dev/en/latest/type_promotion.html, ``jax.core.ShapedArray``,
``jax.typeof``, ``jax.Array``.
"""

# Made from chapters/02_arrays.md by `make chapter`;
# edit the chapter, not this file.
# Amended in chapters/02_arrays_rest.md: asbuffer (a7ae2e2f).
# Amended in chapters/02_arrays_rest.md: typeof (4070e549).
# Amended in chapters/02_arrays_rest.md: def_shape_and_impl (698fe433).
# Amended in chapters/02_arrays_rest.md: ABOVE, dtype_lattice_join (0c0dbdd7).
# Amended in chapters/02_arrays_rest.md: _weak_scalar, common_dtype_and_weak_type
#   (5aa88876).
# Amended in chapters/36_replicas_upper.md: evaluated (32cff57f).

import functools
import math
from typing import Any

import numpy as np

from minijax._registry import Registry
from minijax.arrays.devices import check_transfer, default_placement, host_device
from minijax.arrays.dtypes import (
    WIDE_DTYPES,
    canonical_dtype_of_array,
    canonicalize_dtype,
    config,
    dtype_kind,
    dtype_of_lattice_node,
    lattice_node,
)
from minijax.arrays.interchange import (
    AbstractValue,
    BufferInterop,
    make_read_only_array,
    placement_of,
)
from minijax.arrays.numerics import lookup_by_type
from minijax.core import Array, RuleTable, impl_rules
from minijax.errors import UnexpectedTracerError

# The lattice of data types: what two of them become together.

class TypePromotionError(ValueError):
    """Two dtypes do not meet: none lies above both, or promotion is strict.

    Reference: ``jax.dtypes.TypePromotionError``.
    """


# From every type to those directly above it.
ABOVE = {
    "bool": ["int*"],
    "int*": ["uint8", "int8"],
    "uint8": ["int16", "uint16"], "uint16": ["int32", "uint32"],
    "uint32": ["int64", "uint64"], "uint64": ["float*"],
    "int8": ["int16"], "int16": ["int32"], "int32": ["int64"], "int64": ["float*"],
    "float*": ["bfloat16", "float16", "complex*"],
    "bfloat16": ["float32"], "float16": ["float32"],
    "float32": ["float64", "complex64"], "float64": ["complex128"],
    "complex*": ["complex64"], "complex64": ["complex128"], "complex128": [],
}  # fmt: skip


@functools.cache
def all_above(node):
    """Return all types that lie above the type `node`, itself included."""
    return frozenset([node]).union(*map(all_above, ABOVE[node]))


for _narrow in WIDE_DTYPES:
    ABOVE["float*" if dtype_kind(_narrow) == "h" else "int*"].append(_narrow.name)
    ABOVE[_narrow.name] = []


@functools.cache
def dtype_lattice_join(*nodes):
    """Return the lowest type that lies above all `nodes`.

    Raises:
      TypePromotionError: if there is none.
    """
    common = frozenset.intersection(*map(all_above, nodes))
    lowest = [node for node in common if common <= all_above(node)]
    if not lowest:
        raise TypePromotionError(
            f"Input dtypes {nodes} have no available implicit dtype promotion path. To "
            "avoid unintended promotion, 8-bit floats and integers of less than 8 bits "
            "meet no other type. Convert them explicitly: x.astype(dtype)."
        )
    return lowest[0]


# Abstract values: what is known of an array without looking at its numbers.


class ShapedArray(AbstractValue):
    """The shape and dtype of an array, and whether the dtype is weak.

    Args:
      shape: tuple of sizes.
      dtype: NumPy dtype.
      weak_type: True for what came from Python scalars alone: such a value gives way
        to the dtype of what it meets.

    Reference: ``jax.core.ShapedArray``.
    """

    __slots__ = ()

    ndim = property(lambda self: len(self.shape), doc="Number of axes.")
    size = property(lambda self: math.prod(self.shape), doc="Number of elements.")


# Concrete arrays, and the evaluation of primitives on their buffers.


class ArrayImpl(BufferInterop):
    """An immutable array: a buffer, its abstract value, and its placement.

    Args:
      buffer: an array, NumPy's or another device's, which no caller writes to any more.
      aval: its `ShapedArray`.
      placement: on which device the buffer is, and whether it has to stay there.

    Reference: ``jax.Array``.
    """

    __slots__ = ("_buffer", "aval", "placement")

    def __init__(self, buffer, aval, placement=None):
        self._buffer, self.aval = buffer, aval
        make_read_only_array(self, placement)


def typeof(x: Any) -> ShapedArray:
    """Return the abstract value of an array, a tracer or a scalar.

    Raises:
      TypeError: if `x` is none of them.
      ValueError: if `x` is a masked array, since arrays have no masks.

    Reference: ``jax.typeof``.
    """
    aval = getattr(x, "aval", None)
    if type(aval) is ShapedArray:
        return aval
    if aval is None:
        rule = aval_rules.get(type(x)) or lookup_by_type(aval_rules, x)
        return rule(x)
    return ShapedArray(aval.shape, aval.dtype, aval.weak_type)  # that of real JAX


# From types to functions which give a value of the type its abstract value.
aval_rules: dict = Registry()


def _weak_scalar(kind):
    """Return the abstract value of all Python numbers of the type `kind`."""
    return _weak_scalar_by_switch(kind, config.jax_enable_x64)


aval_rules[bool] = lambda x: ShapedArray((), bool)
aval_rules[int] = lambda x: _weak_scalar(int)
aval_rules[float] = lambda x: _weak_scalar(float)
aval_rules[complex] = lambda x: _weak_scalar(complex)
aval_rules[np.ndarray] = lambda x: ShapedArray(x.shape, canonical_dtype_of_array(x))
aval_rules[np.generic] = aval_rules[np.ndarray]

PYTHON_SCALARS = (bool, int, float, complex)


def is_python_scalar(x):
    """Return whether `x` is a Python number, and not one of NumPy's."""
    return isinstance(x, PYTHON_SCALARS) and not isinstance(x, np.generic)


def asbuffer(x, device=None):
    """Return the buffer of an array; of a number or NumPy array, a copy as a buffer.

    If a device is given, it is a buffer there; otherwise an array's own, or one of the
    host.
    """
    if isinstance(x, ArrayImpl):
        if device is None or x.placement.device is device:
            return x._buffer
        check_transfer("device-to-device", x, device)
        return device.taken(x)
    if isinstance(x, Array):
        raise UnexpectedTracerError(f"{x!r} stands for an array; it has no numbers.")
    device = device or host_device()
    check_transfer("host-to-device", x, device)
    return device.put(x, typeof(x).dtype)


def convert_literal(x, aval):
    """Return a number with the dtype that it had once, and an array as it is.

    A number has 32 bits or 64 as a switch says, which a program may turn on its way.

    Args:
      x: a number of Python or NumPy, or an array.
      aval: the `ShapedArray` of `x` when it became part of a program.
    """
    if isinstance(x, Array) or typeof(x).dtype == aval.dtype:
        return x
    placement = default_placement()
    buffer = placement.device.put(x, aval.dtype)
    return ArrayImpl(buffer, aval.update(shape=buffer.shape), placement)


def as_array_impl(x):
    """Return an array, a number or a NumPy array as an `ArrayImpl`."""
    if isinstance(x, ArrayImpl):
        return x
    placement = default_placement()
    return ArrayImpl(asbuffer(x, placement.device), typeof(x), placement)


eval_rules = Registry()  # What each primitive does to plain buffers.


def evaluated(primitive, compute, args, params, avals):
    """Return the results of a primitive, computed where its operands lie.

    Args:
      primitive: which may be evaluated `together` by several devices.
      compute: a function of the array module (``numpy``), the buffers and the
        parameters, which returns a buffer, or a list of them.
      args, params: operands and parameters.
      avals: what the results are.
    """
    placement = placement_of(args, primitive)
    device = placement.device
    if device.together:
        return device.together(primitive, args, params, avals, placement)
    buffers = [asbuffer(arg, device) for arg in args]
    results = device.evaluate(primitive, compute, buffers, params, avals)
    return [ArrayImpl(x, aval, placement) for x, aval in zip(results, avals)]


def through_wider_dtypes(primitive, compute):
    """Return what computes a primitive, narrow numbers by way of wider ones.

    Args:
      primitive: which has a shape rule.
      compute: what computes it on numbers that NumPy knows.
    """

    def computed(xp, *buffers, **params):
        for x in buffers:  # most operations are asked this, and none is narrow
            if x.dtype in WIDE_DTYPES:
                break
        else:
            named = params and [x for x in params.values() if isinstance(x, np.dtype)]
            if not named or WIDE_DTYPES.keys().isdisjoint(named):
                return compute(xp, *buffers, **params)
        avals = [ShapedArray(x.shape, x.dtype) for x in buffers]
        avals = shape_rules[primitive](*avals, **params)
        wide = [x.astype(WIDE_DTYPES.get(x.dtype, x.dtype)) for x in buffers]
        for name, value in params.items():
            if isinstance(value, np.dtype):
                params[name] = WIDE_DTYPES.get(value, value)
        results = compute(xp, *wide, **params)
        results = results if isinstance(results, list) else [results]
        return [xp.asarray(x).astype(aval.dtype) for x, aval in zip(results, avals)]

    return compute if getattr(compute, "reads_bits", False) else computed


def def_shape_and_impl(primitive, shape, compute):
    """Give a primitive its first two rules: its shape rule and its evaluation."""

    def impl(*args, **params):
        avals = shape_rules[primitive](*map(typeof, args), **params)
        return evaluated(primitive, eval_rules[primitive], args, params, avals)

    shape_rules[primitive] = shape
    eval_rules[primitive] = through_wider_dtypes(primitive, compute)
    impl_rules[primitive] = impl


# Rules ``rule(*avals, **params)`` return the avals of the results.
shape_rules = RuleTable("shape")


@functools.cache
def _weak_scalar_by_switch(kind, wide):
    return ShapedArray((), canonicalize_dtype(kind), weak_type=True)


def common_dtype_and_weak_type(*args):
    """Return the dtype that `args` have together, and whether it is weak."""
    types = {(aval.dtype, aval.weak_type) for aval in map(typeof, args)}
    if len(types) == 1:
        dtype, weak_type = types.pop()
        return dtype, weak_type and dtype.kind != "b"
    return _where_they_meet(frozenset(types), config.jax_enable_x64)


@functools.cache
def _where_they_meet(types, wide):
    return dtype_of_lattice_node(
        dtype_lattice_join(*[lattice_node(*type) for type in types])
    )
