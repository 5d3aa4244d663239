# Made from chapters/19c_programs.md by `make chapter`;
# edit the chapter, not this file.
"""The backend "cpu": a program is one function of machine code."""

import ctypes

import numpy as np

from minijax.array import ArrayImpl, asbuffer
from minijax.compilation import backends
from minijax.host_steps import Host
from minijax.kernel_building import KernelBuilder
from minijax.kernel_steps import Launch, lower
from minijax.layouts import Slot, whole
from minijax.passes import simplify
from minijax.program_text import Place, ProgramText, nbytes, uses
from minijax.targets import TargetLibrary, current_target


class CPUProgram:
    """A program as one function of machine code, with its loops.

    Args:
      closed: a `ClosedJaxpr`.
      name: what the program is called.

    Attributes:
      schedule: its `Schedule`.
      text: what LLVM is given.
    """

    def __init__(self, closed, name="program"):
        self.name, self.out_avals = name, closed.out_avals
        self.simplified = simplify(closed)
        self.schedule = with_own_results(lower(self.simplified))
        self.places, self.arena = simple_places(self.schedule)
        self.target = current_target()
        program = ProgramText(self.schedule, self.places, self.target)
        self.text, self.host = str(program), Host(program.hosted)
        self.library = TargetLibrary(self.text, self.target)
        self.function = PROGRAM(self.library.engine.get_function_address("program"))
        self._fill_context()

    def _fill_context(self):
        constants = [asbuffer(x) for _, x in self.schedule.constants]
        self.constants = list(map(np.ascontiguousarray, constants))
        host = ctypes.cast(self.host.function, ctypes.c_void_p)
        self.context = table([host.value, *map(address_of, self.constants)])

    def __call__(self, *args):
        """Return the list of results."""
        buffers = [np.ascontiguousarray(asbuffer(arg)) for arg in args]
        results = [np.empty(aval.shape, aval.dtype) for aval in self.out_avals]
        arena = np.empty(self.arena + 64, np.uint8)
        start = address_of(arena) + -address_of(arena) % 64
        memory = table(map(address_of, [*buffers, *results]))
        if self.function(memory, start, self.context):
            self.host.raise_error()
        return list(map(ArrayImpl, results, self.out_avals))


PROGRAM = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 3)


def address_of(array):
    """Return the address of an array's first element."""
    return array.ctypes.data


def table(addresses):
    """Return addresses as a table for machine code."""
    addresses = list(addresses)
    return (ctypes.c_void_p * len(addresses))(*addresses)


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


def simple_places(schedule):
    """Return a place for each slot, none used twice, and the size of the arena."""
    places = {slot: Place("input", i) for i, slot in enumerate(schedule.inputs)}
    places |= {slot: Place("output", i) for i, slot in enumerate(schedule.outputs)}
    constants = [slot for slot, _ in schedule.constants]
    places |= {slot: Place("constant", i) for i, slot in enumerate(constants)}
    inner = [part for step in schedule.walk() for part in step.schedules]
    handed = {slot for part in inner for slot in (*part.inputs, *part.outputs)}
    size = 0
    for slot in uses(schedule.steps):
        if slot not in places and slot not in handed:
            places[slot] = Place("arena", size)
            size += nbytes(slot) + -nbytes(slot) % 64
    return places, size


backends["cpu"] = CPUProgram
backends["python"] = backends.pop("python")  # the last one is the default
