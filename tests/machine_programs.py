"""Random programs on every machine: the interpreter, emitted Python, machine code.

Wrong machine code may end the process. So each block of programs runs in a child
process, which says what it is going to try; if it dies, the program is known, and the
next child goes on behind it.

    python -m tests.machine_programs --seed 0 --count 10000 [--backend cpu ...]

Programs with even seeds are lines of `tests.random_programs`, run as they stand, under
jvp, vjp and vmap, with an argument given twice, and with donated arguments; those with
odd seeds have control flow (`tests.random_control`).
"""

import subprocess
import sys
from functools import partial

import numpy as np

import minijax
from minijax.donation import is_deleted
from minijax.dtypes import is_inexact
from minijax.lax.factories import to_real
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

BLOCK, PATIENCE = 50, 600
REFERENCE = "interpreter"


def with_bounded_rounding(seed, backends, length=5):
    """Return the disagreements of a straight-line program, a list of texts."""
    with minijax.enable_x64(bool(seed % 4)):
        program = Lines(seed, length)
        return [
            f"{backend}, {what}: {problem}\n  {program.text}"
            for backend in backends
            for what, problem in program.problems(backend)
        ]


class Lines:
    """A random straight-line program.

    Attributes:
      lines: pairs of a name and an expression.
      inputs: from names to NumPy arrays.
    """

    def __init__(self, seed, length):
        self.package, self.lines = Package("minijax"), []
        self.attempt = self.package.attempt
        rng = np.random.default_rng(seed)
        self.inputs = inputs(rng, bool(seed % 4))
        asarray = self.package.names["jnp"].asarray
        self.values = {name: asarray(x) for name, x in self.inputs.items()}
        for name in "defghijklmnopq"[: 2 * length]:
            group = GROUPS[rng.integers(len(GROUPS))]
            template = group[rng.integers(len(group))]
            line = name, template.format_map(Gaps(rng, self.values))
            alone = self.package.function([line], [name])
            found = self.attempt(alone, self.values)
            if not isinstance(found, Exception) and found[0].size < 200:
                self.lines.append(line)
                self.values[name] = found[0]
        self.wanted = [name for name, _ in self.lines]

    @property
    def text(self):
        lines = "; ".join(f"{name} = {line}" for name, line in self.lines)
        return f"{lines}\n  at {self.inputs}"

    def problems(self, backend):
        """Yield what goes wrong in which way."""
        f = self.package.function(self.lines, self.wanted)
        jitted = minijax.jit(f, backend=backend)
        yield from self.each_line(self.attempt(jitted, self.inputs))
        for transformation in (jvp, vjp, vmap):
            g, reference = (
                minijax.jit(partial(transformation, self.package, f), backend=name)
                for name in (backend, REFERENCE)
            )
            ours, theirs = (self.attempt(h, self.inputs) for h in (g, reference))
            if problem := self.difference(ours, theirs):
                yield transformation.__name__, problem
        yield from self.donated(f, backend)

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
            yield "plain", repr(found)
            return
        values = self.values | dict(zip(self.wanted, found))
        for (name, expression), ours in zip(self.lines, found):
            line = self.package.function([(name, expression)], [name])
            [wanted] = line(values)
            if problem := types_or_values(ours, wanted):
                yield f"line {name}", problem

    def donated(self, f, backend):
        """Yield what goes wrong if arguments are given up, or given twice."""
        asarray = self.package.names["jnp"].asarray
        plain = self.attempt(minijax.jit(f, backend=backend), self.inputs)
        giving = minijax.jit(lambda **xs: f(xs), backend=backend,
                             donate_argnames=tuple(self.inputs))  # fmt: skip
        own = {name: asarray(x.copy()) for name, x in self.inputs.items()}
        again = self.attempt(lambda: giving(**own))
        if problem := self.attempt(difference, again, plain):
            yield "donated", problem
        for name, x in own.items():
            kept = is_deleted(x) or np.array_equal(
                np.asarray(x), self.inputs[name], equal_nan=x.dtype.kind in "fc"
            )
            if not kept:
                yield "donated", f"{name} was overwritten and is not deleted"
        first = next(iter(own))
        given = {name: asarray(x) for name, x in self.inputs.items()}
        twice = minijax.jit(
            lambda a, b: [f(given | {first: a}), f(given | {first: b})],
            backend=backend,
        )
        x = given[first]
        pair = self.attempt(twice, x, x)
        if isinstance(pair, Exception) or self.attempt(difference, *pair):
            yield "an argument given twice", repr(pair)


def rounded(x, dtype):
    """Return the numbers of an array, those that are not whole as another dtype."""
    if not is_inexact(x.dtype):
        return np.asarray(x)
    parts = np.asarray(x, np.complex128).view(np.float64)
    return parts.astype(to_real(dtype) if is_inexact(dtype) else np.float64)


def types_or_values(ours, wanted):
    """Say how an array differs from the one that is wanted, or return None."""
    facts = [(x.shape, x.dtype) for x in (ours, wanted)]
    if facts[0] != facts[1]:
        return f"{facts[0]}, but wanted: {facts[1]}"
    if missing(wanted) and missing(ours):
        return None
    return distance(np.asarray(ours), np.asarray(wanted), 5.0)


def with_control_flow(seed, backends):
    """Return the disagreements of a program with loops and branches."""
    ways = random_control.WAYS
    random_control.WAYS = [random_control.backend(name) for name in backends]
    try:
        comparison = random_control.ControlComparison(seed, alone=True)
        return [random_control.report(seed, comparison)] if comparison.found else []
    finally:
        random_control.WAYS = ways


def run_block(seed, count, backends):
    """Run programs one after the other, and print what happens."""
    for number in range(seed, seed + count):
        print(f"seed {number}", flush=True)
        check = with_control_flow if number % 2 else with_bounded_rounding
        for text in check(number, backends):
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
