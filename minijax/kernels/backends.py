"""Programs run step by step: kernels on memory, the rest by NumPy."""

# Made from chapters/17_kernels_rest.md by `make chapter`;
# edit the chapter, not this file.

from collections import Counter

import numpy as np

from minijax.arrays.array import ArrayImpl, asbuffer
from minijax.emitted.backend import PythonProgram
from minijax.jaxprs.jaxpr import ClosedJaxpr, Jaxpr, Literal
from minijax.jitting.compilation import backends
from minijax.jitting.costs import BYTES, cost_of
from minijax.kernels.interpreter import interpret
from minijax.kernels.parts import operations, traffic
from minijax.kernels.program_steps import Evaluate, Launch, StepKind, lower, step_kinds
from minijax.kernels.views import Buffer


class KernelProgram:
    """Runs the steps of a program, one after the other; NumPy interprets its kernels.

    Args:
      closed: a `ClosedJaxpr`.
      name: what the program is called.

    Attributes:
      program: its `LoweredProgram`.
      text: its kernels.
    """

    placement, platforms = None, ("cpu",)

    def __init__(self, closed, name="program"):
        self.lowered, self.name = self.lower(closed), name
        self.out_avals = closed.out_avals
        self.functions = self.compile(self.lowered.kernels)
        constants = self.lowered.constants
        self.constants = {buffer: as_bytes(asbuffer(x)) for buffer, x in constants}
        self.steps = [self.prepare(step) for step in self.lowered.steps]

    def lower(self, closed):
        """Return the `LoweredProgram` of a program."""
        return lower(closed)

    def compile(self, kernels):
        """Return functions of the buffers' memory, by the labels of the kernels."""
        self.text = str(self.lowered)
        return {label: interpreted(kernel) for label, kernel in kernels.items()}

    def prepare(self, step):
        """Return a function of the memory that does a step."""
        return step_kinds[type(step)].run(self, step)

    def __call__(self, *args):
        """Return the list of results."""
        memory = Memory(self.constants)
        memory.update(zip(self.lowered.inputs, map(as_bytes, map(asbuffer, args))))
        for step in self.steps:
            step(memory)
        pairs = zip(self.lowered.outputs, self.out_avals)
        arrays = [np.ndarray(aval.shape, aval.dtype, memory[x]) for x, aval in pairs]
        return [
            ArrayImpl(array, aval, self.placement)
            for array, aval in zip(arrays, self.out_avals)
        ]


class Memory(dict):
    """Bytes by buffers; a buffer gets its memory when it is first asked for."""

    def __missing__(self, buffer):
        self[buffer] = np.empty(buffer.size * buffer.dtype.itemsize, np.uint8)
        return self[buffer]


def as_bytes(array):
    """Return the numbers of a NumPy array, row by row, as bytes."""
    if array.dtype.itemsize == 0:  # float0, whose numbers are all zero
        return np.empty(0, np.uint8)
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def interpreted(kernel):
    """Return a function of the memory of a kernel's parameters."""

    def run(*memory):
        pairs = zip(kernel.parameters, memory)
        interpret(kernel, {x.name: data.view(x.dtype) for x, data in pairs})

    return run


def launched(program, step):
    """Return a function of the memory that runs the function of a kernel."""
    function, buffers = program.functions[step.kernel.label], step.buffers
    return lambda memory: function(*[memory[buffer] for buffer in buffers])


def evaluated(program, step):
    """Return a function of the memory that evaluates an equation on arrays in it.

    The equation is made a program of its own, and that a function of Python.
    """
    pairs = zip(step.eqn.invars, step.operands)
    operands = {x: view for x, view in pairs if not isinstance(x, Literal)}
    jaxpr = Jaxpr([], [*operands], step.eqn.outvars, [step.eqn])
    function = PythonProgram(ClosedJaxpr(jaxpr, []), step.eqn.primitive.name).function

    def run(memory):
        found = function(*[array_of(view, memory) for view in operands.values()])
        for result, array in zip(step.results, found):
            memory[result.source] = as_bytes(array)

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


def array_of(view, memory):
    """Return the array that a view describes, or a scalar if it has no axes."""
    if not isinstance(view.source, Buffer):
        return np.broadcast_to(view.source, view.shape)[()]
    if 0 in view.shape:
        return np.empty(view.shape, view.dtype)
    width, data = view.dtype.itemsize, memory[view.source]
    strides = [width * stride for stride in view.strides]
    offset = view.offset * width
    return np.ndarray(view.shape, view.dtype, data, offset, strides)[()]


KernelProgram.dialects = {"kernels": lambda program: str(program.lowered)}
backends["kernels"] = KernelProgram
