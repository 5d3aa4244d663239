"""What the host does for a program on a card: loops, cuBLAS, graphs of launches.

Reference: https://docs.nvidia.com/cuda/host_steps (``cublasGemmStridedBatchedEx``).
"""

# Made from chapters/35_device_ground.md by `make chapter`;
# edit the chapter, not this file.

import ctypes
import importlib
from contextlib import suppress
from ctypes import c_int, c_longlong, c_size_t, c_void_p
from itertools import groupby
from typing import NamedTuple

from minijax.arrays.devices import host_device
from minijax.arrays.dtypes import config
from minijax.cpu_backend.control_flow import Branch, While
from minijax.cpu_backend.program_codegen import ScanStep
from minijax.cuda.driver import HostReadback, cupy_stand_in
from minijax.cuda.program_steps import DeviceMatmul, enqueue_launch
from minijax.errors import JaxRuntimeError
from minijax.jitting.compilation import default_device_scope
from minijax.jitting.stages import BYTES_ACCESSED, FLOPS
from minijax.kernels.lowering import (
    BufferAllocations,
    StepKind,
    program_cost,
    step_kinds,
)
from minijax.matmul.lowering import matmul_cost, matmul_runner

# Loops and branches that the host drives, whose states lie in two places in turn.

MAX_CAPTURED_LAUNCHES = 1024  # launches of a loop that is recorded as a whole
MAX_SPECULATIVE_COST = {
    BYTES_ACCESSED: 2**24,
    FLOPS: 2**28,
}  # of an iteration that may be one too many


class CarrySwap(NamedTuple):
    """A step: what an iteration has made are the states from now on.

    Attributes:
      made, states: lists of buffers.
    """

    made: list
    states: list
    programs: tuple = ()
    writes: tuple = ()

    @property
    def reads(self):
        """What has been made: a graph of what follows has its addresses."""
        return self.made


def handed_over(program, step):
    """Return a function of the memory that hands the states over."""

    def do(memory):
        memory.update(zip(step.states, [memory[x] for x in step.made]))

    return do


def launch_count(program, step):
    """Return how many launches a step is; None if the host has a part in it."""
    if type(step) is CarrySwap:
        return 0
    if type(step) is not ScanStep:
        return 1 if program.is_launched(step) else None
    counts = [launch_count(program, each) for each in step.body.steps]
    count = None if None in counts else step.length * sum(counts)
    return count if count is not None and count <= MAX_CAPTURED_LAUNCHES else None


def buffer_bytes(memory, buffers):
    """Return the bytes of buffers, a list."""
    return [memory[buffer] for buffer in buffers]


def copy_final_carry(memory, step, here):
    """Copy the last states to the results of a loop, if they are not there."""
    for result, data in zip(buffer_bytes(memory, step.results), here):
        result[:] = data


def row_of_buffer(whole, number, length):
    """Return the bytes of a row."""
    size = len(whole) // length
    return whole[number * size : (number + 1) * size]


def in_turns(program, step):
    """Return a function of the memory that does a `ScanStep`."""
    body, count = step.body, len(step.init)
    rows = [*zip(step.xs, body.inputs[count:]), *zip(step.ys, body.outputs[count:])]
    whole = launch_count(program, step) is not None
    alone = whole or rows  # recorded with what is around it, or never the same
    acts = list(map(program.prepare, body.steps)) if alone else []
    acts = acts or program.series(body.steps)
    numbers = range(step.length)[:: -1 if step.reverse else 1]

    def run(memory):
        here = buffer_bytes(memory, step.init)
        there = buffer_bytes(memory, step.results)
        wholes = [(memory[x], row) for x, row in rows]
        for number in numbers:
            memory.update(zip(body.inputs, here))
            memory.update(zip(body.outputs, there))
            memory.update(
                [(y, row_of_buffer(x, number, step.length)) for x, y in wholes]
            )
            for act in acts:
                act(memory)
            here, there = there, here
        copy_final_carry(memory, step, here)

    return run


def may_go_ahead(program, step):
    """Return whether a `While` may iterate before its answer is known."""
    inside = [x for each in step.programs for x in each.walk()]
    loops = [getattr(each, "loop", each) for each in inside]
    counts = [launch_count(program, each) for each in inside]
    costs = program_cost(step.body)
    return (
        None not in counts
        and not any(getattr(each, "is_unbounded", False) for each in loops)
        and all(costs[name] <= most for name, most in MAX_SPECULATIVE_COST.items())
    )


def while_in_turns(program, step):
    """Return a function of the memory that does a `While`."""
    states, made, [going] = step.body.inputs, step.body.outputs, step.test.outputs
    first = program.series(step.test.steps)
    hand_over = CarrySwap(made, states)
    acts = program.series([*step.body.steps, hand_over, *step.test.steps])
    early, pool = may_go_ahead(program, step), program.card.answers

    def run(memory):
        here = buffer_bytes(memory, step.init)
        there = buffer_bytes(memory, step.results)
        answers = pool.pop() if pool else HostReadback(program.card)

        def do(acts):
            for act in acts:
                act(memory)
            answers.ask(memory[going].address)

        def iteration():
            memory.update(zip(states, here))
            memory.update(zip(made, there))
            do(acts)

        memory.update(zip(states, here))
        do(first)
        while True:
            if early:
                iteration()
            if not answers.wait_copy():
                break
            if not early:
                iteration()
            here, there = there, here
        answers.close()
        copy_final_carry(memory, step, here)

    return run


def branch_runner(program, step):
    """Return a function of the memory that does a `Branch`; it waits for the number."""
    branches = [program.series(branch.steps) for branch in step.programs_of_branches]

    def run(memory):
        [index] = memory[step.index].view(step.index.dtype)
        results = buffer_bytes(memory, step.results)
        memory.update(zip(step.programs_of_branches[index].outputs, results))
        for act in branches[index]:
            act(memory)

    return run


def on_the_host(program, step):
    """Return a function of the memory that has the host do a step, on copies."""
    run = step_kinds[type(step)].run(program, step)

    def do(memory):
        copies = BufferAllocations({x: memory[x].fetch() for x in step.reads})
        with default_device_scope(host_device().uncommitted):
            run(copies)
        for x in step.writes:
            memory[x].fill(copies[x])

    return do


# From types of steps to functions of a program and a step that return a function of
# the memory; the host does its part in each.
by_the_host = {
    ScanStep: in_turns,
    While: while_in_turns,
    Branch: branch_runner,
    CarrySwap: handed_over,
}


# Products of matrices by cuBLAS, NVIDIA's library, bound by ctypes.

SONAMES = "libcublas.so.13", "libcublas.so.12"
# From dtypes to CUDA's number of the type, cuBLAS's of the way to compute, and what
# holds a factor: CUDA_R_32F with CUBLAS_COMPUTE_32F, CUDA_R_64F with _64F.
CUBLAS_TYPES = {"float32": (0, 68, ctypes.c_float), "float64": (1, 70, ctypes.c_double)}
DEFAULT_ALGORITHM = -1  # CUBLAS_GEMM_DEFAULT
MAX_BLAS_SIZE = 2**31 - 1  # of an int
ONE = [c_void_p, c_int, c_int]  # an operand: address, type, distance of columns
BATCHED_ARGUMENTS = [*ONE, c_longlong]  # and distance of matrices
GEMM_ARGUMENTS = [c_void_p, *[c_int] * 5, c_void_p]  # handle, operations, sizes, alpha
CUBLAS_SIGNATURES = {
    "cublasCreate_v2": [c_void_p],
    "cublasSetStream_v2": [c_void_p, c_void_p],
    "cublasSetWorkspace_v2": [c_void_p, c_void_p, c_size_t],
    "cublasGemmEx": [*GEMM_ARGUMENTS, *ONE, *ONE, c_void_p, *ONE, c_int, c_int],
    "cublasGemmStridedBatchedEx": [
        *GEMM_ARGUMENTS, *BATCHED_ARGUMENTS, *BATCHED_ARGUMENTS, c_void_p,
        *BATCHED_ARGUMENTS, c_int, c_int, c_int,
    ],
}  # fmt: skip


def find_cublas():
    """Return cuBLAS, a library of ctypes, or None where there is none."""
    if cupy_stand_in.value is not None:
        return cupy_stand_in.value.cublas
    names = [*SONAMES]
    with suppress(ImportError, RuntimeError):  # it came with CuPy, in a wheel
        finder = importlib.import_module("cuda.pathfinder")
        names.insert(0, finder.load_nvidia_dynamic_lib("cublas").abs_path)
    for name in names:
        with suppress(OSError):
            return ctypes.CDLL(name)
    return None


class Cublas:
    """cuBLAS for a card: its functions, a handle, a workspace.

    Args:
      card: a `CudaContext`.
      library: what `find_cublas` returns.
    """

    def __init__(self, card, library):
        self.functions = {name: getattr(library, name) for name in CUBLAS_SIGNATURES}
        for name, types in CUBLAS_SIGNATURES.items():
            self.functions[name].argtypes = types
        self.handle = c_void_p()
        size = min(2**25, card.memory // 2**8)
        self._workspace = card.allocate(size)
        self.ask(card, "cublasCreate_v2", ctypes.byref(self.handle))
        self.ask(card, "cublasSetStream_v2", self.handle, card.stream)
        self.ask(card, "cublasSetWorkspace_v2", self.handle, self._workspace.ptr, size)

    def ask(self, card, name, *args, what="cuBLAS"):
        """Call a function.

        Raises:
          JaxRuntimeError: if it returns another status than 0.
        """
        status = card.call(self.functions[name], *args, what=what)
        if status:
            raise JaxRuntimeError(
                f"INTERNAL: {name} returned the status {status} on {card.name}: {what}"
            )


def cublas_for(card):
    """Return the `Cublas` of a card, which keeps it; None where there is none."""
    if "cublas" not in card.libraries:
        library = find_cublas()
        card.libraries["cublas"] = library and Cublas(card, library)
    return card.libraries["cublas"]


class Matrices(NamedTuple):
    """Matrices as BLAS sees them, column by column: the transposes of ours.

    Attributes:
      source: the buffer.
      start: where they begin, in bytes.
      turned: 1 if BLAS has to transpose them, else 0.
      lead: the distance from one column to the next.
      apart: the distance from one matrix to the next.
    """

    source: object
    start: int
    turned: int
    lead: int
    apart: int


def blas_matrices(view):
    """Return a view as `Matrices`, or None if its columns and rows have gaps."""
    *batch, down, across = view.strides
    *counts, rows, columns = view.shape
    apart = distance_of_matrices(counts, batch)
    ways = (across, down, columns, rows), (down, across, rows, columns)
    for turned, (step, lead, length, count) in enumerate(ways):
        lead = max(lead, length) if count == 1 else lead
        if (
            (step == 1 or length == 1)
            and length <= lead <= MAX_BLAS_SIZE
            and apart is not None
        ):
            start = view.offset * view.dtype.itemsize
            return Matrices(view.source, start, turned, lead, apart)
    return None


def distance_of_matrices(counts, strides):
    """Return the distance from each matrix to the next; None if there is no one."""
    axes = [(n, stride) for n, stride in zip(counts, strides) if n > 1]
    for (_, outer), (n, inner) in zip(axes, axes[1:]):
        if outer != n * inner:
            return None
    return axes[-1][1] if axes else 0


def cublas_gemm_arguments(step):
    """Return what cuBLAS is told of a product, or None if our kernel has to do it.

    That is three `Matrices`, of the left operand, the right one and the result.
    """
    found = [blas_matrices(x) for x in (step.lhs, step.rhs, step.out)]
    suits = step.out.dtype.name in CUBLAS_TYPES and max(step.sizes) <= MAX_BLAS_SIZE
    return found if suits and None not in found and not found[2].turned else None


class CublasMatmul(DeviceMatmul):
    """A step: a product of matrices by cuBLAS."""


def use_cublas(program, card):
    """Return a program whose products are done by cuBLAS, where it is and takes them.

    Args:
      program: a `LoweredProgram` for a card.
      card: a `CudaContext`.
    """
    return program if cublas_for(card) is None else with_cublas_steps(program)


def with_cublas_steps(program):
    """Return a program whose products are done by cuBLAS, where it takes them."""
    steps = [step_by_library(step) for step in program.steps]
    return program._replace(steps=steps)


def step_by_library(step):
    """Return a step that cuBLAS does, if it can."""
    if type(step) is DeviceMatmul and cublas_gemm_arguments(step):
        return CublasMatmul(*step)
    if step.programs:
        return step.with_programs([*map(with_cublas_steps, step.programs)])
    return step


def multiplied_by_library(program, step):
    """Return a function of the memory that has cuBLAS do a product.

    Args:
      program: a `CudaProgram`.
      step: a `CublasMatmul`.
    """
    (count, m, n, k), (a, b, c) = step.sizes, cublas_gemm_arguments(step)
    kind, way, holder = CUBLAS_TYPES[step.out.dtype.name]
    one, none = holder(1), holder(0)
    library, card = cublas_for(program.card), program.card
    head = (library.handle, b.turned, a.turned, n, m, k, ctypes.addressof(one))
    apart = [(x.apart,) if count > 1 else () for x in (b, a, c)]
    many = (count,) if count > 1 else ()
    name = "cublasGemmStridedBatchedEx" if count > 1 else "cublasGemmEx"
    what = f"{name} of {program.name}{program.line}"

    def do(memory):
        places = [memory[x.source].address + x.start for x in (b, a, c)]
        right, left, result = (
            (place, kind, x.lead, *distance)
            for place, x, distance in zip(places, (b, a, c), apart)
        )
        factors = *head, *right, *left, ctypes.addressof(none), *result
        library.ask(card, name, *factors, *many, way, DEFAULT_ALGORITHM, what=what)

    do.factors = one, none  # which live as long
    return do


# From types of steps to functions of a program and a step that return a function of
# the memory; it puts the work into the stream.
cublas_runners = {CublasMatmul: multiplied_by_library}
step_kinds[CublasMatmul] = StepKind(matmul_runner, matmul_cost)


def step_runner(program, step):
    """Return a function of the memory that does a step of a program."""
    if id(step) in program.launches:
        return enqueue_launch(program, program.launches[id(step)])
    if type(step) in cublas_runners:
        return cublas_runners[type(step)](program, step)
    if type(step) in by_the_host:
        return by_the_host[type(step)](program, step)
    return on_the_host(program, step)


class StreamProgram:
    """The steps of a program as work for a card, and for the host."""

    def prepare(self, step):
        """Return a function of the memory that does a step."""
        return step_runner(self, step)

    def series(self, steps):
        """Return functions of the memory that do steps, one after the other."""
        return list(map(self.prepare, steps))

    def is_launched(self, step):
        """Return whether a step is work for the card alone."""
        return id(step) in self.launches or type(step) in cublas_runners

    def start(self, memory):
        """Go through the steps; what is the card's work is done later."""
        for step in self.steps:
            step(memory)


# CUDA graphs: launches in sequence, recorded once and replayed by one call.

MAX_GRAPHS, GRAPHS_DROPPED_AT_ONCE = 8, 64


class CapturedLaunches:
    """Launches that are recorded if they come again with the same memory.

    Args:
      program: a `GraphProgram`.
      steps: those that the launches do.

    Attributes:
      graphs: from the addresses of a call to its graph, or to None at first.
      buffers: those whose addresses may be others in another call.
      hand_overs: those of the acts that change the memory, and not the card.
    """

    def __init__(self, program, steps):
        self.program, self.graphs = program, {}
        self.what = f"a graph of {program.name}{program.line}"
        self.actions = list(map(program.prepare, steps))
        pairs = zip(steps, self.actions)
        self.hand_overs = [act for step, act in pairs if type(step) is CarrySwap]
        used = dict.fromkeys([x for s in steps for x in (*s.reads, *s.writes)])
        self.buffers = [x for x in used if x not in program.offsets]

    def run_or_replay(self, memory):
        """Put the launches into the stream, one by one."""
        for act in self.actions:
            act(memory)

    def __call__(self, memory):
        """Put the launches into the stream: as a graph, if they came before."""
        if config.minijax_wait_for_kernels:
            self.run_or_replay(memory)
            return
        with self.program.card.lock:
            ends = [memory[x].address for x in self.buffers]
            replay(self, (memory.arena.address, *ends), memory)
        for act in self.hand_overs:  # no part of a graph, and needed by the host
            act(memory)


def replay(recorded, key, memory):
    """Start launches whose call has these addresses: one by one, or as a graph."""
    graphs, card, known = recorded.graphs, recorded.program.card, key in recorded.graphs
    graph = graphs.pop(key, None)
    if known and graph is None:
        graph = card.record(lambda: recorded.run_or_replay(memory))
    graphs[key] = graph  # the latest stands last
    if graph is None:
        recorded.run_or_replay(memory)
    else:
        card.replay(graph, recorded.what)
    if len(graphs) > MAX_GRAPHS:
        made = [key for key in graphs if graphs[key] is not None]
        for old in [*made[:-MAX_GRAPHS], *[*graphs][:-GRAPHS_DROPPED_AT_ONCE]]:
            graphs.pop(old, None)


def captured_series(program, steps):
    """Return functions of the memory that do steps, whose launches are recorded."""
    found: list = []
    for alone, group in groupby(steps, lambda s: launch_count(program, s) is not None):
        part = [*group]
        counts = [launch_count(program, step) for step in part] if alone else [0]
        if sum(counts) > 1:
            found.append(CapturedLaunches(program, part))
        else:
            found += map(program.prepare, part)
    return found
