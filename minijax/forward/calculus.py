"""The jvp rules of calculus: sums, products, quotients, some functions of each kind.

The result of an operation is called z, its operands x and y, their tangents x_dot and
y_dot.

Reference: ``jax.interpreters.ad.primitive_jvps``.
"""

# Made from chapters/04_forward.md by `make chapter`;
# edit the chapter, not this file.

from minijax import lax
from minijax.arrays.dtypes import is_inexact
from minijax.forward.rules import (
    broadcast_like,
    constant_rule,
    jvp_rules,
    linear_rule,
    partials_rule,
    slope_rule,
)
from minijax.lax.elementwise import add_any_p

jvp_rules[lax.mul_p] = partials_rule(
    lax.mul_p,
    lambda x_dot, z, x, y: lax.mul(x_dot, y),
    lambda y_dot, z, x, y: lax.mul(x, y_dot),
)


slopes = {
    lax.sin_p: lambda z, x: lax.cos(x),
    lax.exp_p: lambda z, x: z,
    lax.sqrt_p: lambda z, x: lax.div(0.5, z),
    lax.square_p: lambda z, x: lax.mul(2.0, x),
}
jvp_rules.update({p: slope_rule(p, slope) for p, slope in slopes.items()})


# What is better not formed by itself: the tangent goes into the formula of the slope.
moving_slopes = {
    lax.cos_p: lambda x_dot, z, x: lax.neg(lax.mul(x_dot, lax.sin(x))),
    lax.log_p: lambda x_dot, z, x: lax.div(x_dot, x),
    # x_dot (1 + z) (1 - z), since 1 - z² loses digits where z is close to 1
    lax.tanh_p: lambda x_dot, z, x: lax.mul(
        lax.add(x_dot, lax.mul(x_dot, z)), lax.sub(1.0, z)
    ),
}
jvp_rules.update({p: partials_rule(p, move) for p, move in moving_slopes.items()})


linear = (
    *(lax.neg_p, lax.reduce_sum_p, lax.concatenate_p, lax.slice_p),
    *(lax.reshape_p, lax.squeeze_p, lax.broadcast_in_dim_p),
)
jvp_rules.update({p: linear_rule(p) for p in linear})


def sum_rule(primitive, second):
    """Return the rule of a sum or difference: with two tangents, one operation.

    Args:
      primitive: a primitive with two operands and no parameters.
      second: what happens to the second tangent if it is the only one.
    """

    def rule(primals, tangents):
        [result] = primitive.bind(*primals)
        x_dot, y_dot = tangents
        if x_dot is not None and y_dot is not None:
            return [result], primitive.bind(x_dot, y_dot)
        alone = second(y_dot) if x_dot is None else x_dot
        return [result], [broadcast_like(alone, result)]

    return rule


jvp_rules[lax.add_p] = sum_rule(lax.add_p, lambda y_dot: y_dot)
jvp_rules[add_any_p] = sum_rule(add_any_p, lambda y_dot: y_dot)
jvp_rules[lax.sub_p] = sum_rule(lax.sub_p, lambda y_dot: lax.neg(y_dot))


constant = (
    *(lax.floor_p, lax.sign_p),
    *(lax.eq_p, lax.ne_p, lax.lt_p, lax.le_p, lax.gt_p, lax.ge_p),
)
jvp_rules.update({p: constant_rule(p) for p in constant})


jvp_rules[lax.div_p] = partials_rule(
    lax.div_p,
    lambda x_dot, z, x, y: lax.div(x_dot, y),
    lambda y_dot, z, x, y: lax.mul(lax.mul(lax.neg(y_dot), x), lax.integer_pow(y, -2)),
)
jvp_rules[lax.dot_general_p] = partials_rule(
    lax.dot_general_p,
    lambda x_dot, z, x, y, **params: lax.dot_general_p.bind(x_dot, y, **params)[0],
    lambda y_dot, z, x, y, **params: lax.dot_general_p.bind(x, y_dot, **params)[0],
)


def integer_pow_partial(x_dot, z, x, y):
    """Return x_dot y xʸ⁻¹ for a fixed integer y, never computing x⁻¹ for x⁰."""
    if y in (0, 1):
        return x_dot if y else None
    return lax.mul(x_dot, lax.mul(float(y), x if y == 2 else lax.integer_pow(x, y - 1)))


jvp_rules[lax.integer_pow_p] = partials_rule(lax.integer_pow_p, integer_pow_partial)


def converted_tangent(x_dot, z, x, new_dtype, weak_type):
    """Return the tangent of a conversion: none, if it ends in integers or booleans."""
    if not is_inexact(new_dtype):
        return None
    primitive = lax.convert_element_type_p
    return primitive.bind(x_dot, new_dtype=new_dtype, weak_type=weak_type)[0]


jvp_rules[lax.convert_element_type_p] = partials_rule(
    lax.convert_element_type_p, converted_tangent
)
