# Made from chapters/02_arrays.md by `make chapter`;
# edit the chapter, not this file.
"""Concrete arrays, and the evaluation of primitives on their buffers.

Reference: ``jax.Array``.
"""

from minijax.arrays.avals import typeof
from minijax.arrays.interchange import Interchange, placement_of
from minijax.arrays.placement import default_placement
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
        self.placement = placement or default_placement()
        self.placement.device.seal(buffer)


def asbuffer(x, device=None):
    """Return the buffer of an array; of a number or NumPy array, a copy as a buffer.

    If a device is given, it is a buffer there.
    """
    if isinstance(x, ArrayImpl):
        if device is None or x.placement.device is device:
            return x._buffer
        return device.taken(x)
    if isinstance(x, Array):
        raise UnexpectedTracerError(f"{x!r} stands for an array; it has no numbers.")
    return (device or default_placement().device).put(x, typeof(x).dtype)


def asarray_impl(x):
    """Return an array, a number or a NumPy array as an `ArrayImpl`."""
    if isinstance(x, ArrayImpl):
        return x
    placement = default_placement()
    return ArrayImpl(asbuffer(x, placement.device), typeof(x), placement)


shape_rules = RuleTable("shape")
computations = {}  # what each primitive does to plain buffers


def impl_rule_of(primitive, compute):
    """Return the impl rule that applies `compute` to the buffers of the operands.

    Args:
      primitive: whose shape rule checks the operands and types the results.
      compute: a function of the array module (``numpy``), the buffers and the
        parameters, which returns a buffer, or a list of them.
    """

    def rule(*args, **params):
        avals = shape_rules[primitive](*map(typeof, args), **params)
        placement = placement_of(args, primitive)
        device = placement.device
        if device.together:
            return device.together(primitive, args, params, avals, placement)
        buffers = [asbuffer(arg, device) for arg in args]
        results = device.evaluate(primitive, compute, buffers, params, avals)
        return [ArrayImpl(x, aval, placement) for x, aval in zip(results, avals)]

    return rule


def primitive_rules(primitive, shape, compute):
    """Give a primitive its first two rules: its shape rule and its evaluation."""
    shape_rules[primitive] = shape
    computations[primitive] = compute
    impl_rules[primitive] = impl_rule_of(primitive, compute)
