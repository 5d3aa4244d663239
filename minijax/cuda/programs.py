"""Programs for a GPU: CUDA C for their kernels, and the order of launches."""

# Made from chapters/35_device.md by `make chapter`;
# edit the chapter, not this file.

from minijax.arrays.array import asbuffer
from minijax.arrays.placement import host_device
from minijax.cuda.cublas import with_library
from minijax.cuda.device_memory import called, offsets_with_answers
from minijax.cuda.graphs import recorded_series
from minijax.cuda.launched_steps import (
    cuda_source,
    launches_in,
    line_of,
    may_overwrite_there,
    program_for_card,
)
from minijax.cuda.turns import CardSteps
from minijax.fusion.fusion_pass import fuse
from minijax.jitting.compilation import on_device_of
from minijax.kernels.program_steps import jaxpr_passes, lower
from minijax.llvm.targets import TARGETS
from minijax.machine.executables import with_own_results
from minijax.memory.planning import plan


def steps_for_card(closed, card=None):
    """Return the `LoweredProgram` of a program: launches, where a card can do it."""
    with on_device_of(host_device().uncommitted):  # for what is computed at once
        program = with_own_results(lower(jaxpr_passes.value(closed)))
        program = program_for_card(fuse(program, TARGETS["gpu"]))
    return with_library(program, card) if card else program


class CudaProgram(CardSteps):
    """A program whose kernels run on a GPU, in the order in which the host asks.

    Args:
      closed: a `ClosedJaxpr`.
      name: what the program is called.
      donated: for each input whether its memory may be written to; () for none.
      device: the `CudaDevice`.

    Attributes:
      lowered, plan: its `LoweredProgram` and its `MemoryPlan`.
      text: the CUDA C of its kernels.
      arenas: memory for what is between the results, while no call uses it.
      offsets, room: where what is between lies in an arena, and how large that is.
    """

    platforms, donates, per_device = ("gpu",), True, True

    def __init__(self, closed, name="program", donated=(), device=None):
        self.name, self.line, self.out_avals = name, line_of(closed), closed.out_avals
        self.device, self.card, self.placement = device, device.card, device.uncommitted
        steps = steps_for_card(closed, device.card)
        self.plan = plan(steps, donated, may_overwrite_there)
        self.lowered = self.plan.planned
        self.offsets, self.room = offsets_with_answers(self.plan)
        self.launches, self.arenas = launches_in(self.lowered), []
        self.text, labels = cuda_source(self.launches.values())
        self.functions = self.card.load(self.text, labels) if labels else {}
        consts = self.lowered.constants
        self.constants = {x: asbuffer(value, device).bytes for x, value in consts}
        self.steps = self.series(self.lowered.steps)

    def __call__(self, *args):
        """Return the list of results."""
        return called(self, args)


class GraphProgram(CudaProgram):
    """A program for a GPU that records launches which come again."""

    def series(self, steps):
        """Return functions of the memory that do steps, one after the other."""
        return recorded_series(self, steps)
