"""Operations on scalars: what each means, for which dtypes, and how NumPy does it.

What an operation means is settled here; how a machine does it is said by a table of
that machine, which has the same names.
"""

# Made from chapters/17_kernels_ground.md by `make chapter`;
# edit the chapter, not this file.

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from minijax.arrays.dtypes import kind_of
from minijax.arrays.numerics import (
    by_number,
    convert,
    count_leading_zeros,
    count_ones,
    divide,
    log_gamma,
    remainder,
)
from minijax.lax.reductions import highest, lowest


class ScalarOp(NamedTuple):
    """An operation on scalars.

    Attributes:
      numpy: a function that does it to arrays.
      kinds: of the dtypes that it is for: b(ool), i(nteger), u(nsigned), f(loat).
      arity: the number of operands.
      result: the dtype of the result, where it is not that of the operands.
      cost: what it counts as: "flops", "transcendentals", or nothing.
      note: what is subtle about it.
    """

    numpy: Callable
    kinds: str
    arity: int = 2
    result: np.dtype | None = None
    cost: str = "flops"
    note: str = ""


scalar_ops = {}


def define(name, *columns, **more):
    """Add a row."""
    scalar_ops[name] = ScalarOp(*columns, **more)


define("add", np.add, "iuf")
define("sub", np.subtract, "iuf")
define("mul", np.multiply, "iuf")
define(
    "div",
    lambda x, y: divide(np, x, y),
    "iuf",
    note="Integers: towards zero; never by 0, and never the least integer by -1.",
)
define("max", np.maximum, "biuf", note="NaN if an operand is. Of two zeros, either.")
define(
    "select",
    np.where,
    "biuf",
    arity=3,
    cost="",
    note="The second operand where the first is true, and the third elsewhere.",
)


define("min", np.minimum, "biuf", note="NaN if an operand is. Of two zeros, either.")
define(
    "rem",
    lambda x, y: remainder(np, x, y),
    "iuf",
    note="It has the sign of the first operand. Integers: as for div.",
)
define("neg", np.negative, "iuf", arity=1)
define(
    "abs",
    np.abs,
    "if",
    arity=1,
    note="The least integer has no positive partner, and stays as it is.",
)
define("and", np.bitwise_and, "biu")
define("or", np.bitwise_or, "biu")
define("xor", np.bitwise_xor, "biu")
define("not", np.invert, "biu", arity=1)
define("shift_left", np.left_shift, "iu", note="By less than the number of bits.")
define(
    "shift_right",
    np.right_shift,
    "iu",
    note="By less than the number of bits; the sign moves into the gap.",
)
define(
    "population_count", lambda x: count_ones(np, x).astype(x.dtype), "iu", arity=1
)
define("clz", lambda x: count_leading_zeros(np, x).astype(x.dtype), "iu", arity=1)

_COMPARISONS = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
    "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip
for _name, _function in _COMPARISONS.items():
    _note = "Nothing but ne is true of NaN."
    define(_name, _function, "biuf", result=np.dtype(bool), note=_note)

for _name in ("floor", "ceil", "trunc", "rint", "sqrt"):
    define(_name, getattr(np, _name), "f", arity=1)
define("copysign", np.copysign, "f")
define(
    "as_float16",
    lambda x: x.astype(np.float32).astype(np.float16).astype(x.dtype),
    "f",
    arity=1,
    note="The nearest number of float16; of 64 bits by way of 32.",
)


def _of_arrays(function):
    each = by_number(function)
    return lambda x: each(np, x).astype(x.dtype)


# In the mathematical library of every system, and of CUDA.
LIBRARY = {
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log,
    "log1p": np.log1p, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh,
    "acosh": np.arccosh, "atanh": np.arctanh, "cbrt": np.cbrt, "pow": np.power,
    "hypot": np.hypot, "erf": _of_arrays(math.erf), "erfc": _of_arrays(math.erfc),
    "lgamma": _of_arrays(log_gamma),
}  # fmt: skip
for _name, _function in LIBRARY.items():
    _arity = 2 if _name in ("atan2", "pow", "hypot") else 1
    define(_name, _function, "f", arity=_arity, cost="transcendentals")


class Folding(NamedTuple):
    """A way to fold many scalars into one.

    Attributes:
      numpy: a function of an array, axes and the first value, which keeps the axes.
      first: from dtypes to the value to start from.
      accepts: letters of the kinds of dtypes.
      running: a function of an array and an axis, which leaves a result at each index.
    """

    numpy: Callable
    first: Callable
    accepts: str = "biuf"
    running: Callable | None = None

    def start(self, dtype):
        """Return the scalar to start from."""
        return dtype.type(self.first(dtype))


def _folding(ufunc, first, accepts="biuf"):
    def whole(x, axes, start):
        return ufunc.reduce(x, axes, x.dtype, keepdims=True, initial=start)

    def running(x, axis):
        return ufunc.accumulate(x, axis, x.dtype)

    return Folding(whole, first, accepts, running)


def _place(argument):
    return lambda x, axes, start: argument(x, *axes, keepdims=True)


foldings = {
    "add": _folding(np.add, lambda dtype: 0, "iuf"),
    "mul": _folding(np.multiply, lambda dtype: 1, "iuf"),
    "max": _folding(np.maximum, lowest),
    "min": _folding(np.minimum, highest),
    "and": _folding(np.bitwise_and, lambda dtype: ~dtype.type(0), "biu"),
    "or": _folding(np.bitwise_or, lambda dtype: 0, "biu"),
    "xor": _folding(np.bitwise_xor, lambda dtype: 0, "biu"),
    "argmax": Folding(_place(np.argmax), lowest),
    "argmin": Folding(_place(np.argmin), highest),
}


def in_registers(dtype):
    """Return the dtype in which numbers of `dtype` are computed: halves are widened."""
    return np.dtype(np.float32) if kind_of(dtype) == "h" else dtype


# Operations with a dtype of their own for the result, as functions of array and dtype.
recastings = {
    "convert": lambda x, dtype: convert(np, x, dtype),
    "bitcast": lambda x, dtype: x.view(dtype),
}
