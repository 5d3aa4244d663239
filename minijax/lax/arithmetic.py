"""The first primitives: arithmetic, type conversion, broadcasting, and their makers.

Operands have the same dtype and number of axes; scalars, and axes of size 1, stretch.

References: ``jax.lax``, ``jax.lax.convert_element_type``,
``jax.lax.broadcast_in_dim``.
"""

# Made from chapters/02_arrays.md by `make chapter`;
# edit the chapter, not this file.
# Amended in chapters/02_arrays_rest.md: elementwise_shape, documented (d3a030d8).
# Amended in chapters/02_arrays_rest.md: broadcast_in_dim (3e970572).
# Amended in chapters/02_arrays_rest.md: promote_dtypes (23b61196).

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.arrays.array import (
    ShapedArray,
    as_array_impl,
    common_dtype_and_weak_type,
    convert_literal,
    def_shape_and_impl,
    is_python_scalar,
    typeof,
)
from minijax.arrays.dtypes import canonicalize_dtype, dtype_kind, is_canonical_dtype
from minijax.arrays.numerics import (
    INEXACT_KINDS,
    NUMBER_DTYPE_KINDS,
    ORDERED_KINDS,
    all_weak,
    bind_unary,
    blocked_sum,
    bool_dtype_of,
    broadcast_shapes,
    broadcast_shapes_same_rank,
    canonicalize_int_tuple,
    check_axes,
    check_broadcast_dimensions,
    check_convertible,
    check_kind,
    check_same_dtype,
    convert_impl,
    literal_in_dtype,
    remove_axes,
    same_type_aval,
    warn_complex_to_real,
)
from minijax.arrays.out_sharding import with_out_sharding
from minijax.core import Array, Primitive
from minijax.typing import ArrayLike

# How primitives are made that act on each element by itself, or fold axes.


def elementwise_shape(name, accepts, result_dtype):
    """Return the shape rule of an elementwise primitive."""

    def rule(*avals):
        check_kind(name, accepts, avals)
        shared = same_type_aval(avals)
        if shared is not None and result_dtype(shared.dtype) is shared.dtype:
            return [shared]  # a short cut: nothing to compare, nothing to stretch
        check_same_dtype(name, avals)
        shape = broadcast_shapes_same_rank(name, [aval.shape for aval in avals])
        return [ShapedArray(shape, result_dtype(avals[0].dtype), all_weak(avals))]

    rule.__qualname__ = name  # for Python's message about an unknown parameter
    return rule


# Which kinds of dtypes can hold a Python number.
SCALAR_FITS = {bool: "b", int: NUMBER_DTYPE_KINDS, float: INEXACT_KINDS, complex: "c"}


def by_name(name):
    """Return the evaluation by the array module's function of this name."""
    return lambda xp, *buffers: getattr(xp, name)(*buffers)


def promote_python_scalars(*args):
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
    if dtype_kind(aval.dtype) not in accepts or typeof(x).dtype == aval.dtype:
        return x
    if not is_canonical_dtype(aval.dtype):
        return astype(x, aval.dtype, aval.weak_type)
    literal = np.asarray(x, aval.dtype)
    return convert_literal(literal.item(), aval) if aval.weak_type else literal


def def_elementwise(name, accepts, compute, result_dtype=lambda dtype: dtype):
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
    def_shape_and_impl(
        primitive, elementwise_shape(name, accepts, result_dtype), compute
    )
    return primitive


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


def def_binary(
    name, accepts, compute, result_dtype=lambda dtype: dtype
) -> tuple[Primitive, Callable[[ArrayLike, ArrayLike], Array]]:
    """Make a primitive of two operands; return it, and the function that binds it."""
    primitive = def_elementwise(name, accepts, compute, result_dtype)

    def function(x, y):
        return primitive.bind(*promote_python_scalars(x, y))

    return primitive, documented(function, name)


def def_unary(
    name, accepts, compute, result_dtype=lambda dtype: dtype
) -> tuple[Primitive, Callable[[ArrayLike], Array]]:
    """Make a primitive of one operand; return it, and the function that binds it."""
    primitive = def_elementwise(name, accepts, compute, result_dtype)
    return primitive, documented(bind_unary(primitive), name)


def def_reduction(name, accepts, compute):
    """Make a primitive that folds axes; return it, and the function that binds it."""
    primitive = Primitive(name)

    def shape(x, axes):
        check_kind(name, accepts, [x])
        check_axes(name, x, axes)
        return [x.update(shape=remove_axes(x.shape, axes))]

    def function(operand, axes):
        return primitive.bind(operand, axes=canonicalize_int_tuple(axes))

    def_shape_and_impl(primitive, shape, compute)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Fold the axes `axes` away. Reference: ``jax.lax.{name}``."
    return primitive, function


# The primitives of the simplest formulas: sums, products, tanh, comparison.

add_p, add = def_binary("add", NUMBER_DTYPE_KINDS, "add")
sub_p, sub = def_binary("sub", NUMBER_DTYPE_KINDS, "subtract")
mul_p, mul = def_binary("mul", NUMBER_DTYPE_KINDS, "multiply")


# Type conversion: the primitive that changes dtypes.

convert_element_type_p = Primitive("convert_element_type")
def_shape_and_impl(
    convert_element_type_p,
    lambda x, new_dtype, weak_type: [
        x.update(dtype=check_convertible(x.dtype, new_dtype), weak_type=weak_type)
    ],
    convert_impl,
)


# Broadcasting: the primitive that stretches arrays.

broadcast_in_dim_p = Primitive("broadcast_in_dim")


def _broadcast_shape(x, shape, broadcast_dimensions):
    check_broadcast_dimensions(x.shape, shape, broadcast_dimensions)
    return [x.update(shape=shape)]


def _broadcast(xp, x, shape, broadcast_dimensions):
    sizes = [1] * len(shape)
    for place, size in zip(broadcast_dimensions, x.shape):
        sizes[place] = size
    return xp.broadcast_to(x.reshape(sizes), shape)


def_shape_and_impl(broadcast_in_dim_p, _broadcast_shape, _broadcast)


@with_out_sharding
def broadcast_in_dim(
    operand: ArrayLike,
    shape: Sequence[int],
    broadcast_dimensions: Sequence[int],
    *,
    out_sharding: Any = None,
) -> Array:
    """Stretch `operand` to `shape`.

    Args:
      operand: an array; axis i becomes axis ``broadcast_dimensions[i]`` of the result.
      shape: the result's shape; an axis of size 1 stretches, other axes are new.
      broadcast_dimensions: different ones, one for each axis of `operand`, whose axes
        are moved into their order if they do not rise.

    Reference: ``jax.lax.broadcast_in_dim``.
    """
    if isinstance(operand, Array) and operand.ndim == len(shape) == 0:
        return operand
    places = canonicalize_int_tuple(broadcast_dimensions)
    order = sorted(range(len(places)), key=places.__getitem__)
    if order != [*range(len(places))] and len(places) == typeof(operand).ndim:
        moved: Any = operand
        operand, places = moved.transpose(order), tuple(sorted(places))
    return broadcast_in_dim_p.bind(
        operand,
        shape=canonicalize_int_tuple(shape, "Shapes"),
        broadcast_dimensions=places,
    )


def broadcast_to_rank(x: ArrayLike, rank: int) -> Array:
    """Put axes of size 1 in front, until there are `rank` axes.

    Reference: ``jax.lax.broadcast_to_rank``.
    """
    shape = typeof(x).shape
    new = rank - len(shape)
    if new > 0:
        return broadcast_in_dim(x, (1,) * new + shape, range(new, rank))
    return x if isinstance(x, Array) else as_array_impl(x)


def astype(operand: Any, new_dtype: Any, weak_type: bool = False) -> Any:
    """Convert to a dtype that is weak or not; numbers stay numbers, not operations.

    Args:
      operand: an array or a number.
      new_dtype: a canonical dtype.
      weak_type: whether the result gives way to other dtypes.
    """
    aval = typeof(operand)
    if (aval.dtype, aval.weak_type) == (new_dtype, weak_type):
        return operand
    if is_python_scalar(operand) and is_canonical_dtype(new_dtype):
        literal = literal_in_dtype(operand, aval.dtype, new_dtype, weak_type)
        # A weak literal is a Python number, to which the switch may give another dtype.
        if typeof(literal).dtype == new_dtype:
            return literal
    warn_complex_to_real(aval.dtype, new_dtype)
    return convert_element_type_p.bind(
        operand, new_dtype=new_dtype, weak_type=bool(weak_type)
    )


def promote_shapes(*args) -> list:
    """Give `args` one rank, by new leading axes of size 1; scalars stay scalars."""
    shapes = [typeof(arg).shape for arg in args]
    if len({len(shape) for shape in shapes if shape}) < 2:
        return [*args]
    rank = len(broadcast_shapes(*shapes))
    return [
        broadcast_to_rank(arg, rank) if 0 < len(shape) < rank else arg
        for arg, shape in zip(args, shapes)
    ]


def promote_dtypes(*args) -> list:
    """Give `args` their common dtype; what is alone stays as it is."""
    dtype, weak_type = common_dtype_and_weak_type(*args)
    if len(args) == 1:
        weak_type = typeof(*args).weak_type
    return [astype(arg, dtype, weak_type) for arg in args]


tanh_p, tanh = def_unary("tanh", INEXACT_KINDS, "tanh")
lt_p, lt = def_binary("lt", ORDERED_KINDS, "less", bool_dtype_of)
reduce_sum_p, reduce_sum = def_reduction("reduce_sum", NUMBER_DTYPE_KINDS, blocked_sum)
