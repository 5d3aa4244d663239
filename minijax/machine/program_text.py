# Made from chapters/21_machine_ground.md by `make chapter`;
# edit the chapter, not this file.
"""Programs as functions of LLVM: lists of steps with their loops, on planned memory.

The function of a program is ``i32 @program(i8** memory, i8* arena, i8** context)``:
the addresses of its inputs and its results; memory for what is between; and a table
that starts with the address of the function for what Python has to do, and goes on
with those of constants. It returns 0, or 1 if Python has raised an error.
"""

from minijax.jaxprs.latest import Latest
from minijax.kernels.program_steps import step_kinds
from minijax.machine.host_steps import write_hosted
from minijax.machine.locations import Locations, calls
from minijax.machine.steps_text import (
    LONGEST,
    STACK,
    StepsText,
    called_or_copied,
    parted,
    write_elsewhere,
)

# What writes a program in parts as well: a function of a `ProgramText` and its plan
# that returns the names of their functions.
in_parts: Latest = Latest(lambda text, plan: [])


class ProgramText:
    """The text of a program, in the making.

    Args:
      plan: its `MemoryPlan`.
      target: the `Target` that it is meant for.

    Attributes:
      functions: list of texts.
      hosted: list of the steps that Python does.
      asked: list of what its context holds behind the constants, for each call.
      parts: names of functions that do the program one after the other, if there are.
    """

    def __init__(self, plan, target):
        self.locations, self.target = Locations(plan), target
        self.inputs = len(plan.program.inputs)
        self.constants = len(plan.program.constants)
        self.functions, self.hosted, self.asked = [], [], []
        self.kernels, self.needed = {}, {}
        self.uses = self.locations.uses(plan.steps)
        self.function("program", plan.steps, [], linkage="define")
        self.parts = in_parts.value(self, plan)

    def function(
        self, name, steps, buffers, stack=STACK, linkage="define internal", kept=()
    ):
        """Add a function that does some steps; it is given the addresses of buffers.

        Its variables take no more than `stack` bytes; the buffers `kept` are none.
        """
        f = StepsText(self, steps, buffers, stack)
        f.local.difference_update(kept)
        write_steps(f, steps)
        self.needed |= f.needed
        head = f"{linkage} i32 @{name}({f.parameters(buffers)}) nounwind noinline {{"
        lines = [head, "entry:", *f.variables(), *f.head, *f.lines, *f.end, "}"]
        self.functions.append("\n".join(lines))

    def __str__(self):
        needed = [called_or_copied(*f, self.functions) for f in self.needed.items()]
        return "\n\n".join([*needed, *self.functions])


def write_steps(f, steps):
    """Write steps; very many of them are distributed among functions."""
    parts = [steps] if sum(map(calls, steps)) <= LONGEST else parted(steps)
    for part in parts:
        if len(parts) > 1 and not (len(part) == 1 and part[0].programs):
            write_elsewhere(f, part)
        else:
            for step in part:
                (step_kinds[type(step)].write or write_hosted)(f, step)
