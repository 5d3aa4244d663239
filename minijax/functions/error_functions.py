"""The error function and its complement."""

# Made from chapters/23_functions_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax.functions.exponentials import scaled_exp
from minijax.functions.powers import coarse
from minijax.functions.scalar_functions import in_pairs, not_above, polynomial

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

# 8 (1 - (1 - erf(x))**(1/8)) / x - 1, up to 4, or 6.
ROOT_OF_ERFC = {
    "float32": (
        0.12837917, 0.55704296, 0.016712362, -0.052714173, -0.0014919178, 0.004102675,
        -0.00071097485, 3.840276e-05,
    ),
    "float64": (
        0.12837916709551256, 0.5570423008216411, 0.016720440616506838,
        -0.05275390561964069, -0.0013885001802980087, 0.003933323176379707,
        -0.0005191859325640758, -0.00011506382632586517, 8.271697025901118e-05,
        -2.5322970148734106e-05, 2.5534207253984396e-07, 3.684684714645559e-06,
        -1.7110628440887529e-06, 2.2210632098784827e-07, 1.7388698144540323e-07,
        -1.3888030716499255e-07, 5.814700788132566e-08, -1.717583217054571e-08,
        3.824466201725497e-09, -6.511744905339716e-10, 8.395882250924347e-11,
        -7.957411759664115e-12, 5.235890013506278e-13, -2.137350990226366e-14,
        4.0762469768595843e-16,
    ),
}  # fmt: skip
ERF_IS_ONE = {"float32": 4.0, "float64": 6.0}


def erf_near_zero(k, x):
    """Write the error function of a number between -1 and 1."""
    return k.fma(x, polynomial(k, k.mul(x, x), ERF[x.dtype.name]), x)


def erf(k, x):
    """Write the error function: 1 less the eighth power of a root."""
    name = x.dtype.name
    size = not_above(k, k.abs(x), ERF_IS_ONE[name])
    d = k.fma(size, in_pairs(k, size, ROOT_OF_ERFC[name]), size)
    y = k.mul(d, k.fma(d, -1 / 64, 1 / 4))
    for _ in range(2):
        y = k.fma(k.neg(y), y, k.add(y, y))
    return k.copysign(y, x)


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
