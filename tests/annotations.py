"""Random programs with each annotation of a schedule switched off in turn.

    python -m tests.annotations --seed 0 --count 10000 [--jobs 2] [--kind plain avx2]

An annotation says how a loop runs, and never what it computes. So a program has to come
out the same by the interpreter, emitted Python, interpreted kernels and machine code,
and by machine code without vectors, tiles, rows that are kept, streams, rows side by
side, loops that are written out, sums in blocks, masks, and threads. A switch is tried
where it changes the nest of a kernel. Limits are low here, so that small programs have
streams and threads as well.

Of four seeds one is a program of `tests.machine_programs`, with small arrays, and one
has control flow. Two are lines that sweep over arrays in both directions, with axes
about as long as vectors. Each block runs in a child process, for processors of several
kinds in turn.
"""

import contextlib
import os
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import patch

import numpy as np

import minijax
from minijax.cpu_backend.backend import CPUProgram
from minijax.jitting.compilation import backends
from minijax.llvm.targets import scheduler
from minijax.threads import parallel_loops as shared_text
from minijax.vectorization import row_schedules as held_rows
from minijax.vectorization import row_schedules as marks
from minijax.vectorization import row_schedules as streaming
from minijax.vectorization import row_schedules as strips
from minijax.vectorization.row_schedules import (
    cache_rows,
    fission_row_loops,
    stream_folds,
    strip_mine,
    vectorize_loops,
)
from minijax.vectorization.schedules import (
    SCHEDULE_PASSES,
    register_block,
    schedule_nest,
    tile_transposes,
)
from minijax.vectorization.vector_functions import is_loop
from tests import edge_programs, machine_programs
from tests.commands import options_of, reported
from tests.random_programs import GROUPS

BLOCK, PATIENCE, THREADS = 20, 900, 3
LONG = 40
LESS = {
    (streaming, "far_bytes"): lambda target: 2**10,
    (shared_text, "MIN_PART_NS"): 10,
    (held_rows, "MAX_SERIAL_ELEMENTS"): 2**10,
    (strips, "MIN_STRIP_MINED_ELEMENTS"): 1,
    (strips, "STRIP_LENGTH"): 16,
    (marks, "MASK_THRESHOLD"): 2,
}

SQUARE = [7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 48, 63, 64, 65]

# Lines that have to do with annotations: sweeps over the same numbers.
SWEPT = [
    f"{what} {symbol} jnp.{name}({what}, {{place}}, keepdims=True)"
    for what in ("jnp.exp({x})", "jnp.tanh({x})", "jnp.arctan({x})", "jnp.sin({x} * 2)")
    for symbol, name in (("-", "max"), ("+", "sum"), ("*", "mean"), ("<", "min"))
] + ["jnp.tanh({x}.sum({place}))", "jnp.exp(jnp.tanh({x} * {x}).mean({place}))"]
_ROWS = "{x}.reshape({x}.shape[0], -1)"
ENDED = [  # functions of the folds of rows
    f"jnp.{name}(({_ROWS}[:, None] * {_ROWS}[:{count}]).sum(2))"
    for name, count in (("tanh", 1), ("exp", 2), ("arctan", 3), ("sin", 5))
]
TRANSPOSED = [
    "{x}.T", "({x} * 2 + 1).T", "jnp.swapaxes({x}, 0, -1)", "-{x}.T[::-1]",
    "{x}.T.astype('{dtype}')", "jnp.swapaxes({x} + {o}, -1, -2)",
    "jnp.concatenate([{x}.T, {x}.T])",
]  # fmt: skip
MULTIPLIED = [
    f"jnp.{name}({_ROWS}[:, :, None] {symbol} {_ROWS}.T[None], 1)"
    for symbol, name in (("+", "min"), ("-", "max"), ("*", "sum"), ("+", "argmin"))
]
TELLING = [
    MULTIPLIED, SWEPT, ENDED, TRANSPOSED, edge_programs.FOLDED, SWEPT, TRANSPOSED,
    edge_programs.TURNED, edge_programs.FOLDED, edge_programs.NARROWED, *GROUPS[:8],
]  # fmt: skip

# Which passes are left out without an annotation; those of vectors, all that make them.
LEFT_OUT = {
    "vector": (
        vectorize_loops,
        tile_transposes,
        fission_row_loops,
        strip_mine,
        stream_folds,
    ),
    "tile": (tile_transposes,),
    "keep": (cache_rows, fission_row_loops, strip_mine),
    "stream": (stream_folds,),
    "strip": (strip_mine,),
    "together": (register_block,),
    "unroll": (),
    "block": (),
    "mask": (),
}
MARKS = {
    "unroll": ("kind", "unrolled", "serial"),
    "block": ("blocked", True, False),
    "mask": ("kind", "masked", "vector"),
}
ANNOTATIONS = (*LEFT_OUT, "parallel")


def nest_without(annotation, kernel, target):
    """Return the steps of a kernel's nest without an annotation."""
    out = LEFT_OUT.get(annotation, ())
    steps = schedule_nest(
        kernel, target, [step for step in SCHEDULE_PASSES if step not in out]
    )
    return unmarked(steps, *MARKS[annotation]) if annotation in MARKS else steps


def unmarked(steps, name, old, new):
    """Return steps in whose loops one value of a field is another one."""

    def other(loop):
        value = new if getattr(loop, name) == old else getattr(loop, name)
        body = unmarked(loop.body, name, old, new)
        return loop._replace(body=body, **{name: value})

    return [other(step) if is_loop(step) else step for step in steps]


class Recorded(CPUProgram):
    """A program that notes which annotations its nests have, in `met`."""

    met: set = set()

    def __init__(self, *args, **kwargs):
        with scheduled(self.nest), limits():
            super().__init__(*args, **kwargs)
        if "@minijax_share" in self.text:
            self.met.add("parallel")

    def nest(self, kernel, target):
        """Return the nest of a kernel, and note what would be another without."""
        steps = schedule_nest(kernel, target)
        for name in LEFT_OUT.keys() - self.met:
            if nest_without(name, kernel, target) != steps:
                self.met.add(name)
        return steps


class Without(CPUProgram):
    """A program whose nests have no loops with one of the annotations."""

    def __init__(self, *args, **kwargs):
        long = np.inf if self.annotation == "parallel" else LONG
        with scheduled(self.nest), limits(long):
            super().__init__(*args, **kwargs)

    def nest(self, kernel, target):
        """Return the nest of a kernel without the annotation."""
        return nest_without(self.annotation, kernel, target)


@contextlib.contextmanager
def scheduled(nest):
    """Let a function be the schedule of kernels for a while."""
    before, scheduler.value = scheduler.value, nest
    try:
        yield
    finally:
        scheduler.value = before


@contextlib.contextmanager
def limits(long=LONG):
    """Let threads share steps of so many nanoseconds; stream small matrices."""
    less = LESS | {(shared_text, "MIN_PARALLEL_NS"): long}
    with contextlib.ExitStack() as stack:
        for (module, name), value in less.items():
            stack.enter_context(patch.object(module, name, value))
        before = minijax.config.minijax_num_threads
        minijax.config.update("minijax_num_threads", THREADS)
        stack.callback(minijax.config.update, "minijax_num_threads", before)
        yield


backends["cpu, recorded"] = Recorded
for _name in ANNOTATIONS:
    _members = {"annotation": _name}
    backends[f"cpu without {_name}"] = type("Without", (Without,), _members)


def problems(seed):
    """Return what goes wrong with the program of a seed, and what its nests have."""
    check, Recorded.met = checks(seed), set()
    found = check(["python", "kernels", "cpu", "cpu, recorded"])
    met = sorted(Recorded.met)
    return found + check([f"cpu without {name}" for name in met]), met


def checks(seed):
    """Return the function of names of backends that runs the program of a seed."""
    if seed % 4 == 3:
        return lambda names: machine_programs.with_control_flow(seed, names)
    ways = [*machine_programs.WAYS]
    way = ways[seed // 4 % len(ways)]
    program = drawn(seed)

    def check(names):
        with minijax.enable_x64(bool(seed % 3)):
            return [
                f"{name}, {each}: {text}\n  {program.text}"
                for name in names
                for each in dict.fromkeys(["plain", way])
                for text in program.problems(each, name)
            ]

    return check


def drawn(seed):
    """Return the straight-line program of a seed: small, or as long as vectors."""
    with minijax.enable_x64(bool(seed % 3)):
        if seed % 4 == 0:
            return machine_programs.drawn(seed)
        rng = np.random.default_rng(seed)
        like, inputs = shapes(rng), {}
        dtypes = edge_programs.WIDE if seed % 3 else edge_programs.DTYPES
        for name in "abc"[: [1, 1, 2, 3][rng.integers(4)]]:
            shape, dtype = like[rng.integers(len(like))], str(rng.choice(dtypes))
            inputs[name] = edge_programs.numbers(rng, shape, dtype)
        most, length = edge_programs.MOST, int(rng.integers(1, 4))
        program = machine_programs.grown(rng, inputs, TELLING, length, most)
        alone = program.lines[:1] if rng.random() < 0.4 else program.lines
        return machine_programs.Lines(inputs, alone)


def shapes(rng):
    """Return shapes that fit each other: one long axis, or two of some vectors."""
    if rng.random() < 0.4:
        return edge_programs.shapes(rng)
    few = [[], [], [2], [3]][rng.integers(4)]
    shape = (*few, *[int(n) for n in rng.choice(SQUARE, 2)])
    return [shape, shape, shape, (*shape[:-2], *shape[:-3:-1])]


# Children, and who looks after them.


def run_block(seed, count):
    """Run programs one after the other; print what they have, and what goes wrong."""
    for number in range(seed, seed + count):
        print(f"seed {number}", flush=True)
        found, met = problems(number)
        print(f"MET {' '.join(met)}", flush=True)
        for text in found:
            print(f"PROBLEM {text!r}", flush=True)


def child(seed, count, kind):
    """Run a block in a process; return faults, and counts of what was met."""
    command = [sys.executable, "-X", "faulthandler", "-m", "tests.annotations"]
    command += ["--child", "--seed", str(seed), "--count", str(count)]
    settings = {"MINIJAX_CPU": kind, "JAX_ENABLE_COMPILATION_CACHE": "0"}
    try:
        done = subprocess.run(
            command, env={**os.environ, **settings}, capture_output=True, text=True,
            timeout=PATIENCE,
        )  # fmt: skip
        said, status, error = done.stdout, done.returncode, done.stderr[-2000:]
    except subprocess.TimeoutExpired as expired:
        said, status, error = (expired.stdout or b"").decode(), "no answer", ""
    return read(said, f"MINIJAX_CPU={kind} ", status, error)


def read(said, where, status, error):
    """Return the faults, and counts, that the output of a child tells."""
    faults, counts, seed = [], Counter(), None
    for line in said.splitlines():
        word, _, rest = line.partition(" ")
        if word == "seed":
            seed, counts["programs"] = rest, counts["programs"] + 1
        elif word == "MET":
            counts.update(rest.split())
        elif word == "PROBLEM":
            faults.append(f"{where}seed {seed}: {eval(rest)}")
    if status:
        faults.append(f"{where}seed {seed}: the process ended with {status}\n{error}")
    return faults, counts


def supervise(seed, count, kinds, jobs):
    """Run blocks in child processes; return the faults, and counts of what was met."""
    starts = range(seed, seed + count, BLOCK)
    faults, counts = [], Counter()

    def work(number):
        start, kind = starts[number], kinds[number % len(kinds)]
        found, met = child(start, min(BLOCK, seed + count - start), kind)
        print(*found, sep="\n", end="\n" if found else "", flush=True)
        faults.extend(found)
        counts.update(met)
        print(f"… {said(counts)}", file=sys.stderr, flush=True)

    with ThreadPoolExecutor(jobs) as pool:
        [*pool.map(work, range(len(starts)))]
    return faults, counts


def said(counts):
    """Return counts as a line."""
    each = [f"{name} off {counts[name]}" for name in ANNOTATIONS]
    return ", ".join([f"{counts['programs']} programs", *each])


def main():
    """Run from the command line."""
    from tests.hunt import kinds

    options = options_of(
        __doc__, seed=0, count=100, kind=kinds(), jobs=os.cpu_count(), child=False
    )
    if options.child:
        return run_block(options.seed, options.count)
    faults, counts = supervise(options.seed, options.count, options.kind, options.jobs)
    return reported(said(counts), faults)


if __name__ == "__main__":
    sys.exit(main())
