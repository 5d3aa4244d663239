"""Concrete arrays, and the evaluation of primitives on their buffers.

Reference: ``jax.Array``.
"""

# Made from chapters/02_arrays.md by `make chapter`;
# edit the chapter, not this file.

from minijax._registry import Registry
from minijax.arrays.avals import typeof
from minijax.arrays.interchange import Interchange, placement_of, seal
from minijax.arrays.placement import default_placement, host_device
from minijax.core import Array, RuleTable, impl_rules
from minijax.errors import UnexpectedTracerError


class ArrayImpl(Interchange):
    """An immutable array: a buffer, its abstract value, and its placement.

    Args:
      buffer: an array of the device's array module, which no caller writes to any more.
      aval: its `ShapedArray`.
      placement: the device where the buffer lives, and whether it has to stay there; by
        default, the default device, uncommitted.

    Reference: ``jax.Array``.
    """

    __slots__ = ("_buffer", "aval", "placement")

    def __init__(self, buffer, aval, placement=None):
        self._buffer, self.aval = buffer, aval
        seal(self, placement)


def asbuffer(x, device=None):
    """Return the buffer of an array; of a number or NumPy array, a copy as a buffer.

    If a device is given, it is a buffer there; otherwise an array's own, or one of the
    host.
    """
    if isinstance(x, ArrayImpl):
        if device is None or x.placement.device is device:
            return x._buffer
        return device.taken(x)
    if isinstance(x, Array):
        raise UnexpectedTracerError(f"{x!r} stands for an array; it has no numbers.")
    return (device or host_device()).put(x, typeof(x).dtype)


def held_as(x, aval):
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


def asarray_impl(x):
    """Return an array, a number or a NumPy array as an `ArrayImpl`."""
    if isinstance(x, ArrayImpl):
        return x
    placement = default_placement()
    return ArrayImpl(asbuffer(x, placement.device), typeof(x), placement)


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


shape_rules = RuleTable("shape")


computations = Registry()  # what each primitive does to plain buffers


def primitive_rules(primitive, shape, compute):
    """Give a primitive its first two rules: its shape rule and its evaluation."""

    def impl(*args, **params):
        avals = shape_rules[primitive](*map(typeof, args), **params)
        return evaluated(primitive, computations[primitive], args, params, avals)

    shape_rules[primitive], computations[primitive] = shape, compute
    impl_rules[primitive] = impl
