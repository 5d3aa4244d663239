"""NumPy's universal functions: check, promote, broadcast, then one function of lax.

Reference: ``jax.numpy``.
"""

# Made from chapters/03_numpy.md by `make chapter`;
# edit the chapter, not this file.
# Amended in chapters/28_indexing_rest.md: where (b4d8212b).

from collections.abc import Callable
from typing import Any

from minijax import lax
from minijax.arrays.avals import typeof
from minijax.core import Array
from minijax.lax.promotion import (
    check_arraylike,
    is_settled,
    promote_dtypes,
    promote_dtypes_inexact,
    promote_shapes,
)
from minijax.operators.operands import (
    as_array,
    as_bool,
    by_kind,
    by_parts,
    chosen_by_truths,
    stretch,
)
from minijax.switches.promotion import check_dtypes, check_operands
from minijax.typing import ArrayLike


def binary(
    name, function, promote=promote_dtypes, mixed=None
) -> Callable[[ArrayLike, ArrayLike], Array]:
    """Make a NumPy function of two arrays from a function of lax.

    Args:
      name: its name in ``jax.numpy``.
      function: what to apply to the promoted operands.
      promote: how operands get their dtype, a function of `minijax.lax.promotion`.
      mixed: a function of two operands before that, which may answer, or return None.
    """

    def ufunc(x, y, /):
        if is_settled(promote, x, y):  # by far the most frequent case
            return function(x, y)
        check_operands(name, x, y)
        answer = mixed and mixed(x, y)
        return function(*promote_shapes(*promote(x, y))) if answer is None else answer

    return named(ufunc, name)


def unary(name, function, promote=promote_dtypes) -> Callable[[ArrayLike], Array]:
    """Make a NumPy function of one array from a function of lax, as `binary` does."""

    def ufunc(x, /):
        check_arraylike(name, x)
        return function(*promote(x))

    return named(ufunc, name)


def named(function, name):
    """Give a function that was made from others its name and a docstring."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""Compute {name}, element by element.

    Operands are promoted to one dtype and broadcast to one shape.
    Reference: ``jax.numpy.{name}``.
    """
    return function


add = binary("add", by_kind("b", lax.bitwise_or, lax.add))
subtract = binary("subtract", lax.sub)
multiply = binary(
    "multiply", by_kind("b", lax.bitwise_and, lax.mul), mixed=chosen_by_truths
)
divide = true_divide = binary("divide", lax.div, promote_dtypes_inexact)
negative = unary("negative", lax.neg)
maximum = binary("maximum", lax.max)
exp = unary("exp", lax.exp, promote_dtypes_inexact)
tanh = unary("tanh", lax.tanh, promote_dtypes_inexact)

bitwise_and = binary("bitwise_and", lax.bitwise_and)
bitwise_or = binary("bitwise_or", lax.bitwise_or)
bitwise_xor = binary("bitwise_xor", lax.bitwise_xor)
bitwise_not = bitwise_invert = invert = unary("bitwise_not", lax.bitwise_not)

equal = binary("equal", lax.eq)
not_equal = binary("not_equal", lax.ne)
less = binary("less", by_parts(lax.lt))
less_equal = binary("less_equal", by_parts(lax.le))
greater = binary("greater", by_parts(lax.gt))
greater_equal = binary("greater_equal", by_parts(lax.ge))


def where(
    condition: ArrayLike,
    x: ArrayLike | None = None,
    y: ArrayLike | None = None,
    /,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Array:
    """Choose, element by element, `x` where `condition` holds and `y` elsewhere.

    Without `x` and `y`, ask the method ``nonzero`` of arrays where `condition` holds.

    Args:
      condition: array of bools; numbers count as true where they are not 0.
      x, y: arrays, promoted to one dtype; all three are broadcast together.
      size, fill_value: of ``nonzero``.

    Reference: ``jax.numpy.where``.
    """
    if x is None and y is None:
        check_arraylike("where", condition)
        return as_array(condition).nonzero(size=size, fill_value=fill_value)
    check_arraylike("where", condition, x, y)
    _check_no_size(size, fill_value)
    check_dtypes("where", (x, y))
    condition, (x, y) = as_bool(condition), promote_dtypes(x, y)
    shapes = [typeof(each).shape for each in (condition, x, y)]
    larger = {*shapes} - {()}
    shape = larger.pop() if len(larger) == 1 else lax.broadcast_shapes(*shapes)
    if typeof(condition).ndim:
        condition = stretch(condition, shape)
    return lax.select(condition, stretch(x, shape), stretch(y, shape))


def _check_no_size(size, fill_value):
    """Raise if a choice between two arrays is given what belongs to ``nonzero``."""
    if size is not None or fill_value is not None:
        raise ValueError(
            "size and fill_value arguments cannot be used in three-term where function."
        )
