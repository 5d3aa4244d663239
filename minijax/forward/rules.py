"""How a primitive carries a tangent: the jvp table, and ways to make its rules.

A rule ``rule(primals, tangents, **params)`` returns two lists, the results and their
tangents. A tangent ``None`` is a zero that is not written down; a rule is asked only if
at least one of its tangents is not ``None``.

Reference: ``jax.interpreters.ad.primitive_jvps``, ``defjvp``, ``deflinear``.
"""

# Made from chapters/04_forward.md by `make chapter`;
# edit the chapter, not this file.

from functools import reduce

import numpy as np

from minijax import lax
from minijax.arrays.array import held_as
from minijax.arrays.avals import typeof
from minijax.arrays.dtypes import float0, is_in_force, is_inexact
from minijax.core import RuleTable
from minijax.lax.elementwise import add_any

jvp_rules = RuleTable("jvp")


def add_tangents(x, y):
    """Return the sum of two tangents of one shape and dtype; ``None`` is zero."""
    if x is None or y is None:
        return y if x is None else x
    return add_any(x, y)


def partials_rule(primitive, *partials):
    """Return the rule "each tangent times its partial derivative, summed".

    Args:
      primitive: a primitive with one result.
      *partials: one function per operand, called as ``partial(x_dot, z, *primals,
        **params)`` with the operand's tangent and the primitive's result `z`. It
        returns the contribution to the result's tangent, or ``None`` for zero.
    """

    def rule(primals, tangents, **params):
        [result] = primitive.bind(*primals, **params)
        contributions = [
            partial(tangent, result, *primals, **params)
            for tangent, partial in zip(tangents, partials, strict=True)
            if tangent is not None
        ]
        return [result], [reduce(add_tangents, contributions)]

    return rule


def constant_like(x, value):
    """Return one number in the shape and dtype of `x`; a scalar needs no operation."""
    aval = typeof(x)
    if aval.shape or not is_in_force(aval.dtype):
        return lax.full_like(x, value)
    scalar = np.asarray(value, aval.dtype)
    return held_as(scalar.item(), aval) if aval.weak_type else scalar


def zeros_like_tangent(x):
    """Return the zero tangent of `x`, written out; its dtype is float0 for integers."""
    aval = typeof(x)
    if not is_inexact(aval.dtype):
        return np.zeros(aval.shape, float0)
    return constant_like(x, 0)


def instantiate(primals, tangents):
    """Return `tangents` with every ``None`` written out as zeros."""
    return [
        zeros_like_tangent(primal) if tangent is None else tangent
        for primal, tangent in zip(primals, tangents, strict=True)
    ]


def slope_rule(primitive, slope):
    """Return the rule of a function of one number: the tangent times its slope.

    Args:
      primitive: an elementwise primitive with one operand.
      slope: its derivative, called as ``slope(z, x)`` with the result and the operand.
    """
    return partials_rule(primitive, lambda x_dot, z, x: lax.mul(x_dot, slope(z, x)))


def linear_rule(primitive):
    """Return the rule of a primitive that is linear in all its operands together.

    The tangent of the result is the primitive of the tangents. Where one is missing
    beside others, its zeros are written out.
    """

    def rule(primals, tangents, **params):
        results = primitive.bind(*primals, **params)
        return results, primitive.bind(*instantiate(primals, tangents), **params)

    return rule


def broadcast_like(x, z):
    """Broadcast `x`, a scalar or an array with axes of size 1, to the shape of `z`."""
    shape, target = typeof(x).shape, typeof(z).shape
    if shape == target:
        return x
    kept = [i for i, size in enumerate(shape) if size == target[i]]
    return lax.broadcast_in_dim(lax.reshape(x, [shape[i] for i in kept]), target, kept)


def constant_rule(primitive):
    """Return the rule of a primitive whose results do not move with its operands."""

    def rule(primals, tangents, **params):
        results = primitive.bind(*primals, **params)
        return results, [None] * len(results)

    return rule
