"""Random programs on every machine: the interpreter, emitted Python, machine code.

Wrong machine code may end the process. So each block of programs runs in a child
process, which says what it is going to try; if it dies, the program is known, and the
next child goes on behind it.

    python -m tests.machine_programs --seed 0 --count 10000 [--backend cpu ...]

Programs with even seeds are lines of `tests.random_programs`, run as they stand, under
jvp, vjp and vmap, with an argument given twice, and with donated arguments; those with
odd seeds have control flow (`tests.random_control`). Memory lies between guard bytes.
"""

import subprocess
import sys
from functools import partial

import numpy as np

import minijax
from minijax.arrays.dtypes import is_inexact
from minijax.arrays.numerics import real_dtype_of
from minijax.jitting.arguments import is_deleted
from minijax.tree_util import tree_map
from tests import random_control
from tests.commands import options_of
from tests.random_programs import (
    GROUPS,
    TOLERANCES,
    Gaps,
    Package,
    difference,
    distance,
    inputs,
    jvp,
    missing,
    vjp,
    vmap,
)
from tests.red_zones import RedZones

BLOCK, PATIENCE = 50, 600
REFERENCE = "interpreter"


def with_bounded_rounding(seed, backends, length=5):
    """Return the disagreements of a straight-line program, a list of texts."""
    with minijax.enable_x64(bool(seed % 4)):
        program = drawn(seed, length)
        return [
            f"{backend}, {way}: {problem}\n  {program.text}"
            for backend in backends
            for way in WAYS
            for problem in program.problems(way, backend)
        ]


def drawn(seed, length=5):
    """Return the straight-line program of a seed."""
    rng = np.random.default_rng(seed)
    return grown(rng, inputs(rng, bool(seed % 4)), GROUPS, length, most=200)


def grown(rng, inputs, groups, length, most):
    """Return a program of random lines.

    Args:
      inputs: from names to NumPy arrays.
      groups: of templates; a group is chosen first.
      length: twice so many lines are tried.
      most: how many numbers a value has at most, but for those of the inputs.
    """
    program = Lines(inputs, [])
    for name in "defghijklmnopq"[: 2 * length]:
        group = groups[rng.integers(len(groups))]
        template = group[rng.integers(len(group))]
        program.add(name, template.format_map(Gaps(rng, program.values)), most)
    return program


class Lines:
    """A straight-line program.

    Args:
      inputs: from names to NumPy arrays.
      lines: pairs of a name and an expression.

    Attributes:
      values: from names to arrays: the inputs, and what the lines have made of them.
      wanted: the names of the results.
    """

    def __init__(self, inputs, lines):
        self.package, self.inputs, self.lines = Package("minijax"), inputs, []
        self.attempt = self.package.attempt
        asarray = self.package.names["jnp"].asarray
        self.values = {name: asarray(x) for name, x in inputs.items()}
        for name, expression in lines:
            self.add(name, expression)

    def add(self, name, expression, most=np.inf):
        """Add a line, unless it fails, or makes too much."""
        alone = self.package.function([(name, expression)], [name])
        found = self.attempt(alone, self.values)
        if not isinstance(found, Exception) and found[0].size < most:
            self.lines.append((name, expression))
            self.values[name] = found[0]

    @property
    def wanted(self):
        """The names of all lines."""
        return [name for name, _ in self.lines]

    @property
    def text(self):
        lines = "; ".join(f"{name} = {line}" for name, line in self.lines)
        return f"{lines}\n  at {self.inputs}"

    def function(self):
        """The function of a dictionary of inputs."""
        return self.package.function(self.lines, self.wanted)

    def problems(self, way, backend):
        """Yield what goes wrong in one of the `WAYS`, as texts."""
        yield from WAYS[way](self, backend)

    def difference(self, ours, theirs):
        """Say how two results differ, or return None.

        No number is more precise than the least precise ones in the program.
        """
        problem = self.attempt(difference, ours, theirs, 100.0)
        if problem and not self.attempt(difference, ours, theirs, np.inf):
            kinds = [x.dtype for x in self.values.values()]
            narrow = max(kinds, key=lambda dtype: TOLERANCES.get(dtype.name, 1e-9))
            coarse = partial(tree_map, partial(rounded, dtype=narrow))
            problem = self.attempt(difference, coarse(ours), coarse(theirs), 5.0)
        return problem

    def each_line(self, found):
        """Compare each line with what it makes of the values that were found.

        So rounding does not add up: a step function after a sum may go either way.
        """
        if isinstance(found, Exception):
            yield repr(found)
            return
        values = self.values | dict(zip(self.wanted, found))
        for (name, expression), ours in zip(self.lines, found):
            line = self.package.function([(name, expression)], [name])
            problem = types_or_values(ours, *line(values))
            if problem:  # an exponent that is known may give another type, as in JAX
                staged = minijax.jit(line, backend=REFERENCE)
                problem = types_or_values(ours, *staged(values))
            if problem:
                yield f"line {name}: {problem}"

    def plain(self, backend):
        """Run it; look at each line."""
        jitted = minijax.jit(self.function(), backend=backend)
        yield from self.each_line(self.attempt(jitted, self.inputs))

    def transformed(self, backend, transformation):
        """Run it under a transformation, here and by the reference."""
        g, reference = (
            minijax.jit(partial(transformation, self.package, self.function()),
                        backend=name)
            for name in (backend, REFERENCE)
        )  # fmt: skip
        ours, theirs = (self.attempt(h, self.inputs) for h in (g, reference))
        if problem := self.difference(ours, theirs):
            yield problem

    def donated(self, backend, own=minijax.numpy.asarray):
        """Run it with arguments that are given up: arrays that `own` makes."""
        f = self.function()
        plain = self.attempt(minijax.jit(f, backend=backend), self.inputs)
        giving = minijax.jit(lambda **xs: f(xs), backend=backend,
                             donate_argnames=tuple(self.inputs))  # fmt: skip
        given = {name: own(x.copy()) for name, x in self.inputs.items()}
        again = self.attempt(lambda: giving(**given))
        if problem := self.attempt(difference, again, plain):
            yield problem
        for name, x in given.items():
            kept = is_deleted(x) or np.array_equal(
                np.asarray(x), self.inputs[name], equal_nan=x.dtype.kind in "fc"
            )
            if not kept:
                yield f"{name} was overwritten and is not deleted"

    def twice(self, backend):
        """Run it with an argument that is given twice."""
        f, asarray = self.function(), self.package.names["jnp"].asarray
        first = next(iter(self.inputs))
        given = {name: asarray(x) for name, x in self.inputs.items()}
        both = minijax.jit(
            lambda a, b: [f(given | {first: a}), f(given | {first: b})],
            backend=backend,
        )
        pair = self.attempt(both, given[first], given[first])
        if isinstance(pair, Exception) or self.attempt(difference, *pair):
            yield repr(pair)


WAYS = {
    "plain": Lines.plain,
    "jvp": partial(Lines.transformed, transformation=jvp),
    "vjp": partial(Lines.transformed, transformation=vjp),
    "vmap": partial(Lines.transformed, transformation=vmap),
    "donated": Lines.donated,
    "twice": Lines.twice,
}


def rounded(x, dtype):
    """Return the numbers of an array, those that are not whole as another dtype."""
    if not is_inexact(x.dtype):
        return np.asarray(x)
    parts = np.asarray(x, np.complex128).view(np.float64)
    return parts.astype(real_dtype_of(dtype) if is_inexact(dtype) else np.float64)


def types_or_values(ours, wanted):
    """Say how an array differs from the one that is wanted, or return None."""
    facts = [(x.shape, x.dtype) for x in (ours, wanted)]
    if facts[0] != facts[1]:
        return f"{facts[0]}, but wanted: {facts[1]}"
    ours, wanted = np.asarray(ours), np.asarray(wanted)
    if missing(wanted) and missing(
        ours
    ):  # one rounding more, and what was large is inf
        both = finite(ours) & finite(wanted)
        ours, wanted = ours[both], wanted[both]
    return distance(ours, wanted, 5.0)


def finite(x):
    """Return where the numbers of an array are finite."""
    return np.isfinite(x.astype(np.complex128))


def with_control_flow(seed, backends):
    """Return the disagreements of a program with loops and branches."""
    comparison = ComparisonOf(seed, backends)
    return [random_control.report(seed, comparison)] if comparison.found else []


class ComparisonOf(random_control.ControlComparison):
    """A program of control flow, by some backends."""

    def __init__(self, seed, backends):
        self.ways = list(map(random_control.backend, backends))
        super().__init__(seed, alone=True)


def run_block(seed, count, backends):
    """Run programs one after the other, and print what happens."""
    for number in range(seed, seed + count):
        print(f"seed {number}", flush=True)
        check = with_control_flow if number % 2 else with_bounded_rounding
        with RedZones() as zones:
            found = check(number, backends)
        for text in [*found, *zones.problems]:
            print(f"PROBLEM {text!r}", flush=True)


def supervise(seed, count, backends):
    """Run blocks in child processes; return the problems, by their seeds."""
    problems, end = {}, seed + count
    while seed < end:
        block = min(BLOCK, end - seed)
        last, found, status = child(seed, block, backends)
        problems |= found
        if status:
            problems.setdefault(last, []).append(f"the process ended with {status}")
        for text in [f"seed {k}: {t}" for k, ts in found.items() for t in ts]:
            print(text, flush=True)
        if status:
            print(f"seed {last}: the process ended with {status}", flush=True)
        seed = last + 1 if status else seed + block
        print(f"… {seed}", file=sys.stderr, flush=True)
    return problems


def child(seed, count, backends):
    """Run a block; return the last seed tried, the problems, and how it ended."""
    command = [sys.executable, "-X", "faulthandler", "-m", "tests.machine_programs"]
    command += ["--child", "--seed", str(seed), "--count", str(count)]
    command += ["--backend", *backends]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        output, status = (
            done.stdout,
            done.returncode and (f"{done.returncode}\n{done.stderr[-2000:]}"),
        )
    except subprocess.TimeoutExpired as expired:
        output, status = (expired.stdout or b"").decode(), "no answer"
    last, found = seed, {}
    for line in output.splitlines():
        if line.startswith("seed "):
            last = int(line.split()[1])
        elif line.startswith("PROBLEM "):
            found.setdefault(last, []).append(eval(line.removeprefix("PROBLEM ")))
    return last, found, status


def main():
    """Run from the command line."""
    options = options_of(
        __doc__, seed=0, count=100, backend=["python", "cpu"], child=False
    )
    if options.child:
        run_block(options.seed, options.count, options.backend)
        return 0
    problems = supervise(options.seed, options.count, options.backend)
    print(f"{options.count} programs, {len(problems)} go wrong")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
