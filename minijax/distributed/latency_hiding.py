"""Latency hiding: exchanges in two steps, while the program computes.

References: ``MPI_Iallreduce``; XLA's pairs of ``all-reduce-start``, ``all-reduce-
done``, gradient bucketing of PyTorch's ``DistributedDataParallel``; XLA's
``LatencyHidingScheduler``, R. Hockney, "The communication challenge for MPP"
(Parallel Computing, 1994).
"""

# Made from chapters/37_machines_rest.md by `make chapter`;
# edit the chapter, not this file.

import os
from collections import Counter, deque
from heapq import heappop, heappush
from time import perf_counter

import numpy as np

from minijax.arrays.dtypes import _on_or_off, config
from minijax.collectives.all_reduce import (
    BucketedAllReduce,
    Collective,
    bucketed_all_reduce_runner,
    emit_bucketed_all_reduce,
    emit_fallible_call,
)
from minijax.collectives.lowlevel import label_word
from minijax.cpu_backend.program_codegen import step_passes
from minijax.distributed.processes import LinkModel, allreduce, permute_ranks, world
from minijax.jitting.stages import nbytes
from minijax.kernels.lowering import Launch, StepKind, copy_cost, step_kinds

# Exchanges in two steps: one begins them, and one waits until they are done.


class AllReduceStart(BucketedAllReduce):
    """A step: begin to fold arrays of one dtype with the replicas along some axes.

    Between it and its `AllReduceDone` no other step may use what it writes, or write
    what it reads.
    """

    @property
    def label(self):
        """What is exchanged, and that it begins."""
        return f"the beginning of {super().label}"

    def __str__(self):
        return f"begin {super().__str__()}"


class AllReduceDone(BucketedAllReduce):
    """A step: wait for the fold that was begun first among those not waited for."""

    @property
    def label(self):
        """What was exchanged, and that it ends."""
        return f"the end of {super().label}"

    def __str__(self):
        return f"end {' '.join(map(str, self.writes))}"


def write_end(f, step):
    """Write the call that waits; it has no arrays, since the beginning had them."""
    entry = f.emit(f"ptrtoint i8* {f.asked(step.names)} to i64")
    emit_fallible_call(f, "bucketed_all_reduce", [entry, 0, 0, label_word(step)])


step_kinds[AllReduceStart] = StepKind(
    bucketed_all_reduce_runner, copy_cost, emit_bucketed_all_reduce
)
step_kinds[AllReduceDone] = StepKind(
    lambda program, step: lambda memory: None, lambda step: Counter(), write_end
)


# The order of steps in which exchanges run while the program computes.

BUCKET = 2**20  # bytes
config.define("minijax_overlap", os.environ.get("MINIJAX_OVERLAP", "1"), _on_or_off)


def step_dependencies(steps):
    """Return for each step the numbers of those that have to come before it."""
    needs, writers, readers = [], {}, {}
    for number, step in enumerate(steps):
        before = {n for buffer in step.reads for n in writers.get(buffer, ())}
        for buffer in step.writes:
            before.update(writers.get(buffer, ()), readers.get(buffer, ()))
        for found, buffers in ((writers, step.writes), (readers, step.reads)):
            for buffer in buffers:
                found.setdefault(buffer, []).append(number)
        needs.append(before - {number})
    return needs


def taken_apart(steps):
    """Return steps with each joint exchange as its parts."""
    parts = [
        step.parts if type(step) is BucketedAllReduce else (step,) for step in steps
    ]
    return [step for several in parts for step in several]


class CollectiveSchedule:
    """The steps of a program, while they are put in order.

    Args:
      steps: of a `LoweredProgram`.

    Attributes:
      needs, users: for each step, those that come before it and are not done; those
        that come after it.
      ready: a heap of steps that can be done now, each a pair that sorts it.
      buckets: the sums that are ready, by who adds them up, how and in what dtype.
      running: the buckets that have begun, in order.
      order: the steps so far, in their new order.
    """

    def __init__(self, steps):
        self.steps, self.order = taken_apart(steps), []
        self.needs, self.users = step_dependencies(self.steps), [[] for _ in self.steps]
        self.ready, self.buckets, self.running = [], {}, deque()
        for number, before in enumerate(self.needs):
            for other in before:
                self.users[other].append(number)
        self.sums = {n for n, step in enumerate(self.steps) if is_sum(step)}
        self.critical = self.feeds_collective()
        for number in [n for n, before in enumerate(self.needs) if not before]:
            self.mark_ready(number)

    def feeds_collective(self):
        """Return the sums, and the kernels whose results only they need."""
        found = {*self.sums}
        for number in reversed(range(len(self.steps))):
            kernel = type(self.steps[number]) is Launch and self.users[number]
            if kernel and found.issuperset(self.users[number]):
                found.add(number)
        return found

    def mark_ready(self, number):
        """Take a step all of whose needs are done: a sum into a bucket."""
        if number not in self.sums:
            return heappush(self.ready, (number not in self.critical, number))
        step = self.steps[number]
        key = step.names, step.combine_op.kernel.name, step.x.dtype
        bucket = self.buckets.setdefault(key, [])
        bucket.append(number)
        if sum(nbytes(self.steps[n].x) for n in bucket) >= BUCKET:
            self.begin(key)

    def begin(self, key):
        """Begin the exchange of a bucket."""
        numbers = self.buckets.pop(key)
        self.running.append(numbers)
        self.order.append(AllReduceStart(tuple([self.steps[n] for n in numbers])))

    def end(self):
        """Wait for the exchange that has begun first."""
        numbers, [*before, last] = self.running.popleft(), self.order
        parts = tuple([self.steps[n] for n in numbers])
        if type(last) is AllReduceStart and last.parts == parts:  # nothing between them
            whole = parts[0] if len(parts) == 1 else BucketedAllReduce(parts)
            self.order = [*before, whole]
        else:
            self.order.append(AllReduceDone(parts))
        for number in numbers:
            self.done(number)

    def done(self, number):
        """Let those steps come that needed this one last."""
        for user in self.users[number]:
            self.needs[user].discard(number)
            if not self.needs[user]:
                self.mark_ready(user)

    def run(self):
        """Return the steps in their new order."""
        while self.ready or self.buckets or self.running:
            if self.ready:
                _, number = heappop(self.ready)
                self.order.append(self.steps[number])
                self.done(number)
            elif self.buckets:
                self.begin(next(iter(self.buckets)))
            else:
                self.end()
        return self.order


def is_sum(step):
    """Return whether a step folds an array with other replicas."""
    return type(step) is Collective and step.how == "fold"


def overlap_collectives(program):
    """Return a program whose exchanges run while it computes.

    Args:
      program: a `LoweredProgram`; with steps of Python, or without sums, it stays as it
        is.
    """
    by_python = any(step_kinds[type(step)].write is None for step in program.walk())
    if by_python or not any(map(is_sum, taken_apart(program.steps))):
        return program
    return program._replace(steps=CollectiveSchedule(program.steps).run())


def _among_processes(program):
    several = world.value is not None and world.value.comm is not None
    return (
        overlap_collectives(program) if several and config.minijax_overlap else program
    )


step_passes.value = _among_processes


def check_schedule(steps):
    """Raise a `ValueError` if a step uses what is on its way, or ends do not match.

    Args:
      steps: of a `LoweredProgram`, in order.
    """
    running = deque()
    for step in steps:
        if type(step) is AllReduceDone:
            if not running or running.popleft().parts != step.parts:
                raise ValueError(f"This exchange is not the first one: {step}")
            continue
        for begun in running:
            touched = {*step.reads, *step.writes} & {*begun.writes}
            if touched or {*step.writes} & {*begun.reads}:
                raise ValueError(f"A step uses an array of '{begun}': {step}")
        if type(step) is AllReduceStart:
            running.append(step)
    if running:
        raise ValueError(f"Nothing waits for '{running[0]}'.")


# The line between neighbours in a ring: a fit of the alpha-beta model.


def shift_seconds(engine, size, times=30):
    """Return how long it takes all ranks to send `size` bytes to the next one."""
    comm, x = engine.comm, np.zeros(size, np.uint8)
    ring = [(i, (i + 1) % comm.size) for i in range(comm.size)]
    found = []
    for _ in range(times):
        allreduce(engine, np.zeros(1, np.int64), np.add)  # begin together
        start = perf_counter()
        permute_ranks(engine, x, ring)
        found.append(perf_counter() - start)
    return min(found)  # other programs can only add to it


def calibrate(engine, sizes=(64, 4096, 65536, 1 << 20)):
    """Return the `LinkModel` between neighbours: a fit to messages of several sizes."""
    seconds = np.array([shift_seconds(engine, size) for size in sizes])
    rows = np.stack([np.ones(len(sizes)), np.array(sizes, float)], 1)
    found = np.linalg.lstsq(rows / seconds[:, None], np.ones(len(sizes)), rcond=None)[0]
    return LinkModel(*map(float, np.maximum(found, 0)))
