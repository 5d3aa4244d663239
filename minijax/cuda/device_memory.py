"""Arrays in the memory of a card: stretches of bytes, and buffers with a shape."""

# Made from chapters/35_device_ground.md by `make chapter`;
# edit the chapter, not this file.

from itertools import repeat
from sys import getrefcount
from types import SimpleNamespace

import numpy as np

from minijax.arrays.array import ArrayImpl, asbuffer
from minijax.errors import out_of_memory
from minijax.jitting.costs import nbytes
from minijax.machine.choices import While
from minijax.memory.backend import CallMemory, offsets_of


class CardBytes:
    """Some bytes in the memory of a card.

    Args:
      card: a `Card`.
      memory: what holds the memory; None for no bytes.
      address: of the first byte.
      size: how many there are.
    """

    __slots__ = ("address", "card", "memory", "size")

    def __init__(self, card, memory, address, size):
        self.card, self.memory, self.address, self.size = card, memory, address, size

    def __len__(self):
        return self.size

    def fetch(self):
        """Return the bytes as an array of NumPy, when all work is done."""
        near = np.empty(self.size, np.uint8)
        self.card.copy_out(near, self.address)
        return near

    def fill(self, numbers):
        """Copy an array of NumPy here."""
        self.card.copy_in(self.address, np.ascontiguousarray(numbers))
        return self

    def __getitem__(self, key):
        if not isinstance(key, slice):
            return self.fetch()[key]
        start, stop, _ = key.indices(self.size)
        return CardBytes(self.card, self.memory, self.address + start, stop - start)

    def __setitem__(self, key, other):
        here = self[key]
        if here.address != other.address:
            self.card.copy_within(here.address, other.address, here.size)

    def view(self, dtype):
        """Return the numbers as an array of NumPy, when all work is done."""
        return self.fetch().view(dtype)


def room(card, size, what="a result"):
    """Return `CardBytes` in new memory.

    Raises:
      JaxRuntimeError: if the card has not so much left.
    """
    if not size:
        return CardBytes(card, None, 0, 0)
    try:
        memory = card.allocate(size)
    except MemoryError as error:
        what, kind = f"{what} on {card.name}", np.dtype("uint8")
        raise out_of_memory(what, (size,), kind) from error
    return CardBytes(card, memory, memory.ptr, size)


class CardBuffer:
    """The buffer of an array whose numbers lie on a card.

    Args:
      bytes: the `CardBytes`.
      shape, dtype: of the array.
    """

    __slots__ = ("__weakref__", "bytes", "dtype", "shape")

    def __init__(self, bytes, shape, dtype):
        self.bytes, self.shape, self.dtype = bytes, shape, dtype

    @property
    def address(self):
        """The address of the first number, in the memory of the card."""
        return self.bytes.address

    def numbers(self):
        """Return them as a new array of NumPy, when all work is done."""
        if self.dtype.itemsize == 0:
            return np.zeros(self.shape, self.dtype)
        near = np.empty(self.shape, self.dtype)
        self.bytes.card.copy_out(near, self.bytes.address)
        return near

    def __array__(self, *args, **kwargs):
        raise TypeError("The buffer lies on a card; device_get fetches an array.")


_held = SimpleNamespace(buffer=object())
ALONE = getrefcount(_held.buffer)  # if one object holds it


def given_bytes(x):
    """Return the bytes of an array that is given up, or a copy if they are shared."""
    data = x._buffer.bytes
    if getrefcount(x._buffer) > ALONE:
        copy = room(data.card, data.size)
        copy[:] = data
        return copy
    return data


class CardMemory(CallMemory):
    """The memory of one call, on a card."""

    def __missing__(self, buffer):
        if buffer in self.offsets:
            return super().__missing__(buffer)
        data = room(self.arena.card, nbytes(buffer))
        dict.__setitem__(self, buffer, data)
        return data


def offsets_with_answers(plan):
    """Return offsets in an arena, and its size; what tests of loops say stands last."""
    offsets, size = offsets_of(plan), plan.arena
    for step in plan.planned.walk():
        if type(step) is While:
            offsets[step.test.outputs[0]], size = size, size + 16
    return offsets, size


def memory_of_ends(program, inputs):
    """Return bytes on the card for arguments, constants and results."""
    ends, places, of = program.lowered, program.plan.places, f" of {program.name}"
    found = dict(zip(ends.inputs, inputs)) | program.constants
    for buffer in ends.outputs:
        if places[buffer].kind == "output" and buffer not in found:
            found[buffer] = room(program.card, nbytes(buffer), "a result" + of)
    both = {"input": ends.inputs, "output": ends.outputs}
    for buffer, (kind, number) in places.items():
        if kind in both:
            found[buffer] = found[both[kind][number]]
    return found


def bytes_of(program, x, ours):
    """Return the bytes of an argument on the card, its own if it is given up."""
    if ours and isinstance(x, ArrayImpl) and x.device is program.device:
        return given_bytes(x)
    return asbuffer(x, program.device).bytes


def run(program, inputs):
    """Put the steps of a program into the stream; return the buffers of its results.

    Args:
      program: a `CudaProgram`.
      inputs: a list of `CardBytes`.
    """
    found, size = memory_of_ends(program, inputs), program.room
    kept = program.arenas
    taken = sum(map(len, inputs))
    what = f"the arena of {program.name}, whose arguments take {taken} bytes,"
    arena = kept.pop() if kept else room(program.card, size, what)
    program.start(CardMemory(found, program.offsets, arena))
    kept.append(arena)
    pairs = zip(program.lowered.outputs, program.out_avals)
    return [CardBuffer(found[x], aval.shape, aval.dtype) for x, aval in pairs]


def called(program, args):
    """Return the results of a program for arrays, and numbers of the host."""
    pairs = zip(args, program.plan.donated)
    inputs = [bytes_of(program, x, ours) for x, ours in pairs]
    results = run(program, inputs)
    return list(map(ArrayImpl, results, program.out_avals, repeat(program.placement)))
