"""Slopes at special points, of every function that acts on each element by itself.

The functions are found: whatever in `MODULES` takes one number, or a number and shape
parameters, and gives a number of the same dtype. No other package is asked. A slope has
to agree with the values beside its point: where these are finite it is not NaN, and it
has the sign of the differences on both sides, or on the one that there is.

    python -m tests.slopes

prints where one does not. `beside` gives the same slopes of two packages.
"""

import inspect
import itertools
import warnings
from functools import cache, partial
from importlib import import_module

import numpy as np

import minijax
from tests.commands import options_of, reported
from tests.known_differences import NO_SLOPES, UNEVEN_SLOPES
from tests.public_names import MODULES as PUBLIC_MODULES

MODULES = ["lax", "numpy", "nn", "scipy.special"]
MODULES += [name for name in PUBLIC_MODULES if name.startswith("scipy.stats.")]
SHAPES = {"a": [2.0, 0.5], "df": [3.0, 1.0], "p": [0.5], "c": [0.5], "beta": [1.0, 2.0]}
LIMITS = np.finfo(np.float32)
SIZES = [0.0, 0.25, 0.5, 1.0, 2.0, 3.0, 10.0, 30.0, 100.0, 1e-4, 1e19, 1e-42]
ENDS = [np.inf, float(LIMITS.max), float(LIMITS.tiny), 1 - float(LIMITS.epsneg)]
POINTS = np.array([s * x for x in SIZES + ENDS for s in (1, -1)] + [np.nan], "float32")


def parameters_of(function):
    """Return the names of the parameters without a default; None if nobody can tell."""
    if isinstance(function, minijax.numpy.ufunc):
        return ["x", "y"][: function.nin]
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    return [x.name for x in parameters if x.default is x.empty and x.kind < 2]


def owner_of(jax, module):
    """Return a module of a package, or a distribution."""
    above, _, name = f"{jax.__name__}.{module}".rpartition(".")
    import_module(f"{above}.{name}")
    return getattr(import_module(above), name)


def call(module, name, shapes, jax, x):
    """Call a function of a package by its place."""
    shapes = [jax.numpy.asarray(shape, jax.numpy.float32) for shape in shapes]
    return getattr(owner_of(jax, module), name)(x, *shapes)


@cache
def elementwise():
    """Return (label, function of a package and an array) of all that can be found."""
    found = []
    for module in MODULES:
        owner, seen = owner_of(minijax, module), set()
        for name in dir(owner):
            function = getattr(owner, name, None)
            if name[0] == "_" or not callable(function) or id(function) in seen:
                continue
            seen.add(id(function))
            names = parameters_of(function) or ["x", "y", "z", "and others"]
            stats = module.startswith("scipy.stats")
            if len(names) > (3 if stats else 1) or inspect.isclass(function):
                continue
            choices = [SHAPES.get(shape, [2.0]) for shape in names[1:]]
            for shapes in itertools.product(*choices):
                f = partial(call, module, name, shapes)
                if acts_on_each(partial(f, minijax)):
                    label = f"{module}.{name}"
                    found.append((f"{label} {[*shapes]}" if shapes else label, f))
    return found


def acts_on_each(f):
    """Return whether a function gives floats, each from the number in its place."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            one, forth, back = map(f, (POINTS[3], POINTS, POINTS[::-1].copy()))
        except Exception:
            return False
    wanted, made = [(), POINTS.shape], [getattr(x, "shape", 0) for x in (one, forth)]
    if made != wanted or forth.dtype != POINTS.dtype:
        return False
    return np.array_equal(np.asarray(forth)[::-1], np.asarray(back), equal_nan=True)


def slopes(jax, f, compiled=False, ways=("grad", "jvp")):
    """Return the slopes of a function at all points, backwards and forwards."""
    one = jax.numpy.ones_like(POINTS)
    moves = {
        "grad": jax.vmap(jax.grad(f)),
        "jvp": lambda x: jax.jvp(f, (x,), (one,))[1],
    }
    chosen = [jax.jit(moves[way]) if compiled else moves[way] for way in ways]
    with np.errstate(all="ignore"):
        return [np.asarray(move(POINTS)) for move in chosen]


def uneven(label, f, ways=("grad", "jvp")):
    """Yield texts about the slopes of a function that its values belie."""
    step = 1e-3 * np.maximum(abs(POINTS), 1)
    with np.errstate(all="ignore"):
        middle, left, right = (
            np.asarray(f(minijax, x)).astype(float)
            for x in (POINTS, POINTS - step, POINTS + step)
        )
        sides = np.sign([middle - left, right - middle])
        tiny = 1e-4 * np.abs(middle)
        sides[abs(np.array([middle - left, right - middle])) <= tiny] = 0
    plain = np.isfinite([left, middle, right]).all(0)
    try:
        found = slopes(minijax, partial(f, minijax), ways=ways)
    except (NotImplementedError, ValueError):
        return  # such as nextafter, which says that it has no derivative
    for way, slope in zip(ways, found):
        wrong = plain & np.isnan(slope) & (label.partition(" ")[0] not in NO_SLOPES)
        rising, falling = [((sides == s) | np.isnan(sides)).all(0) for s in (1, -1)]
        known = np.isfinite(middle) & ~np.isnan(sides).all(0) & (abs(POINTS) < 1e4)
        wrong |= known & (rising & (slope < 0) | falling & (slope > 0))
        wrong &= ~np.isin(POINTS, np.float32(UNEVEN_SLOPES.get(label, ())))
        for x, y in zip(POINTS[wrong], slope[wrong]):
            yield f"{label}, {way}, at {x}: slope {y}"


def all_uneven(every=1):
    """Yield what is wrong with the slopes of all functions.

    Args:
      every: one function of so many has its slopes forwards, too.
    """
    for number, (label, f) in enumerate(elementwise()):
        yield from uneven(label, f, ("grad", "jvp")[: 1 + (number % every == 0)])


def weakness(jax, f, x=0.5, of=None):
    """Say of the derivatives at a number of Python which of them are weak.

    Args:
      of: the names of those that are asked for; all of them by default.
    """
    ways = {
        "value": f,
        "grad": jax.grad(f),
        "jacfwd": jax.jacfwd(f),
        "jacrev": jax.jacrev(f),
        "hessian": jax.hessian(f),
        "jvp": lambda x: jax.jvp(f, (x,), (1.0,))[1],
    }
    asked = {way: ways[way] for way in of or ways}
    return {way: minijax.typeof(g(x)).weak_type for way, g in asked.items()}


def unlike_at_few():
    """Yield where a transform of few numbers and its transpose are no pair."""
    fft, random = minijax.numpy.fft, np.random.default_rng(0)
    for name, size in itertools.product(dir(fft), (1, 2, 3)):
        f = getattr(fft, name)
        for dtype in ("float32", "complex64") if "fft" in name else ():
            x = random.normal(size=(size, size)).astype(dtype)
            if isinstance(out := attempted(f, x), Exception) or "shift" in name:
                continue
            ct = random.normal(size=out.shape).astype(out.dtype)
            [back] = minijax.vjp(f, x)[1](ct)
            same = np.isclose(np.sum(out * ct).real, np.sum(x * back).real, atol=1e-4)
            if not same:
                yield f"{name} of {size} numbers, {dtype}: {back}"


def attempted(f, *args):
    """Return a result, or the error."""
    try:
        return np.asarray(f(*args))
    except (TypeError, ValueError) as error:
        return error


def main(arguments=None):
    """Run from the command line."""
    options_of(__doc__, arguments)
    found = [*all_uneven(), *unlike_at_few()]
    return reported(f"{len(elementwise())} functions", found)


if __name__ == "__main__":
    raise SystemExit(main())
