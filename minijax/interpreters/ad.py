"""Derivatives of primitives, under the names that JAX has for them.

Reference: ``jax.interpreters.ad``.
"""

# Made from chapters/14_callbacks_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax.arrays.array import shape_rules, typeof
from minijax.compat.core import RuleView
from minijax.compat.primitives import results_as_jax, results_as_list
from minijax.forward_mode.jvp import JVPTrace as JVPTrace
from minijax.forward_mode.jvp import JVPTracer as JVPTracer
from minijax.forward_mode.jvp import jvp_rules, linear_jvp, partial_derivatives_rule
from minijax.lax.elementwise import add_any_p as add_jaxvals_p
from minijax.pytrees.argument_checks import zeros_of_tangent
from minijax.reverse_mode.backward_pass import UndefinedPrimal, transpose_rules


class Zero:
    """A tangent or cotangent that is zero and is not written out.

    Args:
      aval: its `ShapedArray`.
    """

    def __init__(self, aval):
        self.aval = aval

    def __repr__(self):
        return f"Zero({self.aval})"


UndefinedPrimal = UndefinedPrimal


def is_undefined_primal(x):
    """Return whether an operand of a transpose rule is one that it is linear in."""
    return isinstance(x, UndefinedPrimal)


def instantiate_zeros(x):
    """Return a `Zero` written out as an array, and anything else as it is."""
    return zeros_of_tangent(x.aval) if isinstance(x, Zero) else x


def _none_if_zero(x):
    return None if isinstance(x, Zero) else x


def _zero_if_none(x, like):
    return Zero(typeof(like).to_tangent_aval()) if x is None else x


class _JVPs(RuleView):
    """From primitives to rules ``rule(primals, tangents, **params)``."""

    def to_table(self, primitive, rule):
        def listed(primals, tangents, **params):
            tangents = tuple(map(_zero_if_none, tangents, primals))
            out, tangent = rule(tuple(primals), tangents, **params)
            moves = map(_none_if_zero, results_as_list(primitive, tangent))
            return results_as_list(primitive, out), list(moves)

        return listed

    def from_table(self, primitive, rule):
        def picked(primals, tangents, **params):
            moves = list(map(_none_if_zero, tangents))
            if any(move is not None for move in moves):
                outs, moves = rule(list(primals), moves, **params)
            else:  # ours are asked only if something moves
                outs = primitive.bind_all(*primals, **params)
                moves = [None] * len(outs)
            moves = list(map(_zero_if_none, moves, outs))
            return results_as_jax(primitive, outs), results_as_jax(primitive, moves)

        return picked


class _Transposes(RuleView):
    """From primitives to rules ``rule(cotangent, *operands, **params)``."""

    def to_table(self, primitive, rule):
        def listed(cts, *operands, **params):
            avals = shape_rules[primitive](*map(typeof, operands), **params)
            cts = [Zero(a) if ct is None else ct for ct, a in zip(cts, avals)]
            arrived = rule(results_as_jax(primitive, cts), *operands, **params)
            return list(map(_none_if_zero, arrived))

        return listed

    def from_table(self, primitive, rule):
        def picked(ct, *operands, **params):
            cts = list(map(_none_if_zero, results_as_list(primitive, ct)))
            return rule(cts, *operands, **params)

        return picked


primitive_jvps, primitive_transposes = _JVPs(jvp_rules), _Transposes(transpose_rules)


def defjvp(primitive, *partials):
    """Set the jvp rule by one function ``(tangent, *primals)`` for each operand."""

    def without_result(partial):
        return lambda t, out, *primals, **params: partial(t, *primals, **params)

    rules = [partial and without_result(partial) for partial in partials]
    rules = [partial or (lambda *args, **params: None) for partial in rules]
    jvp_rules[primitive] = partial_derivatives_rule(primitive, *rules)


def defjvp2(primitive, *partials):
    """Set the jvp rule by functions ``(tangent, result, *primals)``, or None."""
    rules = [partial or (lambda *args, **params: None) for partial in partials]
    jvp_rules[primitive] = partial_derivatives_rule(primitive, *rules)


def deflinear2(primitive, transpose_rule):
    """Make a primitive linear in all its operands, and set its transpose rule."""
    jvp_rules[primitive] = linear_jvp(primitive)
    primitive_transposes[primitive] = transpose_rule


def deflinear(primitive, transpose_rule):
    """Do the same with a transpose rule that takes the cotangent alone."""
    deflinear2(primitive, lambda ct, *operands, **params: transpose_rule(ct, **params))


def defbilinear(primitive, lhs_rule, rhs_rule):
    """Make a primitive linear in each of two operands, and set its transpose rules.

    Args:
      primitive: of two operands.
      lhs_rule, rhs_rule: functions ``(cotangent, x, y)`` to the cotangent of the first
        operand, and of the second one; that operand is an `UndefinedPrimal`.
    """

    def transpose(ct, x, y, **params):
        if is_undefined_primal(x):
            return lhs_rule(ct, x, y, **params), None
        return None, rhs_rule(ct, x, y, **params)

    defjvp(
        primitive,
        lambda t, x, y, **params: primitive.bind(t, y, **params),
        lambda t, x, y, **params: primitive.bind(x, t, **params),
    )
    primitive_transposes[primitive] = transpose


def get_primitive_transpose(primitive):
    """Return the transpose rule of a primitive.

    Raises:
      NotImplementedError: if there is none.
    """
    if primitive not in primitive_transposes:
        raise NotImplementedError(
            "Transpose rule (for reverse-mode differentiation) for "
            f"'{primitive}' not implemented"
        )
    return primitive_transposes[primitive]


def add_jaxvals(x, y):
    """Add two tangents."""
    return add_jaxvals_p.bind(x, y)


def add_tangents(x, y):
    """Add two tangents, each of which may be a `Zero`."""
    if isinstance(x, Zero):
        return y
    return x if isinstance(y, Zero) else add_jaxvals(x, y)


def zeros_like_aval(aval):
    """Return an array of zeros of a type."""
    return zeros_of_tangent(aval)
