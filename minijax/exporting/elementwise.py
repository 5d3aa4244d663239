"""StableHLO of operations on each element: mostly a table of names.

Source: the StableHLO specification, https://openxla.org/stablehlo/spec.
"""

# Made from chapters/40_export.md by `make chapter`;
# edit the chapter, not this file.

import math

import numpy as np

from minijax import lax
from minijax.arrays.complex_numbers import parts_of_square
from minijax.exporting.programs import by_others, called, stablehlo_rules

SPELLED = {
    "add": "add", "add_any": "add", "sub": "subtract", "mul": "multiply",
    "div": "divide", "rem": "remainder", "atan2": "atan2", "and": "and", "or": "or",
    "xor": "xor", "not": "not",
    "neg": "negate", "abs": "abs", "floor": "floor", "ceil": "ceil",
    "exp": "exponential", "expm1": "exponential_minus_one", "log": "log",
    "log1p": "log_plus_one", "logistic": "logistic", "sin": "sine", "cos": "cosine",
    "tan": "tan", "tanh": "tanh", "sqrt": "sqrt", "rsqrt": "rsqrt", "cbrt": "cbrt",
    "is_finite": "is_finite", "real": "real", "imag": "imag", "complex": "complex",
    "shift_left": "shift_left", "shift_right_logical": "shift_right_logical",
    "shift_right_arithmetic": "shift_right_arithmetic",
    "clz": "count_leading_zeros", "population_count": "popcnt", "clamp": "clamp",
    "eq": "compare EQ,", "ne": "compare NE,", "lt": "compare LT,",
    "le": "compare LE,", "gt": "compare GT,", "ge": "compare GE,",
}  # fmt: skip
# A second dialect, whose operations compilers take apart into those of StableHLO.
CHLO = "acos acosh asin asinh atan atanh cosh digamma erf erf_inv erfc lgamma sinh"


def spread(block, x, shape):
    """Return a value with this shape: axes in front are new, those of size 1 grow."""
    if x.aval.shape == shape:
        return x
    axes = [*range(len(shape) - len(x.aval.shape), len(shape))]
    aval = x.aval.update(shape=shape)
    return block.op("broadcast_in_dim", [x], aval, f", dims = {axes}")


def spelled(name):
    """Return the rule of a primitive that is one operation on arrays of one shape."""

    def rule(block, eqn, *xs):
        aval = eqn.outvars[0].aval
        return block.op(name, [spread(block, x, aval.shape) for x in xs], aval)

    return rule


def add_rules(rules):
    """Add rules to the table, by the names of primitives of `lax`."""
    stablehlo_rules.update({getattr(lax, f"{name}_p"): rules[name] for name in rules})


add_rules({primitive: spelled(name) for primitive, name in SPELLED.items()})


def in_chlo(name):
    """Return the rule of a primitive that is one operation of the second dialect."""

    def rule(block, eqn, *xs):
        aval = eqn.outvars[0].aval
        xs = [spread(block, x, aval.shape) for x in xs]
        return block.generic(f"chlo.{name}", xs, [aval])

    return rule


add_rules({name: in_chlo(name) for name in CHLO.split()})
add_rules({"nextafter": in_chlo("next_after")})


def _ordered(before):
    """Return a function that chooses one of two complex numbers, or what is NaN.

    They are ordered by their real parts, and by their imaginary parts where these are
    equal. The operation of StableHLO compares the real parts alone.
    """

    def choose(x, y):
        real, imag = (lax.real(x), lax.real(y)), (lax.imag(x), lax.imag(y))
        tied = lax.bitwise_and(lax.eq(*real), before(*imag))
        first = lax.bitwise_or(before(*real), tied)
        first = lax.bitwise_and(first, lax.eq(y, y))
        return lax.select(lax.bitwise_or(lax.ne(x, x), first), x, y)

    return choose


ORDERED = {"maximum": _ordered(lax.gt), "minimum": _ordered(lax.lt)}


def joined(block, name, x, y):
    """Write an operation on two values of one type."""
    if name in ORDERED and x.aval.dtype.kind == "c":
        return called(block, ORDERED[name], x, y)[0]
    return block.op(name, [x, y], x.aval)


def extreme_of_two(name):
    """Return the rule of the larger, or the smaller, of two numbers."""

    def rule(block, eqn, *xs):
        shape = eqn.outvars[0].aval.shape
        return joined(block, name, *[spread(block, x, shape) for x in xs])

    return rule


OF_TWO = {"max": "maximum", "min": "minimum"}
add_rules({primitive: extreme_of_two(name) for primitive, name in OF_TWO.items()})


def _integer_pow(x, y):
    if y < 0:
        return lax.div(lax.full_like(x, 1), _integer_pow(x, -y))
    if y < 2:
        return x if y else lax.full_like(x, 1)
    half = _integer_pow(x, y // 2)
    return lax.mul(lax.mul(half, half), x) if y % 2 else lax.mul(half, half)


def _sign(x):
    return lax.convert_element_type(lax.ne(x, lax.full_like(x, 0)), x.dtype)


def _square(x):
    if x.dtype.kind != "c":
        return lax.mul(x, x)
    return lax.complex(*parts_of_square(lax, lax.real(x), lax.imag(x)))


def _plain_sign(block, eqn, x):
    unsigned = x.aval.dtype.kind == "u"
    rule = by_others(_sign) if unsigned else spelled("sign")
    return rule(block, eqn, x)


def _pow(block, eqn, x, y):
    return spelled("power")(block, eqn, x, converted(block, y, x.aval.dtype))


stablehlo_rules[lax.pow_p] = _pow
stablehlo_rules[lax.sign_p] = _plain_sign
stablehlo_rules[lax.integer_pow_p] = by_others(_integer_pow)
stablehlo_rules[lax.square_p] = by_others(_square)
stablehlo_rules[lax.exp2_p] = by_others(
    lambda x: lax.exp(lax.mul(x, lax.full_like(x, math.log(2))))
)


def _conj(x, **_):
    if x.dtype.kind != "c":
        return lax.complex(x, lax.full_like(x, 0))
    return lax.complex(lax.real(x), lax.neg(lax.imag(x)))


stablehlo_rules[lax.conj_p] = by_others(_conj)


def converted(block, x, dtype):
    """Return a value in another dtype."""
    if x.aval.dtype == dtype:
        return x
    old, aval = x.aval.dtype.kind, x.aval.update(dtype=np.dtype(dtype))
    if aval.dtype == bool:
        zero = block.constant(np.zeros(x.aval.shape, x.aval.dtype), x.aval)
        return block.op("compare NE,", [x, zero], aval)
    if old == "c" and aval.dtype.kind != "c":
        part = np.zeros(0, x.aval.dtype).real.dtype
        x = block.op("real", [x], x.aval.update(dtype=part))
    return block.op("convert", [x], aval)


def _round(block, eqn, x):
    ends = ("afz", "even")[int(eqn.params["rounding_method"])]
    return block.op(f"round_nearest_{ends}", [x], x.aval)


def _reduce_precision(block, eqn, x):
    bits = eqn.params["exponent_bits"], eqn.params["mantissa_bits"]
    return block.op("reduce_precision", [x], x.aval, ", format = e{}m{}".format(*bits))


def _select(block, eqn, which, *cases):
    """Choose among cases: the last one first, then each number below it."""
    aval = eqn.outvars[0].aval
    cases = [spread(block, case, aval.shape) for case in cases]
    [result, *_] = cases[::-1]
    if len(cases) == 1:
        return result
    if which.aval.dtype == bool:
        return block.op("select", [which, *cases[::-1]], aval)
    for i, case in reversed([*enumerate(cases[:-1])]):
        limit = np.full(which.aval.shape, i, which.aval.dtype)
        operands = [which, block.constant(limit, which.aval)]
        answer = which.aval.update(dtype=np.dtype(bool))
        here = block.op("compare LE,", operands, answer)
        result = block.op("select", [here, case, result], aval)
    return result


stablehlo_rules[lax.convert_element_type_p] = lambda block, eqn, x: converted(
    block, x, eqn.params["new_dtype"]
)
stablehlo_rules[lax.bitcast_convert_type_p] = lambda block, eqn, x: block.op(
    "bitcast_convert", [x], eqn.outvars[0].aval
)
stablehlo_rules[lax.round_p] = _round
stablehlo_rules[lax.reduce_precision_p] = _reduce_precision
stablehlo_rules[lax.select_n_p] = _select
