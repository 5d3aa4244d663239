"""The worst argument of each elementary function: all numbers of 32 bits are tried.

    python -m tests.worst_arguments --name exp tanh

Of each function all floats of an interval are computed as the interpreter does, which
rounds products and sums separately, and compared with double precision; the worst is
computed once more with 60 digits. Takes ten seconds to seven minutes for each.
What it has found is written below, and a test computes it again.
"""

import math
import sys

import mpmath as mp
import numpy as np

from minijax.elementary_functions.real_functions import function_bodies
from tests.commands import options_of
from tests.function_cases import TRUTHS, interpreted

FLOAT32 = np.dtype("float32")
CHUNK = 2**20
SMALL = 2.0**-24  # nearer to 0, a result is that at 0, or the argument itself

# Between which numbers, besides their negatives where `BOTH` has the name.
ENDS = {
    "exp": (SMALL, 87.0), "exp2": (SMALL, 126.0), "expm1": (SMALL, 87.0),
    "sinh": (SMALL, 87.0), "cosh": (SMALL, 87.0), "tanh": (SMALL, 10.0),
    "log": (2.0**-126, 2.0**126), "log1p": (SMALL, 2.0**30),
    "asinh": (SMALL, 2.0**30), "acosh": (1.0, 2.0**30), "atanh": (SMALL, 1 - SMALL),
    "sin": (SMALL, 2.0**13), "cos": (SMALL, 2.0**13), "tan": (SMALL, 2.0**13),
    "asin": (SMALL, 1.0), "acos": (SMALL, 1.0), "atan": (SMALL, 2.0**30),
    "cbrt": (2.0**-126, 2.0**126), "erf": (SMALL, 4.0), "erfc": (SMALL, 9.0),
}  # fmt: skip
BOTH = {"exp", "exp2", "expm1", "acos", "erfc"}
DOUBLE = {
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "sinh": np.sinh,
    "cosh": np.cosh, "tanh": np.tanh, "log": np.log, "log1p": np.log1p,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "sin": np.sin,
    "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "cbrt": np.cbrt,
    "erf": np.vectorize(math.erf, otypes=[float]),
    "erfc": np.vectorize(math.erfc, otypes=[float]),
}  # fmt: skip

# From names to the worst argument, and its error in ulps.
FOUND: dict = {
    "exp": (11.716486930847168, 1.629),
    "exp2": (-0.49871447682380676, 1.227),
    "expm1": (0.38428324460983276, 1.784),
    "sinh": (0.12399138510227203, 2.358),
    "cosh": (6.231198787689209, 1.688),
    "log": (2950042.75, 1.068),
    "log1p": (0.41553887724876404, 1.586),
    "asinh": (0.3540247976779938, 1.975),
    "acosh": (1.0293595790863037, 2.076),
    "atanh": (0.172780841588974, 2.185),
    "sin": (4505.1689453125, 2.337),
    "cos": (2228.8974609375, 2.321),
    "tanh": (0.062212131917476654, 2.432),
    "erf": (0.055288247764110565, 3.952),
    "tan": (5002.85888671875, 3.611),
    "asin": (0.5006458163261414, 2.368),
    "acos": (-0.5036394596099854, 1.253),
    "atan": (0.435950368642807, 2.089),
    "cbrt": (4.270204262507133e37, 0.964),
    "erfc": (8.453070640563965, 6.054),
}


def bits(number):
    """Return the bits of a positive float, which are in the order of the floats."""
    return int(np.array(number, FLOAT32).view(np.int32))


def worst_of(name):
    """Return the largest error of a function, and the argument."""
    start, end = map(bits, ENDS[name])
    found = 0.0, 0.0
    for first in range(start, end + 1, CHUNK):
        x = np.arange(first, min(first + CHUNK, end + 1), dtype=np.int32)
        for each in (x.view(FLOAT32), -x.view(FLOAT32))[: 1 + (name in BOTH)]:
            errors = near_errors(name, each)
            place = int(errors.argmax())
            found = max(found, (float(errors[place]), float(each[place])))
    return found


def near_errors(name, x):
    """Return the errors of many results in ulps, as far as doubles can tell."""
    with np.errstate(all="ignore"):
        exact = DOUBLE[name](x.astype(np.float64))
        found = interpreted(function_bodies[name], x).astype(np.float64)
    _, exponents = np.frexp(exact)
    size = np.ldexp(1.0, np.maximum(exponents - 24, -149))
    return np.nan_to_num(abs(found - exact) / size)


def error_at(name, argument):
    """Return the error of one result in ulps, computed with 60 digits."""
    x = np.array([argument], FLOAT32)
    found = float(interpreted(function_bodies[name], x)[0])
    with mp.workdps(60):
        exact = TRUTHS[name](mp.mpf(float(x[0])))
        size = mp.mpf(2) ** max(mp.frexp(exact)[1] - 24, -149)
        return float(abs(found - exact) / size)


def main():
    """Run from the command line."""
    options = options_of(__doc__, name=[*ENDS])
    for name in options.name:
        _, argument = worst_of(name)
        error = error_at(name, argument)
        print(f'    "{name}": ({argument!r}, {error:.3f}),', flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
