# Made from chapters/21_memory.md by `make chapter`;
# edit the chapter, not this file.
"""Buffer assignment: an offset in the arena for each slot of a schedule."""

from collections import defaultdict

from minijax.jitting.costs import nbytes
from minijax.memory.arenas import Arena
from minijax.memory.assignment import MemoryPlan, Place
from minijax.memory.in_place import in_one_buffer, may_overwrite
from minijax.memory.liveness import lifetimes


class Home:
    """Memory of a result, which others may use until the result is written.

    Attributes:
      place: the `Place`.
      result: the slot of the result.
      start: number of the step that first writes it.
      busy: number of the last step that needs what is there before.
    """

    def __init__(self, place, result, start, busy=-1):
        self.place, self.result, self.start, self.busy = place, result, start, busy


class Planning:
    """What is settled of a plan, by now.

    Attributes:
      schedule: the `Schedule`.
      handed: slots that get no place, as somebody else has placed them.
      lives: the lifetimes of its slots.
      places, in_place, workspaces, blocks, nested: those of the `MemoryPlan`.
      arena: the `Arena`.
      ending: from numbers of steps to the slots in the arena that end there.
      homes, rooms: from places to the `Home` there; and from sizes to lists of them.
    """

    def __init__(self, schedule, handed=()):
        self.schedule, self.handed = schedule, {*handed}
        self.lives = lifetimes(schedule)
        self.places, self.in_place = {}, defaultdict(list)
        self.workspaces, self.blocks, self.nested = {}, {}, {}
        self.arena, self.ending = Arena(), defaultdict(set)
        self.homes, self.rooms = {}, defaultdict(list)

    def gone(self, old, new, start):
        """Return whether `old` is not needed any more when a step writes `new`."""
        end = self.lives[old].end
        if end == start >= 0:
            return may_overwrite(self.schedule.steps[start], old, new)
        return end < start

    def ours(self, place):
        """Return whether a place is memory that steps may write to."""
        return place in self.homes or (place is not None and place.kind == "arena")

    def may_stay(self, place, slot):
        """Return whether a slot leaves a place before a result needs it."""
        home = self.homes.get(place)
        return home is None or self.gone(slot, home.result, home.start)

    def move_in(self, home, slot):
        """Note that a slot is in the memory of a result before that."""
        home.busy = self.lives[slot].end
        if home.busy == home.start:
            self.in_place[home.start].append((slot, home.result))


def place_ends(p, donated):
    """Place the inputs, the constants and the results of a schedule."""
    inputs = p.schedule.inputs
    p.places.update((slot, Place("input", i)) for i, slot in enumerate(inputs))
    for number, (slot, _) in enumerate(p.schedule.constants):
        p.places[slot] = Place("constant", number)
    free = [inputs[i] for i, given in enumerate(donated) if given]
    known = {*p.places}
    for number, slot in enumerate(p.schedule.outputs):
        if slot not in known:
            known.add(slot)
            taken = next((old for old in free if may_take(p, old, slot)), None)
            place_result(p, slot, Place("output", number), taken)
            free = [old for old in free if old is not taken]


def may_take(p, old, result):
    """Return whether a result may be written where an input is."""
    alike = (old.dtype, old.size) == (result.dtype, result.size) and old.size
    if not alike or old in p.schedule.outputs:
        return False
    return p.gone(old, result, p.lives[result].start)


def place_result(p, slot, place, taken):
    """Place a result in the memory of the input that it takes, or in its own."""
    home = Home(p.places.get(taken, place), slot, p.lives[slot].start)
    if taken is not None:
        p.move_in(home, taken)
    p.places[slot], p.homes[home.place] = home.place, home
    p.rooms[nbytes(slot)].append(home)


def place_temporary(p, number, reads, slot):
    """Return the place of a slot that a step, which `reads` others, writes first."""
    size = nbytes(slot)
    if size == 0:
        return Place("arena", 0)
    place = over_an_operand(p, number, reads, slot) or before_a_result(p, number, slot)
    place = place or Place("arena", p.arena.take(size))
    if place.kind == "arena":
        p.ending[p.lives[slot].end].add(slot)
    else:
        p.move_in(p.homes[place], slot)
    return place


def over_an_operand(p, number, reads, slot):
    """Return the place of an operand that is not needed any more, or None."""
    for old in reads:
        place = p.places.get(old)
        used = [pair[0] for pair in p.in_place[number]]
        free = p.ours(place) and p.lives[old].end == number and old not in used
        if free and p.gone(old, slot, number) and p.may_stay(place, slot):
            p.in_place[number].append((old, slot))
            p.ending[number].discard(old)
            return place
    return None


def before_a_result(p, number, slot):
    """Return the place of a result that is not there yet, or None."""
    for home in p.rooms[nbytes(slot)]:
        if home.busy < number and p.may_stay(home.place, slot):
            return home.place
    return None


def plan(schedule, donated=()):
    """Return the `MemoryPlan` of a schedule.

    Args:
      schedule: a `Schedule`.
      donated: for each input whether its memory may be written to; () for none.
    """
    p = Planning(schedule)
    place_ends(p, donated)
    return plan_steps(p)


def plan_inside(schedule):
    """Return the `MemoryPlan` of a schedule within a step."""
    return plan_steps(Planning(schedule, [*schedule.inputs, *schedule.outputs]))


def plan_steps(p):
    """Return the `MemoryPlan`, when the ends are placed."""
    schedule = p.schedule
    steps = [place_step(p, *pair) for pair in enumerate(schedule.steps)]
    inputs = range(len(schedule.inputs))
    return MemoryPlan(
        schedule=schedule,
        steps=steps,
        places=p.places,
        arena=p.arena.size,
        donated=tuple([Place("input", i) in p.homes for i in inputs]),
        in_place={number: pairs for number, pairs in p.in_place.items() if pairs},
        workspaces=p.workspaces,
        blocks=p.blocks,
        nested=p.nested,
    )


def place_step(p, number, step):
    """Place what a step writes, and what it needs itself; return what is to be run."""
    reads = step.reads
    for slot in step.writes:
        if slot not in p.places and slot not in p.handed:
            p.places[slot] = place_temporary(p, number, reads, slot)
    step = with_own_memory(p, number, step)
    for slot in p.ending.pop(number, ()):
        p.arena.give(p.places[slot].number, nbytes(slot))
    pairs = p.in_place[number]
    return in_one_buffer(step, pairs) if pairs else step


def with_own_memory(p, number, step):
    """Place the workspace of a step, and plan the schedules in it."""
    inner = [plan_inside(schedule) for schedule in step.schedules]
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
    return step.with_schedules([each.planned for each in inner])
