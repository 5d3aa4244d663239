"""Operands of deferred operations, and how much memory they keep alive."""

# Made from chapters/41_discovery_ground.md by `make chapter`;
# edit the chapter, not this file.

from sys import getrefcount

import numpy as np

from minijax.arrays.array import asarray_impl
from minijax.arrays.settings import config

SCALARS = frozenset([bool, int, float, complex])
IDLE_BYTES = 2**28


class CannotWait(Exception):
    """An operation has to be computed at once."""


class Operands:
    """What the operations of a recording were given.

    Args:
      tree: the `Autojit` that knows what was recorded before.
      trace: the `RecordTrace` that records.

    Attributes:
      step: the last one; the path to it in the tree is what was recorded.
      inputs, buffers: arrays from outside, and their buffers at that time.
      places: the numbers of these arrays, by identity.
      numbers: scalars.
      changing: the places of those scalars that are not the same in all turns.
      results: weak references to the arrays that were promised.
      count: how many operations wait.
      bytes: how many bytes arrays from outside have.
    """

    def __init__(self, tree, trace):
        self.tree, self.trace, self.state = tree, trace, config.state
        self.step, self.placement, self.switches = tree.beginning()
        self.places, self.inputs, self.buffers = {}, [], []
        self.numbers, self.changing, self.results = [], [], []
        self.count, self.bytes, self.budget = 0, 0, IDLE_BYTES

    def compute(self, why):
        """End the recording, and compute those of its results that are wanted."""
        self.trace.compute(self, why)

    def arrive(self, x):
        """Take up an array from outside; return its type."""
        if x.placement is not self.placement:
            raise CannotWait
        self.buffers.append(x._buffer)
        self.inputs.append(x)
        self.places[id(x)] = -len(self.inputs)
        self.bytes += x.nbytes
        return x.aval

    def foreign(self, x):
        """Take up what NumPy has made; it may be written to later, so it is copied."""
        if not isinstance(x, np.ndarray | np.generic):
            raise CannotWait
        if x.ndim:
            return self.arrive(asarray_impl(x))
        self.numbers.append(x.copy())
        return x.dtype

    def forget(self, arrays, scalars):
        """Drop what an operation has brought that is not recorded."""
        for x in self.inputs[arrays:]:
            del self.places[id(x)]
        del self.inputs[arrays:], self.buffers[arrays:], self.numbers[scalars:]

    def holds_too_much(self):
        """Return whether much memory is alive because operations wait for it."""
        if self.bytes <= self.budget:
            return False
        idle = [x.nbytes for x in self.inputs if getrefcount(x) == _ALONE]
        self.budget += self.bytes
        return sum(idle) > IDLE_BYTES


def _holders():
    return [getrefcount(x) for x in [object()]][0]


_ALONE = _holders()  # what Python counts if a list and a loop hold an object
