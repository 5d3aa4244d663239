# Made from chapters/17_kernels.md by `make chapter`;
# edit the chapter, not this file.
"""Operations on scalars: what each means, how NumPy does it, and how LLVM does it.

Every machine for which kernels are emitted has its column here, so that what an
operation means is settled in one place.

Reference: the LLVM Language Reference, https://llvm.org/docs/LangRef.html.
"""

import math
import re
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
      llvm: instructions, by the kind of dtype: b(ool), i(nteger), u(nsigned), f(loat).
      result: the dtype of the result, where it is not that of the operands.
      cost: what it counts as: "flops", "transcendentals", or nothing.
      note: what is subtle about it.
    """

    numpy: Callable
    llvm: dict
    result: np.dtype | None
    cost: str
    note: str

    @property
    def arity(self):
        """Number of operands: of the places that the instructions mention."""
        return len(set(re.findall(r"\{(\d)\}", next(iter(self.llvm.values())))))


scalar_ops = {}


def define(name, numpy, result=None, cost="flops", note="", **llvm):
    """Add a row; `llvm` has instructions by letters of kinds, such as ``iu="..."``."""
    by_kind = {kind: text for kinds, text in llvm.items() for kind in kinds}
    scalar_ops[name] = ScalarOp(numpy, by_kind, result, cost, note)


define("add", np.add, iu="add {t} {0}, {1}", f="fadd {t} {0}, {1}")
define("sub", np.subtract, iu="sub {t} {0}, {1}", f="fsub {t} {0}, {1}")
define("mul", np.multiply, iu="mul {t} {0}, {1}", f="fmul {t} {0}, {1}")
define(
    "div",
    lambda x, y: divide(np, x, y),
    i="sdiv {t} {0}, {1}",
    u="udiv {t} {0}, {1}",
    f="fdiv {t} {0}, {1}",
    note="Integers: towards zero; never by 0, and never the least integer by -1.",
)
define(
    "max",
    np.maximum,
    f="a = fcmp uno {t} {0}, {0}; b = fcmp ogt {t} {0}, {1}; c = or i1 {a}, {b}; "
    "select i1 {c}, {t} {0}, {t} {1}",
    i="a = icmp sgt {t} {0}, {1}; select i1 {a}, {t} {0}, {t} {1}",
    bu="a = icmp ugt {t} {0}, {1}; select i1 {a}, {t} {0}, {t} {1}",
    note="NaN if one of the operands is. Of two zeros, either.",
)
define(
    "select",
    np.where,
    bifu="select i1 {0}, {t} {1}, {t} {2}",
    cost="",
    note="The second operand where the first is true, and the third elsewhere.",
)


define(
    "min",
    np.minimum,
    f="a = fcmp uno {t} {0}, {0}; b = fcmp olt {t} {0}, {1}; c = or i1 {a}, {b}; "
    "select i1 {c}, {t} {0}, {t} {1}",
    i="a = icmp slt {t} {0}, {1}; select i1 {a}, {t} {0}, {t} {1}",
    bu="a = icmp ult {t} {0}, {1}; select i1 {a}, {t} {0}, {t} {1}",
    note="NaN if one of the operands is. Of two zeros, either.",
)
define(
    "rem",
    lambda x, y: remainder(np, x, y),
    i="srem {t} {0}, {1}",
    u="urem {t} {0}, {1}",
    f="frem {t} {0}, {1}",
    note="It has the sign of the first operand. Integers: as for div.",
)
define("neg", np.negative, iu="sub {t} 0, {0}", f="fneg {t} {0}")
define(
    "abs",
    np.abs,
    i="a = sub {t} 0, {0}; b = icmp slt {t} {0}, 0; select i1 {b}, {t} {a}, {t} {0}",
    f="call {t} @llvm.fabs.{s}({t} {0})",
    note="The least integer has no positive partner, and stays as it is.",
)
define("and", np.bitwise_and, biu="and {t} {0}, {1}")
define("or", np.bitwise_or, biu="or {t} {0}, {1}")
define("xor", np.bitwise_xor, biu="xor {t} {0}, {1}")
define("not", np.invert, biu="xor {t} {0}, -1")
define(
    "shift_left",
    np.left_shift,
    iu="shl {t} {0}, {1}",
    note="By less than the number of bits.",
)
define(
    "shift_right",
    np.right_shift,
    i="ashr {t} {0}, {1}",
    u="lshr {t} {0}, {1}",
    note="By less than the number of bits; the sign moves into the gap.",
)
define(
    "population_count",
    lambda x: count_ones(np, x).astype(x.dtype),
    iu="call {t} @llvm.ctpop.{s}({t} {0})",
)
define(
    "clz",
    lambda x: count_leading_zeros(np, x).astype(x.dtype),
    iu="call {t} @llvm.ctlz.{s}({t} {0}, i1 false)",
)

_COMPARISONS = {
    "eq": (np.equal, "oeq", "eq", "eq"),
    "ne": (np.not_equal, "une", "ne", "ne"),
    "lt": (np.less, "olt", "slt", "ult"),
    "le": (np.less_equal, "ole", "sle", "ule"),
    "gt": (np.greater, "ogt", "sgt", "ugt"),
    "ge": (np.greater_equal, "oge", "sge", "uge"),
}
for _name, (_function, *_conditions) in _COMPARISONS.items():
    _f, _i, _u = _conditions
    define(
        _name,
        _function,
        np.dtype(bool),
        f=f"fcmp {_f} {{t}} {{0}}, {{1}}",
        i=f"icmp {_i} {{t}} {{0}}, {{1}}",
        bu=f"icmp {_u} {{t}} {{0}}, {{1}}",
        note="Nothing but ne is true of NaN.",
    )

_INTRINSICS = {
    "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "rint": np.rint,
    "sqrt": np.sqrt, "copysign": np.copysign,
}  # fmt: skip

# In the mathematical library of every system; with an f at the end for 32 bits.
_LIBRARY = {
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log,
    "log1p": np.log1p, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh,
    "acosh": np.arccosh, "atanh": np.arctanh, "cbrt": np.cbrt, "pow": np.power,
    "hypot": np.hypot, "erf": math.erf, "erfc": math.erfc, "lgamma": log_gamma,
}  # fmt: skip


def _of_arrays(function):
    each = by_number(function)
    return lambda x: each(np, x).astype(x.dtype)


def _operands(name):
    two = name in ("copysign", "atan2", "pow", "hypot")
    return "{t} {0}, {t} {1}" if two else "{t} {0}"


for _name, _function in _INTRINSICS.items():
    define(_name, _function, f=f"call {{t}} @llvm.{_name}.{{s}}({_operands(_name)})")
for _name, _function in _LIBRARY.items():
    _numpy = _function if isinstance(_function, np.ufunc) else _of_arrays(_function)
    _call = f"call {{t}} @{_name}{{m}}({_operands(_name)})"
    define(_name, _numpy, cost="transcendentals", f=_call)


class Folding(NamedTuple):
    """A way to fold many scalars into one.

    Attributes:
      numpy: a function of an array, axes and the first value, which keeps the axes.
      first: from dtypes to the value to start from.
      accepts: letters of the kinds of dtypes.
    """

    numpy: Callable
    first: Callable
    accepts: str = "biuf"

    def start(self, dtype):
        """Return the scalar to start from."""
        return dtype.type(self.first(dtype))


def _reduce(ufunc):
    return lambda x, axes, start: ufunc.reduce(
        x, axes, x.dtype, keepdims=True, initial=start
    )


def _place(argument):
    return lambda x, axes, start: argument(x, *axes, keepdims=True)


foldings = {
    "add": Folding(_reduce(np.add), lambda dtype: 0, "iuf"),
    "mul": Folding(_reduce(np.multiply), lambda dtype: 1, "iuf"),
    "max": Folding(_reduce(np.maximum), lowest),
    "min": Folding(_reduce(np.minimum), highest),
    "and": Folding(_reduce(np.bitwise_and), lambda dtype: ~dtype.type(0), "biu"),
    "or": Folding(_reduce(np.bitwise_or), lambda dtype: 0, "biu"),
    "xor": Folding(_reduce(np.bitwise_xor), lambda dtype: 0, "biu"),
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
