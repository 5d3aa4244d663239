"""Special numbers through everything that acts on each element by itself.

Zeros of both signs, infinities, NaN, subnormal and huge numbers, and all their pairs,
go through each elementwise primitive that the tables know, and through the functions of
NumPy that are made of several: eagerly, by the backend that interprets, as emitted
Python and as machine code. All have to mean the same: NaN, an infinity, a zero, each of
the same sign, or about the same number.

    python -m tests.special_values [--every 5] [--jax]

prints what differs; ``--jax`` compares with real JAX instead, eagerly and compiled.
"""

import itertools
import warnings
from functools import cache
from importlib import import_module

import numpy as np

import minijax
from minijax import lax
from minijax.array import shape_rules
from minijax.avals import ShapedArray
from tests.array_cases import DTYPES, dtype_of
from tests.commands import options_of, reported

BACKENDS = ["interpreter", "python", "cpu"]

# Primitives that want more than their operands; each of these is tried.
PARAMS = {
    "integer_pow": [{"y": y} for y in (-3, -2, -1, 0, 1, 2, 3, 4, 7)],
    "round": [{"rounding_method": 0}, {"rounding_method": 1}],
    "reduce_precision": [
        {"exponent_bits": 5, "mantissa_bits": 10},
        {"exponent_bits": 8, "mantissa_bits": 7},
    ],
}

# How many operands a primitive has, where that is not one.
OPERANDS = {"clamp": 3} | dict.fromkeys(
    """
    add add_any sub mul div rem max min nextafter atan2 pow complex eq ne lt le gt ge
    and or xor shift_left shift_right_logical shift_right_arithmetic
    """.split(),
    2,
)

# Functions of NumPy that are made of several primitives; x and y are operands.
UNARY = """
    jnp.round(x) jnp.round(x,2) jnp.round(x,-2) jnp.round(x,40) jnp.rint(x)
    jnp.trunc(x) jnp.reciprocal(x) jnp.log2(x) jnp.log10(x) jnp.isinf(x) jnp.isnan(x)
    jnp.isfinite(x) jnp.deg2rad(x) jnp.sign(x) jnp.cbrt(x)
    x**0.5 x**-0.5 x**2 x**3 x**-1 x**0 x**1 x**2.0 x**-2 x**1.5 x**True 2.0**x 0.0**x
    (-2.0)**x 1.0**x x%1.0 x//1.0 x%-2 x/0 0/x x*0
""".split()
BINARY = """
    jnp.power(x,y) jnp.hypot(x,y) jnp.arctan2(x,y) jnp.fmod(x,y) jnp.mod(x,y)
    jnp.floor_divide(x,y) jnp.divmod(x,y)[0] jnp.divmod(x,y)[1] jnp.logaddexp(x,y)
    jnp.nextafter(x,y) jnp.isclose(x,y) jnp.less(x,y) x*y x/y x+y x-y x==y
    jnp.where(x>y,x,y) jnp.power(x,jnp.arange(-3,x.size-3)%8-3)
""".split()


@cache
def special(name):
    """Return the special numbers of a dtype, as a vector."""
    dtype = dtype_of(name)
    if name == "bool":
        return np.array([False, True])
    if dtype.kind in "iu":
        ends = np.iinfo(dtype)
        small = [0, 1, 2, 3, 7] + [-1, -2, -3] * (dtype.kind == "i")
        return np.array([*small, ends.min, ends.max], dtype)
    if dtype.kind == "c":
        parts = [0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan]
        pairs = np.array([*itertools.product(parts, parts)], f"f{dtype.itemsize // 2}")
        return pairs.view(dtype).ravel()
    limits = import_module("ml_dtypes").finfo(dtype)
    sizes = [
        0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 100.0, 101.0, np.inf,
        float(limits.max), float(limits.smallest_subnormal), float(limits.tiny),
    ]  # fmt: skip
    with np.errstate(all="ignore"):
        return np.array([*sizes, *(-x for x in sizes), np.nan]).astype(dtype)


def operands(name, count):
    """Return vectors of special numbers: every pair, or triple, at one place."""
    x = special(name)[:: 1 if count < 3 else 3]
    return [part.ravel().copy() for part in np.meshgrid(*[x] * count, indexing="ij")]


def accepted(primitive, avals, params):
    """Return whether a primitive takes these types, and acts on each element."""
    if params.get("y", 0) < 0 and avals[0].dtype.kind in "iu":
        return False  # refused by the function that binds it
    try:
        [out] = shape_rules[primitive](*avals, **params)
    except Exception:
        return False
    return out.shape == avals[0].shape


def primitive_cases():
    """Yield (label, function of a package and vectors, vectors)."""
    for primitive in sorted(shape_rules, key=str):
        count = OPERANDS.get(primitive.name, 1)
        for dtype in DTYPES if hasattr(lax, f"{primitive}_p") else []:
            avals = [ShapedArray((5,), dtype_of(dtype))] * count
            for params in PARAMS.get(primitive.name, [{}]):
                if accepted(primitive, avals, params):
                    label = f"{primitive}({dtype}) {params or ''}"
                    yield label, bound(primitive.name, params), operands(dtype, count)


def bound(name, params):
    """Return the function of a package and operands that binds its primitive."""

    def bind(jax, *xs):
        out = getattr(jax.lax, f"{name}_p").bind(*xs, **params)
        return out[0] if isinstance(out, list) else out

    return bind


def function_cases():
    """Yield the same of functions of NumPy, for the dtypes that they take."""
    for count, text in [(1, x) for x in UNARY] + [(2, x) for x in BINARY]:
        for dtype in DTYPES:
            xs = operands(dtype, count)
            if not isinstance(attempt(written(text), minijax, *xs), Exception):
                yield f"{text} {dtype}", written(text), xs


def written(text):
    """Return the function of a package and operands that a text says."""

    def function(jax, *xs):
        names = {"jax": jax, "jnp": jax.numpy, "lax": jax.lax}
        x, *rest = map(jax.numpy.asarray, xs)
        return eval(text, names | {"x": x, "y": rest[0] if rest else x})

    return function


def attempt(f, *args):
    """Return the result as a NumPy array, or the error."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return np.asarray(f(*args))
        except Exception as error:
            return error


def differences(ours, theirs, xs, subnormals=True):
    """Say at which operands two results mean different things, or return None."""
    if isinstance(ours, Exception) or isinstance(theirs, Exception):
        same = type(ours).__name__ == type(theirs).__name__
        return None if same else f"{brief(ours)}, but wanted {brief(theirs)}"
    if ours.dtype != theirs.dtype:
        return f"{ours.dtype}, but wanted {theirs.dtype}"
    wrong = ~alike(ours, theirs)
    if not subnormals:
        wrong &= ~np.any([[small(x) for x in [*xs, ours, theirs]]], axis=1)[0]
    if not wrong.any():
        return None
    places = np.flatnonzero(wrong)
    rows = [
        f"  {tuple(x[i] for x in xs)}: {ours[i]}, but wanted {theirs[i]}"
        for i in places[:6]
    ]
    return "\n".join([f"{places.size} of {wrong.size}:", *rows])


def brief(x):
    """Return an error, or that there is a result."""
    return repr(x) if isinstance(x, Exception) else f"{x.dtype} numbers"


def alike(x, y):
    """Return where two arrays hold numbers of the same meaning."""
    if x.dtype.kind == "c":
        return alike(x.real, y.real) & alike(x.imag, y.imag)
    if x.dtype.kind in "biu":
        return x == y
    wide = np.float64
    limit = float(import_module("ml_dtypes").finfo(x.dtype).max)
    coarse = 64 * float(import_module("ml_dtypes").finfo(x.dtype).eps)
    x, y = x.astype(wide), y.astype(wide)
    with np.errstate(all="ignore"):
        near = np.isclose(x, y, coarse, 0) | (np.isnan(x) & np.isnan(y))
        near &= np.isnan(x) | (np.signbit(x) == np.signbit(y))
        # The last step before infinity depends on rounding.
        end = np.minimum(abs(x), abs(y)) > limit * (1 - coarse)
        return near | (end & (np.sign(x) == np.sign(y)))


def small(x):
    """Return where numbers are subnormal."""
    if x.dtype.kind == "c":
        return small(x.real) | small(x.imag)
    if x.dtype.kind in "biu":
        return np.zeros(x.shape, bool)
    tiny = float(import_module("ml_dtypes").finfo(x.dtype).tiny)
    size = abs(x.astype(np.float64))
    return (size > 0) & (size <= tiny)


# What is known to differ, and why (`book/differences.md`); a start of the label.
KNOWN = {
    "div(complex": "signs of zero parts",
    "x/y complex": "signs of zero parts",
    "x/0 complex": "signs of zero parts",
    "0/x complex": "signs of zero parts",
    "x**-": "of complex numbers: signs of zero parts; of halves: rounded once or twice",
    "jnp.reciprocal(x) complex": "signs of zero parts",
    "integer_pow(complex64) {'y': -": "signs of zero parts",
    "integer_pow(complex128) {'y': -": "signs of zero parts",
    "integer_pow(float16) {'y': -": "products of halves are rounded once or each time",
    "erf": "the least subnormal number",
    "max(": "which of two zeros",
    "min(": "which of two zeros",
}


def known(case, backend):
    """Return whether a difference of machine code is one that we know of."""
    return backend == "cpu" and any(case[0].startswith(start) for start in KNOWN)


def compared(case, backend):
    """Say how a backend differs from what is evaluated, or return None."""
    label, function, xs = case
    f = lambda *args: function(minijax, *args)  # noqa: E731
    eager = attempt(f, *map(minijax.numpy.asarray, xs))
    ours = attempt(minijax.jit(f, backend=backend), *xs)
    problem = differences(ours, eager, xs)
    return problem and f"{label}, {backend}: {problem}"


def compared_with_jax(case, compiled):
    """Say how JAX differs from what is evaluated, or return None."""
    label, function, xs = case
    jax = import_module("jax")
    f = lambda *args: function(jax, *args)  # noqa: E731
    evaluated = lambda *args: function(minijax, *args)  # noqa: E731
    ours = attempt(evaluated, *map(minijax.numpy.asarray, xs))
    theirs = attempt(jax.jit(f) if compiled else f, *map(jax.numpy.asarray, xs))
    problem = differences(ours, theirs, xs, subnormals=False)
    return problem and f"{label}, JAX {'compiled' if compiled else ''}: {problem}"


def run(cases, ways, compare):
    """Return a text for each case and way that differs."""
    return [text for case in cases for way in ways if (text := compare(case, way))]


def differing(cases):
    """Return texts about the cases that differ between the backends, unexpectedly."""
    return [
        text
        for case in cases
        for name in BACKENDS
        if not known(case, name) and (text := compared(case, name))
    ]


def main(arguments=None):
    """Run from the command line."""
    options = options_of(__doc__, arguments, every=1, start=0, only="", jax=False)
    with minijax.enable_x64(True):
        cases = [*primitive_cases(), *function_cases()][options.start :: options.every]
        cases = [case for case in cases if case[0].startswith(options.only)]
        if options.jax:
            with import_module("jax").enable_x64(True):
                found = run(cases, [False, True], compared_with_jax)
        else:
            found = differing(cases)
    return reported(f"{len(cases)} cases", found)


if __name__ == "__main__":
    raise SystemExit(main())
