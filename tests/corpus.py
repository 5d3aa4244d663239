"""Small programs that every transformation, and every stack of them, has to survive.

Each program is a function of one array, written against a package that may be
minijax or JAX: `programs(jax)` builds them all. `transformations(jax)` maps such a
function to another one of the same kind, so that transformations can be stacked to any
depth; control flow is among them (see `tests.control_corpus`).
Several stacks mean the same thing (a linearized function is a jvp, a program that was
written down or compiled is the program), which `meaning` says: JAX is asked once for
each. `simplest` goes further, and replaces loops and branches by straight-line code.
"""

from functools import cache
from importlib import import_module
from itertools import product

import numpy as np

from tests import control_corpus, rules_corpus

SCALAR = np.array(0.7)
VECTOR = np.array([0.3, 1.1, 0.8])
MATRIX = np.array([[0.4, 1.2, 0.9], [0.7, 0.5, 1.3]])


def programs(jax):
    """Return the programs as a dictionary from names to pairs ``(function, point)``.

    Args:
      jax: the package: ``minijax`` or ``jax``.
    """
    points = {"of_scalars": SCALAR, "of_vectors": VECTOR, "of_matrices": MATRIX}
    return {
        name: (f, point)
        for table in (globals(), vars(control_corpus))
        for family, point in points.items()
        for name, f in table[family](jax, jax.numpy).items()
    }


def of_scalars(jax, jnp):
    """Programs of one number."""

    def branch(x):
        return jnp.where(x > 0.5, jnp.sin(x), x * x)

    def nest(x):
        return jax.jvp(lambda z: jnp.sin(z) * x, (x,), (2.0 * x,))[1]

    def confusion(x):
        return x * jax.jvp(lambda z: x + z, (1.0,), (1.0,))[1]

    def newton(x):
        for _ in range(3):
            x = x - (x * x - 2.0) / (2.0 * x)
        return x

    return {
        "identity": lambda x: x,
        "constant": lambda x: jnp.ones(2) * 3.0,
        "double": lambda x: 2.0 * x,
        "polynomial": lambda x: 3.0 * x**3 - x**2 + 4.0,
        "reciprocal": lambda x: 1.0 / x,
        "sin times x": lambda x: jnp.sin(x) * x,
        "exp of sin": lambda x: jnp.exp(jnp.sin(x)),
        "log1p": lambda x: jnp.log1p(x * x),
        "expm1": lambda x: jnp.expm1(-x),
        "sqrt": lambda x: jnp.sqrt(1.0 + x * x),
        "power": lambda x: x**2.5 + 2.0**x,
        "power of itself": lambda x: x**x,
        "tan": lambda x: jnp.tan(x) - jnp.arctan(x),
        "hyperbolic": lambda x: jnp.sinh(x) * jnp.cosh(x) - jnp.tanh(x),
        "inverse": lambda x: jnp.arcsin(x) + jnp.arccos(x) * jnp.arcsinh(x),
        "arctan2": lambda x: jnp.arctan2(x, 2.0 - x),
        "sigmoid": lambda x: jax.lax.logistic(x) * jax.lax.rsqrt(x),
        "erf": lambda x: jax.lax.erf(x) * jax.lax.cbrt(x),
        "where": branch,
        "maximum": lambda x: jnp.maximum(x, 0.2) * jnp.minimum(x * x, 3.0),
        "clip": lambda x: jnp.clip(x, 0.0, 0.9) ** 2,
        "absolute": lambda x: jnp.abs(x - 2.0) * jnp.sign(x),
        "floor": lambda x: x * jnp.floor(3.0 * x) + jnp.round(x),
        "remainder": lambda x: (5.0 * x) % 1.5,
        "integers": lambda x: x * jnp.arange(3),
        "diamond": lambda x: (x + x) * (x * x),
        "jvp inside": nest,
        "confusion": confusion,
        "newton": newton,
        "closure": lambda x: jnp.sum(np.arange(3.0) * x),
        "complex": lambda x: jnp.abs(jnp.exp(1j * x) + x),
        "real part": lambda x: jnp.real((x + 2j) * (x - 1j) * x),
    }


def of_vectors(jax, jnp):
    """Programs of three numbers."""
    weights = np.array([[0.2, -0.5, 1.0], [0.7, 0.3, -0.4]])

    def softmax(x):
        e = jnp.exp(x - jnp.max(x))
        return e / e.sum()

    def tree(x):
        parameters = {"w": weights * x[0], "b": (x[1], x[2:])}
        return jnp.tanh(parameters["w"] @ x + parameters["b"][0]) * parameters["b"][1]

    def centred(x):
        shift = jax.vmap(
            lambda a: a - jax.lax.pmean(a, "i") + jax.lax.psum(a * a, "i"),
            axis_name="i",
        )
        return shift(x)

    return {
        "sum": lambda x: x.sum(),
        "product": lambda x: jnp.prod(x),
        "mean and variance": lambda x: jnp.stack([x.mean(), x.var()]),
        "softmax": softmax,
        "log of sum of exp": lambda x: jnp.log(jnp.sum(jnp.exp(x))),
        "largest": lambda x: x.max() * x.min(),
        "dot": lambda x: jnp.dot(x, x),
        "layer": lambda x: jnp.tanh(jnp.dot(weights, x)),
        "outer": lambda x: jnp.outer(x, jnp.sin(x)),
        "quadratic": lambda x: x @ (weights.T @ weights) @ x,
        "slices": lambda x: x[1:] * x[:-1],
        "reversed": lambda x: x[::-1] * x,
        "one element": lambda x: x[1] * x[-1],
        "running sum": lambda x: jnp.cumsum(x) * jnp.cumprod(x),
        "concatenate": lambda x: jnp.concatenate([x, x * x, jnp.ones(2)]),
        "stack": lambda x: jnp.stack([x, 2.0 * x]).T,
        "pad": lambda x: jnp.pad(x, (1, 2)) * jnp.arange(6.0),
        "tile": lambda x: jnp.tile(x, 2).reshape(2, 3).sum(0),
        "broadcast": lambda x: x[:, None] * x[None, :] + x,
        "expand": lambda x: jnp.broadcast_to(x, (2, 3)) * jnp.ones((2, 1)),
        "tree": tree,
        "mapped": lambda x: jax.vmap(lambda a: jnp.sin(a) * x)(x),
        "mapped twice": lambda x: jax.vmap(
            lambda a: jax.vmap(lambda b: a * b + a)(x), out_axes=1
        )(x),
        "named axis": centred,
        "argmax": lambda x: x * jnp.argmax(x),
        "compare": lambda x: jnp.where(x > x.mean(), x, 0.0),
        "norm": lambda x: jnp.sqrt((x * x).sum()),
        "convert": lambda x: (x.astype("float32") * 2).astype(x.dtype),
        "masked sum": lambda x: jnp.sum(x * x, where=np.array([True, False, True])),
        "roll": lambda x: jnp.roll(x, 1) - x,
        "looked up": lambda x: x[np.array([2, 0, -1, 2])] * jnp.arange(4.0),
        "added to": lambda x: x.at[np.array([1, 1, -1])].add(x * x)[::-1],
        "replaced": lambda x: x.at[1:].set(x[0] * x[2]) * x,
        "segments": lambda x: jax.ops.segment_sum(x * x, np.array([1, 0, 1]), 2),
    }


def of_matrices(jax, jnp):
    """Programs of a matrix, two by three."""

    def definite(x):
        return x @ x.T + jnp.eye(2)

    rows = np.array([[1, 0], [1, 1]])
    return {
        "factor": lambda x: jnp.linalg.cholesky(definite(x)),
        "solution": lambda x: jnp.linalg.solve(x[:, :2] + 3 * jnp.eye(2), x),
        "eigenvalues": lambda x: jnp.linalg.eigh(definite(x))[0],
        "table": lambda x: jnp.tanh(x[rows]).sum((1, 2)),
        "in pairs": lambda x: jnp.take_along_axis(x, rows, 1) * x[:, 1:],
        "transpose": lambda x: x.T @ x,
        "sum of rows": lambda x: x.sum(axis=1) * x.max(axis=1),
        "normalise": lambda x: (x - x.mean(0)) / jnp.sqrt(x.var(0) + 1.0),
        "reshape": lambda x: x.reshape(3, 2) @ np.ones((2, 2)),
        "trace": lambda x: jnp.sum(jnp.eye(2, 3) * x),
        "batched dot": lambda x: jax.vmap(jnp.dot)(x, x * x),
        "mixed axes": lambda x: jax.vmap(
            lambda a, b: a * b.sum(), in_axes=(1, 0), out_axes=1
        )(x, x.T),
        "tensordot": lambda x: jnp.tensordot(x, x, axes=2),
        "swapped": lambda x: jnp.swapaxes(x[None], 0, 2) * 2.0,
        "row": lambda x: x[1] - x[0] * x[:, 1:2].sum(),
        "two layers": lambda x: jnp.tanh(jnp.tanh(x) @ np.ones((3, 2))) @ x,
    }


def pattern(shape, dtype):
    """A fixed array without symmetries: directions and cotangents are made of it."""
    flat = np.cos(np.arange(np.prod(shape, dtype=int)) + 0.5)
    return flat.reshape(shape).astype(dtype)


def transformations(jax):
    """Return the transformations: each maps a function of an array to another."""
    jnp, run = jax.numpy, as_function(jax)

    def jvp(f):
        return lambda x: jax.jvp(f, (x,), (pattern(x.shape, x.dtype),))[1]

    def linearize(f):
        return lambda x: jax.linearize(f, x)[1](pattern(x.shape, x.dtype))

    def vjp(f):
        def pulled(x):
            y, pullback = jax.vjp(f, x)
            return pullback(pattern(y.shape, y.dtype))[0]

        return pulled

    def grad(f):
        def weighed(x):
            y = f(x)
            return (y * pattern(y.shape, y.dtype)).sum()

        return jax.grad(weighed)

    def vmap(f):
        return lambda x: jax.vmap(f, in_axes=-1)(jnp.stack([x, 1.1 * x], axis=-1))

    def jaxpr(f):
        def rerun(x):
            closed = jax.make_jaxpr(f)(x)
            return run(closed)(x)[0]

        return rerun

    named = (jvp, linearize, vjp, grad, vmap, jaxpr)
    plain = {f.__name__: f for f in named}
    wrappers = control_corpus.wrappers(jax) | rules_corpus.wrappers(jax)
    straight = control_corpus.plain(jax) | rules_corpus.plain(jax)
    return plain | wrappers | {f"plain {name}": f for name, f in straight.items()}


def as_function(jax):
    """Return the function that turns a closed jaxpr into a function."""
    return import_module(f"{jax.__name__}.extend.core").jaxpr_as_fun


DERIVING = ("jvp", "linearize", "vjp", "grad", "vmap", "jaxpr")
NAMES = (*DERIVING, "jit", "cond", "scan", "while", "fori")
SAME = {"linearize": "jvp", "grad": "vjp"}
STRAIGHT = {name: f"plain {name}" for name in ("cond", "scan", "while", "fori")}
STRAIGHT |= {name: f"plain {name}" for name in rules_corpus.NAMES}
BASES = ("sin times x", "softmax", "named axis", "scan over rows")


def stacks(depth, names=NAMES):
    """Return all stacks of at most `depth` transformations, innermost first."""
    return [s for n in range(1, depth + 1) for s in product(names, repeat=n)]


def stacks_of(name):
    """Return the stacks to try on a program.

    These are all of depth 2, and of depth 3 those without control flow for the programs
    without control flow; all of depth 3 for `BASES`.
    """
    if name in BASES:
        return stacks(3)
    if name in control_programs():
        return stacks(2)
    return list(dict.fromkeys(stacks(2) + stacks(3, DERIVING)))


@cache
def control_programs():
    """Return the names of the programs that are in `tests.control_corpus`."""
    import minijax

    families = "of_scalars", "of_vectors", "of_matrices"
    tables = [getattr(control_corpus, f)(minijax, minijax.numpy) for f in families]
    return {name for table in tables for name in table}


def meaning(stack):
    """Return the shortest stack that computes the same values in the same way."""
    silent = ("jaxpr", "jit")
    return tuple(SAME.get(name, name) for name in stack if name not in silent)


def simplest(stack):
    """Return a stack without loops and branches that computes the same values."""
    return tuple(STRAIGHT.get(name, name) for name in meaning(stack))


def irreversible(stack):
    """Whether a loop of unknown length is to run in reverse, which JAX refuses."""
    backwards = [i for i, name in enumerate(stack) if name in ("vjp", "grad")]
    return "while" in stack and stack.index("while") < max(backwards, default=-1)


def apply(table, stack, f):
    """Apply the transformations of `stack` to `f`, one after the other."""
    for name in stack:
        f = table[name](f)
    return f


def count():
    """Return how much is checked, for ``make counts``."""
    import minijax

    tried = {name: stacks_of(name) for name in programs(minijax)}
    return {
        "corpus programs": len(tried),
        "program × stack": sum(map(len, tried.values())),
        "program × meaning": sum(
            len(set(map(meaning, stacks))) for stacks in tried.values()
        ),
    }
