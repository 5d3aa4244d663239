"""Programs run step by step, in memory that was planned."""

# Made from chapters/20_memory_rest.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax.arrays.array import ArrayImpl, asbuffer, computations
from minijax.fusion.fusion_pass import fuse
from minijax.jitting.compilation import backends, dialects
from minijax.jitting.costs import nbytes
from minijax.kernels.backends import as_bytes
from minijax.kernels.program_steps import Evaluate, jaxpr_passes, lower
from minijax.llvm.backend import LLVMProgram
from minijax.llvm.compiler import object_code
from minijax.memory.assignment import memory_stats
from minijax.memory.planning import plan
from minijax.memory.results import empty, given, scratch


class CallMemory(dict):
    """The memory of one call: bytes by buffers, where a plan says.

    What a step hands to the programs in it has no place in a plan; it is where it was
    put, or in new memory.

    Args:
      found: the memory of arguments, constants and results.
      offsets: where other buffers are in the arena.
      arena: bytes.
    """

    def __init__(self, found, offsets, arena):
        super().__init__(found)
        self.settled, self.offsets, self.arena = {*found, *offsets}, offsets, arena

    def __missing__(self, buffer):
        if buffer in self.offsets:
            start = self.offsets[buffer]
            data = self.arena[start : start + nbytes(buffer)]
        else:
            data = np.empty(nbytes(buffer), np.uint8)
        super().__setitem__(buffer, data)
        return data

    def __setitem__(self, buffer, data):
        if buffer in self.settled:
            self[buffer][:] = data
        else:
            super().__setitem__(buffer, data)

    def update(self, pairs):  # type: ignore[override]
        """Put bytes into the places of buffers."""
        for buffer, data in pairs:
            self[buffer] = data


def offsets_of(plan, start=0):
    """Return offsets in the arena, by buffers, those of programs in steps included."""
    places = plan.places.items()
    found = {buffer: start + at for buffer, (kind, at) in places if kind == "arena"}
    for number, inner in plan.nested.items():
        for each in inner:
            found |= offsets_of(each, start + plan.blocks.get(number, 0))
    return found


class Copies:
    """Memory of which copies are shown: to callbacks, which may keep what they get."""

    def __init__(self, memory):
        self.memory = memory

    def __getitem__(self, buffer):
        return self.memory[buffer].copy()

    def __setitem__(self, buffer, data):
        self.memory[buffer] = data


def settled(array):
    """Return an array whose numbers lie one after the other, at aligned addresses."""
    flags = array.flags
    return array if flags.c_contiguous and flags.aligned else array.copy()


def fused_program(closed):
    """Return the `LoweredProgram` that is planned for a program."""
    return fuse(lower(jaxpr_passes.value(closed)))


class PlannedProgram(LLVMProgram):
    """Runs the steps of a program in memory that was planned.

    Args:
      closed: a `ClosedJaxpr`.
      name: what the program is called.
      donated: for each input whether its memory may be written to; () for none.

    Attributes:
      plan: its `MemoryPlan`.
    """

    donates = True

    def __init__(self, closed, name="program", donated=()):
        self.donated = donated
        super().__init__(closed, name)
        self.offsets = offsets_of(self.plan)

    def lower(self, closed):
        """Return a program with the steps that the plan wants."""
        self.plan = plan(fused_program(closed), self.donated)
        return self.plan.planned

    def prepare(self, step):
        """Return a function of the memory that does a step."""
        run = super().prepare(step)
        if isinstance(step, Evaluate) and step.eqn.primitive not in computations:
            return lambda memory: run(Copies(memory))
        return run

    def memory_analysis(self):
        """Return the `CompiledMemoryStats`."""
        return memory_stats(self.plan, object_code(self.library))

    def __call__(self, *args):
        """Return the list of results."""
        outputs, arrays = self.lowered.outputs, self.arrays(args)
        found = {buffer: as_bytes(array) for buffer, array in arrays.items()}
        memory = CallMemory(found, self.offsets, scratch(self.plan.arena))
        for step in self.steps:
            step(memory)
        return [
            ArrayImpl(shaped(arrays[buffer], aval), aval, self.placement)
            for buffer, aval in zip(outputs, self.out_avals)
        ]

    def arrays(self, args):
        """Return NumPy arrays for all buffers but those in the arena."""
        pairs = zip(args, self.plan.donated)
        inputs = [given(x) if ours else asbuffer(x) for x, ours in pairs]
        found = dict(zip(self.lowered.inputs, map(settled, inputs)))
        found |= self.constants
        for buffer, aval in zip(self.lowered.outputs, self.out_avals):
            if self.plan.places[buffer].kind == "output" and buffer not in found:
                found[buffer] = empty(aval.shape, aval.dtype)
        ends = self.lowered.inputs, self.lowered.outputs
        for buffer, (kind, number) in self.plan.places.items():
            if kind in ("input", "output"):
                found[buffer] = found[ends[kind == "output"][number]]
        return found


def shaped(array, aval):
    """Return the numbers of an array as one of a type."""
    same = array.shape == aval.shape and array.dtype == aval.dtype
    return array if same else np.ndarray(aval.shape, aval.dtype, array)


PlannedProgram.dialects = LLVMProgram.dialects | {
    "llvm": lambda program: program.text,
}
backends["planned"] = PlannedProgram
dialects["memory"] = lambda closed, _, donated: str(
    plan(fused_program(closed), donated)
)
