"""The backend "cpu": a program is one function of machine code."""

# Made from chapters/21_machine.md by `make chapter`;
# edit the chapter, not this file.

from itertools import repeat

from minijax._lazy import collector_at_rest
from minijax.arrays.array import ArrayImpl
from minijax.fusion.fusion_pass import fuse
from minijax.jitting.compilation import backends, default_backend
from minijax.kernels.program_steps import cpu_rules, jaxpr_passes, lower
from minijax.llvm.targets import current_target
from minijax.machine.executables import (
    Executable,
    address_of,
    inputs_of,
    results_of,
    step_passes,
    table,
    with_own_results,
)
from minijax.machine.program_text import ProgramText
from minijax.memory.planning import plan
from minijax.memory.results import scratch


class CPUProgram(Executable):
    """A program as one function of machine code, with its loops.

    Args:
      closed: a `ClosedJaxpr`.
      name: what the program is called.
      donated: for each input whether its memory may be written to; () for none.

    Attributes:
      lowered, plan: its `LoweredProgram` and its `MemoryPlan`.
      text: what LLVM is given.
    """

    @collector_at_rest
    def __init__(self, closed, name="program", donated=()):
        self.name, self.out_avals = name, closed.out_avals
        self.simplified, self.target = jaxpr_passes.value(closed), current_target()
        fused = fuse(with_own_results(lower(self.simplified, cpu_rules)))
        self.lowered = step_passes.value(fused)
        self.plan = plan(self.lowered, donated)
        self.load(ProgramText(self.plan, self.target))

    def __call__(self, *args):
        """Return the list of results."""
        inputs = inputs_of(self.plan, args)
        results = results_of(self.plan, self.out_avals, inputs)
        arena = scratch(self.plan.arena)
        memory = table(map(address_of, [*inputs, *results]))
        if self.function(memory, address_of(arena), self.context_of_call()):
            self.host.raise_error()
        return list(map(ArrayImpl, results, self.out_avals, repeat(self.placement)))


CPUProgram.dialects = {
    "simplified": lambda program: str(program.simplified),
    "kernels": lambda program: str(program.lowered),
    "steps": lambda program: text_of_steps(program.lowered),
    "memory": lambda program: str(program.plan),
    "llvm": lambda program: program.text,
    "assembly": lambda program: program.library.assembly,
}


def text_of_steps(program):
    """Return the steps of a program as text, without what is in its kernels."""
    return str(program).partition("\n\n")[0]


backends["cpu"] = CPUProgram
default_backend.value = "cpu"
