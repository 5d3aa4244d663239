# Made from chapters/17_kernels_rest.md by `make chapter`;
# edit the chapter, not this file.
"""Programs run step by step: kernels on memory, the rest by NumPy."""

from collections import Counter

import numpy as np

from minijax.arrays.array import ArrayImpl, asbuffer
from minijax.emitted.backend import PythonProgram
from minijax.jaxprs.jaxpr import ClosedJaxpr, Jaxpr, Literal
from minijax.jitting.compilation import backends
from minijax.jitting.costs import BYTES, cost_of
from minijax.kernels.interpreter import interpret
from minijax.kernels.kernel import operations, traffic
from minijax.kernels.layouts import Slot
from minijax.kernels.program_steps import Evaluate, Launch, lower
from minijax.kernels.steps import StepKind, step_kinds


class KernelProgram:
    """Runs the steps of a program, one after the other; NumPy interprets its kernels.

    Args:
      closed: a `ClosedJaxpr`.
      name: what the program is called.

    Attributes:
      schedule: its `LoweredProgram`.
      text: its kernels.
    """

    placement, platforms = None, ("cpu",)

    def __init__(self, closed, name="program"):
        self.schedule, self.name = self.lowered(closed), name
        self.out_avals = closed.out_avals
        self.functions = self.compile(self.schedule.kernels)
        constants = self.schedule.constants
        self.constants = {slot: as_bytes(asbuffer(x)) for slot, x in constants}
        self.steps = [self.prepare(step) for step in self.schedule.steps]

    def lowered(self, closed):
        """Return the `LoweredProgram` of a program."""
        return lower(closed)

    def compile(self, kernels):
        """Return functions of the buffers' memory, by the labels of the kernels."""
        self.text = str(self.schedule)
        return {label: interpreted(kernel) for label, kernel in kernels.items()}

    def prepare(self, step):
        """Return a function of the memory that does a step."""
        return step_kinds[type(step)].run(self, step)

    def __call__(self, *args):
        """Return the list of results."""
        memory = Memory(self.constants)
        memory.update(zip(self.schedule.inputs, map(as_bytes, map(asbuffer, args))))
        for step in self.steps:
            step(memory)
        pairs = zip(self.schedule.outputs, self.out_avals)
        buffers = [np.ndarray(aval.shape, aval.dtype, memory[x]) for x, aval in pairs]
        return [
            ArrayImpl(buffer, aval, self.placement)
            for buffer, aval in zip(buffers, self.out_avals)
        ]


class Memory(dict):
    """Bytes by slots; a slot gets its memory when it is first asked for."""

    def __missing__(self, slot):
        self[slot] = np.empty(slot.size * slot.dtype.itemsize, np.uint8)
        return self[slot]


def as_bytes(buffer):
    """Return the numbers of a NumPy array, row by row, as bytes."""
    if buffer.dtype.itemsize == 0:  # float0, whose numbers are all zero
        return np.empty(0, np.uint8)
    return np.ascontiguousarray(buffer).reshape(-1).view(np.uint8)


def interpreted(kernel):
    """Return a function of the memory of a kernel's buffers."""

    def run(*memory):
        views = zip(kernel.buffers, memory)
        interpret(kernel, {b.name: data.view(b.dtype) for b, data in views})

    return run


def launched(program, step):
    """Return a function of the memory that runs the function of a kernel."""
    function, slots = program.functions[step.kernel.label], step.slots
    return lambda memory: function(*[memory[slot] for slot in slots])


def evaluated(program, step):
    """Return a function of the memory that evaluates an equation on arrays in it.

    The equation is made a program of its own, and that a function of Python.
    """
    pairs = zip(step.eqn.invars, step.operands)
    operands = {x: layout for x, layout in pairs if not isinstance(x, Literal)}
    jaxpr = Jaxpr([], [*operands], step.eqn.outvars, [step.eqn])
    function = PythonProgram(ClosedJaxpr(jaxpr, []), step.eqn.primitive.name).function

    def run(memory):
        found = function(*[view(layout, memory) for layout in operands.values()])
        for result, buffer in zip(step.results, found):
            memory[result.source] = as_bytes(buffer)

    return run


def cost_of_launch(step):
    """Return the costs of a kernel."""
    kernel = step.kernel
    return Counter(operations(kernel)) + Counter({BYTES: sum(traffic(kernel))})


def cost_of_evaluation(step):
    """Return the costs of an equation."""
    return Counter(cost_of(step.eqn))


step_kinds[Launch] = StepKind(launched, cost_of_launch)
step_kinds[Evaluate] = StepKind(evaluated, cost_of_evaluation)


def view(layout, memory):
    """Return the array that a layout describes, or a scalar if it has no axes."""
    if not isinstance(layout.source, Slot):
        return np.broadcast_to(layout.source, layout.shape)[()]
    if 0 in layout.shape:
        return np.empty(layout.shape, layout.dtype)
    width, data = layout.dtype.itemsize, memory[layout.source]
    strides = [width * stride for stride in layout.strides]
    offset = layout.offset * width
    return np.ndarray(layout.shape, layout.dtype, data, offset, strides)[()]


KernelProgram.dialects = {"kernels": lambda program: str(program.schedule)}
backends["kernels"] = KernelProgram
