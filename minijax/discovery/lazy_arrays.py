"""Futures: arrays whose numbers are computed when they are looked at."""

# Made from chapters/41_discovery_ground.md by `make chapter`;
# edit the chapter, not this file.

from minijax.arrays.array import ArrayImpl

buffer_of = vars(ArrayImpl)["_buffer"]  # the slot in which arrays keep their buffers


class LazyArray(ArrayImpl):
    """An array that was asked for: its type is known, its numbers are not there yet.

    In the place of its buffer it has a pair: the `Recording` in which it is a result,
    and its number there. With its buffer it becomes an ordinary array.
    """

    __slots__ = ()

    def _look(self):
        held = buffer_of.__get__(self)
        if type(held) is tuple:
            held[0].compute("a value was looked at")
            held = buffer_of.__get__(self)
        return held

    _buffer = property(_look, buffer_of.__set__)

    def settled(self):
        """Return the same array with its numbers, no longer lazy."""
        settle(self, self._buffer)
        return self

    def __copy__(self):
        return self.settled().__copy__()

    def __reduce__(self):
        return self.settled().__reduce__()


def promise(recording, number, aval):
    """Return the array that a result of a recording is going to be."""
    x = LazyArray.__new__(LazyArray)
    buffer_of.__set__(x, (recording, number))
    x.aval, x.placement = aval, recording.placement
    return x


def settle(x, buffer):
    """Give an array its numbers, unless it has them, or was deleted."""
    if type(x) is LazyArray:
        buffer_of.__set__(x, buffer)
        x.__class__ = ArrayImpl
