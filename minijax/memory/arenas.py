# Made from chapters/21_memory.md by `make chapter`;
# edit the chapter, not this file.
"""Memory handed out before it exists: offsets in an arena."""

ALIGNMENT = 64


def rounded(nbytes):
    """Return a number of bytes rounded up to a multiple of the alignment."""
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


class Arena:
    """Hands out stretches of one block of memory, and takes them back.

    Attributes:
      size: how many bytes the block needs.
    """

    def __init__(self):
        self.size = 0
        self._gaps, self._starts = {}, {}  # from starts to ends, and back

    def take(self, nbytes):
        """Return the offset of a stretch: in the smallest gap that is large enough."""
        nbytes = rounded(nbytes)
        sizes = [(end - start, start) for start, end in self._gaps.items()]
        fitting = [pair for pair in sizes if pair[0] >= nbytes]
        start = min(fitting)[1] if fitting else self._starts.get(self.size, self.size)
        end = self._remove(start) if start in self._gaps else start
        if end > start + nbytes:
            self._add(start + nbytes, end)
        self.size = max(self.size, start + nbytes)
        return start

    def give(self, start, nbytes):
        """Take a stretch back, and join it with the gaps beside it."""
        end = start + rounded(nbytes)
        if end in self._gaps:
            end = self._remove(end)
        if start in self._starts:
            start, _ = self._starts[start], self._remove(self._starts[start])
        if end > start:
            self._add(start, end)

    def _add(self, start, end):
        self._gaps[start], self._starts[end] = end, start

    def _remove(self, start):
        end = self._gaps.pop(start)
        del self._starts[end]
        return end
