# Made from chapters/17b_functions.md by `make chapter`;
# edit the chapter, not this file.
"""Exponentials, and the functions made of them."""

from minijax.scalar_functions import (
    FORMATS,
    bits_as_int,
    nearest,
    not_above,
    not_below,
    polynomial,
    power_of_two,
    without_multiple,
)

# From formats to numbers: where exp is 0 and where it is infinite.
ENDS = {"float32": (-104.0, 89.0), "float64": (-746.0, 710.0)}

LOG2_E = 1.4426950408889634

# 2 log 2, in two parts, of which the first can be multiplied without rounding.
TWO_LOG_2 = {
    "float32": (1.3862915, 2.8572135e-06),
    "float64": (1.3862943611197807, 1.0995846037416742e-13),
}

# (exp(r) - 1 - r) / r**2 for |r| < log 2.
EXP = {
    "float32": (
        0.50000036, 0.16666614, 0.041661285, 0.008336104, 0.0014104205, 0.0001961129,
    ),
    "float64": (
        0.4999999999999993, 0.16666666666666935, 0.04166666666670201,
        0.008333333333270028, 0.001388888888358509, 0.00019841269892701202,
        2.4801590826221194e-05, 2.7557300673253335e-06, 2.7556158826583976e-07,
        2.5055030875235122e-08, 2.1062270190463865e-09, 1.5935655034055154e-10,
    ),
}  # fmt: skip


def scaled_exp(k, x, low=None, factor=None):
    """Write exp(x + low) times a factor, for x at which exp(x) / 4 is finite."""
    name = x.dtype.name
    n, bits = nearest(k, x, LOG2_E / 2)
    r = without_multiple(k, x, n, TWO_LOG_2[name])
    r = r if low is None else k.add(r, low)
    y = k.add(k.fma(k.mul(r, r), polynomial(k, r, EXP[name]), r), 1)
    y = y if factor is None else k.mul(y, factor)
    scale = power_of_two(k, bits, x.dtype)
    return k.mul(k.mul(y, scale), scale)


def exp(k, x):
    """Write e to the x."""
    low, high = ENDS[x.dtype.name]
    return scaled_exp(k, not_above(k, not_below(k, x, low), high))


# log(2) / 2, in two parts.
HALF_LOG_2 = {
    "float32": (0.34657288, 7.143034e-07),
    "float64": (0.34657359027994517, 2.7489615093541856e-14),
}

# (exp(2 r) - 1 - 2 r) / r**2 for |r| < log(2) / 4.
EXPM1_OF_DOUBLE = {
    "float32": (1.9999999, 1.3333235, 0.6666752, 0.26772842, 0.088848375),
    "float64": (
        2.0, 1.3333333333333341, 0.6666666666666642, 0.26666666666629446,
        0.08888888888935678, 0.025396825453996446, 0.006349206316337804,
        0.0014109309137329234, 0.00028218779793864944, 5.142316201392013e-05,
        8.550591662250624e-06,
    ),
}  # fmt: skip

# Beyond, tanh is 1.
ONE_FROM = {"float32": 9.1, "float64": 19.1}


def expm1_of_double(k, x):
    """Write exp(2 x) - 1, for x at which it is finite."""
    name = x.dtype.name
    n, bits = nearest(k, x, 2 * LOG2_E)
    r = without_multiple(k, x, n, HALF_LOG_2[name])
    p = polynomial(k, r, EXPM1_OF_DOUBLE[name])
    tail = k.fma(k.mul(r, r), p, k.add(r, r))
    scale = power_of_two(k, bits, x.dtype)
    return k.fma(scale, tail, k.sub(scale, 1))


def tanh(k, x):
    """Write the hyperbolic tangent: e / (e + 2) for e = exp(2 |x|) - 1."""
    size = not_above(k, k.abs(x), ONE_FROM[x.dtype.name])
    e = expm1_of_double(k, size)
    return k.copysign(k.div(e, k.add(e, 2)), x)


# (exp(r) - 1 - r) / r**2 for |r| < log(2) / 2.
EXPM1 = {
    "float32": (0.49999997, 0.16666543, 0.0416672, 0.008366513, 0.0013882559),
    "float64": (
        0.5, 0.16666666666666677, 0.04166666666666651, 0.008333333333321702,
        0.0013888888888961997, 0.00019841269885934723, 2.4801587173194545e-05,
        2.755724440884616e-06, 2.7557402142446234e-07, 2.5108965827109437e-08,
        2.0875467925416562e-09,
    ),
}  # fmt: skip

# log 2, in two parts.
LOG_2 = {
    "float32": (0.69314575, 1.4286068e-06),
    "float64": (0.6931471805598903, 5.497923018708371e-14),
}

# Below, exp(x) - 1 is -1.
MINUS_ONE_TO = {"float32": -18.0, "float64": -38.0}


def part_of_expm1(k, x, part):
    """Write (exp(x) - 1) times a power of two, which may keep it finite."""
    name = x.dtype.name
    n, bits = nearest(k, x, LOG2_E)
    r = without_multiple(k, x, n, LOG_2[name])
    tail = k.fma(k.mul(r, r), polynomial(k, r, EXPM1[name]), r)
    scale = k.mul(power_of_two(k, k.sub(bits, 2), x.dtype), 4 * part)
    return k.fma(scale, tail, k.sub(scale, part))


def expm1(k, x):
    """Write exp(x) - 1."""
    low, high = MINUS_ONE_TO[x.dtype.name], ENDS[x.dtype.name][1]
    inside = not_above(k, not_below(k, x, low), high)
    y = k.mul(part_of_expm1(k, inside, 0.5), 2)
    return k.select(k.lt(k.abs(x), 2.0**-60), x, y)


def sinh(k, x):
    """Write the hyperbolic sine: (e + e / (e + 1)) / 2 for e = exp(|x|) - 1."""
    size = k.abs(x)
    e = part_of_expm1(k, not_above(k, size, ENDS[x.dtype.name][1] + 0.5), 0.25)
    y = k.mul(k.add(e, k.div(e, k.fma(e, 4, 1))), 2)
    return k.copysign(k.select(k.lt(size, 2.0**-30), size, y), x)


def cosh(k, x):
    """Write the hyperbolic cosine: (e + 1 / e) / 2 for e = exp(|x|)."""
    size = not_above(k, k.abs(x), ENDS[x.dtype.name][1] + 1)
    e = scaled_exp(k, size, None, 0.25)
    return k.mul(k.add(e, k.div(1 / 16, e)), 2)


# (2**r - 1) / r for |r| < 1/2.
EXP2 = {
    "float32": (
        0.6931472, 0.24022648, 0.055503324, 0.009618437, 0.0013398872, 0.000153534,
    ),
    "float64": (
        0.6931471805599453, 0.2402265069591013, 0.05550410866482009,
        0.009618129107594107, 0.0013333558146773681, 0.00015403530457124633,
        1.5252733493805383e-05, 1.3215435277532226e-06, 1.0178199350979825e-07,
        7.073783885703509e-09, 4.434797895881552e-10,
    ),
}  # fmt: skip

# Where 2**x is 0, and where it is infinite.
ENDS_OF_EXP2 = {"float32": (-151.0, 129.0), "float64": (-1076.0, 1025.0)}


def exp2_of_sum(k, high, low):
    """Write 2 to the sum of a number and a small one, None for 0."""
    dtype = high.dtype
    least, most = ENDS_OF_EXP2[dtype.name]
    high = not_above(k, not_below(k, high, least), most)
    n, bits = nearest(k, high, 1)
    r = k.sub(high, n)
    r = r if low is None else k.add(r, low)
    y = k.fma(r, polynomial(k, r, EXP2[dtype.name]), 1)
    count = k.sub(bits, bits_as_int(dtype, FORMATS[dtype].magic))
    half = k.shift_right(count, 1)
    y = k.mul(y, power_of_two(k, half, dtype))
    return k.mul(y, power_of_two(k, k.sub(count, half), dtype))


def exp2(k, x):
    """Write 2 to the x."""
    return exp2_of_sum(k, x, None)
