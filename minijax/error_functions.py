# Made from chapters/17b_functions.md by `make chapter`;
# edit the chapter, not this file.
"""The error function and its complement."""

from minijax.exponentials import EXP2, scaled_exp
from minijax.powers import coarse
from minijax.scalar_functions import (
    in_pairs,
    nearest,
    not_above,
    polynomial,
    power_of_two,
)

# erf(x) / x - 1 as a function of x**2, for x below 1.
ERF = {
    "float32": (
        0.12837912, -0.37612325, 0.112801746, -0.026711179, 0.0049174177, -0.0005630953,
    ),
    "float64": (
        0.12837916709551256, -0.3761263890318352, 0.11283791670944184,
        -0.026866170643111177, 0.005223977606116217, -0.0008548325929211555,
        0.00012055293573963432, -1.4924712248038285e-05, 1.6447130932724605e-06,
        -1.6206309058284763e-07, 1.371096081558774e-08, -7.77943321109427e-10,
    ),
}  # fmt: skip

# The logarithm to base 2 of 1 - erf(x), over x, up to 4, or 6.
LOG2_ERFC = {
    "float32": (
        -1.627907, -0.91844344, -0.14833026, 0.027876731, -0.00029884273,
        -0.0018043472, 0.00054911786, -5.8656442e-05,
    ),
    "float64": (
        -1.6279070286111148, -0.918448188526614, -0.14826952512024033,
        0.027596515573417642, 0.0003018049225208944, -0.002447114528447408,
        0.0008514019226606596, -3.744559447351954e-05, -9.275050830239352e-05,
        4.230421532556766e-05, -4.032550925233087e-06, -5.143900411595359e-06,
        3.5064488246279666e-06, -1.2323195446807996e-06, 2.515163192946275e-07,
        -1.2221623516660957e-08, -1.1181810166546026e-08, 4.537813926530555e-09,
        -9.805650068658955e-10, 1.374796282714505e-10, -1.2557045066130833e-11,
        6.84602350482144e-13, -1.6988486320395494e-14,
    ),
}  # fmt: skip
ERF_IS_ONE = {"float32": 4.0, "float64": 6.0}


def erf_near_zero(k, x):
    """Write the error function of a number between -1 and 1."""
    return k.fma(x, polynomial(k, k.mul(x, x), ERF[x.dtype.name]), x)


def erf(k, x):
    """Write the error function, as 1 - 2**t."""
    name = x.dtype.name
    size = not_above(k, k.abs(x), ERF_IS_ONE[name])
    t = k.mul(size, in_pairs(k, size, LOG2_ERFC[name]))
    n, bits = nearest(k, t, 1)
    r = k.sub(t, n)
    tail = k.mul(r, polynomial(k, r, EXP2[name]))
    scale = power_of_two(k, bits, x.dtype)
    return k.copysign(k.fma(k.neg(scale), tail, k.sub(1, scale)), x)


# (1 + 2 x) exp(x**2) erfc(x) as a function of (x - 4) / (x + 4).
ERFC = {
    "float32": (
        1.2329952, -0.13962102, 0.01537733, 0.068091415, -0.10099295, 0.09383993,
        -0.066593215, 0.03638713, -0.016061269, 0.0068609132, 0.00083331834,
    ),
    "float64": (
        1.2329951186255526, -0.13962111684056286, 0.015379652102620036,
        0.06809705425473449, -0.10103906603631746, 0.0937328349968869,
        -0.06633036581218242, 0.03716751556105356, -0.016197734052984566,
        0.005031969768401542, -0.0007577733735248911, -0.00019925557328505944,
        0.0001506223412353637, -2.44029536558244e-05, -1.12249529005375e-05,
        5.717446721822582e-06, 3.0147024463736333e-07, -8.346222361520174e-07,
        6.274175801006323e-08, 1.1499167041127664e-07, -7.821458945466092e-09,
        -1.3574477784407819e-08, -1.7767906879690193e-09,
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
