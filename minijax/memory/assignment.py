"""Buffer assignment as data: where the buffers of a program live."""

# Made from chapters/20_memory.md by `make chapter`;
# edit the chapter, not this file.

import dataclasses

from minijax.jitting.costs import CompiledMemoryStats, nbytes
from minijax.kernels.program_steps import LoweredProgram
from minijax.memory.liveness import lifetimes


@dataclasses.dataclass(eq=False)
class MemoryPlan:
    """Where the buffers of a program live.

    Attributes:
      program: the `LoweredProgram`.
      steps: what is to be run, one for each of its steps; those that write over an
        operand have one parameter for both.
      places: from buffers to `Place`. In the plan of a program within a step, only what
        is neither its input nor its output has one; the step hands these in.
      arena: size in bytes of the memory for what is neither argument nor result.
      donated: for each input whether the steps write into its memory.
      in_place: from numbers of steps to pairs of buffers: an operand, and what is
        written over it.
      workspaces: from numbers of steps to offsets in the arena, for steps with an
        attribute `workspace`, a number of bytes that they need while they run.
      blocks: from numbers of steps to offsets in the arena, for programs in them.
      nested: from numbers of steps to the plans of these programs, whose offsets count
        from the block.
    """

    program: LoweredProgram
    steps: list
    places: dict
    arena: int
    donated: tuple
    in_place: dict
    workspaces: dict
    blocks: dict
    nested: dict

    @property
    def planned(self):
        """The program with the steps that are to be run."""
        return self.program._replace(steps=self.steps)

    def __str__(self):
        return print_plan(self)


def print_plan(plan):
    """Return the text of a plan: a line for each buffer, by their lives."""
    lives = sorted(lifetimes(plan.program).items(), key=lambda item: item[1].start)
    over = {new: old for pairs in plan.in_place.values() for old, new in pairs}
    rows = [
        (str(x), str(plan.places[x]), _when(life, plan), _over(over.get(x)))
        for x, life in lives
        if x in plan.places
    ]
    lines = [f"{plan.arena} bytes in the arena", *_aligned(rows)]
    for number, inner in plan.nested.items():
        at = f" at {plan.blocks[number]}" if number in plan.blocks else ""
        for each in inner:
            lines += [f"within step {number}{at}:", *_indented(str(each))]
    return "\n".join(lines)


def _when(life, plan):
    count = len(plan.program.steps)
    start = "before" if life.start < 0 else f"step {life.start}"
    end = "after" if life.end == count else f"step {life.end}"
    return start if life.end == life.start else f"{start} to {end}"


def _over(buffer):
    return f"over {buffer.name}" if buffer else ""


def _aligned(rows):
    widths = [max(map(len, column)) for column in zip(*rows)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def _indented(text):
    return [f"  {line}" for line in text.split("\n")]


def memory_stats(plan, code=b""):
    """Return the `CompiledMemoryStats` of a plan.

    Args:
      plan: a `MemoryPlan`.
      code: the code that was generated.
    """
    inputs, outputs = plan.program.inputs, plan.program.outputs
    shared = [buffer for buffer, given in zip(inputs, plan.donated) if given]
    return CompiledMemoryStats(
        generated_code_size_in_bytes=len(code),
        argument_size_in_bytes=sum(map(nbytes, inputs)),
        output_size_in_bytes=sum(map(nbytes, outputs)),
        alias_size_in_bytes=sum(map(nbytes, shared)),
        temp_size_in_bytes=plan.arena,
    )
