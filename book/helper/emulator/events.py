"""Events, and memory of the host that a card writes to, as CuPy names them."""

import numpy as np

NONSENSE = 0xCD  # in each byte of memory that nobody has written yet


class Event:
    """A mark in a stream; who waits for it does not wait for the work behind it."""

    def __init__(self, cupy, block=False, disable_timing=False):
        self.mark, self.stream = None, None

    def record(self, stream):
        """Put the mark behind the work that is there."""
        self.mark, self.stream = (lambda: None), stream
        mark = self.mark
        stream.add(lambda: mark)

    def synchronize(self):
        """Do the work in front of the mark."""
        if self.stream is not None and self.mark in self.stream.work:
            self.stream.synchronize(self.mark)


class PinnedMemory:
    """Memory of the host that a card writes to."""

    def __init__(self, size):
        self.bytes = np.full(size, NONSENSE, np.uint8)
        self.ptr = self.bytes.ctypes.data
