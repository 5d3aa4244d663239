"""The product of an array as a program of multiplications.

The derivative of the product is the derivative of this program.
"""

# Made from chapters/04_forward_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax import lax
from minijax.arrays.avals import typeof
from minijax.forward.rules import jvp_rules
from minijax.forward.trace import jvp_flat


def cut(x, axis, start, limit, stride=1):
    """Return the elements `start`, `start` + `stride`, … before `limit` of an axis."""
    return lax.slice_in_dim(x, start, limit, stride, axis)


def product(x, axes):
    """Return the product over `axes`, halving each until one element is left."""
    aval = typeof(x)
    if aval.size == 0:
        kept = [size for i, size in enumerate(aval.shape) if i not in axes]
        return lax.full(kept, 1, aval.dtype)
    for axis in axes:
        while (size := typeof(x).shape[axis]) > 1:
            half = size // 2
            left, right = cut(x, axis, 0, half), cut(x, axis, half, 2 * half)
            rest = [cut(x, axis, 2 * half, size)] if size % 2 else []
            x = lax.concatenate([lax.mul(left, right), *rest], axis)
    return lax.squeeze(x, axes)


def program_rule(program):
    """Return the rule of a primitive that does what `program` does.

    Args:
      program: a function of the same operands and parameters, written with other
        primitives, that returns one array.
    """

    def rule(primals, tangents, **params):
        return jvp_flat(lambda *xs: [program(*xs, **params)], primals, tangents)

    return rule


jvp_rules[lax.reduce_prod_p] = program_rule(product)
