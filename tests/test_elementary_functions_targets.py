"""Elementary functions in vectors: their errors on each target, for each dtype.

python -m tests.test_elementary_functions_targets --count 2000   print errors in ulps
"""

import argparse
import itertools

import numpy as np
import pytest
from mpmath import mp

from minijax.arrays.dtypes import bfloat16
from minijax.elementary_functions.real_functions import function_bodies
from minijax.kernels.ir import Affine, Parameter, Store, scalar_ops
from minijax.kernels.loop_nests import Kernel, load_node, op_node
from tests import function_cases as cases
from tests.commands import some
from tests.processors import runnable_kinds
from tests.vector_cases import forced_target, vector_library

KINDS = runnable_kinds()
DTYPES = ["float32", "float64", "float16", "bfloat16"]
ROOM = {"float16": (11, -14), "bfloat16": (8, -126), "float32": (24, -126)}
ROOM["float64"] = (53, -1022)


def compiled(name, target, *xs):
    """What a target's vectors make of a function."""
    place, dtype = Affine(0, (1,)), xs[0].dtype
    parameters = [Parameter(f"x{n}", dtype, x.size) for n, x in enumerate(xs)]
    loads = [load_node(parameter, place) for parameter in parameters]
    node, out = op_node(name, *loads), Parameter("out", dtype, xs[0].size)
    nodes, stores = (*loads, node), (Store(out, place, node),)
    kernel = Kernel(name, (xs[0].size,), (*parameters, out), nodes, stores)
    function = vector_library(target)({"f": kernel}).function("f", len(xs) + 1)
    found = np.empty_like(xs[0])
    function(*[x.ctypes.data for x in (*xs, found)])
    return found


def arguments(name, dtype, count):
    """Arguments of a function, so many that no target's lanes divide their number."""
    wide = np.dtype("float64") if dtype == np.float64 else np.dtype("float32")
    xs = [cases.arguments(name, wide, seed, count) for seed in range(_arity(name))]
    with np.errstate(all="ignore"):
        xs = [x.astype(dtype)[: x.size // 32 * 32 - 1] for x in xs]
    if len(xs) == 2:  # zeros and infinities of two numbers have tests of their own
        usual = [(x != 0) & (abs(x.astype("float64")) < np.inf) for x in xs]
        xs = [np.where(some, x, dtype.type(1)) for some, x in zip(usual, xs)]
    return xs


def _arity(name):
    return scalar_ops[name].arity


def largest(name, dtype, target, count=12):
    """The largest error of a function in ulps, and where it is."""
    xs = arguments(name, dtype, count)
    with mp.workprec(1300 if name in ("sin", "cos", "tan") else 160):
        points = zip(*[x.astype("float64").tolist() for x in xs])
        exact = [cases.TRUTHS[name](*map(mp.mpf, point)) for point in points]
        found = compiled(name, target, *xs).astype("float64")
        errors = [_ulps(*pair, dtype.name) for pair in zip(found.tolist(), exact)]
    place = int(np.argmax(errors))
    return errors[place], [float(x[place]) for x in xs]


def _ulps(found, exact, name):
    """The error of a number in ulps; of what overflows, or is none, 0 or infinite."""
    digits, least = ROOM[name]
    if mp.isnan(exact):
        return 0.0 if np.isnan(found) else np.inf
    most = (2 - mp.mpf(2) ** (1 - digits)) * mp.mpf(2) ** (1 - least)
    if mp.isinf(exact) or abs(exact) > most:
        too_large = abs(exact) > most * (1 + mp.mpf(2) ** (3 - digits))
        if abs(found) == np.inf and (found > 0) == (exact > 0):
            return 0.0
        return np.inf if too_large or not abs(found) <= most else 1.0
    if abs(found) == np.inf:
        return 1.0 if abs(exact) > most * (1 - mp.mpf(2) ** (3 - digits)) else np.inf
    if np.isnan(found):
        return np.inf
    power = max(mp.frexp(exact)[1] - 1, least) if exact else least
    return float(abs(mp.mpf(found) - exact) * mp.mpf(2) ** (digits - 1 - power))


def limit_of(name, dtype):
    """The error that is allowed: of halves that of one rounding, and a little."""
    if dtype.name in ("float16", "bfloat16"):
        return 0.51
    return cases.LIMITS.get(name, (2.5, 2.5))[0]


@pytest.mark.parametrize(
    "name, dtype, kind", some(itertools.product(function_bodies, DTYPES, KINDS), 2)
)
def test_errors(name, dtype, kind):
    dtype = np.dtype(bfloat16) if dtype == "bfloat16" else np.dtype(dtype)
    error, point = largest(name, dtype, forced_target(kind))
    assert error <= limit_of(name, dtype), point


def main():
    """Print the largest errors, a row for each function and dtype."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=200)
    count = parser.parse_args().count
    print("".ljust(20), *(kind.rjust(8) for kind in KINDS))
    for name in function_bodies:
        for each in DTYPES:
            dtype = np.dtype(bfloat16) if each == "bfloat16" else np.dtype(each)
            row = [largest(name, dtype, forced_target(k), count) for k in KINDS]
            errors = " ".join(f"{error:8.3f}" for error, _ in row)
            print(f"{name:10}{each:10} {errors}  {max(row)[1]}", flush=True)


if __name__ == "__main__":
    main()
