"""Places of buffers; the ends of a program, and what may be in a result's memory."""

# Made from chapters/20_memory_ground.md by `make chapter`;
# edit the chapter, not this file.

from typing import NamedTuple

from minijax.jitting.costs import nbytes


class Place(NamedTuple):
    """The memory of a buffer.

    Attributes:
      kind: "input", "output" or "constant", with the number of it; or "arena", with an
        offset in bytes.
      number: as said.
    """

    kind: str
    number: int

    def __str__(self):
        return f"{self.kind} {self.number}"


class ResultMemory:
    """Memory of a result, in which other buffers may be before the result is written.

    Attributes:
      place: the `Place`.
      result: the buffer of the result.
      written: number of the step that first writes the result.
      in_use: number of the last step that needs another buffer there; -1 for none.
    """

    def __init__(self, place, result, written):
        self.place, self.result, self.written = place, result, written
        self.in_use = -1


def place_result(p, buffer, place):
    """Place a result; return its `ResultMemory`."""
    memory = ResultMemory(place, buffer, p.lives[buffer].start)
    p.places[buffer], p.results[place] = place, memory
    p.of_size[nbytes(buffer)].append(memory)
    return memory


def share(p, memory, buffer):
    """Note that a buffer has the memory of a result before the result is written."""
    memory.in_use = p.lives[buffer].end
    if memory.in_use == memory.written:
        p.in_place[memory.written].append((buffer, memory.result))


def place_ends(p, donated):
    """Place the inputs, the constants and the results of a program."""
    inputs, constants = p.program.inputs, [buffer for buffer, _ in p.program.constants]
    for kind, ends in (("input", inputs), ("constant", constants)):
        p.places.update((buffer, Place(kind, i)) for i, buffer in enumerate(ends))
    free = [inputs[i] for i, given in enumerate(donated) if given]
    for number, buffer in enumerate(p.program.outputs):
        if buffer not in p.places:
            taken = next((old for old in free if may_take(p, old, buffer)), None)
            place = p.places.get(taken, Place("output", number))
            memory = place_result(p, buffer, place)
            if taken is not None:
                share(p, memory, taken)
                free = [old for old in free if old is not taken]


def may_take(p, old, result):
    """Return whether a result may be written where an input is."""
    alike = (old.dtype, old.size) == (result.dtype, result.size) and old.size
    return alike and old not in p.program.outputs and p.may_replace(result, old)


def is_ours(p, place):
    """Return whether a place is memory that steps may write to."""
    return place in p.results or (place is not None and place.kind == "arena")


def leaves_in_time(p, buffer, place):
    """Return whether a buffer has ended in a place when a result is written there."""
    memory = p.results.get(place)
    return memory is None or p.may_replace(memory.result, buffer)
