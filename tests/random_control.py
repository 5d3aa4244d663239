"""Random programs of control flow, run in several ways by minijax, and by real JAX.

`tests.program_writer` writes them. Each is run as it stands and under jvp, vjp and
vmap; and each of these eagerly, as a jaxpr whose equations are bound one by one, by the
backend that interprets, as emitted Python, and with `jit` disabled, where loops are
loops of Python. All have to agree in values, shapes, dtypes and weak types, or to
refuse with the same class of error.

    python -m tests.random_programs --control-flow --seed 7 --count 100 [--alone]

compares with real JAX, or, ``--alone``, the other ways with the eager one.
"""

from collections import Counter
from functools import partial
from importlib import import_module

import numpy as np

import minijax
from minijax.arrays.array import as_array_impl
from minijax.extend.core import check_jaxpr, jaxpr_as_fun
from minijax.lax.arithmetic import astype
from tests.commands import options_of
from tests.corpus import as_function
from tests.program_writer import Program, Types, namespace
from tests.random_programs import (
    distance,
    dtype_kind,
    of_moving,
    pattern,
    say,
)

# Rounding adds up in the loops, and more so in their derivatives.
LOOSE = 20.0


def moving(f, values):
    """Return `f` from inexact inputs to inexact results, and these inputs."""
    g, primals = of_moving(f, values)
    return lambda *xs: [y for y in g(*xs) if dtype_kind(y) in "fc"], primals


def plain(jax, f, values):
    return f(values)


def direction(jax, x):
    """Return a tangent or cotangent of `x`: fixed numbers, of its weak type."""
    if not getattr(x, "weak_type", False) or x.dtype.kind != "f":
        return pattern(x)
    number = 0.87 if x.ndim else float(pattern(x))
    return jax.numpy.broadcast_to(jax.numpy.asarray(number), x.shape)


def jvp(jax, f, values):
    g, primals = moving(f, values)
    return jax.jvp(g, tuple(primals), tuple(direction(jax, x) for x in primals))


def vjp(jax, f, values):
    g, primals = moving(f, values)
    outs, pullback = jax.vjp(g, *primals)
    return outs, pullback([direction(jax, y) for y in outs])


def mapped(jax, f, values):
    """Map some of the inputs, along some axis, over two versions of them."""
    jnp, axes, stacked = jax.numpy, {}, {}
    for i, (name, x) in enumerate(values.items()):
        shift = (i + x.size) % 3
        axes[name] = (i + x.size) % (x.ndim + 1) if shift or not i else None
        both = [x, x[..., ::-1] if x.ndim else x]
        stacked[name] = x if axes[name] is None else jnp.stack(both, axes[name])
    return jax.vmap(f, in_axes=(axes,))(stacked)


TRANSFORMATIONS = [plain, jvp, vjp, mapped]


def eager(g, values):
    """What comes out as a number of Python, in JAX too, has its type here."""

    def typed(x):
        python = isinstance(x, int | float | complex)
        return minijax.numpy.asarray(x) if python else x

    return minijax.tree_util.tree_map(typed, g(values))


def as_jaxpr(g, values):
    closed, shape = minijax.make_jaxpr(g, return_shape=True)(values)
    check_jaxpr(closed)
    leaves = map(minijax.numpy.asarray, minijax.tree_util.tree_leaves(values))
    outs = map(with_type, jaxpr_as_fun(closed)(*leaves), closed.out_avals)
    tree = minijax.tree_util.tree_structure(shape)
    return minijax.tree_util.tree_unflatten(tree, list(outs))


def with_type(x, aval):
    """A literal comes out as a number, in JAX too; return it with its type."""
    return as_array_impl(astype(x, aval.dtype, aval.weak_type))


def backend(name):
    def run(g, values):
        return minijax.jit(g, backend=name)(values)

    run.__name__ = name
    return run


def disabled(g, values):
    with minijax.disable_jit():
        return g(values)


WAYS = [eager, as_jaxpr, backend("interpreter"), backend("python"), disabled]


def attempt(f, *args):
    """Return the result, or the error."""
    with np.errstate(all="ignore"):
        try:
            return f(*args)
        except Exception as error:
            return error


def runnable(jax, names, source):
    """Return the program as a function of the dictionary of its inputs."""
    names = {**names}
    exec(source, names)
    asarray = names["jnp"].asarray
    return lambda values: [asarray(y) for y in names["program"](**values)]


def jax_answers(f, values, transformations):
    """Return what JAX has for each transformation; all are compiled as one program."""
    jax = import_module("jax")
    answers, running = {}, {}
    for transformation in transformations:
        g = partial(transformation, jax, f)
        answer = attempt(jax.make_jaxpr(g, return_shape=True), values)
        if "custom_lin" in str(answer):  # refused when it is compiled
            answers[transformation] = attempt(jax.jit(g), values)
        elif isinstance(answer, Exception):
            answers[transformation] = answer
        else:
            running[transformation] = answer
    leaves = jax.tree_util.tree_leaves(values)
    functions = [as_function(jax)(closed) for closed, _ in running.values()]
    results = attempt(jax.jit(lambda xs: [g(*xs) for g in functions]), leaves)
    if isinstance(results, Exception):  # of one of them at least
        results = [attempt(jax.jit(g), *leaves) for g in functions]
    for (transformation, (_, shape)), outs in zip(running.items(), results):
        if isinstance(outs, Exception):
            answers[transformation] = outs
            continue
        tree = jax.tree_util.tree_structure(shape)
        answers[transformation] = jax.tree_util.tree_unflatten(tree, outs)
    return answers


class ControlComparison:
    """One random program of control flow, in all ways.

    Args:
      seed: which program.
      alone: whether to do without JAX.

    Attributes:
      program: the `tests.program_writer.Program`.
      found: the disagreements, as texts.
      checked: how many results were compared; `refused`: how many of them are errors.
    """

    writer, ways, loose = Program, WAYS, LOOSE

    def __init__(self, seed, alone=False, length=4):
        self.found, self.checked, self.refused = [], 0, 0
        packages = ["minijax"] if alone else ["jax", "minijax"]
        modules = [import_module(name) for name in packages]
        wide = bool(seed % 2)
        for jax in modules:
            jax.config.update("jax_enable_x64", wide)
        try:
            judges = [Types(name) for name in packages]
            self.program = self.writer(seed, judges, length)
            self.found += self.program.problems
            self.compare(alone)
        finally:
            for jax in modules:
                jax.config.update("jax_enable_x64", False)

    def compare(self, alone):
        values, source = self.program.arguments(minijax), self.program.source
        f, transformations = runnable(minijax, namespace("minijax"), source), self.all()
        if not alone:
            jax = import_module("jax")
            theirs = runnable(jax, namespace("jax"), source)
            given = self.program.arguments(jax)
            answers = jax_answers(theirs, given, transformations)
        for transformation in transformations:
            g = partial(transformation, minijax, f)
            wanted = attempt(as_jaxpr, g, values) if alone else answers[transformation]
            at_once = None if alone else partial(transformation, jax, theirs, given)
            for way in self.ways:
                self.judge(
                    transformation, way, attempt(way, g, values), wanted, at_once
                )

    def all(self):
        """Return the transformations to try."""
        return TRANSFORMATIONS

    def judge(self, transformation, way, ours, wanted, at_once):
        """Compare a result with JAX's, where it is staged, or else where it is not.

        A known number of steps, or a Python number, may be forgotten when a program
        is staged, in JAX too: eager results may be those of eager JAX, and all values,
        since XLA may round badly. With `jit` disabled, Python's numbers have no types,
        and some programs do not run.
        """
        if way is disabled and any(isinstance(x, Exception) for x in (ours, wanted)):
            return
        if isinstance(wanted, AttributeError):
            return  # JAX's loops hand on a Python number as it is: it has no methods
        self.checked += 1
        self.refused += isinstance(wanted, Exception)
        problem = attempt(self.difference, ours, wanted, way is not disabled)
        if problem and at_once is None:
            if way is eager:
                lost = isinstance(wanted, ValueError)
                problem = not lost and attempt(self.difference, ours, wanted, False)
        elif problem and (way is eager or not attempt(types_differ, ours, wanted)):
            typed = way is eager
            problem = (
                attempt(self.difference, ours, attempt(at_once), typed) and problem
            )
        if problem:
            self.found.append(f"{transformation.__name__}, {way.__name__}: {problem}")

    def difference(self, ours, wanted, typed):
        """Say how two results differ, or return None."""
        if problem := types_differ(ours, wanted, typed):
            return problem
        if isinstance(wanted, Exception):
            return None
        leaves = minijax.tree_util.tree_leaves
        for x, y in zip(leaves(ours), leaves(wanted), strict=True):
            if problem := distance(self.rounded(x), self.rounded(y), self.loose):
                return problem
        return None

    def rounded(self, x):
        """As precise as the least precise numbers in the program."""
        x, everything = np.asarray(x), f"{self.program.source}{self.program.inputs}"
        narrow = "float32" in everything or "complex64" in everything
        return x.astype(NARROW.get(x.dtype.name, x.dtype)) if narrow else x


NARROW = {"float64": "float32", "complex128": "complex64"}


def types_differ(ours, wanted, typed=True):
    """Say how the types of two results, or the classes of errors, differ, or not."""
    if isinstance(ours, Exception) or isinstance(wanted, Exception):
        same = type(ours).__name__ == type(wanted).__name__
        return None if same else f"{say(ours)}, but wanted: {say(wanted)}"
    leaves = minijax.tree_util.tree_leaves
    for x, y in zip(leaves(ours), leaves(wanted), strict=True):
        if typed and facts(x) != facts(y):
            return f"{facts(x)}, but wanted: {facts(y)}"
    return None


def facts(x):
    """Return what is known of an array besides its numbers."""
    return x.shape, x.dtype.name, bool(getattr(x, "weak_type", False))


def alike_but_for_weakness(ours, wanted):
    """Whether two results have the same shapes and dtypes, weak or not."""
    if isinstance(ours, Exception) or isinstance(wanted, Exception):
        return False
    leaves = minijax.tree_util.tree_leaves
    pairs = zip(leaves(ours), leaves(wanted), strict=True)
    return all(facts(x)[:2] == facts(y)[:2] for x, y in pairs)


def weakness_differs(ours, wanted):
    """Return the pairs of results of which one is weak."""
    leaves = minijax.tree_util.tree_leaves
    pairs = zip(leaves(ours), leaves(wanted), strict=True)
    return [(x, y) for x, y in pairs if facts(x) != facts(y)]


def report(seed, comparison):
    """Return a text that says everything about a program that goes wrong."""
    inputs = ", ".join(f"{k} = {v!r}" for k, v in comparison.program.inputs.items())
    return "\n".join(
        [f"seed {seed}:", comparison.program.source, inputs, *comparison.found]
    )


def main(arguments=None):
    """Run from the command line."""
    options = options_of(__doc__, arguments, seed=0, count=100, length=4, alone=False)
    checked = refused = bad = 0
    kinds = Counter()
    for seed in range(options.seed, options.seed + options.count):
        comparison = ControlComparison(seed, options.alone, options.length)
        kinds.update(comparison.program.kinds)
        checked, refused = checked + comparison.checked, refused + comparison.refused
        if comparison.found:
            bad += 1
            print(report(seed, comparison), end="\n\n", flush=True)
        if not options.alone and seed % 50 == 49:
            import_module("jax").clear_caches()
    print(", ".join(f"{kind}: {number}" for kind, number in kinds.most_common()))
    print(f"{options.count} programs, {checked} results ({refused} refusals), ", end="")
    print(f"{bad} programs disagree")
    return bool(bad)
