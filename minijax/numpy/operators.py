"""What Python asks of arrays, and the methods of arrays.

Importing this module fills the table `minijax.core.tracer_methods`.

Importing this module fills the table `minijax.core.tracer_methods`.

Reference: ``jax.Array``.
"""

# Made from chapters/03_numpy_rest.md by `make chapter`;
# edit the chapter, not this file.

from typing import Any

import numpy as np

from minijax import lax
from minijax.arrays.dtypes import check_dtype, dtype_kind, dtype_name
from minijax.arrays.transfer import device_put_leaf
from minijax.core import Tracer
from minijax.errors import ConcretizationTypeError, TracerIntegerConversionError
from minijax.lax.reductions import check_arraylike
from minijax.numpy.array_creation import astype, copy, diagonal
from minijax.numpy.array_methods import (
    concrete_array_or_error,
    equal,
    register_methods,
    register_operators,
)
from minijax.numpy.joining import repeat
from minijax.numpy.reductions import REDUCTION_METHODS, STATISTICS
from minijax.numpy.shapes import (
    matrix_transpose,
    ravel,
    reshape,
    squeeze,
    swapaxes,
    transpose,
)
from minijax.numpy.tensor_contractions import dot, matmul
from minijax.numpy.ufuncs import (
    absolute,
    around,
    clip,
    conjugate,
    floor_divide,
    floor_divmod,
    imag,
    left_shift,
    positive,
    power,
    real,
    remainder,
    right_shift,
)

# What Python asks of arrays: numbers, an index, membership, rounding.


def check_scalar_conversion(x):
    """Raise a TypeError for an array with axes."""
    if x.ndim:
        raise TypeError(
            "Only scalar arrays can be converted to Python scalars; got "
            f"arr.ndim={x.ndim}"
        )


def as_index(x):
    """Return an integer array without axes as an ``int``, for ``range`` and lists."""
    if x.ndim or dtype_kind(x.dtype) not in "iu":
        raise TypeError(
            "Only integer scalar arrays can be converted to a scalar index; got "
            f"{x.aval}"
        )
    what = "The __index__() method was called on traced array (as index or size)"
    return int(
        np.asarray(concrete_array_or_error(x, TracerIntegerConversionError, what))
    )


ABSTRACT = "Abstract tracer value encountered where concrete value is expected"


def concrete_numpy(x: Any, what: str) -> np.ndarray:
    """Return an array as NumPy's; a tracer without numbers is refused."""
    what = f"{ABSTRACT}, in {what}"
    return np.asarray(concrete_array_or_error(x, ConcretizationTypeError, what))


def as_int(x):
    """Return an array without axes as an ``int``, cut off towards zero."""
    check_scalar_conversion(x)
    way_out = "int(); try using `x.astype(int)` inside the program"
    return int(concrete_numpy(x, way_out).item())


def as_number(x, kind):
    """Return an array without axes as a Python number, for one of the class `kind`.

    A tracer is refused even if its numbers are known: the number would silently lose
    what the tracer carries, such as a derivative.
    """
    check_scalar_conversion(x)
    way_out = f"Try using `x.astype({kind.__name__})` inside the program instead."
    raise_concretization_error(x, "a float or complex number of Python", way_out)
    return np.asarray(x).item()


def raise_concretization_error(x, what, way_out):
    """Raise a ConcretizationTypeError if `what` would lose what a tracer carries."""
    if isinstance(x, Tracer):
        provenance = getattr(x, "provenance", str)()
        raise ConcretizationTypeError(
            f"{ABSTRACT}: {what} would lose what {x!r} carries, which stands for "
            f"{x.aval}. {way_out} {provenance}".rstrip()
        )


def as_float(x):
    """Return an array without axes as a ``float``."""
    return float(as_number(x, float))


def as_complex(x):
    """Return an array without axes as a ``complex``."""
    return complex(as_number(x, complex))


register_methods({
    "__index__": as_index,
    "__int__": as_int,
    "__float__": as_float,
    "__complex__": as_complex,
})  # fmt: skip


def contains(x, item):
    """Return whether an element of the vector `x` is equal to the number `item`."""
    check_arraylike("in", x, item)
    if x.ndim != 1 or np.ndim(item):
        raise ValueError(
            f"`in` looks for a number in a vector; got shape {np.shape(item)} in "
            f"shape {x.shape}. (x == y).any() compares all elements."
        )
    return lax.reduce_or(equal(x, item), (0,))


def refuse_assignment(x, index, value):
    """Raise the error for ``x[index] = value``."""
    raise TypeError(
        "Arrays are immutable and do not support in-place item assignment. Instead of "
        "x[idx] = y, use x = x.at[idx].set(y), which makes the new array."
    )


def round_to_decimals(x, ndigits=None):
    """Round to decimals, or without a number of them to integers."""
    result = around(x, 0 if ndigits is None else ndigits)
    return astype(result, int) if ndigits is None else result


register_methods({
    "__contains__": contains,
    "__setitem__": refuse_assignment,
    "__round__": round_to_decimals,
})  # fmt: skip


# The methods of arrays: ``x.sum()`` is ``jnp.sum(x)``; operators by name.

register_operators({
    "floordiv": ("//", floor_divide),
    "mod": ("%", remainder),
    "divmod": ("divmod", floor_divmod),
    "pow": ("**", power),
    "matmul": ("@", matmul),
    "lshift": ("<<", left_shift),
    "rshift": (">>", right_shift),
})  # fmt: skip
register_methods({"__pos__": positive, "__abs__": absolute})


register_methods(REDUCTION_METHODS | STATISTICS)
register_methods({
    "clip": clip,
    "clone": copy,
    "conj": conjugate,
    "conjugate": conjugate,
    "copy": copy,
    "diagonal": diagonal,
    "dot": dot,
    "flatten": ravel,
    "ravel": ravel,
    "repeat": repeat,
    "round": around,
    "squeeze": squeeze,
    "swapaxes": swapaxes,
    "T": property(transpose),
    "mT": property(matrix_transpose),
    "real": property(real),
    "imag": property(imag),
})  # fmt: skip


def refuse_flat(_):
    """Refuse NumPy's ``x.flat``, through which an array is written."""
    raise NotImplementedError(
        "Arrays have no flat iterator. Use x.ravel(), and x.ravel().at[i].set(y)."
    )


register_methods({"flat": property(refuse_flat)})


def reshape_method(x, *shape, order="C", out_sharding=None):
    """Give the elements a new shape: ``x.reshape(2, 3)`` or ``x.reshape((2, 3))``."""
    shape = shape[0] if len(shape) == 1 else shape
    return reshape(x, shape, order, out_sharding=out_sharding)


def transpose_method(x, *axes):
    """Reorder the axes: ``x.transpose(1, 0)`` or ``x.transpose((1, 0))``."""
    if len(axes) == 1 and (axes[0] is None or np.iterable(axes[0])):
        [axes] = axes
    return transpose(x, axes or None)


def astype_method(x, dtype, copy=False, device=None):
    """Convert to another dtype; None stands for the default float."""
    return device_put_leaf(astype(x, dtype, copy=copy), device)


def to_device(x, device, *, stream=None):
    """Return the array on another device; there are no streams to wait for."""
    if stream is not None:
        raise NotImplementedError("stream argument of array.to_device()")
    return device_put_leaf(x, device)


def item(x, *place):
    """Return one element as a Python number; the only one, or the one at `place`.

    Args:
      x: array; as a tracer, a ConcretizationTypeError is raised.
      *place: its index, or its position in row-major order.
    """
    return concrete_numpy(x, "item()").item(*place)


def tolist(x):
    """Return the elements as numbers in nested lists."""
    raise_concretization_error(x, "a list", "list(x) has tracers in it.")
    return concrete_numpy(x, "tolist()").tolist()


def tobytes(x, order="C"):
    """Return the bytes of the elements in row-major order."""
    raise_concretization_error(
        x, "the bytes", "jax.debug.callback is given the numbers."
    )
    return concrete_numpy(x, "tobytes()").tobytes(order)


def unsafe_buffer_pointer(x):
    """Return the address of the first element, in the memory of its device."""
    numbers = concrete_numpy(x, "unsafe_buffer_pointer()")
    return getattr(x._buffer, "address", numbers.ctypes.data)


def check_width(aval, dtype):
    """Raise a ValueError if the last axis does not divide into elements of a dtype."""
    if not aval.shape and aval.dtype.itemsize != dtype.itemsize:
        raise ValueError(
            "view() of a 0d array is only supported if the itemsize is unchanged, not "
            f"from {dtype_name(aval.dtype)} to {dtype_name(dtype)}."
        )
    if aval.shape and aval.shape[-1] * aval.dtype.itemsize % dtype.itemsize:
        raise ValueError(
            "When changing to a larger dtype, its size must be a divisor of the total "
            "size in bytes of the last axis of the array; "
            f"{dtype_name(dtype)} does not fit {aval}."
        )


def bytes_or_parts(x):
    """Return bools as bytes, and complex numbers as their parts along the last axis."""
    if dtype_kind(x.dtype) == "b":
        return lax.convert_element_type(x, np.dtype("uint8"))
    if dtype_kind(x.dtype) != "c":
        return x
    parts = [lax.expand_dims(part, (x.ndim,)) for part in (real(x), imag(x))]
    pairs, last = lax.concatenate(parts, x.ndim), x.shape[-1] if x.ndim else 1
    return reshape(pairs, (*x.shape[:-1], 2 * last))


def with_bits(bits, dtype, shape):
    """Return numbers of a dtype and shape that have these bits, which are numbers."""
    plain = {"bool": "uint8", "complex64": "float32", "complex128": "float64"}
    plain = np.dtype(plain.get(dtype.name, dtype))
    ratio = plain.itemsize // bits.dtype.itemsize
    if ratio > 1:
        bits = reshape(bits, (*bits.shape[:-1], bits.shape[-1] // ratio, ratio))
    numbers = lax.bitcast_convert_type(bits, plain)
    if dtype.kind != "c":
        return lax.convert_element_type(reshape(numbers, shape), dtype)
    pairs = reshape(numbers, (*shape, 2))
    return lax.complex(pairs[..., 0], pairs[..., 1])


def view(x, dtype=None, type=None):
    """Read the bits of the elements as another dtype; the last axis takes the change.

    Args:
      x: array of n axes.
      dtype: one of the same width, or of another, if the last axis can be divided.
      type: not supported, as in JAX.

    Raises:
      ValueError: if the last axis cannot be divided, or is not there.
    """
    if type is not None:
        raise NotImplementedError("`type` argument of array.view() is not supported.")
    dtype = x.dtype if dtype is None else check_dtype(dtype, "view")
    if dtype == x.dtype:
        return x
    check_width(x.aval, dtype)
    last = [size * x.dtype.itemsize // dtype.itemsize for size in x.shape[-1:]]
    return with_bits(bytes_or_parts(x), dtype, (*x.shape[:-1], *last))


def byteswap(x):
    """Turn around the bytes of each element; of complex ones, of both parts."""
    if x.dtype.kind == "c":
        return lax.complex(byteswap(lax.real(x)), byteswap(lax.imag(x)))
    if x.dtype.itemsize == 1:
        return copy(x)
    return lax.bitcast_convert_type(
        lax.rev(lax.bitcast_convert_type(x, "uint8"), [x.ndim]), x.dtype
    )


def no_scatter(x):
    """Raise the error for ``x.at[index].set(y)``."""
    raise NotImplementedError(
        "x.at[index].set(y) needs the primitive scatter, which arrives with the "
        "chapter on gather and scatter; until then jnp.where(mask, y, x) makes the new "
        "array."
    )


at = property(no_scatter)


register_methods({
    "reshape": reshape_method,
    "transpose": transpose_method,
    "astype": astype_method,
    "to_device": to_device,
    "item": item,
    "tolist": tolist,
    "tobytes": tobytes,
    "unsafe_buffer_pointer": unsafe_buffer_pointer,
    "view": view,
    "byteswap": byteswap,
    "at": at,
})  # fmt: skip
