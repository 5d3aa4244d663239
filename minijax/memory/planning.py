"""Buffer assignment: an offset in the arena for each buffer of a program."""

# Made from chapters/20_memory.md by `make chapter`;
# edit the chapter, not this file.

from collections import defaultdict

from minijax.jitting.costs import nbytes
from minijax.memory.arenas import Arena
from minijax.memory.assignment import MemoryPlan
from minijax.memory.in_place import may_overwrite
from minijax.memory.liveness import lifetimes
from minijax.memory.overwriting import in_one_buffer
from minijax.memory.places import Place, is_ours, leaves_in_time, place_ends, share


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
      results, of_size: the `ResultMemory` by places; and lists of them by sizes.
    """

    def __init__(self, program, handed=(), may_overwrite=may_overwrite):
        self.program, self.handed = program, {*handed}
        self.may_overwrite = may_overwrite
        self.lives = lifetimes(program)
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
    for memory in p.of_size[nbytes(buffer)]:
        free = memory.in_use < p.lives[buffer].start
        if free and p.may_replace(memory.result, buffer):
            return memory.place
    return None


def over_an_operand(p, buffer, reads):
    """Return the place of an operand that is not needed any more, or None."""
    number = p.lives[buffer].start
    for old in reads:
        place, used = p.places.get(old), [pair[0] for pair in p.in_place[number]]
        if p.lives[old].end != number or old in used or not is_ours(p, place):
            continue
        if p.may_replace(buffer, old) and leaves_in_time(p, buffer, place):
            p.in_place[number].append((old, buffer))
            p.ending[number].discard(old)
            return place
    return None


def place_temporary(p, buffer, reads):
    """Return the place of a buffer that is written by a step which `reads` others."""
    if nbytes(buffer) == 0:
        return Place("arena", 0)
    place = over_an_operand(p, buffer, reads) or before_a_result(p, buffer)
    place = place or Place("arena", p.arena.take(nbytes(buffer)))
    if place.kind == "arena":
        p.ending[p.lives[buffer].end].add(buffer)
    else:
        share(p, p.results[place], buffer)
    return place


def plan(program, donated=(), may_overwrite=may_overwrite):
    """Return the `MemoryPlan` of a program.

    Args:
      program: a `LoweredProgram`.
      donated: for each input whether its memory may be written to; () for none.
      may_overwrite: a function of a step and two buffers, as ours for a core.
    """
    p = Planning(program, (), may_overwrite)
    place_ends(p, donated)
    return planned_steps(p)


def place_step(p, number, step):
    """Place what a step writes, and what it needs itself; return what is to be run."""
    reads = step.reads
    for buffer in step.writes:
        if buffer not in p.places and buffer not in p.handed:
            p.places[buffer] = place_temporary(p, buffer, reads)
    step = with_own_memory(p, number, step)
    for buffer in p.ending.pop(number, ()):
        p.arena.give(p.places[buffer].number, nbytes(buffer))
    pairs = p.in_place[number]
    return in_one_buffer(step, pairs) if pairs else step


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
        donated=tuple([Place("input", i) in p.results for i in inputs]),
        in_place={number: pairs for number, pairs in p.in_place.items() if pairs},
        workspaces=p.workspaces,
        blocks=p.blocks,
        nested=p.nested,
    )


def plan_inside(program, may_overwrite=may_overwrite):
    """Return the `MemoryPlan` of a program within a step."""
    ends = [*program.inputs, *program.outputs]
    return planned_steps(Planning(program, ends, may_overwrite))


def with_own_memory(p, number, step):
    """Place the workspace of a step, and plan the programs in it."""
    inner = [plan_inside(program, p.may_overwrite) for program in step.programs]
    block = max([each.arena for each in inner], default=0)
    wanted = (p.workspaces, getattr(step, "workspace", 0)), (p.blocks, block)
    wanted = [(offsets, size) for offsets, size in wanted if size]
    for offsets, size in wanted:
        offsets[number] = p.arena.take(size)
    for offsets, size in wanted:
        p.arena.give(offsets[number], size)
    if not inner:
        return step
    p.nested[number] = inner
    return step.with_programs([each.planned for each in inner])
