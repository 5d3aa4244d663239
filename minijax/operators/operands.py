"""Operands of NumPy's functions: their kinds, literals like them, stretched arrays.

Reference: ``jax._src.numpy.util``.
"""

# Made from chapters/03_numpy_ground.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax import lax
from minijax.arrays.array import asarray_impl
from minijax.arrays.avals import typeof
from minijax.arrays.dtypes import kind_of
from minijax.core import Array, current_trace
from minijax.lax.broadcasting import promote_shapes
from minijax.lax.conversion import astype as as_type


def kind(x):
    """Return the kind of an array's dtype: one of ``b i u f c``."""
    return kind_of(typeof(x).dtype).replace("h", "f")


def by_kind(kinds, function, otherwise):
    """Return a function that calls `function` for arrays of `kinds`, or `otherwise`."""
    letters = kinds.replace("f", "fh")

    def chosen(x, *args):
        right = function if kind_of(typeof(x).dtype) in letters else otherwise
        return right(x, *args)

    return chosen


def by_parts(compare):
    """Return a comparison that orders complex numbers by real, then imaginary part."""

    def lexical(x, y):
        reals, imags = (lax.real(x), lax.real(y)), (lax.imag(x), lax.imag(y))
        return lax.select(lax.eq(*reals), compare(*imags), compare(*reals))

    return by_kind("c", lexical, compare)


def stretch(x, shape):
    """Broadcast an array or a scalar literal to `shape`.

    Raises:
      ValueError: if an axis has another size than 1 and the wanted one.
    """
    aval = typeof(x)
    if aval.shape == shape:
        return x
    new = len(shape) - aval.ndim
    if new < 0:
        raise ValueError(
            "Cannot broadcast to shape with fewer dimensions: "
            f"arr_shape={aval.shape} shape={shape}"
        )
    if any(n not in (1, m) for n, m in zip(aval.shape, shape[new:])):
        raise ValueError(
            f"Incompatible types for broadcasting: input type={aval} and requested "
            f"type={aval.update(shape=shape)}"
        )
    return lax.broadcast_in_dim(x, shape, tuple(range(new, len(shape))))


def constant(x, value):
    """Return `value` as a literal of the type of `x`, weak if that is weak."""
    aval = typeof(x)
    return as_type(value, aval.dtype, aval.weak_type)


def as_bool(x):
    """Return where `x` is not zero."""
    if kind(x) == "b":
        return x
    zero = as_type(0, typeof(x).dtype)
    return lax.ne(x, zero if np.ndim(x) else constant(x, 0))


def as_array(x):
    """Return a number or a NumPy array as an array; an array or tracer as it is.

    A trace that writes a program down may hold numbers as literals of the program.
    """
    if isinstance(x, Array):
        return x
    stage = None if np.ndim(x) else _stage_of(current_trace())
    return stage(x) if stage else asarray_impl(x)


def _stage_of(trace):
    """Return `stage_value` of the nearest trace around that has it, or None."""
    while trace is not None and not hasattr(trace, "stage_value"):
        trace = trace.parent
    return trace and trace.stage_value


def chosen_by_truths(x, y):
    """Return a product with truths: the float where they hold, and 0 elsewhere.

    None if neither operand is an array of bools, if the other one has no floats, or if
    a program is written down, which keeps the product.
    """
    for truths, other in ((x, y), (y, x)):
        if is_array_of_bools(truths) and kind(other) in "fc" and not is_staged():
            truths, other = promote_shapes(truths, as_array(other))
            shape = lax.broadcast_shapes(typeof(truths).shape, typeof(other).shape)
            cases = stretch(other, shape), stretch(constant(other, 0), shape)
            return lax.select(stretch(truths, shape), *cases)
    return None


def is_array_of_bools(x):
    """Return whether `x` holds truths, and is not one that a program knows."""
    return isinstance(x, (Array, np.ndarray)) and kind(x) == "b"


def is_staged():
    """Return whether what is done now ends in a program that is written down."""
    trace = current_trace()
    while trace is not None and not trace.stages:
        trace = trace.parent
    return trace is not None
