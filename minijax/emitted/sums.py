# Made from chapters/13_python.md by `make chapter`;
# edit the chapter, not this file.
"""Primitives in Python: sums, and products of matrices."""

from math import prod

import numpy as np

from minijax import lax
from minijax.arrays.checks import free_axes, sizes
from minijax.arrays.numerics import wide
from minijax.emitted.elementwise import add_rules, expression
from minijax.emitted.emission import python_rules


def reduction(name):
    """Return the rule of a sum or product, which may need more bits on the way."""

    def spell(writer, eqn, x):
        dtype, axes = eqn.invars[0].aval.dtype, eqn.params["axes"]
        said = "" if dtype.kind in "fc" else f", dtype={writer.dtype(wide(dtype))}"
        if wide(dtype) == dtype:
            return f"np.{name}.reduce({x}, axis={axes}{said})"
        text = f"np.{name}.reduce({x}, axis={axes}, dtype=np.float32)"
        return f"{text}.astype({writer.dtype(dtype)})"

    return expression(spell)


add_rules({"reduce_sum": reduction("add"), "reduce_prod": reduction("multiply")})


def arranged(writer, x, aval, order, dtype, shape):
    """Return an operand of a product: transposed, converted, reshaped, if need be."""
    if [*order] != [*range(aval.ndim)]:
        x = f"{x}.transpose({(*order,)})"
    if aval.dtype != dtype:
        x = f"{x}.astype({writer.dtype(dtype)})"
    return x if sizes(aval.shape, order) == shape else f"{x}.reshape({shape})"


def product_axes(lhs, rhs, dimension_numbers):
    """Return the order of axes for each side, and the sizes that `matmul` sees.

    The sizes are those of the batch, a tuple, and the numbers of rows, of elements
    that are summed, and of columns.
    """
    (lhs_summed, rhs_summed), (lhs_batch, rhs_batch) = dimension_numbers
    rows = free_axes(lhs.ndim, lhs_summed, lhs_batch)
    columns = free_axes(rhs.ndim, rhs_summed, rhs_batch)
    orders = (*lhs_batch, *rows, *lhs_summed), (*rhs_batch, *rhs_summed, *columns)
    merged = (lhs, rows), (lhs, lhs_summed), (rhs, columns)
    counts = [prod(sizes(aval.shape, axes)) for aval, axes in merged]
    return orders, sizes(lhs.shape, lhs_batch), counts


def _dot_general(writer, eqn, x, y):
    lhs, rhs, out = [atom.aval for atom in [*eqn.invars, *eqn.outvars]]
    orders, batch, counts = product_axes(lhs, rhs, eqn.params["dimension_numbers"])
    rows, summed, columns = counts
    preferred = eqn.params["preferred_element_type"]
    dtype = wide(preferred or np.result_type(lhs.dtype, rhs.dtype))
    left = arranged(writer, x, lhs, orders[0], dtype, (*batch, rows, summed))
    right = arranged(writer, y, rhs, orders[1], dtype, (*batch, summed, columns))
    text = f"{left} @ {right}"
    if not out.shape:
        text = f"({text})[0, 0]"
    elif out.shape != (*batch, rows, columns):
        text = f"({text}).reshape({out.shape})"
    return text if dtype == out.dtype else f"({text}).astype({writer.dtype(out.dtype)})"


python_rules[lax.dot_general_p] = expression(_dot_general)
