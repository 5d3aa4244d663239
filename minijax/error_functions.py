# Made from chapters/17b_functions.md by `make chapter`;
# edit the chapter, not this file.
"""The error function, its complement and its inverse."""

from minijax.exponentials import EXP2, scaled_exp
from minijax.powers import coarse
from minijax.scalar_functions import nearest, not_above, polynomial, power_of_two

# erf(x) / x - 1 as a function of x**2, for x below 1.
ERF = {
    "float32": (
        0.12837912, -0.37612325, 0.112801746, -0.026711179, 0.0049174177, -0.0005630953,
    ),
    "float64": (
        0.12837916709551256, -0.3761263890318352, 0.11283791670944184,
        -0.026866170643111177, 0.005223977606116217, -0.0008548325929211555,
        0.0001205529357396343, -1.4924712248038273e-05, 1.644713093272446e-06,
        -1.62063090582837e-07, 1.3710960815583282e-08, -7.779433211086204e-10,
    ),
}  # fmt: skip

# The logarithm to base 2 of 1 - erf(x), divided by x, up to where erf(x) is 1.
LOG2_ERFC = {
    "float32": (
        -1.627907, -0.91844344, -0.14833026, 0.027876731, -0.00029884273, -0.0018043472,
        0.00054911786, -5.8656442e-05,
    ),
    "float64": (
        -1.6279070286111148, -0.918448188526614, -0.14826952512024033,
        0.027596515573417642, 0.0003018049225208948, -0.002447114528447411,
        0.0008514019226606736, -3.7445594473564625e-05, -9.275050830228746e-05,
        4.230421532538099e-05, -4.032550924982211e-06, -5.143900411856589e-06,
        3.506448824840769e-06, -1.2323195448171736e-06, 2.5151631936349334e-07,
        -1.2221623543997038e-08, -1.1181810158076934e-08, 4.5378139245093145e-09,
        -9.805650065022175e-10, 1.3747962822381317e-10, -1.2557045061849828e-11,
        6.846023502464284e-13, -1.6988486314406358e-14,
    ),
}  # fmt: skip
ERF_IS_ONE = {"float32": 4.0, "float64": 6.0}


def erf_near_zero(k, x):
    """Write the error function of a number between -1 and 1."""
    return k.fma(x, polynomial(k, k.mul(x, x), ERF[x.dtype.name]), x)


def erf(k, x):
    """Write the error function: 1 - 2**t for a t that is nearly a multiple of x."""
    size, name = k.abs(x), x.dtype.name
    size = not_above(k, size, ERF_IS_ONE[name])
    t = k.mul(size, polynomial(k, size, LOG2_ERFC[name]))
    n, bits = nearest(k, t, 1)
    r = k.sub(t, n)
    tail = k.mul(r, polynomial(k, r, EXP2[name]))
    scale = power_of_two(k, bits, x.dtype)
    y = k.fma(k.neg(scale), tail, k.sub(1, scale))
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
