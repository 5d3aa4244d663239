"""Derivatives of primitives, under the names that JAX has for them.

Reference: ``jax.interpreters.ad``.
"""

# Made from chapters/14_callbacks_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax.arrays.array import shape_rules, typeof
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
    return Zero(typeof(like)) if x is None else x


class _JVPs(dict):
    """From primitives to rules ``rule(primals, tangents, **params)``."""

    def __setitem__(self, primitive, rule):
        def listed(primals, tangents, **params):
            tangents = list(map(_zero_if_none, tangents, primals))
            out, tangent = rule(primals, tangents, **params)
            moves = map(_none_if_zero, primitive.listed(tangent))
            return primitive.listed(out), list(moves)

        super().__setitem__(primitive, rule)
        jvp_rules[primitive.inner] = listed


class _Transposes(dict):
    """From primitives to rules ``rule(cotangent, *operands, **params)``."""

    def __setitem__(self, primitive, rule):
        def listed(cts, *operands, **params):
            avals = shape_rules[primitive.inner](*map(typeof, operands), **params)
            cts = [Zero(a) if ct is None else ct for ct, a in zip(cts, avals)]
            arrived = rule(primitive.pick(cts), *operands, **params)
            return list(map(_none_if_zero, arrived))

        super().__setitem__(primitive, rule)
        transpose_rules[primitive.inner] = listed


primitive_jvps, primitive_transposes = _JVPs(), _Transposes()


def defjvp(primitive, *partials):
    """Set the jvp rule by one function ``(tangent, *primals)`` for each operand."""

    def without_result(partial):
        return lambda t, out, *primals, **params: partial(t, *primals, **params)

    rules = [partial and without_result(partial) for partial in partials]
    rules = [partial or (lambda *args, **params: None) for partial in rules]
    jvp_rules[primitive.inner] = partial_derivatives_rule(primitive.inner, *rules)


def defjvp2(primitive, *partials):
    """Set the jvp rule by functions ``(tangent, result, *primals)``, or None."""
    rules = [partial or (lambda *args, **params: None) for partial in partials]
    jvp_rules[primitive.inner] = partial_derivatives_rule(primitive.inner, *rules)


def deflinear2(primitive, transpose_rule):
    """Make a primitive linear in all its operands, and set its transpose rule."""
    jvp_rules[primitive.inner] = linear_jvp(primitive.inner)
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
    """Return the transpose rule that a user has set.

    Raises:
      NotImplementedError: if none has been.
    """
    if primitive not in primitive_transposes:
        raise NotImplementedError(
            "Transpose rule (for reverse-mode differentiation) for "
            f"'{primitive}' not implemented"
        )
    return primitive_transposes[primitive]


def add_jaxvals(x, y):
    """Add two tangents."""
    return add_jaxvals_p.bind(x, y)[0]


def add_tangents(x, y):
    """Add two tangents, each of which may be a `Zero`."""
    if isinstance(x, Zero):
        return y
    return x if isinstance(y, Zero) else add_jaxvals(x, y)


def zeros_like_aval(aval):
    """Return an array of zeros of a type."""
    return zeros_of_tangent(aval)
