# Made from chapters/02_arrays.md by `make chapter`;
# edit the chapter, not this file.
"""How primitives are made that act on each element by itself.

Operands have one dtype and one number of axes; scalars, and axes of size 1, stretch.
"""

import builtins
from collections.abc import Callable

import numpy as np

from minijax.arrays.array import primitive_rules
from minijax.arrays.avals import ShapedArray, is_python_scalar, typeof
from minijax.arrays.dtypes import kind_of
from minijax.core import Array, Primitive
from minijax.typing import ArrayLike

# Kinds of dtypes, by letter: "h" is a half-precision float, "f" a wider one.
FLOAT, INEXACT, INT, REAL, NUMBER = "hf", "hfc", "iu", "iuhf", "iuhfc"
BITS, ORDERED, ANY = "biu", "biuhf", "biuhfc"
KIND_NAMES = {
    "b": "bool", "i": "integer", "u": "unsigned integer", "h": "half-precision float",
    "f": "floating", "c": "complex",
}  # fmt: skip


def listing(items):
    """Return `items` in a row, for messages."""
    return ", ".join(map(str, items))


def check_same_dtype(name, avals):
    """Raise a TypeError unless all dtypes are the same."""
    if len({aval.dtype for aval in avals}) > 1:
        raise TypeError(
            f"lax.{name} requires arguments to have the same dtypes, got "
            f"{listing(aval.dtype for aval in avals)}. Functions of minijax.numpy "
            "convert them."
        )


def check_kind(name, accepts, avals):
    """Raise a TypeError unless all dtypes are of the kinds that `name` accepts."""
    for position, aval in enumerate(avals):
        if kind_of(aval.dtype) not in accepts:
            kinds = listing(KIND_NAMES[kind] for kind in accepts)
            raise TypeError(
                f"{name} does not accept dtype {aval.dtype} at position {position}. "
                f"Accepted kinds of dtypes: {kinds}."
            )


def broadcast_strictly(name, shapes):
    """Return the shape that operands of equal rank have together.

    Raises:
      TypeError: if ranks differ (a scalar goes with any), or sizes do and none is 1.
    """
    ranked = [shape for shape in shapes if shape]
    if len({*ranked}) <= 1:
        return ranked[0] if ranked else ()
    if len({*map(len, ranked)}) > 1:
        raise TypeError(
            f"{name}: arrays must have the same number of dimensions, got shapes "
            f"{listing(shapes)}. Functions of minijax.numpy line them up."
        )
    sizes = [{*column} - {1} or {1} for column in zip(*ranked)]
    if builtins.max(map(len, sizes)) > 1:
        raise TypeError(
            f"{name} got incompatible shapes for broadcasting: {listing(shapes)}."
        )
    return tuple(size for [size] in sizes)


def all_weak(avals):
    """Return whether every dtype among `avals` is weak."""
    return all(aval.weak_type for aval in avals)


def elementwise_shape(name, accepts, result_dtype):
    """Return the shape rule of an elementwise primitive."""

    def rule(*avals, **params):
        check_kind(name, accepts, avals)
        check_same_dtype(name, avals)
        shape = broadcast_strictly(name, [aval.shape for aval in avals])
        return [ShapedArray(shape, result_dtype(avals[0].dtype), all_weak(avals))]

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


def by_name(name):
    """Return the evaluation by the array module's function of this name."""
    return lambda xp, *buffers: getattr(xp, name)(*buffers)


# Which kinds of dtypes can hold a number of Python.
SCALAR_FITS = {bool: "b", int: NUMBER, float: INEXACT, complex: "c"}


def unify(*args):
    """Give Python scalars the dtype of the arrays among `args`, where it can hold them.

    Beside weak arrays and complex numbers alone they stay numbers of Python.
    """
    if not any(map(is_python_scalar, args)):
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
    literal = np.asarray(x, aval.dtype)
    return literal.item() if aval.weak_type else literal


def binary(
    name, accepts, compute, result_dtype=lambda dtype: dtype
) -> tuple[Primitive, Callable[[ArrayLike, ArrayLike], Array]]:
    """Make a primitive of two operands; return it, and the function that binds it."""
    primitive = elementwise(name, accepts, compute, result_dtype)

    def function(x, y):
        [result] = primitive.bind(*unify(x, y))
        return result

    return primitive, documented(function, name)


def unary(
    name, accepts, compute, result_dtype=lambda dtype: dtype
) -> tuple[Primitive, Callable[[ArrayLike], Array]]:
    """Make a primitive of one operand; return it, and the function that binds it."""
    primitive = elementwise(name, accepts, compute, result_dtype)

    def function(x):
        [result] = primitive.bind(x)
        return result

    return primitive, documented(function, name)


def documented(function, name):
    """Give a function made in a factory its name and a docstring."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Elementwise {name}. Reference: ``jax.lax.{name}``."
    return function


def to_bool(dtype):
    """Return the dtype of comparisons."""
    return np.dtype(bool)


def to_real(dtype):
    """Return the dtype of the parts of a complex number, or a real `dtype` itself."""
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


def to_complex(dtype):
    """Return the dtype of complex numbers with parts of `dtype`."""
    return np.dtype(f"c{dtype.itemsize * 2}")
