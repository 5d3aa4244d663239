"""Transposition of single primitives: the rule table, and makers of rules.

A rule is called as ``rule(cotangents, *operands, **params)``, with one cotangent (or
None, a zero) for each result, and returns one for each operand. An operand that the
program is linear in arrives as `Linear`: its place is known, its value is not. All
other operands arrive as values, and get None.

Reference: ``jax.interpreters.ad.primitive_transposes``.
"""

# Made from chapters/10_reverse.md by `make chapter`;
# edit the chapter, not this file.

from minijax import lax
from minijax.arrays.avals import typeof
from minijax.core import RuleTable

transpose_rules = RuleTable("transpose")


class Linear:
    """The place of an operand that a program is linear in; it has no value.

    Args:
      aval: the `ShapedArray` of the operand.

    Reference: ``jax.interpreters.ad.UndefinedPrimal``.
    """

    __slots__ = ("aval",)

    def __init__(self, aval):
        self.aval = aval

    def __repr__(self):
        return f"Linear({self.aval})"


def transposes(primitive, *parts, bilinear=False):
    """Give a primitive with one result its transpose rule, operand by operand.

    Args:
      primitive: the primitive.
      *parts: for each operand a function from the cotangent of the result, the operands
        and the parameters to the cotangent of that operand; None if the primitive is
        not linear in it.
      bilinear: whether it is linear in each operand by itself, as a product is, instead
        of in all of them together, as a sum is.
    """

    def rule(cotangents, *operands, **params):
        [ct] = cotangents
        linear = [isinstance(operand, Linear) for operand in operands]
        refuse_nonlinear(primitive, parts, linear, bilinear)
        return [
            part(ct, *operands, **params) if is_linear else None
            for part, is_linear in zip(parts, linear)
        ]

    transpose_rules[primitive] = rule


def refuse_nonlinear(primitive, parts, linear, bilinear):
    """Raise if a program claims to be linear in operands that `primitive` is not."""
    places = [i for i, is_linear in enumerate(linear) if is_linear]
    if any(parts[i] is None for i in places) or (bilinear and len(places) > 1):
        raise NotImplementedError(
            f"The transpose rule of '{primitive}' is not implemented for the linear "
            f"operands {places}: '{primitive}' is not linear in them. Only linear "
            "functions can be transposed; minijax.vjp differentiates the others first."
        )


def elementwise_transposes(primitive, *parts, bilinear=False):
    """Give an elementwise primitive its rule; the arguments are those of `transposes`.

    The parts need not think of shapes: where an operand was stretched, its cotangent is
    summed.
    """

    def fitted(i, part):
        return lambda ct, *xs, **params: unbroadcast(part(ct, *xs, **params), xs[i])

    fitting = [part and fitted(i, part) for i, part in enumerate(parts)]
    transposes(primitive, *fitting, bilinear=bilinear)


transposes(lax.neg_p, lambda ct, x: lax.neg(ct))


def unbroadcast(ct, operand):
    """Sum a cotangent over the axes along which its operand was stretched.

    Args:
      ct: array of the shape of an elementwise result.
      operand: `Linear`; a scalar, or of the rank of `ct` with 1 where it stretched.

    Returns:
      An array of the shape of `operand`.
    """
    small, large = operand.aval.shape, typeof(ct).shape
    axes = [i for i, size in enumerate(large) if not small or small[i] != size]
    return lax.reshape(lax.reduce_sum(ct, axes), small) if axes else ct
