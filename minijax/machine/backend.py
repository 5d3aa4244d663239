# Made from chapters/24_machine.md by `make chapter`;
# edit the chapter, not this file.
"""The backend "cpu": a program is one function of machine code."""

import contextlib
import ctypes
import functools
import gc
import os
from itertools import repeat
from typing import NamedTuple

import numpy as np

from minijax.arrays.array import ArrayImpl, asbuffer
from minijax.fusion.fusion_pass import fuse
from minijax.jaxprs.latest import Latest
from minijax.jitting.compilation import backends, default_backend
from minijax.jitting.costs import BYTES, FLOPS, TRANSCENDENTALS, nbytes
from minijax.kernels.building import KernelBuilder
from minijax.kernels.layouts import Slot, whole
from minijax.kernels.program_steps import Launch, jaxpr_passes, lower
from minijax.kernels.steps import cost_of_schedule
from minijax.llvm.compiler import object_code
from minijax.llvm.targets import TargetLibrary, current_target
from minijax.machine.host_steps import Host
from minijax.machine.nested import While
from minijax.machine.program_text import ProgramText
from minijax.memory.assignment import memory_stats
from minijax.memory.backend import settled
from minijax.memory.planning import plan
from minijax.memory.results import empty, given, scratch

# What makes a profile of a program: a function of a `CPUProgram`.
profiler = Latest(None)

_at_rest: list = []  # for each program that is being made: was the collector on?


@contextlib.contextmanager
def collector_at_rest():
    """Let Python's collector of garbage wait until something is done."""
    was_on = gc.isenabled()
    _at_rest.append(was_on)
    try:
        gc.disable()
        yield
    finally:
        _at_rest.pop()
        if was_on:
            gc.enable()


def _wake_collector():
    if any(_at_rest):
        gc.enable()
    _at_rest.clear()


if hasattr(os, "register_at_fork"):  # a new process has nobody who is making programs
    os.register_at_fork(after_in_child=_wake_collector)


class CPUProgram:
    """A program as one function of machine code, with its loops.

    Args:
      closed: a `ClosedJaxpr`.
      name: what the program is called.

    Attributes:
      schedule: its `Schedule`.
      text: what LLVM is given.
    """

    donates, placement = True, None

    @collector_at_rest()
    def __init__(self, closed, name="program", donated=()):
        self.name, self.out_avals = name, closed.out_avals
        self.simplified, self.target = jaxpr_passes.value(closed), current_target()
        self.schedule = fuse(with_own_results(lower(self.simplified)))
        self.plan = plan(self.schedule, donated)
        program = ProgramText(self.plan, self.target)
        self.text, self.host = str(program), Host(program.hosted)
        self.library = TargetLibrary(self.text, self.target)
        self.function = PROGRAM(self.library.engine.get_function_address("program"))
        places = [self.plan.places[slot] for slot in self.schedule.outputs]
        self._ends = list(zip(places, self.out_avals))
        self._fill_context()
        self.entry = self._entry()

    def _fill_context(self):
        constants = [asbuffer(x) for _, x in self.schedule.constants]
        self.constants = list(map(np.ascontiguousarray, constants))
        self.context = table([self.host.address, *map(address_of, self.constants)])

    def _entry(self):
        """Return what a caller needs to know that is no Python, or None."""
        ends = [*self.schedule.inputs, *self.schedule.outputs]
        if self.host.steps or any(self.plan.donated) or not all(map(_has_bytes, ends)):
            return None
        costs = self.cost_analysis()
        work = costs[FLOPS] + 10 * costs[TRANSCENDENTALS]
        address = self.library.engine.get_function_address("program")
        context, time = ctypes.addressof(self.context), costs[BYTES] / 10 + work / 4
        if any(isinstance(step, While) for step in self.schedule.walk()):
            time += A_LONG_TIME
        return Entry(address, self.plan.arena, context, int(time))

    def cost_analysis(self):
        """Return how many operations and bytes the program takes, a dictionary."""
        counts = cost_of_schedule(self.schedule)
        return {name: float(counts[name]) for name in (FLOPS, TRANSCENDENTALS, BYTES)}

    def memory_analysis(self):
        """Return the `CompiledMemoryStats`."""
        return memory_stats(self.plan, object_code(self.library))

    def profile(self, *args):
        """Run the steps one by one; return the `Profile`, which shows their times."""
        profile = profiler.value(self)
        profile(*args)
        return profile

    def __call__(self, *args):
        """Return the list of results."""
        pairs = zip(args, self.plan.donated)
        inputs = [settled(given(x) if ours else asbuffer(x)) for x, ours in pairs]
        results = [self._result(*pair, inputs) for pair in self._ends]
        arena = scratch(self.plan.arena)
        memory = table(map(address_of, [*inputs, *results]))
        if self.function(memory, address_of(arena), self.context):
            self.host.raise_error()
        return list(map(ArrayImpl, results, self.out_avals, repeat(self.placement)))

    def _result(self, place, aval, inputs):
        if place.kind == "input":
            return inputs[place.number].reshape(aval.shape)
        return empty(aval.shape, aval.dtype)


# Nobody knows how long a loop runs that decides itself when it ends; in nanoseconds.
A_LONG_TIME = 10**6


class Entry(NamedTuple):
    """A program for callers that are no Python.

    Attributes:
      address: of its function.
      arena_bytes: how much memory each call has to bring.
      context: address of the table that the function is given.
      nanoseconds: about how long it takes.
    """

    address: int
    arena_bytes: int
    context: int
    nanoseconds: int


def _has_bytes(slot):
    return slot.dtype.itemsize > 0


PROGRAM = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 3)


def address_of(array):
    """Return the address of an array's first element."""
    return array.ctypes.data


def table(addresses):
    """Return addresses as a table for machine code."""
    addresses = list(addresses)
    return table_of(len(addresses))(*addresses)


@functools.cache
def table_of(count):
    """Return the type of a table; each is made once, as it would be a cycle."""
    return ctypes.c_void_p * count


def with_own_results(schedule):
    """Return a schedule in which all results are written, each to a slot of its own."""
    given = {*schedule.inputs, *(slot for slot, _ in schedule.constants)}
    steps, outputs = [*schedule.steps], []
    for slot in schedule.outputs:
        if slot in given and nbytes(slot):
            copy = Slot(f"{slot.name}_{len(outputs)}", slot.dtype, slot.size)
            steps.append(copied(slot, copy))
            slot = copy
        outputs.append(slot)
        given.add(slot)
    return schedule._replace(outputs=outputs, steps=steps)


def copied(slot, copy):
    """Return the step that copies one slot to another."""
    k = KernelBuilder("copy", (slot.size,))
    x = k.load(whole(slot, slot.dtype, (slot.size,)))
    k.store(whole(copy, slot.dtype, (slot.size,)), x)
    return Launch(*k.kernel())


CPUProgram.dialects = {
    "simplified": lambda program: str(program.simplified),
    "kernels": lambda program: str(program.schedule),
    "schedule": lambda program: schedule_text(program.schedule),
    "memory": lambda program: str(program.plan),
    "llvm": lambda program: program.text,
    "assembly": lambda program: program.library.assembly,
}


def schedule_text(schedule):
    """Return the steps of a schedule as text, without what is in its kernels."""
    return str(schedule).partition("\n\n")[0]


backends["cpu"] = CPUProgram
default_backend.value = "cpu"
