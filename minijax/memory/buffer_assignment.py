"""Buffer assignment: liveness, and an offset in an arena for each buffer."""

# Made from chapters/20_memory.md by `make chapter`;
# edit the chapter, not this file.
# Amended in chapters/21_machine_rest.md: plan_memory, Planning.__init__, plan_inside,
#   with_own_memory (d7ca9298).

import dataclasses
from collections import defaultdict
from typing import NamedTuple

from minijax.jitting.stages import CompiledMemoryStats, nbytes
from minijax.kernels.ir import stores_are_affine
from minijax.kernels.lowering import Launch, LoweredProgram
from minijax.memory.aliasing import (
    BufferLocation,
    alias_launch_buffers,
    assign_program_io,
    dies_before_write,
    is_single_pass,
    is_writable,
    may_take,
    parameters_of_buffer,
    place_result,
    places_are_disjoint,
    share_result_memory,
)

# Liveness analysis: from when until when the buffers of a program are needed.


class LiveRange(NamedTuple):
    """The steps between which a buffer holds something that is needed.

    Attributes:
      start: number of the step that first writes to it; -1 if it is there before all.
      end: number of the last step that uses it; the number of steps if it has to be
        there after all.
    """

    start: int
    end: int


def live_ranges(program):
    """Return the `LiveRange` of each buffer of a program.

    Those of the programs within its steps have lifetimes of their own.
    """
    given = [*program.inputs, *[buffer for buffer, _ in program.constants]]
    found = dict.fromkeys(given, LiveRange(-1, -1))
    for number, step in enumerate(program.steps):
        for buffer in [*step.reads, *step.writes]:
            first = found.get(buffer, LiveRange(number, number))
            found[buffer] = first._replace(end=number)
    for buffer in program.outputs:
        first = found.get(buffer, LiveRange(-1, -1))
        found[buffer] = first._replace(end=len(program.steps))
    return found


def captured_buffers(program):
    """Return the buffers of others that a program within a step reads."""
    own = {*program.inputs, *[buffer for buffer, _ in program.constants]}
    own.update(buffer for step in program.steps for buffer in step.writes)
    used = [buffer for step in program.steps for buffer in step.reads]
    return [buffer for buffer in dict.fromkeys(used) if buffer not in own]


def temporaries(program):
    """Return the buffers that are neither inputs, nor constants, nor outputs."""
    known = {*program.inputs, *program.outputs, *captured_buffers(program)}
    known.update(buffer for buffer, _ in program.constants)
    return [buffer for buffer in live_ranges(program) if buffer not in known]


# Memory handed out before it exists: offsets in an arena.

ALIGNMENT = 64


def align_up(nbytes):
    """Return a number of bytes rounded up to a multiple of the alignment."""
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


class Arena:
    """Hands out stretches of one block of memory, and takes them back.

    Attributes:
      size: how many bytes the block needs.
      free_ranges: from the starts of stretches that are free to their ends.
    """

    def __init__(self):
        self.size, self.free_ranges = 0, {}

    def take(self, nbytes):
        """Return the offset of a stretch: in the smallest gap that is large enough."""
        nbytes, gaps = align_up(nbytes), self.free_ranges.items()
        fitting = [(end - at, at) for at, end in gaps if end - at >= nbytes]
        last = next((at for at, end in gaps if end == self.size), self.size)
        start = min(fitting)[1] if fitting else last
        end = self.free_ranges.pop(start, start)
        if end > start + nbytes:
            self.free_ranges[start + nbytes] = end
        self.size = max(self.size, start + nbytes)
        return start

    def free(self, start, nbytes):
        """Take a stretch back, and join it with the gaps beside it."""
        end = start + align_up(nbytes)
        end = self.free_ranges.pop(end, end)
        start = next(
            (at for at, stop in self.free_ranges.items() if stop == start), start
        )
        if end > start:
            self.free_ranges[start] = end


# Kernels that write their result over an operand.


def may_overwrite(step, old, new):
    """Return whether a step may write its result `new` where its operand `old` is.

    It may, if it is a kernel that reads each element of `old` at the place where it
    writes one of `new`, and before. No later step may need `old`.
    """
    if type(step) is not Launch or (old.dtype, old.size) != (new.dtype, new.size):
        return False
    sources, targets = parameters_of_buffer(step, old), parameters_of_buffer(step, new)
    if len(sources) != 1 or len(targets) != 1:
        return False
    usual = _element_by_element(step.kernel, sources[0], targets[0])
    return usual and stores_are_affine(step.kernel)


def _element_by_element(kernel, source, target):
    loads = [n for n in kernel.nodes if n.op == "load" and n.detail.parameter == source]
    stores = [store for store in kernel.stores if store.parameter == target]
    places = {store.place for store in stores}
    if source.dtype != target.dtype or not loads or not places_are_disjoint(places):
        return False
    if any(x.detail.guards or x.args or x.detail.place not in places for x in loads):
        return False
    return is_single_pass(kernel, loads, stores)


# Buffer assignment as data: where the buffers of a program live.


@dataclasses.dataclass(eq=False)
class MemoryPlan:
    """Where the buffers of a program live.

    Attributes:
      program: the `LoweredProgram`.
      steps: what is to be run, one for each of its steps; those that write over an
        operand have one parameter for both.
      places: from buffers to `BufferLocation`. In the plan of a program within a step,
        only what is neither its input nor its output has one; the step hands these in.
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
    lives = sorted(live_ranges(plan.program).items(), key=lambda item: item[1].start)
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


# Buffer assignment: an offset in the arena for each buffer of a program.


class Planning:
    """The plan of a program, while it is made.

    Attributes:
      program: the `LoweredProgram`.
      handed: buffers that get no place, since the step around the program places them.
      may_overwrite: a function ``(step, old, new)``: whether a step may write over an
        operand; ours is for loops that run in order.
      lives: the lifetimes of its buffers.
      places, in_place, workspaces, blocks, nested: those of the `MemoryPlan`.
      arena: the `Arena`.
      ending: from numbers of steps to the buffers in the arena that end there.
      results, of_size: the `ResultReuse` by places; and lists of them by sizes.
    """

    def __init__(self, program, handed=(), may_overwrite=may_overwrite, carries=None):
        self.program, self.handed = program, {*handed}
        self.may_overwrite, self.carries = may_overwrite, carries or no_carries
        self.lives = live_ranges(program)
        self.places, self.in_place = {}, defaultdict(list)
        self.workspaces, self.blocks, self.nested = {}, {}, {}
        self.arena, self.ending = Arena(), defaultdict(set)
        self.results, self.of_size = {}, defaultdict(list)

    def may_replace(self, new, old):
        """Return whether a buffer may be written where another one is."""
        start, end = self.lives[new].start, self.lives[old].end
        if end == start >= 0:
            return self.may_overwrite(self.program.steps[start], old, new)
        return end < start


def before_a_result(p, buffer):
    """Return the place of a result that is not written yet, or None."""
    for slot in p.of_size[nbytes(buffer)]:
        free = slot.in_use < p.lives[buffer].start
        if free and p.may_replace(slot.result, buffer):
            return slot.place
    return None


def over_an_operand(p, buffer, reads):
    """Return the place of an operand that is not needed any more, or None.

    It skips what a later step needs, what another result of the step is written over,
    and memory that may not be written to. The step is changed for the pair, so it is
    noted in `in_place`. The operand no longer gives its place back when it ends.
    """
    number = p.lives[buffer].start
    for old in reads:
        place, used = p.places.get(old), [pair[0] for pair in p.in_place[number]]
        if p.lives[old].end != number or old in used or not is_writable(p, place):
            continue
        if p.may_replace(buffer, old) and dies_before_write(p, buffer, place):
            p.in_place[number].append((old, buffer))
            p.ending[number].discard(old)
            return place
    return None


def place_temporary(p, buffer, reads):
    """Return the place of a buffer that is written by a step which `reads` others."""
    if nbytes(buffer) == 0:
        return BufferLocation("arena", 0)
    place = over_an_operand(p, buffer, reads) or before_a_result(p, buffer)
    place = place or BufferLocation("arena", p.arena.take(nbytes(buffer)))
    if place.kind == "arena":
        p.ending[p.lives[buffer].end].add(buffer)
    else:
        share_result_memory(p, p.results[place], buffer)
    return place


def no_carries(step):
    """Return that no program in a step has states whose memory it may keep."""
    return [[] for _ in step.programs]


def plan_memory(program, donated=(), may_overwrite=may_overwrite, carries=None):
    """Return the `MemoryPlan` of a program.

    Args:
      program: a `LoweredProgram`.
      donated: for each input whether its memory may be written to; () for none.
      may_overwrite: a function of a step and two buffers, as ours for a core.
      carries: a function of a step that returns, for each program in it, pairs of an
        input and of the output that is this input in the next iteration; None if
        no program has any.
    """
    p = Planning(program, (), may_overwrite, carries)
    assign_program_io(p, donated)
    return planned_steps(p)


def place_step(p, number, step):
    """Place what a step writes, and what it needs itself; return what is to be run."""
    reads = step.reads
    for buffer in step.writes:
        if buffer not in p.places and buffer not in p.handed:
            p.places[buffer] = place_temporary(p, buffer, reads)
    step = with_own_memory(p, number, step)
    for buffer in p.ending.pop(number, ()):
        p.arena.free(p.places[buffer].number, nbytes(buffer))
    pairs = p.in_place[number]
    return alias_launch_buffers(step, pairs) if pairs else step


def planned_steps(p):
    """Return the `MemoryPlan`, when the ends are placed."""
    program = p.program
    steps = [place_step(p, *pair) for pair in enumerate(program.steps)]
    inputs = range(len(program.inputs))
    return MemoryPlan(
        program=program,
        steps=steps,
        places=p.places,
        arena=p.arena.size,
        donated=tuple([BufferLocation("input", i) in p.results for i in inputs]),
        in_place={number: pairs for number, pairs in p.in_place.items() if pairs},
        workspaces=p.workspaces,
        blocks=p.blocks,
        nested=p.nested,
    )


def plan_inside(program, may_overwrite=may_overwrite, carries=None, states=()):
    """Return the `MemoryPlan` of a program within a step.

    Args:
      program, may_overwrite, carries: as for `plan_memory`.
      states: pairs of an input and the output that may be written over it.
    """
    ends = [*program.inputs, *program.outputs]
    p = Planning(program, ends, may_overwrite, carries)
    for now, following in states:
        if may_take(p, now, following):
            place = BufferLocation("state", program.inputs.index(now))
            p.places[now] = place
            share_result_memory(p, place_result(p, following, place), now)
    return planned_steps(p)


def with_own_memory(p, number, step):
    """Place the workspace of a step, and plan the programs in it."""
    inner = [
        plan_inside(program, p.may_overwrite, p.carries, states)
        for program, states in zip(step.programs, p.carries(step))
    ]
    block = max([each.arena for each in inner], default=0)
    wanted = (p.workspaces, getattr(step, "workspace", 0)), (p.blocks, block)
    wanted = [(offsets, size) for offsets, size in wanted if size]
    for offsets, size in wanted:
        offsets[number] = p.arena.take(size)
    for offsets, size in wanted:
        p.arena.free(offsets[number], size)
    if not inner:
        return step
    p.nested[number] = inner
    return step.with_programs([each.planned for each in inner])
