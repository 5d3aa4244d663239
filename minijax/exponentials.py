# Made from chapters/17b_functions.md by `make chapter`;
# edit the chapter, not this file.
"""Exponentials, and the functions made of them."""

from minijax.scalar_functions import (
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


def exp(k, x):
    """Write e to the x, as exp(r) 4**n."""
    name = x.dtype.name
    low, high = ENDS[name]
    x = not_above(k, not_below(k, x, low), high)
    n, bits = nearest(k, x, LOG2_E / 2)
    r = without_multiple(k, x, n, TWO_LOG_2[name])
    tail = k.fma(k.mul(r, r), polynomial(k, r, EXP[name]), r)
    scale = power_of_two(k, bits, x.dtype)
    return k.mul(k.mul(k.add(tail, 1), scale), scale)


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
