"""What Python's syntax means for arrays: brackets, operators, decisions.

Importing this module fills the table `minijax.core.methods`: concrete arrays and
tracers alike have what is defined here.

Reference: ``jax.Array``.
"""

# Made from chapters/03_numpy.md by `make chapter`;
# edit the chapter, not this file.

import builtins

import numpy as np

from minijax.arrays.interchange import promised
from minijax.core import methods
from minijax.errors import TracerBoolConversionError, present
from minijax.lax.promotion import is_arraylike
from minijax.numpy.ufuncs import (
    add,
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    divide,
    equal,
    greater,
    greater_equal,
    less,
    less_equal,
    multiply,
    negative,
    not_equal,
    subtract,
)
from minijax.operators.entries import known_value
from minijax.operators.indexing import getitem


def register(functions):
    """Make functions methods of arrays, under the names that they are given."""
    for name, function in functions.items():
        methods[name] = function


register({"__getitem__": getitem})


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


register({"__len__": length, "__iter__": iterate})


ARITHMETIC = {
    "add": ("+", add),
    "sub": ("-", subtract),
    "mul": ("*", multiply),
    "truediv": ("/", divide),
    "and": ("&", bitwise_and),
    "or": ("|", bitwise_or),
    "xor": ("^", bitwise_xor),
}
COMPARISONS = {
    "eq": ("==", equal),
    "ne": ("!=", not_equal),
    "lt": ("<", less),
    "le": ("<=", less_equal),
    "gt": (">", greater),
    "ge": (">=", greater_equal),
}


def binary_operator(symbol, function, reflected=False):
    """Return the method behind an operator with two operands.

    It returns NotImplemented for an operand that is no array, and promises none by
    ``__jax_array__``, so that Python asks the operand; a Python container is refused,
    since it would never compare as an array. Classes of a user's that are derived from
    these containers, such as named tuples, may have operators of their own.
    """

    def operator(self, other):
        if type(other) is not type(self):
            if type(other) in (list, tuple, set, dict):
                raise TypeError(
                    f"unsupported operand types for {symbol}: an array and a "
                    f"{type(other).__name__}; make it an array with jnp.array."
                )
            other = promised(other)
            if not is_arraylike(other):
                return NotImplemented
        try:
            return function(other, self) if reflected else function(self, other)
        except Exception as error:
            present(error)
            raise

    return operator


def register_operators(table, reflected=True):
    """Register the operators of a table from names to symbols and functions."""
    for name, (symbol, function) in table.items():
        methods[f"__{name}__"] = binary_operator(symbol, function)
        if reflected:
            methods[f"__r{name}__"] = binary_operator(symbol, function, reflected=True)


register_operators(ARITHMETIC)
register_operators(COMPARISONS, reflected=False)
register({"__neg__": negative, "__invert__": bitwise_not})


def concrete(x, error, what):
    """Return the numbers of `x` as an array; refuse a tracer that has none.

    Args:
      x: an array or a tracer.
      error: the class of error to raise for a tracer without numbers.
      what: what Python wanted, for the message.
    """
    value = known_value(x)
    if value is None:
        provenance = getattr(x, "provenance", str)()
        message = f"{what}: {x!r} stands for {x.aval} and has no numbers while it is "
        raise error(f"{message}traced. {provenance}".rstrip())
    return value


def truth(x):
    """Return the truth of an array with one element, for ``if`` and ``and``."""
    if x.size != 1:
        raise ValueError(
            f"The truth value of an array with shape {x.shape} is ambiguous. Use "
            "x.any() or x.all(), or x.size > 0."
        )
    what = "Attempted boolean conversion of traced array (by if, while, and, or, not)"
    return builtins.bool(np.asarray(concrete(x, TracerBoolConversionError, what)))


register({"__bool__": truth})
