"""A platform whose buffers are not NumPy's: what a GPU will be, without a GPU.

A `Sealed` buffer answers no question; only its device opens it. So whatever works on
such a device touches no buffer directly. What is counted there shows that programs have
really run on it.
"""

from collections import Counter
from contextlib import contextmanager

import numpy as np

import minijax
from minijax.arrays import devices as placement


class Sealed:
    """Numbers that only a device can read: their bytes are in another order."""

    __slots__ = ("_bytes", "_kind")

    def __init__(self, numbers):
        numbers = np.array(numbers, order="C")
        self._kind = numbers.shape, numbers.dtype
        self._bytes = numbers.tobytes()[::-1]

    def opened(self):
        """Return the numbers, in an array that cannot be written to."""
        shape, dtype = self._kind
        return np.ndarray(shape, dtype, self._bytes[::-1])

    def __array__(self, *args, **kwargs):
        raise AssertionError("NumPy was given a buffer of another platform")

    __iter__ = __len__ = __getitem__ = __bool__ = __float__ = __index__ = __array__
    __add__ = __mul__ = __eq__ = __array__  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]


class ForeignDevice(placement.Device):
    """A device that keeps its numbers in `Sealed` buffers."""

    def __init__(self, id):
        super().__init__("foreign", id, None)
        self.did = Counter()

    def put(self, x, dtype=None):
        """Return a buffer with the numbers of an array of NumPy."""
        self.did["put"] += 1
        return Sealed(np.asarray(x, dtype))

    def fetch(self, buffer):
        """Return the numbers of a buffer."""
        self.did["fetch"] += 1
        return buffer.opened()

    def seal(self, buffer):
        """Refuse what is no buffer of this platform."""
        assert type(buffer) is Sealed, f"a {type(buffer)} was taken for a buffer"

    def wait(self, buffer):
        """Note that it was asked for."""
        self.did["wait"] += 1

    def evaluate(self, primitive, compute, buffers, params, avals):
        """Open the operands, compute, and keep the results as buffers."""
        self.did[primitive.name] += 1
        numbers = [buffer.opened() for buffer in buffers]
        home = placement.platforms["cpu"][0]
        results = home.evaluate(primitive, compute, numbers, params, avals)
        return list(map(Sealed, results))


@contextmanager
def foreign_platform(count=2):
    """Have a platform with some devices inside the block, and return these."""
    devices = [ForeignDevice(id) for id in range(count)]
    placement.platforms["foreign"] = devices
    try:
        yield devices
    finally:
        minijax.clear_caches()
        del placement.platforms["foreign"]
