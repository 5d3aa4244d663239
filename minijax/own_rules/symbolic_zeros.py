"""Zero tangents as rules of users see them: written out, or as an object.

Reference: ``jax.custom_derivatives.SymbolicZero``, ``CustomVJPPrimal``.
"""

# Made from chapters/11_own_rules_ground.md by `make chapter`;
# edit the chapter, not this file.

import dataclasses
from typing import Any

from minijax.arrays.avals import ShapedArray, typeof
from minijax.arrays.dtypes import float0, tangent_dtype
from minijax.operators.operands import as_array
from minijax.pytrees.call_checks import zeros_of_tangent
from minijax.pytrees.functions import tree_map


class SymbolicZero:
    """A tangent or cotangent that is zero and is not written out.

    Args:
      aval: its `ShapedArray`.

    Reference: ``jax.custom_derivatives.SymbolicZero``.
    """

    def __init__(self, aval):
        self.aval = aval

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    ndim = property(lambda self: self.aval.ndim)
    size = property(lambda self: self.aval.size)

    @staticmethod
    def from_primal_value(val):
        """Return the zero tangent of a primal."""
        aval = typeof(val)
        dtype = tangent_dtype(aval.dtype)
        return SymbolicZero(ShapedArray(aval.shape, dtype, aval.weak_type))

    def __repr__(self):
        return f"SymbolicZero({self.aval})"


@dataclasses.dataclass(slots=True)
class CustomVJPPrimal:
    """An argument of a forward rule that sees symbolic zeros.

    Attributes:
      value: the argument.
      perturbed: whether a derivative is taken with respect to it.

    Reference: ``jax.custom_derivatives.CustomVJPPrimal``.
    """

    value: Any
    perturbed: bool


def custom_vjp_primal_tree_values(tree: Any) -> Any:
    """Return a tree of `CustomVJPPrimal` with the values in their places.

    Raises:
      TypeError: for a leaf of another type.

    Reference: ``jax.custom_derivatives.custom_vjp_primal_tree_values``.
    """
    return tree_map(_value, tree)


def _value(leaf):
    if type(leaf) is not CustomVJPPrimal:
        raise TypeError(f"unexpected leaf type {type(leaf)}")
    return leaf.value


def zero_from_primal(val: Any, symbolic_zeros: bool = False) -> Any:
    """Return the zero tangent of a value, as an array or as a `SymbolicZero`.

    Reference: ``jax.custom_derivatives.zero_from_primal``.
    """
    aval = typeof(val)
    return written_out(None, aval, symbolic_zeros)


def tangent_aval(aval):
    """Return the abstract value of the tangents of a primal."""
    return aval.update(dtype=tangent_dtype(aval.dtype))


def written_out(tangent, aval, symbolic):
    """Return a tangent, or a cotangent, as a user's rule gets it.

    Args:
      tangent: an array, or None for zero.
      aval: the abstract value of the primal.
      symbolic: whether the rule asked for symbolic zeros.
    """
    if tangent is not None:
        return as_array(tangent)
    return SymbolicZero(tangent_aval(aval)) if symbolic else zeros_of_tangent(aval)


def none_if_zero(tangent):
    """Return None for what a rule returns in place of zeros, else the tangent."""
    is_zero = isinstance(tangent, SymbolicZero)
    return None if is_zero or getattr(tangent, "dtype", None) == float0 else tangent


def type_of_tangent(x):
    """Return the abstract value of what a rule returns as a tangent."""
    if isinstance(x, SymbolicZero):
        return x.aval
    if getattr(x, "dtype", None) == float0:
        return ShapedArray(x.shape, float0)
    return typeof(x)
