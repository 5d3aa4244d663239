# Made from chapters/24_machine.md by `make chapter`;
# edit the chapter, not this file.
"""Where a program spends its time: its steps run one by one, with a clock."""

from time import perf_counter_ns

import numpy as np

from minijax.kernels.backends import view
from minijax.kernels.program_steps import Lowering
from minijax.llvm.backend import LLVMProgram
from minijax.llvm.kernel_text import module_text
from minijax.llvm.targets import TargetLibrary
from minijax.matmul.gemm import library, name_of_gemm
from minijax.matmul.lowering import Product
from minijax.memory.results import scratch
from minijax.vectors.kernels import kernel_function


class Profile(LLVMProgram):
    """Runs the steps of an executable one by one, and takes their times.

    Args:
      executable: a `CPUProgram`.

    Attributes:
      rows: from the ids of steps to lists: the step, how often it was run, and for how
        many nanoseconds.
    """

    def __init__(self, executable):
        self.executable, self.rows = executable, {}
        super().__init__(executable.simplified, executable.name)

    def lowered(self, closed):
        """Return the `Schedule` of the executable."""
        return self.executable.schedule

    def compile(self, kernels):
        """Return functions of the buffers' memory, by the labels of the kernels."""
        target = self.executable.target
        pairs = kernels.items()
        made = [kernel_function(kernel, name, target) for name, kernel in pairs]
        self.library = TargetLibrary(module_text(made), target)
        return {label: self.called(label, kernel) for label, kernel in kernels.items()}

    def prepare(self, step):
        """Return a function of the memory that does a step and takes the time."""
        if isinstance(step, Product):
            run = multiplied_by_machine(step, self.executable.target)
        else:
            run = super().prepare(step)
        if step.schedules:
            return run
        row = self.rows[id(step)] = [step, 0, 0]

        def timed(memory):
            start = perf_counter_ns()
            run(memory)
            row[1] += 1
            row[2] += perf_counter_ns() - start

        return timed

    def __str__(self):
        lines = lines_of(self.executable.simplified)
        rows = sorted(self.rows.values(), key=lambda row: -row[2])
        total = max(sum(row[2] for row in rows), 1)
        texts = [f"{'share':>6}{'calls':>8}{'us each':>9}  step, and the line of it"]
        for step, calls, time in rows:
            line = next((lines[s.name] for s in step.writes if s.name in lines), "")
            numbers = f"{time / total:6.0%}{calls:8}{time / max(calls, 1) / 1000:9.1f}"
            texts.append(f"{numbers}  {name_of_step(step)}  {line}")
        return "\n".join(texts)


def name_of_step(step):
    """Return a short name for a step."""
    return step.kernel.label if hasattr(step, "kernel") else str(step).split("\n")[0]


def multiplied_by_machine(step, target):
    """Return a function of the memory that does a `Product` as the program does it."""
    dtype, layouts = step.out.dtype, (step.lhs, step.rhs, step.out)
    function = library(dtype, target).function(name_of_gemm(dtype), 16)
    space, outer = scratch(step.workspace), step.out.shape[:-2][:-1]

    def run(memory):
        views = [view(layout, memory) for layout in layouts]
        for batch in np.ndindex(outer):
            matrices = [x[batch] for x in views]
            function(*sizes_and_places(matrices), space.ctypes.data)

    return run


def sizes_and_places(matrices):
    """Return sizes, addresses and strides of stacks of matrices: lhs, rhs, and out."""
    lhs, rhs, out = [x if x.ndim == 3 else x[None] for x in matrices]
    numbers = [*out.shape, lhs.shape[2]]
    for x in (lhs, rhs, out):
        numbers += [x.ctypes.data, *[stride // x.itemsize for stride in x.strides]]
    return numbers[:-1]  # the columns of out lie side by side


class Sources(Lowering):
    """A lowering that notes for which line of the user each slot was made."""

    def __init__(self):
        super().__init__()
        self.lines, self.line = {}, ""

    def slot(self, aval):
        """Return new memory for an array, and its layout there."""
        layout = super().slot(aval)
        self.lines[layout.source.name] = self.line
        return layout

    def equation(self, eqn, operands):
        """Add the steps of an equation; return the layouts of its results."""
        around, self.line = self.line, str(eqn.source or self.line)
        layouts = super().equation(eqn, operands)
        self.line = around
        return layouts


def lines_of(closed):
    """Return, by the names of its slots, the lines that a program comes from."""
    sources = Sources()
    sources.program(closed, [sources.slot(aval) for aval in closed.in_avals])
    return sources.lines
