"""A recycling allocator: memory for results, used again when no object holds it."""

# Made from chapters/20_memory_rest.md by `make chapter`;
# edit the chapter, not this file.

import math
import mmap
import operator
import os
import weakref
from collections import deque
from contextlib import suppress
from sys import getrefcount

import numpy as np

from minijax.arrays.array import ArrayImpl, asbuffer
from minijax.arrays.settings import config
from minijax.errors import givers, out_of_memory
from minijax.forgetting.remembering import cache_by_object
from minijax.memory.arenas import ALIGNMENT

LARGE, HUGE_PAGE = 4 * 2**20, 2 * 2**20


class Heap(bytearray):
    """A block of memory; its numbers begin at `offset`."""


class Pages(mmap.mmap):
    """A large block of memory, in large pages if the system has them."""


def block(size):
    """Return new memory with room for `size` bytes at an aligned address."""
    if size >= LARGE and hasattr(mmap, "MAP_PRIVATE"):
        flags, alignment = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, HUGE_PAGE
        memory = Pages(-1, size + alignment, flags=flags)
        with suppress(AttributeError, OSError):  # it is a wish, and not always known
            memory.madvise(mmap.MADV_HUGEPAGE)
    else:
        memory, alignment = Heap(size + ALIGNMENT), ALIGNMENT
    memory.offset = -np.frombuffer(memory, np.uint8).ctypes.data % alignment
    return memory


def _holders():
    thing = Heap()
    return getrefcount(thing)


ALONE = _holders()  # what Python counts if one variable holds an object


class Pool:
    """Blocks of memory by size; those that no other object holds are given out again.

    Args:
      limit: how many bytes are kept at most.
      each: how many blocks of one size are kept at most.
      tries: how many of them are looked at before a new one is made.

    Attributes:
      kept: from sizes to queues of blocks.
      let_go: from sizes to queues of weak references to blocks that are not kept.
    """

    def __init__(self, limit=2**28, each=32, tries=4):
        self.limit, self.each, self.tries = limit, each, tries
        self.kept, self.let_go = {}, {}

    def take(self, nbytes):
        """Return a block that no other object holds."""
        size = size_class(nbytes)
        kept = self.kept.get(size)
        if kept is None:
            kept = self.kept.setdefault(size, deque(maxlen=self.each))
        for _ in range(min(self.tries, len(kept))):
            with suppress(IndexError):  # another thread has been faster
                memory = kept.popleft()
                free = getrefcount(memory) == ALONE
                kept.append(memory)
                if free:
                    return memory
        memory = self._new(size)
        if self._worth_keeping(memory, size):
            self._make_room(size)
            kept.append(memory)
        return memory

    def _new(self, size):
        try:
            return block(size)
        except (MemoryError, OSError):
            self.clear()  # what no object holds goes back to the system
            return block(size)

    def _worth_keeping(self, memory, size):
        """Return whether there is much room, or an earlier block is missed by now."""
        if self.total + size <= self.limit // 8:
            return True
        others = self.let_go.setdefault(size, deque(maxlen=self.each))
        for _ in range(min(self.tries, len(others))):
            with suppress(IndexError):
                other = others.popleft()
                if other() is None:
                    return size <= self.limit
                others.append(other)
        others.append(weakref.ref(memory))
        return False

    def _make_room(self, size):
        while self.kept and self.total + size > self.limit:
            sizes = [*self.kept]
            largest = max(sizes, key=lambda size: size * len(self.kept[size]))
            with suppress(IndexError):
                self.kept[largest].popleft()

    def resize(self, limits):
        """Keep as many bytes as the largest of some limits allows."""
        self.limit = max(limits)
        self._make_room(0)

    def clear(self):
        """Forget all blocks; the system gets those back that no object holds."""
        self.kept, self.let_go = {}, {}

    def unlock(self):
        """Do nothing after a fork: a pool has no lock."""

    @property
    def total(self):
        """The number of bytes that are kept."""
        return sum(size * len(kept) for size, kept in [*self.kept.items()])


def size_class(nbytes):
    """Return a size at which memory is kept: up to an eighth more, at least 64."""
    nbytes = max(nbytes, ALIGNMENT)
    step = max(ALIGNMENT, 1 << (nbytes.bit_length() - 4))
    return -(-nbytes // step) * step


def _count(value):
    try:
        count = operator.index(int(value) if isinstance(value, str) else value)
    except (TypeError, ValueError):
        count = -1
    if count < 0:
        raise ValueError(f"{value!r} is no number of bytes.")
    return count


pool = Pool()
cache_by_object()[pool] = pool  # `clear_caches` clears it
givers.append(pool.clear)
config.define(
    "minijax_kept_memory", os.environ.get("MINIJAX_KEPT_MEMORY", 2**28), _count,
    told=lambda limits: pool.resize(limits),
)  # fmt: skip


def empty(shape, dtype):
    """Return an array with arbitrary numbers, whose memory may have been used before.

    Args:
      shape: tuple of sizes.
      dtype: of the elements.

    Raises:
      JaxRuntimeError: if there is no memory.
    """
    return array_in_pool("a result", shape, dtype)


NO_BYTES = np.empty(0, np.uint8)


def scratch(size):
    """Return an array of so many bytes."""
    if not size:
        return NO_BYTES
    return array_in_pool("what is between the results", (size,), np.dtype(np.uint8))


def array_in_pool(what, shape, dtype):
    """Return an array with arbitrary numbers; errors say what it is for."""
    try:
        memory = pool.take(math.prod(shape) * dtype.itemsize)
        return np.ndarray(shape, dtype, memory, memory.offset)
    except (MemoryError, OSError, OverflowError, ValueError) as error:
        raise out_of_memory(what, shape, dtype) from error


def exclusive(x):
    """Return whether no object but the array `x` can see its numbers.

    No other array shares them, and NumPy has no view of them.
    """
    buffer = x._buffer
    if not (buffer.flags.c_contiguous and buffer.flags.aligned):
        return False
    while isinstance(buffer, np.ndarray):  # held by what we come from, and by us
        if getrefcount(buffer) != ALONE + 1:
            return False
        buffer = buffer.base
    return buffer is None or isinstance(buffer, Heap | Pages)


def given(x):
    """Return a buffer with the numbers of `x` that may be written to.

    That is the buffer of `x` if no other object can see it, and a copy otherwise.
    """
    if not isinstance(x, ArrayImpl):
        return asbuffer(x)  # a copy
    if not exclusive(x):
        buffer = empty(x.shape, x.dtype)
        buffer[...] = x._buffer
        return buffer
    if isinstance(x._buffer.base, np.ndarray):
        x._buffer.base.flags.writeable = True
    x._buffer.flags.writeable = True
    return x._buffer
