"""Special numbers through everything that acts on each element by itself.

Zeros of both signs, infinities, NaN, subnormal and huge numbers, and all their pairs,
go through each elementwise primitive that the tables know, and through the functions of
NumPy that are made of several: eagerly, by the backend that interprets, as emitted
Python and as machine code. All have to mean the same: NaN, an infinity, a zero, each of
the same sign, or about the same number.

    python -m tests.special_values [--every 5] [--jax [--eager]]

prints what differs, and where a number is not what it has to be whatever the backends
say. ``--jax`` compares with real JAX instead, compiled, or with ``--eager`` one
operation after the other.
"""

import itertools
import os
import warnings
from functools import cache, partial
from importlib import import_module

import numpy as np

import minijax
from minijax import lax
from minijax.arrays.array import ShapedArray, shape_rules
from tests.arity import PUBLIC, arity
from tests.array_cases import DTYPES, dtype_of
from tests.commands import options_of, reported
from tests.known_differences import BETWEEN_BACKENDS, FLOATS, FROM_JAX, ON_A_CARD

BACKENDS = ["interpreter", "python", "cpu"]
if os.environ.get("MINIJAX_TEST_DEVICE") in ("card", "gpu"):
    BACKENDS = ["gpu"]

# Primitives that want more than their operands; each of these is tried.
PARAMS = {
    "integer_pow": [{"y": y} for y in (-3, -2, -1, 0, 1, 2, 3, 4, 7)],
    "round": [{"rounding_method": 0}, {"rounding_method": 1}],
    "reduce_precision": [
        {"exponent_bits": 5, "mantissa_bits": 10},
        {"exponent_bits": 8, "mantissa_bits": 7},
    ],
}

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
    """Return vectors of special numbers: every pair, or triple, at one place.

    Of complex numbers, of which there are many, every third one is in the triples.
    """
    x = special(name)
    x = x[::3] if count > 2 and x.dtype.kind == "c" else x
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
    for name in dir(lax):  # a module is imported with the first of its names
        getattr(lax, name)
    for primitive in sorted(shape_rules, key=str):
        count = 1 if primitive.name in PARAMS else arity(primitive)
        for dtype in DTYPES if hasattr(lax, f"{primitive}_p") else []:
            avals = [ShapedArray((5,), dtype_of(dtype))] * count
            for params in PARAMS.get(primitive.name, [{}]):
                if accepted(primitive, avals, params):
                    label = f"{primitive}({dtype}) {params or ''}".strip()
                    yield label, bound(primitive.name, params), operands(dtype, count)


def bound(name, params):
    """Return the function of a package and operands that binds its primitive."""

    def bind(jax, *xs):
        if jax is not minijax:  # its primitives have parameters of their own
            module = jax.numpy if name in ("add_any", "copy") else jax.lax
            return getattr(module, PUBLIC.get(name, name))(*xs, **params)
        out = getattr(lax, f"{name}_p").bind(*xs, **params)
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


def differences(ours, theirs, xs, excused=None, subnormals=True):
    """Say at which operands two results mean different things, or return None.

    Args:
      ours, theirs: arrays, or errors.
      xs: the operands.
      excused: says of the operands where a difference is known, or None.
      subnormals: whether they count.
    """
    if isinstance(ours, Exception) or isinstance(theirs, Exception):
        same = type(ours).__name__ == type(theirs).__name__
        return None if same else f"{brief(ours)}, but wanted {brief(theirs)}"
    if ours.dtype != theirs.dtype:
        return f"{ours.dtype}, but wanted {theirs.dtype}"
    wrong = ~alike(ours, theirs)
    if excused:
        wrong &= ~excused(*xs)
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
        near = close(x, y)
        return np.logical_and(
            *[
                alike(*parts) | (near & np.not_equal(*parts))
                for parts in ((x.real, y.real), (x.imag, y.imag))
            ]
        )
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


def close(x, y):
    """Return where complex numbers are close to each other, for their size."""
    with np.errstate(all="ignore"):
        return abs(x - y) <= 64 * np.finfo(x.dtype).eps * abs(y)


def small(x):
    """Return where numbers are subnormal."""
    if x.dtype.kind == "c":
        return small(x.real) | small(x.imag)
    if x.dtype.kind in "biu":
        return np.zeros(x.shape, bool)
    tiny = float(import_module("ml_dtypes").finfo(x.dtype).tiny)
    size = abs(x.astype(np.float64))
    return (size > 0) & (size <= tiny)


def compared(case, backend):
    """Say how a backend differs from what is evaluated, or return None."""
    label, function, xs = case
    f = lambda *args: function(minijax, *args)  # noqa: E731
    with minijax.default_device(minijax.devices("cpu")[0]):
        eager = attempt(f, *map(minijax.numpy.asarray, xs))
    ours = attempt(minijax.jit(f, backend=backend), *xs)
    excuses = {"cpu": BETWEEN_BACKENDS, "gpu": BETWEEN_BACKENDS | ON_A_CARD}
    excused = excuses.get(backend, {}).get(label)
    problem = differences(ours, eager, xs, excused)
    return problem and f"{label}, {backend}: {problem}"


def compared_with_jax(cases, compiled=True):
    """Return a text for each case in which JAX differs from what is evaluated."""
    jax = import_module("jax")
    run = computed_together if compiled else computed
    found = []
    for (label, function, xs), theirs in zip(cases, run(jax, cases)):
        ours = attempt(partial(function, minijax), *map(minijax.numpy.asarray, xs))
        if problem := differences(ours, theirs, xs, FROM_JAX.get(label), False):
            found.append(f"{label}, JAX {'compiled' if compiled else ''}: {problem}")
    return found


def computed(jax, cases):
    """Yield the result of each case, or its error, one operation after the other."""
    for _, function, xs in cases:
        yield attempt(partial(function, jax), *map(jax.numpy.asarray, xs))


def computed_together(jax, cases):
    """Return the results of cases, or their errors, of one compiled program."""
    errors = {}

    def program(operands):
        results = []
        for place, ((_, function, _), xs) in enumerate(zip(cases, operands)):
            try:
                results.append(jax.numpy.asarray(function(jax, *xs)))
            except Exception as error:
                errors[place] = error
                results.append(jax.numpy.zeros(()))
        return results

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = jax.jit(program)([xs for _, _, xs in cases])
    return [errors.get(i, np.asarray(result)) for i, result in enumerate(results)]


def in_batches(cases, eager=False):
    """Return texts about cases that differ from JAX, 16 of them compiled at a time."""
    batches = [cases[i : i + 16] for i in range(0, len(cases), 16)]
    return [x for batch in batches for x in compared_with_jax(batch, not eager)]


def differing(cases):
    """Yield texts about the cases that differ between the backends."""
    return (x for case in cases for name in BACKENDS if (x := compared(case, name)))


def rounded_away():
    """Yield texts about numbers that `jnp.round` does not leave where they were.

    What overflows when it is scaled becomes infinite, in JAX too.
    """
    finfo = import_module("ml_dtypes").finfo
    for dtype, decimals in itertools.product(FLOATS, (-40, -2, 0, 1, 2, 40)):
        limit = float(finfo("float64" if dtype == "float64" else "float32").max)
        x = special(dtype)
        x = x[abs(x.astype(np.float64)) <= min(limit, limit * 10.0**-decimals)]
        for name, f in ways(lambda x, d=decimals: minijax.numpy.round(x, d)):
            y, wide = attempt(f, x).astype(np.float64), x.astype(np.float64)
            eps = float(finfo(dtype_of(dtype)).eps)
            near = abs(y - wide) <= 0.5 * 10.0**-decimals + 2 * eps * abs(wide)
            if not near.all():
                yield f"round({dtype}, {decimals}), {name}: {x[~near]}, {y[~near]}"


def wrong_places():
    """Yield texts about extremes at places that the index dtype has, or has not."""
    for how, dtype, size in itertools.product(
        ("argmax", "argmin"), ("int8", "uint8", "int32"), (127, 128, 129, 256, 257, 300)
    ):
        x = np.arange(size)[:: 1 if how == "argmax" else -1].copy()
        wanted = size - 1 if size - 1 <= np.iinfo(dtype).max else "OverflowError"
        for name, f in ways(lambda x, h=how, d=dtype: getattr(lax, h)(x, 0, d)):
            place = attempt(f, x)
            if isinstance(place, Exception):
                place = type(place).__name__
            if place != wanted:
                yield f"{how}({size} numbers, {dtype}), {name}: {place}, not {wanted}"


def ways(f):
    """Yield a function, and the same on every backend, with their names."""
    yield "evaluated", f
    for backend in BACKENDS:
        yield backend, minijax.jit(f, backend=backend)


def chosen(cases, every, among=("float32",)):
    """Return every so many cases, and all of a few dtypes."""
    return [
        case
        for place, case in enumerate(cases)
        if place % every == 0 or any(dtype in case[0] for dtype in among)
    ]


def some_functions():
    """Yield what differs in a share of the functions."""
    return differing(chosen(function_cases(), 20))


def some_primitives():
    """Yield what differs in a share of the primitives."""
    return differing(chosen(primitive_cases(), 20))


# The share of everything here that `make test` can wait for. Properties that hold
# whatever a backend says come first; then the comparisons.
QUICK_BATTERY = [rounded_away, wrong_places, some_functions, some_primitives]


def main(arguments=None):
    """Run from the command line."""
    defaults = {"every": 1, "start": 0, "only": "", "jax": False, "eager": False}
    options = options_of(__doc__, arguments, **defaults)
    with minijax.enable_x64(True):
        cases = [*primitive_cases(), *function_cases()][options.start :: options.every]
        cases = [case for case in cases if case[0].startswith(options.only)]
        if options.jax:
            with import_module("jax").enable_x64(True):
                found = in_batches(cases, options.eager)
        else:
            found = [*rounded_away(), *wrong_places(), *differing(cases)]
    return reported(f"{len(cases)} cases", found)


if __name__ == "__main__":
    raise SystemExit(main())
