"""Programs as functions of LLVM: lists of steps with their loops, on planned memory.

The function of a program is ``i32 @program(i8** memory, i8* arena, i8** context)``:
the addresses of its inputs and its results; memory for what is between; and a table
that starts with the address of the function for what Python has to do, and goes on
with those of constants. It returns 0, or 1 if Python has raised an error.
"""

# Made from chapters/21_machine_ground.md by `make chapter`;
# edit the chapter, not this file.

from minijax.jaxprs.latest import Latest
from minijax.kernels.program_steps import step_kinds
from minijax.machine.host_steps import write_hosted
from minijax.machine.locations import Locations, calls
from minijax.machine.steps_text import (
    COPIED,
    INLINED,
    LONG,
    LONGEST,
    MORE,
    STACK,
    StepsText,
    call_counts,
    call_elsewhere,
    inlined,
    parted,
    within_budget,
    write_elsewhere,
)

# What cuts a program where its replicas meet: a function of its steps that returns a
# list of parts, of which each second one is a meeting again; or [], if none may be cut.
cut_at_meetings: Latest = Latest(lambda steps: [])
JUST_CALLS = "noinline optnone"  # of functions in which LLVM has nothing to improve


class ProgramText:
    """The text of a program, in the making.

    Args:
      plan: its `MemoryPlan`.
      target: the `Target` that it is meant for.

    Attributes:
      functions: list of texts.
      hosted: list of the steps that Python does.
      asked: list of what its context holds behind the constants, for each call.
      parts: names of functions that do what `cut_at_meetings` returns.
      kept: buffers that are no variables, as several of these functions need them.
      has_loops: whether there are programs in its steps.
      is_long: whether there are such, or long arrays.
    """

    def __init__(self, plan, target):
        self.locations, self.target = Locations(plan), target
        self.inputs = len(plan.program.inputs)
        self.constants = len(plan.program.constants)
        self.functions, self.hosted, self.asked = [], [], []
        self.has_loops = any(step.programs for step in plan.steps)
        sizes = [buffer.size for step in plan.steps for buffer in step.writes]
        self.is_long = self.has_loops or max(sizes, default=0) >= LONG
        self.kernels, self.needed = {}, {}
        self.uses = self.locations.uses(plan.steps)
        parts = cut_at_meetings.value(plan.steps)
        self.parts, self.kept = [f"turn{i}" for i in range(len(parts))], set()
        if len(parts) > 1:
            self.write_parts(parts)
        else:
            self.function("program", plan.steps, [], linkage="")
            self.parts = ["program"] * len(parts)

    def write_parts(self, parts):
        """Add a function for each part, and one that calls every second one."""
        met = [step for part in parts[1::2] for step in part]
        ends = [buffer for step in met for buffer in (*step.reads, *step.writes)]
        self.kept = {self.locations.first.get(buffer, buffer) for buffer in ends}
        for i, part in enumerate(parts):
            how = JUST_CALLS if i % 2 else "noinline"
            self.function(self.parts[i], part, [], linkage="", how=how)
        f = StepsText(self, [], [])
        for name in self.parts[::2]:
            call_elsewhere(f, name)
        self.add("program", f, [], "", JUST_CALLS)

    def function(
        self, name, steps, buffers, stack=STACK, linkage="internal ", how="noinline"
    ):
        """Add a function that does some steps; it is given the addresses of buffers.

        Its variables take no more than `stack` bytes.
        """
        f = StepsText(self, steps, buffers, stack)
        write_steps(f, steps)
        self.add(name, f, buffers, linkage, how)

    def add(self, name, f, buffers, linkage, how):
        """Add a function whose lines are written."""
        self.needed |= f.needed
        parameters = f"({f.parameters(buffers)}) nounwind {how} {{"
        head = f"define {linkage}i32 @{name}{parameters}"
        lines = [head, "entry:", *f.variables(), *f.head, *f.lines, *f.end, "}"]
        self.functions.append("\n".join(lines))

    def __str__(self):
        more, longer = [MORE if x else 1 for x in (self.has_loops, self.is_long)]
        counts, lines = call_counts(self.functions), INLINED * longer
        needed, functions = inlined(self.needed, self.functions, counts, lines)
        functions = within_budget(functions, counts, COPIED * more)
        return "\n\n".join([*needed, *functions])


def write_steps(f, steps):
    """Write steps; very many of them are distributed among functions."""
    parts = [steps] if sum(map(calls, steps)) <= LONGEST else parted(steps)
    for part in parts:
        if len(parts) > 1 and not (len(part) == 1 and part[0].programs):
            write_elsewhere(f, part)
        else:
            for step in part:
                (step_kinds[type(step)].write or write_hosted)(f, step)
