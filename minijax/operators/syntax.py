# Made from chapters/03_numpy.md by `make chapter`;
# edit the chapter, not this file.
"""What Python's syntax means for arrays: operators, conversions, indexing.

Importing this module fills the table `minijax.core.methods`: concrete arrays and
tracers alike have what is defined here.

Reference: ``jax.Array``.
"""

import builtins

import numpy as np

from minijax import lax
from minijax.core import Tracer, methods
from minijax.errors import (
    ConcretizationTypeError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
)
from minijax.lax.promotion import is_arraylike
from minijax.numpy.arithmetic import (
    around,
    floor_divide,
    floor_divmod,
    power,
    remainder,
)
from minijax.numpy.creation import astype
from minijax.numpy.products import matmul
from minijax.numpy.ufuncs import (
    absolute,
    add,
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    divide,
    equal,
    greater,
    greater_equal,
    left_shift,
    less,
    less_equal,
    multiply,
    negative,
    not_equal,
    positive,
    right_shift,
    subtract,
)
from minijax.operators.indexing import getitem, known_value

ARITHMETIC = {
    "add": ("+", add),
    "sub": ("-", subtract),
    "mul": ("*", multiply),
    "truediv": ("/", divide),
    "floordiv": ("//", floor_divide),
    "mod": ("%", remainder),
    "divmod": ("divmod", floor_divmod),
    "pow": ("**", power),
    "matmul": ("@", matmul),
    "and": ("&", bitwise_and),
    "or": ("|", bitwise_or),
    "xor": ("^", bitwise_xor),
    "lshift": ("<<", left_shift),
    "rshift": (">>", right_shift),
}

COMPARISONS = {
    "eq": ("==", equal),
    "ne": ("!=", not_equal),
    "lt": ("<", less),
    "le": ("<=", less_equal),
    "gt": (">", greater),
    "ge": (">=", greater_equal),
}

UNARY = {"neg": negative, "pos": positive, "abs": absolute, "invert": bitwise_not}


def binary_operator(symbol, function, reflected=False):
    """Return the method behind an operator with two operands.

    It returns NotImplemented for an operand that is no array, so that Python asks the
    operand; a container of Python is refused, since it would never compare as an array.
    """

    def operator(self, other):
        if isinstance(other, (list, tuple, set, dict)):
            raise TypeError(
                f"unsupported operand types for {symbol}: an array and a "
                f"{type(other).__name__}; make it an array with jnp.array."
            )
        if not is_arraylike(other):
            return NotImplemented
        return function(other, self) if reflected else function(self, other)

    return operator


def register(functions):
    """Make functions methods of arrays, under the names that they are given."""
    for name, function in functions.items():
        methods[name] = function


register({
    f"__{name}__": binary_operator(symbol, function)
    for name, (symbol, function) in (ARITHMETIC | COMPARISONS).items()
})  # fmt: skip
register({
    f"__r{name}__": binary_operator(symbol, function, reflected=True)
    for name, (symbol, function) in ARITHMETIC.items()
})  # fmt: skip
register({f"__{name}__": function for name, function in UNARY.items()})


def concrete(x, error, what):
    """Return the array with the numbers of `x`, which a tracer may have.

    Args:
      x: an array or a tracer.
      error: the class of error to raise for a tracer without numbers.
      what: what Python wanted, for the message.
    """
    value = known_value(x)
    if value is None:
        provenance = getattr(x, "provenance", str)()
        message = f"{what} needs the numbers of {x!r}, which stands for {x.aval} and "
        raise error(f"{message}has none while it is traced. {provenance}".rstrip())
    return value


def check_scalar(x):
    """Raise a TypeError for an array with axes."""
    if x.ndim:
        raise TypeError(
            "Only scalar arrays can be converted to Python scalars; got "
            f"arr.ndim={x.ndim}"
        )


def truth(x):
    """Return the truth of an array with one element, for ``if`` and ``and``."""
    if x.size != 1:
        raise ValueError(
            f"The truth value of an array with shape {x.shape} is ambiguous. Use "
            "x.any() or x.all(), or x.size > 0."
        )
    what = "A decision by if, while, and, or, not (jnp.where chooses in the program)"
    return builtins.bool(np.asarray(concrete(x, TracerBoolConversionError, what)))


def as_index(x):
    """Return an integer array without axes as an ``int``, for ``range`` and lists."""
    if x.ndim or x.dtype.kind not in "iu":
        raise TypeError(
            "Only integer scalar arrays can be converted to a scalar index; got "
            f"{x.aval}"
        )
    what = "An index or a size"
    return int(np.asarray(concrete(x, TracerIntegerConversionError, what)))


def as_int(x):
    """Return an array without axes as an ``int``, cut off towards zero."""
    check_scalar(x)
    return int(np.asarray(concrete(x, ConcretizationTypeError, "int()")).item())


def as_number(x):
    """Return an array without axes as a number of Python.

    A tracer is refused even if its numbers are known: the number would silently lose
    what the tracer carries, such as a derivative.
    """
    check_scalar(x)
    if isinstance(x, Tracer):
        provenance = getattr(x, "provenance", str)()
        raise ConcretizationTypeError(
            f"A float or complex number of Python would lose what {x!r} carries, which "
            f"stands for {x.aval}. x.astype(float) converts inside the program. "
            f"{provenance}".rstrip()
        )
    return np.asarray(x).item()


def as_float(x):
    """Return an array without axes as a ``float``."""
    return float(as_number(x))


def as_complex(x):
    """Return an array without axes as a ``complex``."""
    return complex(as_number(x))


register({
    "__bool__": truth,
    "__index__": as_index,
    "__int__": as_int,
    "__float__": as_float,
    "__complex__": as_complex,
})  # fmt: skip


def length(x):
    """Return the size of the first axis."""
    if not x.ndim:
        raise TypeError("len() of unsized object")
    return x.shape[0]


def iterate(x):
    """Return an iterator over the slices along the first axis."""
    if not x.ndim:
        raise TypeError("iteration over a 0-d array")
    return (x[place] for place in range(x.shape[0]))


def contains(x, item):
    """Return whether an element of `x` is equal to `item`."""
    return lax.reduce_or(equal(x, item), range(x.ndim))


def refuse_assignment(x, index, value):
    """Raise the error for ``x[index] = value``."""
    raise TypeError(
        "Arrays are immutable and do not support in-place item assignment. Instead of "
        "x[idx] = y, use x = x.at[idx].set(y), which arrives with chapter 27; until "
        "then jnp.where(mask, y, x) makes the new array."
    )


def rounded(x, ndigits=None):
    """Round to decimals, or without a number of them to integers."""
    result = around(x, 0 if ndigits is None else ndigits)
    return astype(result, int) if ndigits is None else result


register({
    "__len__": length,
    "__iter__": iterate,
    "__contains__": contains,
    "__getitem__": getitem,
    "__setitem__": refuse_assignment,
    "__round__": rounded,
})  # fmt: skip
