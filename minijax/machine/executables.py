"""Executables: tables of addresses, results of their own, costs, other callers."""

# Made from chapters/21_machine_ground.md by `make chapter`;
# edit the chapter, not this file.

import ctypes
import functools
import sys
from typing import NamedTuple

import numpy as np

from minijax.arrays.array import asbuffer
from minijax.jaxprs.latest import Latest
from minijax.jitting.costs import BYTES, FLOPS, TRANSCENDENTALS, nbytes
from minijax.kernels.building import KernelBuilder
from minijax.kernels.program_steps import Launch, cost_of_program
from minijax.kernels.views import Buffer, whole
from minijax.llvm.compiler import object_code
from minijax.llvm.targets import TargetLibrary
from minijax.machine.host_steps import Host
from minijax.memory.assignment import memory_stats
from minijax.memory.backend import settled
from minijax.memory.results import empty, given

PROGRAM = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 3)


HEADER = object.__basicsize__  # bytes in front of what NumPy knows of an array


def address_of(array):
    """Return the address of an array's first element.

    NumPy keeps it behind the header of each object; to ask for it takes ten times as
    long as to look there.
    """
    if not LOOKS:
        return array.ctypes.data
    return ctypes.c_void_p.from_address(id(array) + HEADER).value


def _looks():
    """Return whether addresses are where they are expected."""
    example = np.zeros(1)
    if sys.implementation.name != "cpython":
        return False
    found = ctypes.c_void_p.from_address(id(example) + HEADER).value
    return found == example.ctypes.data


LOOKS = _looks()


def table(addresses):
    """Return addresses as a table for machine code."""
    addresses = list(addresses)
    return table_of(len(addresses))(*addresses)


@functools.cache
def table_of(count):
    """Return the type of a table; each is made once, as it would be a cycle."""
    return ctypes.c_void_p * count


# What is done to the steps of a `LoweredProgram` before they get memory.
step_passes: Latest = Latest(lambda program: program)


def with_own_results(program):
    """Return a program that writes all results, each to a buffer of its own."""
    given = {*program.inputs, *(buffer for buffer, _ in program.constants)}
    steps, outputs = [*program.steps], []
    for buffer in program.outputs:
        if buffer in given and nbytes(buffer):
            copy = Buffer(f"{buffer.name}_{len(outputs)}", buffer.dtype, buffer.size)
            steps.append(copied(buffer, copy))
            buffer = copy
        outputs.append(buffer)
        given.add(buffer)
    return program._replace(outputs=outputs, steps=steps)


def copied(buffer, copy):
    """Return the step that copies one buffer to another."""
    k = KernelBuilder("copy", (buffer.size,))
    x = k.load(whole(buffer, buffer.dtype, (buffer.size,)))
    k.store(whole(copy, buffer.dtype, (buffer.size,)), x)
    return Launch(*k.kernel())


def inputs_of(plan, args):
    """Return NumPy arrays for the arguments; those given away may be written to."""
    pairs = zip(args, plan.donated)
    return [settled(given(x) if ours else asbuffer(x)) for x, ours in pairs]


def results_of(plan, avals, inputs):
    """Return NumPy arrays for the results, new ones or those of arguments."""
    places = [plan.places[buffer] for buffer in plan.program.outputs]
    return [
        inputs[place.number].reshape(aval.shape)
        if place.kind == "input"
        else empty(aval.shape, aval.dtype)
        for place, aval in zip(places, avals)
    ]


# What makes a profile of a program: a function of an `Executable`.
profiler = Latest(None)

# A loop that decides itself when it ends is taken to run so many nanoseconds.
A_LONG_TIME = 10**6


class Entry(NamedTuple):
    """A program for callers that are no Python.

    Attributes:
      address: of its function.
      arena_bytes: how much memory each call has to bring.
      context: address of the table that the function is given.
      nanoseconds: about how long it takes.
      sources: for each result the number of the input whose memory it takes, or None.
      cuts: the `Cuts` of a program of arrays in parts, or None.
    """

    address: int
    arena_bytes: int
    context: int
    nanoseconds: int
    sources: tuple
    cuts: "Cuts | None" = None


class Cuts(NamedTuple):
    """How inputs and results of a program are cut; their buffers are tuples.

    A row of addresses for each part is given to the program, the first row in front;
    each further one lies before the one that it follows.

    Attributes:
      count: the number of parts.
      in_blocks, out_blocks: the types of parts.
      out_avals, out_placements: what the results are, and where.
      owner: what holds the context.
    """

    count: int
    in_blocks: list
    out_blocks: list
    out_avals: list
    out_placements: list
    owner: object


class Executable:
    """What can be asked of a program that is one function of machine code.

    Attributes:
      lowered, plan: its `LoweredProgram` and its `MemoryPlan`.
      text, target: what LLVM is given, and the `Target` that it is meant for.
      library: its machine code.
      address, function: of the machine code: a number, and what Python calls.
      entry: its `Entry`, or None.
      asked, parts: those of its `ProgramText`.
      host, context: the `Host`, and the table that is the same from call to call.
    """

    donates, placement = True, None
    platforms = ("cpu",)

    def load(self, text):
        """Make machine code of the program's text, and what each call gives it.

        Args:
          text: its `ProgramText`.
        """
        self.text, self.host, self.asked = str(text), Host(text.hosted), text.asked
        self.parts = text.parts
        self.library = TargetLibrary(self.text, self.target)
        self.address = self.library.engine.get_function_address("program")
        self.function, self.context = PROGRAM(self.address), context_of(self)
        self.entry = callable_elsewhere(self)

    def entry_at(self, places):
        """Return the `Entry` for arguments at some placements, or None."""
        return self.entry

    def context_of_call(self):
        """Return the context of one call: that of all calls, if it asks for no more."""
        return contexts.value(self) if self.asked else self.context

    def cost_analysis(self):
        """Return how many operations and bytes the program takes, a dictionary."""
        counts = cost_of_program(self.lowered)
        return {name: float(counts[name]) for name in (FLOPS, TRANSCENDENTALS, BYTES)}

    def memory_analysis(self):
        """Return the `CompiledMemoryStats`."""
        return memory_stats(self.plan, object_code(self.library))

    def profile(self, *args):
        """Run the steps one by one; return the `Profile`, which shows their times."""
        profile = profiler.value(self)
        profile(*args)
        return profile


def context_of(program):
    """Return the table that is the same from call to call; keep what it points to."""
    constants = [asbuffer(x) for _, x in program.lowered.constants]
    program.constants = list(map(np.ascontiguousarray, constants))
    return table([program.host.address, *map(address_of, program.constants)])


# What returns the context of one call, for a program that asks for more than constants.
contexts = Latest(context_of)


def callable_elsewhere(program):
    """Return what a caller needs to know that is no Python, or None."""
    ends = [*program.lowered.inputs, *program.lowered.outputs]
    without_bytes = any(buffer.dtype.itemsize == 0 for buffer in ends)
    if program.host.steps or program.asked or without_bytes:
        return None
    context, time = ctypes.addressof(program.context), nanoseconds_of(program.lowered)
    places = [program.plan.places[buffer] for buffer in program.lowered.outputs]
    sources = tuple([x.number if x.kind == "input" else None for x in places])
    return Entry(program.address, program.plan.arena, context, time, sources)


def nanoseconds_of(program):
    """Return about how long a `LoweredProgram` takes on one core."""
    costs = cost_of_program(program)
    work = costs[FLOPS] + 10 * costs[TRANSCENDENTALS]
    late = any(getattr(step, "open_ended", False) for step in program.walk())
    return int(costs[BYTES] / 10 + work / 4 + A_LONG_TIME * late)
