"""Memory handed out before it exists: offsets in an arena."""

# Made from chapters/20_memory.md by `make chapter`;
# edit the chapter, not this file.

ALIGNMENT = 64


def rounded(nbytes):
    """Return a number of bytes rounded up to a multiple of the alignment."""
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


class Arena:
    """Hands out stretches of one block of memory, and takes them back.

    Attributes:
      size: how many bytes the block needs.
      gaps: from the starts of stretches that are free to their ends.
    """

    def __init__(self):
        self.size, self.gaps = 0, {}

    def take(self, nbytes):
        """Return the offset of a stretch: in the smallest gap that is large enough."""
        nbytes, gaps = rounded(nbytes), self.gaps.items()
        fitting = [(end - at, at) for at, end in gaps if end - at >= nbytes]
        last = next((at for at, end in gaps if end == self.size), self.size)
        start = min(fitting)[1] if fitting else last
        end = self.gaps.pop(start, start)
        if end > start + nbytes:
            self.gaps[start + nbytes] = end
        self.size = max(self.size, start + nbytes)
        return start

    def give(self, start, nbytes):
        """Take a stretch back, and join it with the gaps beside it."""
        end = start + rounded(nbytes)
        end = self.gaps.pop(end, end)
        start = next((at for at, stop in self.gaps.items() if stop == start), start)
        if end > start:
            self.gaps[start] = end
