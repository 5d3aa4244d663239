"""How operations and numbers are spelled in NumPy, and where that means the same."""

# Made from chapters/13_python_ground.md by `make chapter`;
# edit the chapter, not this file.

from functools import cache
from math import prod

import numpy as np

from minijax.arrays.checks import free_axes, sizes
from minijax.arrays.numerics import LONG_SUM, product, wide
from minijax.emitted.scopes import scalar_of
from minijax.jaxprs.jaxpr import Literal


def number_text(atom):
    """Return a literal as Python writes the number, or None if it needs its dtype.

    NumPy gives a Python number the dtype of the operand beside it.
    """
    scalar = scalar_of(atom) if isinstance(atom, Literal) else None
    if scalar is None or scalar.dtype.kind not in "biuf" or not np.isfinite(scalar):
        return None
    text, kind = str(scalar), type(scalar.item())
    same = kind is bool or scalar.dtype.type(kind(text)) == scalar
    return text if same else None


def spelled(eqn, operands):
    """Return operands, with literals as plain numbers unless there is nothing else."""
    if all(isinstance(atom, Literal) for atom in eqn.invars):
        return operands
    return [number_text(atom) or x for atom, x in zip(eqn.invars, operands)]


LOSING = "divide", "expm1", "log1p"  # infinities, zeros, digits of complex numbers


@cache
def means(name, *dtypes):
    """Return whether a function of NumPy takes and gives exactly these dtypes."""
    if name in LOSING and dtypes[0].kind == "c":
        return False
    try:
        return getattr(np, name).resolve_dtypes((*dtypes[:-1], None)) == dtypes
    except TypeError:
        return False


def same_meaning(name, eqn):
    """Return whether a function of NumPy has the dtypes of an equation."""
    return means(name, *[atom.aval.dtype for atom in [*eqn.invars, *eqn.outvars]])


INFIX = {
    "add": ("+", "add"), "sub": ("-", "subtract"), "mul": ("*", "multiply"),
    "add_any": ("+", "add"), "div": ("/", "divide"),
    "eq": ("==", "equal"), "ne": ("!=", "not_equal"), "lt": ("<", "less"),
    "le": ("<=", "less_equal"), "gt": (">", "greater"), "ge": (">=", "greater_equal"),
    "and": ("&", "bitwise_and"), "or": ("|", "bitwise_or"), "xor": ("^", "bitwise_xor"),
}  # fmt: skip

UFUNCS = {
    "exp": "exp", "exp2": "exp2", "expm1": "expm1", "log": "log", "log1p": "log1p",
    "sqrt": "sqrt", "cbrt": "cbrt", "sin": "sin", "cos": "cos", "tan": "tan",
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "sinh": "sinh",
    "cosh": "cosh", "tanh": "tanh", "asinh": "arcsinh", "acosh": "arccosh",
    "atanh": "arctanh", "abs": "abs", "conj": "conj", "floor": "floor", "ceil": "ceil",
    "is_finite": "isfinite", "max": "maximum", "min": "minimum",
}  # fmt: skip


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


def product_text(writer, eqn, x, y):
    """Return the expression of a product of matrices, a `dot_general`."""
    lhs, rhs, out = [atom.aval for atom in [*eqn.invars, *eqn.outvars]]
    orders, batch, counts = product_axes(lhs, rhs, eqn.params["dimension_numbers"])
    rows, summed, columns = counts
    preferred = eqn.params["preferred_element_type"]
    dtype = wide(preferred or np.result_type(lhs.dtype, rhs.dtype))
    left = arranged(writer, x, lhs, orders[0], dtype, (*batch, rows, summed))
    right = arranged(writer, y, rhs, orders[1], dtype, (*batch, summed, columns))
    text = f"{left} @ {right}"
    if summed >= LONG_SUM:
        said = "multiplies matrices, in blocks if sums are long"
        text = f"{writer.constant(product, 'product', said)}(np, {left}, {right})"
    if not out.shape:
        text = f"({text})[0, 0]"
    elif out.shape != (*batch, rows, columns):
        text = f"({text}).reshape({out.shape})"
    return text if dtype == out.dtype else f"({text}).astype({writer.dtype(out.dtype)})"
