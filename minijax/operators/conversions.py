"""What Python asks of arrays: numbers, an index, membership, rounding.

Importing this module fills the table `minijax.core.methods`.

Reference: ``jax.Array``.
"""

# Made from chapters/03_numpy_rest.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax import lax
from minijax.core import Tracer
from minijax.errors import ConcretizationTypeError, TracerIntegerConversionError
from minijax.lax.promotion import check_arraylike
from minijax.numpy.arithmetic import around
from minijax.numpy.creation import astype
from minijax.numpy.ufuncs import equal
from minijax.operators.syntax import concrete, register


def check_scalar(x):
    """Raise a TypeError for an array with axes."""
    if x.ndim:
        raise TypeError(
            "Only scalar arrays can be converted to Python scalars; got "
            f"arr.ndim={x.ndim}"
        )


def as_index(x):
    """Return an integer array without axes as an ``int``, for ``range`` and lists."""
    if x.ndim or x.dtype.kind not in "iu":
        raise TypeError(
            "Only integer scalar arrays can be converted to a scalar index; got "
            f"{x.aval}"
        )
    what = "The __index__() method was called on traced array (as index or size)"
    return int(np.asarray(concrete(x, TracerIntegerConversionError, what)))


ABSTRACT = "Abstract tracer value encountered where concrete value is expected"


def numbers_of(x, what):
    """Return an array as NumPy's; a tracer without numbers is refused."""
    what = f"{ABSTRACT}, in {what}"
    return np.asarray(concrete(x, ConcretizationTypeError, what))


def as_int(x):
    """Return an array without axes as an ``int``, cut off towards zero."""
    check_scalar(x)
    return int(numbers_of(x, "int()").item())


def as_number(x):
    """Return an array without axes as a Python number.

    A tracer is refused even if its numbers are known: the number would silently lose
    what the tracer carries, such as a derivative.
    """
    check_scalar(x)
    way_out = "x.astype(float) converts inside the program."
    refuse_tracer(x, "a float or complex number of Python", way_out)
    return np.asarray(x).item()


def refuse_tracer(x, what, way_out):
    """Raise a ConcretizationTypeError if `what` would lose what a tracer carries."""
    if isinstance(x, Tracer):
        provenance = getattr(x, "provenance", str)()
        raise ConcretizationTypeError(
            f"{ABSTRACT}: {what} would lose what {x!r} carries, which stands for "
            f"{x.aval}. {way_out} {provenance}".rstrip()
        )


def as_float(x):
    """Return an array without axes as a ``float``."""
    return float(as_number(x))


def as_complex(x):
    """Return an array without axes as a ``complex``."""
    return complex(as_number(x))


register({
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


def rounded(x, ndigits=None):
    """Round to decimals, or without a number of them to integers."""
    result = around(x, 0 if ndigits is None else ndigits)
    return astype(result, int) if ndigits is None else result


register({
    "__contains__": contains,
    "__setitem__": refuse_assignment,
    "__round__": rounded,
})  # fmt: skip
