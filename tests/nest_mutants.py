"""Mutants of the loops of kernels: the checker refuses each, or its values are right.

    python -m tests.nest_mutants --seed 0 --count 1000

A nest is what all passes make of a kernel; a mutant has other kinds, counts, flags,
axes, folds, places or steps in one to three spots. What `check_nest` accepts is
compiled and run in a process of its own, between guard bytes, and compared with the
interpreter.
"""

import ctypes
import dataclasses
import functools
import os
import signal
import sys
from collections import Counter

import numpy as np

from minijax.kernels.checker import NestError, check_nest
from minijax.kernels.ir import FoldCombine, FoldInit, Loop, Store, child_steps
from minijax.kernels.loop_nests import Node, interpret, print_nest
from minijax.llvm.codegen import module_ir
from minijax.llvm.targets import (
    TargetLibrary,
    current_target,
    emit_scheduled_kernel,
    forced_target,
)
from minijax.threads.parallel_loops import grain_unit, parallel_nest
from minijax.vectorization.row_schedules import RowLoad, RowStore, Stream
from minijax.vectorization.schedules import TransposeTile, schedule_nest
from tests import kernel_cases
from tests import vector_cases as cases
from tests.commands import options_of, reported

F32, F64 = np.dtype("float32"), np.dtype("float64")
GUARD, SECONDS = 256, 60
MADE = [
    cases.row_program(3, 70, F32), cases.row_program(30, 170, F64),
    cases.turned(33, 70, F32), cases.parts(60, 50, F32, along=0),
    cases.parts(300, 250, F32, along=1), cases.ends(2, 40, 33, F32),
    cases.function_row(75, "log", F32), cases.spread(4, 20, F32, "add"),
    cases.spread(4, 20, F32, "add", distinct=True), cases.totals(4, 20, "add", F32),
    cases.extreme(100, "argmax", F32), cases.padded(70, 3, 2, 1),
    cases.shares(3, 5, 40, F32), cases.taken(9, 33, F32),
    cases.column_folds(300, 100, "add", F32),
]  # fmt: skip


def kernels():
    """Return kernels that are written by hand, and random ones."""
    chances = kernel_cases.Chance, kernel_cases.PlacesChance, cases.RowChance
    chances += cases.SweepChance, cases.LongPlaces
    drawn = [pair[0] for n, each in enumerate(chances)
             for pair in kernel_cases.random_kernels(n, 12, each)]  # fmt: skip
    return [*MADE, *MADE, *drawn]


@functools.cache
def nests():
    """Return triples of a kernel, its nest, and the target that it is for."""
    here = current_target()
    targets = [here, forced_target("plain")._replace(triple=here.triple)]
    found = []
    for number, kernel in enumerate(kernels()):
        target = targets[number % 3 == 2]
        found.append((kernel, schedule_nest(kernel, target), target))
        *before, last = parallel_nest(kernel, target)
        if isinstance(last, Loop | Stream) and number % 2:
            found.append((kernel, [*before, last], target))
    return found


LANES = [0, 1, 2, 3, 4, 8, 16, 64, -2]
COUNTS = {
    "serial": [0, 0, 4], "unrolled": [0, 0, 2], "vector": LANES, "masked": LANES,
    "together": [0, 1, 2, 3, 4, 9], "strip": [0, 1, 3, 8, 64], "team": [0, 4],
    "of no kind": [0, 2],
}  # fmt: skip
SWITCHES = ["blocked", "parallel"]


class Mutation:
    """Changes steps of a nest at random.

    Args:
      kernel: the `Kernel`.
      rng: where chance comes from.
    """

    def __init__(self, kernel, rng):
        self.kernel, self.rng = kernel, rng

    def pick(self, choices):
        return choices[self.rng.integers(len(choices))]

    def mutant(self, steps):
        """Return a nest that is changed in one to three spots."""
        for _ in range(self.pick([1, 1, 2, 3])):
            steps = self.changed(steps)
        return steps

    def changed(self, steps):
        """Return steps one of which is another; deeper ones are as likely."""
        sizes = [1 + self.count(step) for step in steps]
        if not steps:
            return steps
        place = int(self.rng.choice(len(steps), p=np.array(sizes) / sum(sizes)))
        before, step, after = steps[:place], steps[place], steps[place + 1 :]
        if self.rng.random() * sizes[place] > 1:
            return [*before, self.within(step), *after]
        if self.rng.random() < 0.3:
            return self.moved(before, step, after)
        return [*before, *self.other(step), *after]

    def count(self, step):
        """Return how many steps one holds that are worth a change."""
        return sum(1 + self.count(each) for each in child_steps(step))

    def within(self, step):
        """Return a step with a change in what it holds."""
        fields = [name for name in step._fields if inside(getattr(step, name))]
        name = self.pick(fields)
        field = getattr(step, name)
        if isinstance(field, Loop):
            [*new] = self.changed([field])
            return step._replace(**{name: new[0]}) if len(new) == 1 else step
        return step._replace(**{name: self.changed(field)})

    def moved(self, before, step, after):
        """Return steps one of which is gone, done twice, or elsewhere."""
        kind = self.rng.integers(4)
        if kind == 0:
            return [*before, *after]
        if kind == 1:
            return [*before, step, step, *after]
        if kind == 2:
            return [step, *before, *after]
        return [*before, *after, step]

    def other(self, step):
        """Return steps in the place of one."""
        if isinstance(step, Loop):
            return [self.loop(step)]
        if isinstance(step, Store):
            return [step._replace(place=self.place(step.place))]
        if isinstance(step, Node):
            return [self.node(step)]
        if isinstance(step, Stream):
            return [self.stream(step)]
        if isinstance(step, TransposeTile):
            return [step._replace(axis=self.axis())]
        if isinstance(step, RowStore | RowLoad):
            axes = self.pick([step.row.axes[::-1], step.row.axes[1:], (self.axis(),)])
            return [step._replace(row=step.row._replace(axes=axes))]
        folds = [node for node in self.kernel.nodes if node.op in ("fold", "running")]
        kind = self.pick([FoldInit, FoldCombine])
        return [kind(self.pick(folds)) if folds else step]

    def axis(self):
        return int(self.rng.integers(max(len(self.kernel.sizes), 1)))

    def loop(self, loop):
        """Return a loop of another kind, or with another count, flag, fold or axis."""
        kind = self.rng.integers(10)
        if kind < 2:
            name = self.pick([*COUNTS])
            return loop._replace(kind=name, count=self.pick(COUNTS[name]))
        if kind == 2:  # what is of one kind becomes another, with the count it has
            return loop._replace(kind=self.pick([*COUNTS]))
        if kind < 6:
            name = self.pick(SWITCHES)
            return loop._replace(**{name: not getattr(loop, name)})
        if kind == 6:
            return loop._replace(axis=self.axis())
        if kind == 7:
            return self.exchanged(loop)
        folds = [node for node in self.kernel.nodes if node.op in ("fold", "running")]
        more = [self.pick(folds)] if folds else []
        return loop._replace(
            folds=self.pick([(), (*loop.folds, *more), loop.folds[1:]])
        )

    def exchanged(self, loop):
        """Return two loops, the inner one outside."""
        inner = [n for n, step in enumerate(loop.body) if isinstance(step, Loop)]
        if not inner:
            return loop._replace(body=[*loop.body[::-1]])
        body = [*loop.body]
        within = body[inner[0]]
        if len(body) == 1:
            return within._replace(body=[loop._replace(body=within.body)])
        body[inner[0]] = within._replace(axis=loop.axis)
        return loop._replace(axis=within.axis, body=body)

    def stream(self, stream):
        kind = self.rng.integers(6)
        if kind == 0:
            return stream._replace(axis=self.axis())
        if kind == 1:
            return stream._replace(before=stream.after, after=stream.before)
        if kind == 2:
            return stream._replace(parallel=not stream.parallel)
        if kind == 3:
            return stream._replace(rows=self.loop(stream.rows))
        return stream._replace(lanes=self.pick(LANES))

    def place(self, place):
        """Return a place with another offset or stride."""
        if not place.strides or self.rng.random() < 0.5:
            return place._replace(offset=place.offset + self.pick([-1, 1, 3]))
        strides = [*place.strides]
        strides[self.axis()] += self.pick([-1, 1])
        return place._replace(strides=tuple(strides))

    def node(self, node):
        if node.op == "load":
            detail = node.detail._replace(place=self.place(node.detail.place))
            return dataclasses.replace(node, detail=detail)
        return self.pick(self.kernel.nodes)


def inside(field):
    """Return whether a field of a step holds steps."""
    return isinstance(field, Loop) or (isinstance(field, list) and bool(field))


def is_parallel(steps):
    """Return whether a loop of a nest does some of its turns only."""
    return any(getattr(x, "parallel", False) or is_parallel(child_steps(x))
               for x in steps)  # fmt: skip


# What becomes of a mutant that is accepted, in a process of its own.


def run(kernel, steps, target, seed):
    """Return how the machine code of a nest differs from the interpreter, or None."""
    shared = is_parallel(steps)
    more = (("i64", "%lo"), ("i64", "%hi")) if shared else ()
    made = emit_scheduled_kernel(kernel, "mutant", steps, "noinline", target, more)
    library = TargetLibrary(module_ir([made]), target)
    rng = np.random.default_rng(seed)
    given = {b.name: rng.integers(-3, 4, b.size).astype(b.dtype)
             for b in kernel.parameters}  # fmt: skip
    wanted = {name: x.copy() for name, x in given.items()}
    with np.errstate(all="ignore"):
        interpret(kernel, wanted)
    blocks = {name: guarded(x) for name, x in given.items()}
    pointers = [blocks[b.name].ctypes.data + GUARD for b in kernel.parameters]
    kinds = [ctypes.c_void_p] * len(pointers) + [ctypes.c_int64] * len(more)
    address = library.engine.get_function_address("mutant")
    function = ctypes.CFUNCTYPE(None, *kinds)(address)
    for ends in parts(kernel, steps[-1]) if shared else [()]:
        function(*pointers, *ends)
    return differs(kernel, given, wanted, blocks)


def parts(kernel, step):
    """Return the ends of two parts of the outermost loop, the later one first."""
    size, unit = kernel.sizes[step.axis], grain_unit(step)
    middle = min(size, (size // unit // 2) * unit)
    return [(middle, size), (0, middle)]


def guarded(x):
    """Return the bytes of an array between guard bytes."""
    return np.frombuffer(
        b"\xa5" * GUARD + x.tobytes() + b"\xa5" * GUARD, np.uint8
    ).copy()


def differs(kernel, given, wanted, blocks):
    written = {store.parameter.name for store in kernel.stores}
    for name, block in blocks.items():
        if (block[:GUARD] != 0xA5).any() or (block[-GUARD:] != 0xA5).any():
            return f"it writes beside {name}"
        found = block[GUARD:-GUARD].view(given[name].dtype)
        if name not in written and found.tobytes() != given[name].tobytes():
            return f"it writes to {name}"
        ours, theirs = (np.asarray(x, np.float64) for x in (found, wanted[name]))
        largest = np.abs(theirs[np.isfinite(theirs)]).max(initial=1)
        near = np.isclose(ours, theirs, 1e-3, 1e-3 * largest, equal_nan=True)
        if not near.all():
            return f"{(~near).sum()} of {near.size} elements of {name} are wrong"
    return None


def in_a_process(work):
    """Return what a function says, called in a child; or how the child ended."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)
        try:
            said = work() or ""
        except BaseException as error:
            said = f"it cannot be written: {error!r}"[:500]
        os.write(theirs, said.encode())
        os._exit(0)
    os.close(theirs)
    with os.fdopen(ours, "rb") as pipe:
        said = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    return said or (f"the process ended with {status}" if status else None)


def outcome(seed):
    """Return "refused", "the same" or "right", or what is wrong with a mutant."""
    rng = np.random.default_rng(seed)
    kernel, steps, target = nests()[rng.integers(len(nests()))]
    mutant = Mutation(kernel, rng).mutant(steps)
    if mutant == steps:
        return "the same"
    try:
        check_nest(kernel, mutant)
    except NestError:
        return "refused"
    except Exception as error:
        return f"seed {seed}: the checker fails with {error!r}"
    found = in_a_process(lambda: run(kernel, mutant, target, seed))
    return "right" if found is None else f"seed {seed}: {found}\n{told(kernel, mutant)}"


def told(kernel, steps):
    """Return the text of a nest, which may be too odd to have one."""
    try:
        return print_nest(kernel, steps)
    except Exception as error:
        return f"{error!r} of {steps}"


def problems(seeds):
    """Return what is wrong with the mutants of some seeds, and counts of outcomes."""
    found = [outcome(seed) for seed in seeds]
    usual = "refused", "the same", "right"
    return [text for text in found if text not in usual], Counter(
        text if text in usual else "wrong" for text in found
    )


def main():
    """Run from the command line."""
    options = options_of(__doc__, seed=0, count=1000)
    seeds = range(options.seed, options.seed + options.count)
    wrong, counts = problems(seeds)
    return reported(", ".join(f"{n} {what}" for what, n in counts.items()), wrong)


if __name__ == "__main__":
    sys.exit(main())
