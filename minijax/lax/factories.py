"""How primitives are made that act on each element by itself, or fold axes.

Operands have one dtype and one number of axes; scalars, and axes of size 1, stretch.
"""

# Made from chapters/02_arrays.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Callable

import numpy as np

from minijax.arrays.array import held_as, primitive_rules
from minijax.arrays.avals import ShapedArray, is_python_scalar, typeof
from minijax.arrays.checks import (
    INEXACT,
    NUMBER,
    all_weak,
    bound,
    broadcast_strictly,
    check_axes,
    check_kind,
    check_same_dtype,
    integers,
    shared_aval,
    without,
)
from minijax.arrays.dtypes import canonicalize_dtype, is_in_force, kind_of
from minijax.core import Array, Primitive
from minijax.lax.conversion import astype
from minijax.typing import ArrayLike


def elementwise_shape(name, accepts, result_dtype):
    """Return the shape rule of an elementwise primitive."""

    def rule(*avals):
        check_kind(name, accepts, avals)
        shared = shared_aval(avals)
        if shared is not None and result_dtype(shared.dtype) is shared.dtype:
            return [shared]  # a short cut: nothing to compare, nothing to stretch
        check_same_dtype(name, avals)
        shape = broadcast_strictly(name, [aval.shape for aval in avals])
        return [ShapedArray(shape, result_dtype(avals[0].dtype), all_weak(avals))]

    rule.__qualname__ = name  # for Python's message about an unknown parameter
    return rule


def elementwise(name, accepts, compute, result_dtype=lambda dtype: dtype):
    """Make an elementwise primitive, with its first two rules.

    Args:
      name: its name.
      accepts: letters of the kinds of dtypes that it accepts.
      compute: a function of the array module and the operands' buffers, or the name
        of a function in the array module.
      result_dtype: a function from the operands' dtype to the result's.
    """
    primitive = Primitive(name)
    if isinstance(compute, str):
        compute = by_name(compute)
    primitive_rules(primitive, elementwise_shape(name, accepts, result_dtype), compute)
    return primitive


def binary(
    name, accepts, compute, result_dtype=lambda dtype: dtype
) -> tuple[Primitive, Callable[[ArrayLike, ArrayLike], Array]]:
    """Make a primitive of two operands; return it, and the function that binds it."""
    primitive = elementwise(name, accepts, compute, result_dtype)

    def function(x, y):
        [result] = primitive.bind(*unify(x, y))
        return result

    return primitive, documented(function, name)


# Which kinds of dtypes can hold a Python number.
SCALAR_FITS = {bool: "b", int: NUMBER, float: INEXACT, complex: "c"}


def by_name(name):
    """Return the evaluation by the array module's function of this name."""
    return lambda xp, *buffers: getattr(xp, name)(*buffers)


def unify(*args):
    """Give Python scalars the dtype of the arrays among `args`, where it can hold them.

    Where the others are weak arrays or complex numbers only, they stay Python numbers.
    """
    if not [x for x in args if not isinstance(x, Array) and is_python_scalar(x)]:
        return args
    leading = [typeof(x) for x in args if not is_python_scalar(x) or _is_complex(x)]
    if not leading or len(leading) == len(args):
        return args
    aval = sorted(leading, key=lambda aval: aval.weak_type)[0]
    return [_literal(x, aval) if is_python_scalar(x) else x for x in args]


def _is_complex(x):
    return typeof(x).dtype.kind == "c"


def _literal(x, aval):
    accepts = next(SCALAR_FITS[kind] for kind in SCALAR_FITS if isinstance(x, kind))
    if kind_of(aval.dtype) not in accepts or typeof(x).dtype == aval.dtype:
        return x
    if not is_in_force(aval.dtype):
        return astype(x, aval.dtype, aval.weak_type)
    literal = np.asarray(x, aval.dtype)
    return held_as(literal.item(), aval) if aval.weak_type else literal


def _into_dtype(multiply):
    def function(x, y, *, out_dtype=None):
        if out_dtype is not None:
            dtype = canonicalize_dtype(out_dtype)
            x, y = astype(x, dtype), astype(y, dtype)
        return multiply(x, y)

    return function


def documented(function, name):
    """Give a function made in a factory its name and a docstring."""
    function = _into_dtype(function) if name == "mul" else function
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Elementwise {name}. Reference: ``jax.lax.{name}``."
    return function


def unary(
    name, accepts, compute, result_dtype=lambda dtype: dtype
) -> tuple[Primitive, Callable[[ArrayLike], Array]]:
    """Make a primitive of one operand; return it, and the function that binds it."""
    primitive = elementwise(name, accepts, compute, result_dtype)
    return primitive, documented(bound(primitive), name)


def reduction(name, accepts, compute):
    """Make a primitive that folds axes; return it, and the function that binds it."""
    primitive = Primitive(name)

    def shape(x, axes):
        check_kind(name, accepts, [x])
        check_axes(name, x, axes)
        return [x.update(shape=without(x.shape, axes))]

    def function(operand, axes):
        [result] = primitive.bind(operand, axes=integers(axes))
        return result

    primitive_rules(primitive, shape, compute)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Fold the axes `axes` away. Reference: ``jax.lax.{name}``."
    return primitive, function
