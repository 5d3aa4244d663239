# Made from chapters/16_kernels.md by `make chapter`;
# edit the chapter, not this file.
"""Kernel rules of primitives that act on each element by itself."""

import numpy as np

from minijax import lax
from minijax.kernel_building import Pair, dtype_of
from minijax.kernel_steps import by_scalar_op, elementwise, kernel_rules
from minijax.lax.numerics import by_squaring

for _op in """
    add sub mul neg exp log sin cos tanh eq lt max min abs floor ceil ne le gt ge
    exp2 expm1 log1p sqrt cbrt tan asin acos atan atan2 sinh cosh asinh acosh atanh
    erf erfc lgamma conj not and or xor population_count clz
""".split():
    kernel_rules[getattr(lax, f"{_op}_p")] = by_scalar_op(_op)


def _rule(name, body):
    kernel_rules[getattr(lax, f"{name}_p")] = elementwise(body)


_rule("copy", lambda k, x: x)
_rule("square", lambda k, x: k.mul(x, x))
_rule("rsqrt", lambda k, x: k.div(1, k.sqrt(x)))
_rule("logistic", lambda k, x: k.div(1, k.add(1, k.exp(k.neg(x)))))
_rule("is_finite", lambda k, x: k.lt(k.abs(x), np.inf))
_rule("clamp", lambda k, low, x, high: k.min(k.max(x, low), high))
_rule("complex", lambda k, x, y: Pair(x, y))
_rule("pow", lambda k, x, y: k.pow(x, k.convert(y, dtype_of(x))))


def _add_any(k, x, y):
    return k.apply("or" if dtype_of(x).kind == "b" else "add", x, y)


def _iota(k, dtype, shape, dimension):
    return k.convert(k.index(dimension), dtype)


def _select_n(k, which, *cases):
    if which.dtype.kind == "b":
        return k.select(which, cases[-1], cases[0])
    result = cases[0]
    for place, case in enumerate(cases):
        result = k.select(k.ge(which, place), case, result)
    return result


def _integer_pow(k, x, y):
    if y < 0:
        return k.div(1, _integer_pow(k, x, -y))
    return by_squaring(k.mul, x, y) if y else k.number(1, x)


_rule("add_any", _add_any)
_rule("iota", _iota)
_rule("select_n", _select_n)
_rule("integer_pow", _integer_pow)
_rule("convert_element_type", lambda k, x, new_dtype, **_: k.convert(x, new_dtype))


def _div(k, x, y):
    """Divide; of integers, by 0 gives all bits set, and by -1 the negative."""
    if dtype_of(x).kind in "fc":
        return k.div(x, y)
    safe, zero, minus = _divisor(k, y)
    quotient = k.select(zero, k.number(~x.dtype.type(0), x), k.div(x, safe))
    return quotient if minus is None else k.select(minus, k.neg(x), quotient)


def _rem(k, x, y):
    """Return what division leaves; of integers by 0, `x` itself."""
    if x.dtype.kind == "f":
        return k.rem(x, y)
    safe, zero, _ = _divisor(k, y)
    return k.select(zero, x, k.rem(x, safe))


def _divisor(k, y):
    """Return a divisor that any processor can take, and where `y` is none."""
    zero = k.eq(y, 0)
    if y.dtype.kind == "u":
        return k.select(zero, 1, y), zero, None
    minus = k.eq(y, -1)
    return k.select(k.apply("or", zero, minus), 1, y), zero, minus


_rule("div", _div)
_rule("rem", _rem)


def _sign(k, x):
    if dtype_of(x).kind == "u":
        return k.min(x, 1)
    one = k.select(k.gt(x, 0), 1, k.select(k.lt(x, 0), -1, x))
    return k.select(k.eq(x, 0), x, one)


def _round(k, x, rounding_method):
    if rounding_method == 1:
        return k.rint(x)
    whole = k.trunc(x)
    beyond = k.ge(k.abs(k.sub(x, whole)), 0.5)
    return k.copysign(k.add(whole, k.select(beyond, k.copysign(1, x), 0)), x)


def _shift(k, op, x, y, beyond):
    """Shift bits; by more than there are, what `beyond` says."""
    bits = k.number(x.dtype.itemsize * 8, x)
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    inside = k.lt(k.bitcast(y, unsigned), k.bitcast(bits, unsigned))
    return k.select(inside, k.apply(op, x, k.select(inside, y, 0)), beyond)


def _shift_right(k, x, y, kind):
    dtype = np.dtype(f"{kind}{x.dtype.itemsize}")
    bits, places = k.bitcast(x, dtype), k.bitcast(y, dtype)
    zero = k.number(0, bits)
    beyond = zero if kind == "u" else k.select(k.lt(bits, 0), -1, zero)
    return k.bitcast(_shift(k, "shift_right", bits, places, beyond), x.dtype)


_rule("sign", _sign)
_rule("round", _round)
_rule("shift_left", lambda k, x, y: _shift(k, "shift_left", x, y, k.number(0, x)))
_rule("shift_right_logical", lambda k, x, y: _shift_right(k, x, y, "u"))
_rule("shift_right_arithmetic", lambda k, x, y: _shift_right(k, x, y, "i"))


kernel_rules.reasons.update(
    dict.fromkeys(
        [lax.nextafter_p, lax.erf_inv_p, lax.digamma_p, lax.reduce_precision_p],
        "No instruction and no function of a library does it; NumPy does.",
    )
)
