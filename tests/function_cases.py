"""Elementary functions to try: their exact values, arguments, and errors in ulps."""

import numpy as np
from mpmath import mp

from minijax.elementary_functions.scalar_functions import (
    build_function,
    inline_function,
)
from minijax.kernels.builder import NodeBuilder
from minijax.kernels.ir import Affine, Parameter, Store
from minijax.kernels.loop_nests import Kernel, interpret, load_node
from minijax.llvm.codegen import emit_llvm
from minijax.llvm.compiler import Library

F32, F64 = np.dtype("float32"), np.dtype("float64")
DTYPES = [F32, F64]


def kernel_of(body, dtypes, size, label="f"):
    """The kernel that applies a function to vectors."""
    k, place = NodeBuilder(), Affine(0, (1,))
    parameters = [Parameter(f"x{n}", dtype, size) for n, dtype in enumerate(dtypes)]
    args = [k.write(load_node(parameter, place)) for parameter in parameters]
    result = inline_function(k, build_function(label, body, dtypes), args)
    out = Parameter("out", result.dtype, size)
    nodes = tuple(dict.fromkeys(k.nodes))
    return Kernel(
        label, (size,), (*parameters, out), nodes, (Store(out, place, result),)
    )


def interpreted(body, *xs):
    """What NumPy makes of a function: products and sums are rounded one by one."""
    kernel = kernel_of(body, [x.dtype for x in xs], xs[0].size)
    memory = {f"x{n}": x for n, x in enumerate(xs)}
    memory["out"] = np.empty(xs[0].size, kernel.parameters[-1].dtype)
    interpret(kernel, memory)
    return memory["out"]


def compiled(body, *xs):
    """What LLVM makes of a function: fused where the processor can do that."""
    kernel = kernel_of(body, [x.dtype for x in xs], xs[0].size)
    out = np.empty(xs[0].size, kernel.parameters[-1].dtype)
    function = Library(emit_llvm({"f": kernel})).function("f", len(xs) + 1)
    function(*[x.ctypes.data for x in map(np.ascontiguousarray, xs)], out.ctypes.data)
    return out


def ulps(found, exact):
    """Errors in units of the last place; those of a wrong infinity are infinite."""
    info, errors = np.finfo(found.dtype), []
    for number, true in zip(found, exact, strict=True):
        if mp.isnan(true) or mp.isinf(true) or np.isnan(number):
            same = np.isnan(number) if mp.isnan(true) else float(number) == float(true)
            errors.append(0.0 if same else np.inf)
            continue
        place = max(mp.frexp(true)[1] - 1, int(info.minexp)) - info.nmant
        limit = mp.mpf(2) ** int(info.maxexp)
        near = min(max(mp.mpf(float(number)), -limit), limit)
        true = min(max(true, -limit), limit)
        errors.append(float(abs(near - true) / mp.mpf(2) ** place))
    return np.array(errors)


def scattered(rng, low, high, count, dtype):
    """Numbers of either sign, with sizes between two powers of two."""
    sizes = np.ldexp(1 + rng.random(count), rng.integers(low, high, count))
    return (sizes * rng.choice([-1, 1], count)).astype(dtype)


def patterns(rng, count, dtype):
    """Random bits: finite numbers of all sizes."""
    bits = rng.integers(0, 2 ** (8 * dtype.itemsize), count, np.uint64)
    x = bits.astype(f"u{dtype.itemsize}").view(dtype)
    return np.where(np.isfinite(x), x, dtype.type(1))


def _log(x):
    return mp.log(x) if x > 0 else mp.ninf if x == 0 else mp.nan


def _real(function):
    def real(*args):
        try:
            value = function(*args)
        except (ZeroDivisionError, ValueError):
            return mp.nan
        return mp.nan if isinstance(value, mp.mpc) else value

    return real


def _pow(x, y):
    if x < 0 and y != mp.floor(y):
        return mp.nan
    return mp.power(x, y)


# The exact functions.
TRUTHS = {
    name: _real(getattr(mp, name, None))
    for name in "exp expm1 sinh cosh tanh sin cos tan asin acos atan atan2 hypot erf "
    "erfc asinh acosh atanh".split()
}
TRUTHS["exp2"] = lambda x: mp.mpf(2) ** x
TRUTHS["log"] = _log
TRUTHS["log1p"] = lambda x: mp.log1p(x) if x > -1 else _log(1 + x)
TRUTHS["cbrt"] = lambda x: mp.sign(x) * mp.cbrt(abs(x))
TRUTHS["pow"] = _pow
TRUTHS["atanh"] = lambda x: (
    mp.atanh(x) if abs(x) < 1 else mp.inf * x if abs(x) == 1 else mp.nan
)
TRUTHS["erfc"] = lambda x: mp.erfc(max(min(x, mp.mpf(1000)), -mp.mpf(1000)))

# Errors that are allowed, in ulps; with a product and a sum fused, or not.
LIMITS = {"erf": (4.5, 4.5), "erfc": (4.5, 6.1), "tan": (3.5, 4.0)}


def ranges(name, dtype):
    """Pairs of numbers between which a function is interesting."""
    large, least = (88.7, -103.0) if dtype == F32 else (709.7, -745.0)
    near = [(-1, 1), (-8, 8)]
    ends = {
        "exp": [(least, large)],
        "exp2": [(least * 1.4427, large * 1.4427)],
        "expm1": [(-40, large), (large - 1, large)],
        "sinh": [(-large, large), (large, large + 0.6)],
        "cosh": [(-large, large), (large, large + 0.6)],
        "log": [(0, 4), (0.99, 1.01)],
        "log1p": [(-1, 4), (-0.01, 0.01)],
        "acosh": [(1, 8), (1, 1.01)],
        "sin": [(-12_000, 12_000), (-1e6, 1e6)],
        "erfc": [(-4, 9 if dtype == F32 else 26)],
        "pow": [(0, 8), (0.9, 1.1)],
    }
    for name_of_two in ("cos", "tan"):
        ends[name_of_two] = ends["sin"]
    if name in ("asin", "acos", "atanh"):
        return [(-1, 1), (-0.1, 0.1), (0.9, 1)]
    alone = name in ("acosh", "log", "log1p", "pow")
    return ends.get(name, []) + ([] if alone else near)


def arguments(name, dtype, seed, count=150):
    """Many arguments of a function: from its ranges, of all sizes, and subnormal."""
    rng = np.random.default_rng(seed)
    parts = [rng.uniform(*ends, count) for ends in ranges(name, dtype)]
    parts += [patterns(rng, count, dtype), scattered(rng, -30, 10, count, dtype)]
    parts.append(rng.normal(size=count) * float(np.finfo(dtype).tiny))
    return np.concatenate(parts).astype(dtype)
