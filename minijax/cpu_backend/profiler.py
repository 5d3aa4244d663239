"""Profiles: the steps of a program run one by one, with a clock."""

# Made from chapters/21_machine_rest.md by `make chapter`;
# edit the chapter, not this file.

from time import perf_counter_ns

from minijax.cpu_backend.program_codegen import (
    ProgramEmitter,
    host_call_buffers,
    profiler,
)
from minijax.kernels.lowering import (
    KernelProgram,
    LoweredProgram,
    LoweringContext,
    step_kinds,
)
from minijax.llvm.targets import TargetLibrary
from minijax.memory.allocator import scratch_bytes
from minijax.memory.buffer_assignment import plan_memory


class Profile(KernelProgram):
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

    def lower(self, closed):
        """Return the `LoweredProgram` of the executable."""
        return self.executable.lowered

    def compile(self, kernels):
        """Return functions of the memory for the steps with a text, by their ids."""
        steps = {id(step): step for step in self.lowered.walk() if is_written(step)}
        text = ProgramEmitter(
            plan_memory(LoweredProgram([], [], [], [])), self.executable.target
        )
        text.locations.workspaces.update(dict.fromkeys(steps, 0))
        for number, step in steps.items():
            name = f"step_{number}"
            text.function(name, [step], host_call_buffers(step), linkage="")
        library = TargetLibrary(str(text), self.executable.target)
        return {number: by_itself(step, library) for number, step in steps.items()}

    def prepare(self, step):
        """Return a function of the memory that does a step and takes the time."""
        run = self.functions.get(id(step)) or super().prepare(step)
        if step.programs:
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


def is_written(step):
    """Return whether a step has a text of its own, and no programs within it."""
    return not step.programs and step_kinds[type(step)].write is not None


def by_itself(step, library):
    """Return a function of the memory that calls the function of a step."""
    buffers = host_call_buffers(step)
    function = library.function(f"step_{id(step)}", 3 + len(buffers))
    arena = scratch_bytes(getattr(step, "workspace", 0))

    def run(memory):
        places = [memory[buffer].ctypes.data for buffer in buffers]
        function(None, arena.ctypes.data, None, *places)

    return run


def name_of_step(step):
    """Return a short name for a step."""
    return step.kernel.label if hasattr(step, "kernel") else str(step).split("\n")[0]


profiler.value = Profile


class SourceLineLowering(LoweringContext):
    """A lowering that notes for which line of the user each buffer was made."""

    def __init__(self):
        super().__init__()
        self.lines, self.line = {}, ""

    def allocate(self, aval):
        """Return new memory for an array, and its view there."""
        view = super().allocate(aval)
        self.lines[view.source.name] = self.line
        return view

    def equation(self, eqn, operands):
        """Add the steps of an equation; return the views of its results."""
        around, self.line = self.line, str(eqn.source or self.line)
        views = super().equation(eqn, operands)
        self.line = around
        return views


def lines_of(closed):
    """Return, by the names of its buffers, the lines that a program comes from."""
    sources = SourceLineLowering()
    sources.program(closed, [sources.allocate(aval) for aval in closed.in_avals])
    return sources.lines
