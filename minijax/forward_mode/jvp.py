"""Forward-mode differentiation: the jvp table, its trace, and the rules of calculus.

A rule ``rule(primals, tangents, **params)`` returns two lists, the results and their
tangents. A tangent ``None`` is a zero that is not written down; a rule is asked only if
at least one of its tangents is not ``None``.

The result of an operation is called z, its operands x and y, their tangents x_dot and
y_dot.

References: ``jax.interpreters.ad.primitive_jvps``, ``defjvp``, ``deflinear``,
``jax.jvp``; J. Siskind and B. Pearlmutter, "Nesting forward-mode AD in a functional
framework", Higher-Order and Symbolic Computation 21 (2008).
"""

# Made from chapters/04_forward.md by `make chapter`;
# edit the chapter, not this file.
# Amended in chapters/04_forward_rest.md: JVPTracer.held, JVPTracer.aval,
#   JVPTrace.unpack (b02202d5).
# Amended in chapters/04_forward_rest.md: JVPTracer.concrete (dd4b7954).
# Amended in chapters/09_linearize.md: jvp_flat_fun (c6d8a9a7).
# Amended in chapters/36_replicas_ground.md: JVPTrace.pack (dcf16a11).

from functools import reduce

import numpy as np

from minijax import lax
from minijax.arrays.array import convert_literal, typeof
from minijax.arrays.dtypes import float0, is_canonical_dtype, is_inexact
from minijax.core import (
    RuleTable,
    Trace,
    Tracer,
    current_trace,
    set_current_trace,
    trace_scope,
)
from minijax.lax.elementwise import add_any, add_any_p

# How a primitive carries a tangent: the jvp table, and ways to make its rules.


# Rules ``rule(primals, tangents, **params)`` return results and their tangents.
jvp_rules = RuleTable("jvp")


# Forward-mode differentiation: a program run on values and their rates of change.


class JVPTracer(Tracer):
    """A value that moves: a primal, and the rate at which it changes.

    Args:
      trace: the `JVPTrace` to which it belongs.
      primal: an array-like.
      tangent: an array-like of the shape and dtype of `primal` (a Python number has
        the dtype of any scalar).
    """

    __slots__ = ("primal", "tangent")

    def __init__(self, trace, primal, tangent):
        super().__init__(trace)
        self.primal, self.tangent = primal, tangent

    @property
    def aval(self):
        return typeof(self.held())

    def held(self):
        """Return the primal; a Python number has the dtype of its tangent."""
        if type(self.primal) in (float, complex):
            self.primal = convert_literal(self.primal, typeof(self.tangent))
        return self.primal

    def concrete(self):
        """Return the array under all tangents, or ``None`` if there is none yet."""
        primal = self.primal
        return primal.concrete() if isinstance(primal, Tracer) else primal


# Functions ``complete(trace, primal, tangent)``: they return a tangent that has the
# whole type of its primal.
tangent_canonicalizers: list = []


class JVPTrace(Trace):
    """Runs a program on primals and tangents at once, by the jvp rules.

    What does not depend on a moving value stays what it is: no tracer, no tangent.
    """

    def __init__(self, parent):
        self.parent = parent

    def unpack(self, x):
        """Return the primal and the tangent of `x`; a constant has tangent ``None``."""
        if isinstance(x, JVPTracer) and x._trace is self:
            return x.held(), x.tangent
        return x, None

    def pack(self, primal, tangent):
        """Return what the program gets to hold: a tracer if there is a tangent."""
        if tangent is None:
            return primal
        for complete in tangent_canonicalizers:
            tangent = complete(self, primal, tangent)
        return JVPTracer(self, primal, tangent)

    def process_primitive(self, primitive, args, params):
        primals, tangents = unzip2(map(self.unpack, args))
        with set_current_trace(self.parent):
            if all(tangent is None for tangent in tangents):
                return primitive.bind_all(*primals, **params)
            results, moves = jvp_rules[primitive](primals, tangents, **params)
        return [self.pack(*pair) for pair in zip(results, moves, strict=True)]


def unzip2(pairs):
    """Return the first and the second entries of `pairs` as two tuples."""
    pairs = list(pairs)
    return tuple(x for x, _ in pairs), tuple(y for _, y in pairs)


def jvp_flat_fun(f, primals, tangents, trace=None):
    """Return the results of `f` and their rates of change.

    Args:
      f: a function of ``len(primals)`` array-likes that returns a list.
      primals: where to evaluate `f`.
      tangents: the rates of change of the arguments, each ``None`` (zero) or an
        array-like of the shape and dtype of its primal.
      trace: the `JVPTrace` that does it; by default a new one over the current trace.

    Returns:
      Two lists as long as the result of `f`: the primal results, and their tangents,
      ``None`` where a result does not depend on an argument that moves.

    Reference: ``jax.jvp``, for functions of any tree of arrays.
    """
    with trace_scope(trace or JVPTrace(current_trace())) as trace:
        results = f(*map(trace.pack, primals, tangents))
        primals_out, tangents_out = unzip2(map(trace.unpack, results))
    return list(primals_out), list(tangents_out)


def add_or_none(x, y):
    """Return the sum of two tangents of one shape and dtype; ``None`` is zero."""
    if x is None or y is None:
        return y if x is None else x
    return add_any(x, y)


def partial_derivatives_rule(primitive, *partials):
    """Return the rule "each tangent times its partial derivative, summed".

    Args:
      primitive: a primitive with one result.
      *partials: one function per operand, called as ``partial(x_dot, z, *primals,
        **params)`` with the operand's tangent and the primitive's result `z`. It
        returns the contribution to the result's tangent, or ``None`` for zero.
    """

    def rule(primals, tangents, **params):
        result = primitive.bind(*primals, **params)
        contributions = [
            partial(tangent, result, *primals, **params)
            for tangent, partial in zip(tangents, partials, strict=True)
            if tangent is not None
        ]
        return [result], [reduce(add_or_none, contributions)]

    return rule


# The jvp rules of calculus: sums, products, quotients, some functions of each kind.

jvp_rules[lax.mul_p] = partial_derivatives_rule(
    lax.mul_p,
    lambda x_dot, z, x, y: lax.mul(x_dot, y),
    lambda y_dot, z, x, y: lax.mul(x, y_dot),
)


def full_scalar_like(x, value):
    """Return one number in the shape and dtype of `x`; a scalar needs no operation."""
    aval = typeof(x)
    if aval.shape or not is_canonical_dtype(aval.dtype):
        return lax.full_like(x, value)
    scalar = np.asarray(value, aval.dtype)
    return convert_literal(scalar.item(), aval) if aval.weak_type else scalar


def zeros_like_tangent_aval(x):
    """Return the zero tangent of `x`, written out; its dtype is float0 for integers."""
    aval = typeof(x)
    if not is_inexact(aval.dtype):
        return np.zeros(aval.shape, float0)
    return full_scalar_like(x, 0)


def instantiate_tangents(primals, tangents):
    """Return `tangents` with every ``None`` written out as zeros."""
    return [
        zeros_like_tangent_aval(primal) if tangent is None else tangent
        for primal, tangent in zip(primals, tangents, strict=True)
    ]


def defjvp_unary(primitive, slope):
    """Return the rule of a function of one number: the tangent times its slope.

    Args:
      primitive: an elementwise primitive with one operand.
      slope: its derivative, called as ``slope(z, x)`` with the result and the operand.
    """
    return partial_derivatives_rule(
        primitive, lambda x_dot, z, x: lax.mul(x_dot, slope(z, x))
    )


slopes = {
    lax.sin_p: lambda z, x: lax.cos(x),
    lax.exp_p: lambda z, x: z,
    lax.sqrt_p: lambda z, x: lax.div(0.5, z),
    lax.square_p: lambda z, x: lax.mul(2.0, x),
}
jvp_rules.update({p: defjvp_unary(p, slope) for p, slope in slopes.items()})


# What is better not formed by itself: the tangent goes into the formula of the slope.
moving_slopes = {
    lax.cos_p: lambda x_dot, z, x: lax.neg(lax.mul(x_dot, lax.sin(x))),
    lax.log_p: lambda x_dot, z, x: lax.div(x_dot, x),
    # x_dot (1 + z) (1 - z), since 1 - z² loses digits where z is close to 1
    lax.tanh_p: lambda x_dot, z, x: lax.mul(
        lax.add(x_dot, lax.mul(x_dot, z)), lax.sub(1.0, z)
    ),
}
jvp_rules.update(
    {p: partial_derivatives_rule(p, move) for p, move in moving_slopes.items()}
)


def linear_jvp(primitive):
    """Return the rule of a primitive that is linear in all its operands together.

    The tangent of the result is the primitive of the tangents. Where one is missing
    beside others, its zeros are written out.
    """

    def rule(primals, tangents, **params):
        results = primitive.bind_all(*primals, **params)
        return results, primitive.bind_all(
            *instantiate_tangents(primals, tangents), **params
        )

    return rule


linear = [lax.neg_p, lax.reduce_sum_p, lax.concatenate_p, lax.slice_p]
linear += [lax.reshape_p, lax.squeeze_p, lax.broadcast_in_dim_p]
jvp_rules.update({p: linear_jvp(p) for p in linear})


def broadcast_scalar_to(x, z):
    """Broadcast `x`, a scalar or an array with axes of size 1, to the shape of `z`."""
    shape, target = typeof(x).shape, typeof(z).shape
    if shape == target:
        return x
    kept = [i for i, size in enumerate(shape) if size == target[i]]
    return lax.broadcast_in_dim(lax.reshape(x, [shape[i] for i in kept]), target, kept)


def sum_rule(primitive, second):
    """Return the rule of a sum or difference: with two tangents, one operation.

    Args:
      primitive: a primitive with two operands and no parameters.
      second: what happens to the second tangent if it is the only one.
    """

    def rule(primals, tangents):
        result = primitive.bind(*primals)
        x_dot, y_dot = tangents
        if x_dot is not None and y_dot is not None:
            return [result], primitive.bind_all(x_dot, y_dot)
        alone = second(y_dot) if x_dot is None else x_dot
        return [result], [broadcast_scalar_to(alone, result)]

    return rule


jvp_rules[lax.add_p] = sum_rule(lax.add_p, lambda y_dot: y_dot)
jvp_rules[add_any_p] = sum_rule(add_any_p, lambda y_dot: y_dot)
jvp_rules[lax.sub_p] = sum_rule(lax.sub_p, lambda y_dot: lax.neg(y_dot))


def defjvp_zero(primitive):
    """Return the rule of a primitive whose results do not move with its operands."""

    def rule(primals, tangents, **params):
        results = primitive.bind_all(*primals, **params)
        return results, [None] * len(results)

    return rule


constant = [lax.floor_p, lax.sign_p]
constant += [lax.eq_p, lax.ne_p, lax.lt_p, lax.le_p, lax.gt_p, lax.ge_p]
jvp_rules.update({p: defjvp_zero(p) for p in constant})


jvp_rules[lax.div_p] = partial_derivatives_rule(
    lax.div_p,
    lambda x_dot, z, x, y: lax.div(x_dot, y),
    lambda y_dot, z, x, y: lax.mul(lax.mul(lax.neg(y_dot), x), lax.integer_pow(y, -2)),
)
jvp_rules[lax.dot_general_p] = partial_derivatives_rule(
    lax.dot_general_p,
    lambda x_dot, z, x, y, **params: lax.dot_general_p.bind(x_dot, y, **params),
    lambda y_dot, z, x, y, **params: lax.dot_general_p.bind(x, y_dot, **params),
)


def integer_pow_partial(x_dot, z, x, y):
    """Return x_dot y xʸ⁻¹ for a fixed integer y, never computing x⁻¹ for x⁰."""
    if y in (0, 1):
        return x_dot if y else None
    return lax.mul(x_dot, lax.mul(float(y), x if y == 2 else lax.integer_pow(x, y - 1)))


jvp_rules[lax.integer_pow_p] = partial_derivatives_rule(
    lax.integer_pow_p, integer_pow_partial
)


def converted_tangent(x_dot, z, x, new_dtype, weak_type):
    """Return the tangent of a conversion: none, if it ends in integers or booleans."""
    if not is_inexact(new_dtype):
        return None
    primitive = lax.convert_element_type_p
    return primitive.bind(x_dot, new_dtype=new_dtype, weak_type=weak_type)


jvp_rules[lax.convert_element_type_p] = partial_derivatives_rule(
    lax.convert_element_type_p, converted_tangent
)
