# Made from chapters/17b_functions.md by `make chapter`;
# edit the chapter, not this file.
"""The error function, its complement and its inverse."""

import numpy as np

from minijax.exponentials import scaled_exp
from minijax.powers import coarse
from minijax.scalar_functions import not_above, polynomial

# erf(x) / x as a quotient of polynomials in x**2 up to 4**2; that below begins with 1.
ERF_TOP = (1.1283791, 0.19352601, 0.0530992, 0.0038826072, 0.00028456532, 1.9870888e-06)
ERF_BOTTOM = (0.5048405, 0.11534215, 0.015205639, 0.0011854294, 3.7423426e-05)

# In 64 bits: erf(x) / x - 1 as a function of x**2 up to 1, and log(1 - erf(x)) up to 6.
ERF = (
    0.12837916709551256, -0.3761263890318352, 0.11283791670944185,
    -0.026866170643111496, 0.005223977606118922, -0.0008548325929336301,
    0.00012055293577455848, -1.4924712310187378e-05, 1.6447131641433904e-06,
    -1.620631408471023e-07, 1.3710981039400133e-08, -7.779468526815615e-10,
)  # fmt: skip
LOG_ERFC = (
    -5.029229852440068e-07, -1.1283740887898326, -0.6366436310755764,
    -0.10270343149690415, 0.018990163967517733, 0.00041064819798992394,
    -0.0019159644220739153, 0.000770660268887261, -0.0001350612451326093,
    -2.0261176882510095e-05, 2.2820320124913186e-05, -8.666482750379124e-06,
    2.1355123975100486e-06, -3.732724702766732e-07, 4.6418771788198525e-08,
    -3.933875390064946e-09, 2.0447419750728547e-10, -4.928035636051718e-12,
)  # fmt: skip


def erf_near_zero(k, x):
    """Write the error function of a small number: below 1, in 32 bits below 4."""
    z = k.mul(x, x)
    if x.dtype == np.float64:
        return k.fma(x, polynomial(k, z, ERF), x)
    bottom = k.fma(z, polynomial(k, z, ERF_BOTTOM), 1)
    return k.div(k.mul(x, polynomial(k, z, ERF_TOP)), bottom)


def erf(k, x):
    """Write the error function."""
    size = k.abs(x)
    if x.dtype == np.float32:
        y = erf_near_zero(k, not_above(k, size, 4.0))
        return k.copysign(not_above(k, y, 1.0), x)
    power = polynomial(k, not_above(k, size, 6.0), LOG_ERFC)
    large = k.sub(1, scaled_exp(k, power))
    y = k.select(k.lt(size, 1), erf_near_zero(k, size), large)
    return k.copysign(y, x)


# (1 + 2 x) exp(x**2) erfc(x) as a function of (x - 4) / (x + 4).
ERFC = {
    "float32": (
        1.2329952, -0.13962102, 0.015377329, 0.06809142, -0.100992925, 0.0938399,
        -0.06659336, 0.036387116, -0.016060935, 0.006861301, 0.0008334525,
    ),
    "float64": (
        1.2329951186255526, -0.13962111684056286, 0.015379652102620038,
        0.06809705425473443, -0.1010390660363174, 0.09373283499688777,
        -0.06633036581218518, 0.03716751556104522, -0.016197734052945778,
        0.005031969768464387, -0.0007577733737936901, -0.00019925557364668757,
        0.00015062234228203965, -2.440295223420242e-05, -1.1224955255277835e-05,
        5.717443152147155e-06, 3.0147311486061367e-07, -8.346167997558858e-07,
        6.274042668907908e-08, 1.1498710144884063e-07, -7.822040683091328e-09,
        -1.357285165074327e-08, -1.7761678738587396e-09,
    ),
}  # fmt: skip
ERFC_IS_ZERO = {"float32": 10.5, "float64": 27.5}


def erfc(k, x):
    """Write 1 - erf(x), exactly also where it is small."""
    name = x.dtype.name
    size = not_above(k, k.abs(x), ERFC_IS_ZERO[name])
    t = k.div(k.sub(size, 4), k.add(size, 4))
    share = k.div(polynomial(k, t, ERFC[name]), k.fma(size, 2, 1))
    high = coarse(k, size)
    low = k.mul(k.sub(high, size), k.add(high, size))
    y = scaled_exp(k, k.neg(k.mul(high, high)), low, share)
    y = k.select(k.lt(x, 0), k.sub(2, y), y)
    return k.select(k.lt(size, 0.5), k.sub(1, erf_near_zero(k, x)), y)
