# Made from chapters/03_forward.md by `make chapter`;
# edit the chapter, not this file.
"""The jvp rules of primitives that move, fold and contract axes.

Reference: ``jax.interpreters.ad.primitive_jvps``.
"""

from minijax import lax
from minijax.avals import typeof
from minijax.dtypes import is_inexact
from minijax.forward_rules import constant_rule, linear_rule, partials_rule


def converted(t, z, x, new_dtype, weak_type):
    """Return the tangent of a conversion: none, if it ends in integers or booleans."""
    if not is_inexact(new_dtype):
        return None
    primitive = lax.convert_element_type_p
    return primitive.bind(t, new_dtype=new_dtype, weak_type=weak_type)[0]


def mean_of_winners(t, y, x, axes):
    """Return the mean of `t` over the elements of `x` that attain the extreme `y`."""
    shape = [1 if i in axes else size for i, size in enumerate(typeof(x).shape)]
    attained = lax.eq(x, lax.reshape(y, shape))
    share = lax.convert_element_type(attained, typeof(x).dtype)
    count = lax.reduce_sum(share, axes)
    return lax.div(lax.reduce_sum(lax.mul(t, share), axes), count)


array_partials = {
    lax.convert_element_type_p: (converted,),
    lax.reduce_max_p: (mean_of_winners,),
    lax.reduce_min_p: (mean_of_winners,),
    lax.dot_general_p: (
        lambda t, z, x, y, **params: lax.dot_general_p.bind(t, y, **params)[0],
        lambda t, z, x, y, **params: lax.dot_general_p.bind(x, t, **params)[0],
    ),
}
array_linear = (
    *(lax.broadcast_in_dim_p, lax.reshape_p, lax.transpose_p, lax.squeeze_p),
    *(lax.slice_p, lax.rev_p, lax.copy_p, lax.concatenate_p, lax.pad_p),
    *(lax.reduce_sum_p, lax.cumsum_p),
)
array_constant = (
    *(lax.iota_p, lax.bitcast_convert_type_p, lax.argmax_p, lax.argmin_p),
    *(lax.reduce_and_p, lax.reduce_or_p, lax.reduce_xor_p),
)

array_rules = {
    **{p: partials_rule(p, *functions) for p, functions in array_partials.items()},
    **{p: linear_rule(p) for p in array_linear},
    **{p: constant_rule(p) for p in array_constant},
}
