"""A recycling allocator for results, checks of plans, a backend on planned memory."""

# Made from chapters/20_memory_rest.md by `make chapter`;
# edit the chapter, not this file.
# Amended in chapters/21_machine_rest.md: _permit (0bca3595).

import math
import mmap
import operator
import os
import weakref
from collections import deque
from contextlib import suppress
from sys import getrefcount

import numpy as np

from minijax.arrays.array import ArrayImpl, asbuffer, eval_rules
from minijax.arrays.dtypes import config
from minijax.errors import memory_reclaimers, out_of_memory_error
from minijax.fusion.fusion_pass import fuse
from minijax.jitting.compilation import backends, text_formats
from minijax.jitting.stages import nbytes
from minijax.kernels.lowering import Evaluate, as_bytes, jaxpr_passes, lower
from minijax.llvm.codegen import LLVMProgram
from minijax.llvm.compiler import object_code
from minijax.memory.aliasing import BufferLocation
from minijax.memory.buffer_assignment import (
    ALIGNMENT,
    captured_buffers,
    live_ranges,
    may_overwrite,
    memory_stats,
    plan_memory,
)
from minijax.rematerialization.caching import weakref_cache

# A check of memory plans: nothing is written over while a step needs it.


class PlanError(TypeError):
    """A plan under which a program would read what is not there."""


class Contents:
    """Which buffers are found in memory at a moment, and where.

    Attributes:
      plan: a `MemoryPlan`.
      found: from buffers to stretches: what they are part of, where they start and end.
    """

    def __init__(self, plan):
        self.plan, self.found = plan, {}
        program = plan.program
        for buffer in [*program.inputs, *[buffer for buffer, _ in program.constants]]:
            self.found[buffer] = self.stretch(buffer)
        self.outside = {*captured_buffers(program)}

    def stretch(self, buffer):
        """Return the memory of a buffer."""
        if buffer not in self.plan.places:
            return buffer, 0, nbytes(buffer)
        kind, number = self.plan.places[buffer]
        if kind == "arena":
            return self.in_arena(number, nbytes(buffer), buffer)
        return self.plan.places[buffer], 0, nbytes(buffer)

    def in_arena(self, start, size, what):
        """Return a stretch of the arena."""
        if start % ALIGNMENT or start + size > self.plan.arena:
            raise PlanError(f"{what} is at {start} of {self.plan.arena} bytes")
        return "arena", start, start + size

    def need(self, buffer, who):
        """Raise unless a buffer is where it should be."""
        if nbytes(buffer) and buffer not in self.found and buffer not in self.outside:
            raise PlanError(f"{who} needs {buffer}, which is not there")

    def clear(self, stretch):
        """Forget what is found in a stretch; return it."""
        lost = [buffer for buffer, other in self.found.items() if _meet(stretch, other)]
        for buffer in lost:
            del self.found[buffer]
        return lost


def _meet(a, b):
    return a[0] == b[0] and a[1] < b[2] and b[1] < a[2]


def check_plan(plan):
    """Raise a `PlanError` unless a plan is right; return it.

    The steps are played through, with the names of buffers in place of numbers: each
    operand has to be there when a step needs it, and the results in the end.
    """
    for buffer in live_ranges(plan.program):
        if buffer not in plan.places:
            raise PlanError(f"{buffer} has no place")
    _play(plan)
    return plan


def _play(plan):
    memory = Contents(plan)
    for number, step in enumerate(plan.program.steps):
        for buffer in step.reads:
            memory.need(buffer, f"step {number}")
        _work(memory, number, step)
        _write(memory, number, step)
        for inner in plan.nested.get(number, ()):
            _play(inner)
    for buffer in plan.program.outputs:
        memory.need(buffer, "the caller")


def _work(memory, number, step):
    """Clear what a step has for itself; none of its operands may be there."""
    plan, lost = memory.plan, []
    block = max([each.arena for each in plan.nested.get(number, ())], default=0)
    wanted = (plan.workspaces, getattr(step, "workspace", 0)), (plan.blocks, block)
    for offsets, size in wanted:
        if size:
            lost += memory.clear(memory.in_arena(offsets[number], size, "workspace"))
    for buffer in {*lost}.intersection([*step.reads, *step.writes]):
        raise PlanError(f"step {number} works where its operand {buffer} is")


def _write(memory, number, step):
    """Put what a step writes into its place."""
    fresh, pairs = [], memory.plan.in_place.get(number, ())
    for buffer in dict.fromkeys(step.writes):
        stretch = memory.stretch(buffer)
        _permit(memory.plan, buffer, stretch[0])
        if buffer in memory.found or not nbytes(buffer):
            continue
        for old in memory.clear(stretch):
            agreed = (old, buffer) in pairs and may_overwrite(step, old, buffer)
            if old in fresh or old in step.reads and not agreed:
                raise PlanError(f"step {number} may not write {buffer} over {old}")
        memory.found[buffer] = stretch
        fresh.append(buffer)


def _permit(plan, buffer, part):
    """Raise if memory is not ours to write to."""
    allowed = {
        BufferLocation("input", i) for i, given in enumerate(plan.donated) if given
    }
    if (
        isinstance(part, BufferLocation)
        and part.kind not in ("output", "state")
        and part not in allowed
    ):
        raise PlanError(f"{buffer} is written into {part}, which is not ours")


# A recycling allocator: memory for results, used again when no object holds it.

HUGE_PAGE_THRESHOLD, HUGE_PAGE, PAGE = 4 * 2**20, 2 * 2**20, 2**12


class HeapBlock(bytearray):
    """A block of memory; its numbers begin at `offset`."""


class HugePageBlock(mmap.mmap):
    """A large block of memory, in large pages if the system has them."""


def allocate_block(size):
    """Return new memory with room for `size` bytes at an aligned address."""
    if size >= HUGE_PAGE_THRESHOLD and hasattr(mmap, "MAP_PRIVATE"):
        flags, alignment = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, HUGE_PAGE
        memory = HugePageBlock(-1, size + alignment, flags=flags)
        with suppress(AttributeError, OSError):  # it is a wish, and not always known
            memory.madvise(mmap.MADV_HUGEPAGE)
    else:
        memory, alignment = HeapBlock(size + ALIGNMENT), ALIGNMENT
    memory.offset = -np.frombuffer(memory, np.uint8).ctypes.data % alignment
    return memory


def _holders():
    thing = HeapBlock()
    return getrefcount(thing)


ALONE = _holders()  # what Python counts if one variable holds an object


class BlockPool:
    """Blocks of memory by size; those that no other object holds are given out again.

    Args:
      limit: how many bytes are kept at most.
      each: how many blocks of one size are kept at most.
      tries: how many of them are looked at before a new one is made; for each page of
        a block, which the system would have to find, one more.

    Attributes:
      kept: from sizes to queues of blocks.
      weak_blocks: from sizes to queues of weak references to blocks that are not kept.
    """

    def __init__(self, limit=2**28, each=2**12, tries=4):
        self.limit, self.each, self.tries = limit, each, tries
        self.kept, self.weak_blocks = {}, {}

    def take(self, nbytes):
        """Return a block that no other object holds."""
        size = size_class(nbytes)
        kept = self.kept.get(size)
        if kept is None:
            kept = self.kept.setdefault(size, deque(maxlen=self.each))
        for _ in range(min(self.tries + size // PAGE, len(kept))):
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
            return allocate_block(size)
        except (MemoryError, OSError):
            self.clear()  # what no object holds goes back to the system
            return allocate_block(size)

    def _worth_keeping(self, memory, size):
        """Return whether there is much room, or an earlier block is missed by now."""
        if self.total + size <= self.limit // 8:
            return True
        others = self.weak_blocks.setdefault(size, deque(maxlen=self.each))
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
        self.kept, self.weak_blocks = {}, {}

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


pool = BlockPool()
weakref_cache()[pool] = pool  # `clear_caches` clears it
memory_reclaimers.append(pool.clear)
config.define(
    "minijax_kept_memory", os.environ.get("MINIJAX_KEPT_MEMORY", 2**28), _count,
    told=lambda limits: pool.resize(limits),
)  # fmt: skip


def pooled_empty(shape, dtype):
    """Return an array with arbitrary numbers, whose memory may have been used before.

    Args:
      shape: tuple of sizes.
      dtype: of the elements.

    Raises:
      JaxRuntimeError: if there is no memory.
    """
    return array_in_pool("a result", shape, dtype)


NO_BYTES = np.empty(0, np.uint8)


def scratch_bytes(size):
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
        raise out_of_memory_error(what, shape, dtype) from error


def is_sole_owner(x):
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
    return buffer is None or isinstance(buffer, HeapBlock | HugePageBlock)


def donated_buffer(x):
    """Return a buffer with the numbers of `x` that may be written to.

    That is the buffer of `x` if no other object can see it, and a copy otherwise.
    """
    if not isinstance(x, ArrayImpl):
        return asbuffer(x)  # a copy
    if not is_sole_owner(x):
        buffer = pooled_empty(x.shape, x.dtype)
        buffer[...] = x._buffer
        return buffer
    if isinstance(x._buffer.base, np.ndarray):
        x._buffer.base.flags.writeable = True
    x._buffer.flags.writeable = True
    return x._buffer


# Programs run step by step, in memory that was planned.


class PlannedAllocations(dict):
    """The memory of one call: bytes by buffers, where a plan says.

    What a step hands to the programs in it has no place in a plan; it is where it was
    put, or in new memory.

    Args:
      found: the memory of arguments, constants and results.
      offsets: where other buffers are in the arena.
      arena: bytes.
    """

    def __init__(self, found, offsets, arena):
        super().__init__(found)
        self.settled, self.offsets, self.arena = {*found, *offsets}, offsets, arena

    def __missing__(self, buffer):
        if buffer in self.offsets:
            start = self.offsets[buffer]
            data = self.arena[start : start + nbytes(buffer)]
        else:
            data = np.empty(nbytes(buffer), np.uint8)
        super().__setitem__(buffer, data)
        return data

    def __setitem__(self, buffer, data):
        if buffer in self.settled:
            self[buffer][:] = data
        else:
            super().__setitem__(buffer, data)

    def update(self, pairs):  # type: ignore[override]
        """Put bytes into the places of buffers."""
        for buffer, data in pairs:
            self[buffer] = data


def arena_offsets(plan, start=0):
    """Return offsets in the arena, by buffers, those of programs in steps included."""
    places = plan.places.items()
    found = {buffer: start + at for buffer, (kind, at) in places if kind == "arena"}
    for number, inner in plan.nested.items():
        for each in inner:
            found |= arena_offsets(each, start + plan.blocks.get(number, 0))
    return found


class CopiedAllocations:
    """Memory of which copies are shown: to callbacks, which may keep what they get."""

    def __init__(self, memory):
        self.memory = memory

    def __getitem__(self, buffer):
        return self.memory[buffer].copy()

    def __setitem__(self, buffer, data):
        self.memory[buffer] = data


def as_aligned(array):
    """Return an array whose numbers lie one after the other, at aligned addresses."""
    flags = array.flags
    return array if flags.c_contiguous and flags.aligned else array.copy()


def fused_program(closed):
    """Return the `LoweredProgram` that is planned for a program."""
    return fuse(lower(jaxpr_passes.value(closed)))


class PlannedProgram(LLVMProgram):
    """Runs the steps of a program in memory that was planned.

    Args:
      closed: a `ClosedJaxpr`.
      name: what the program is called.
      donated: for each input whether its memory may be written to; () for none.

    Attributes:
      plan: its `MemoryPlan`.
    """

    donates = True

    def __init__(self, closed, name="program", donated=()):
        self.donated = donated
        super().__init__(closed, name)
        self.offsets = arena_offsets(self.plan)

    def lower(self, closed):
        """Return a program with the steps that the plan wants."""
        self.plan = plan_memory(fused_program(closed), self.donated)
        return self.plan.planned

    def prepare(self, step):
        """Return a function of the memory that does a step."""
        run = super().prepare(step)
        if isinstance(step, Evaluate) and step.eqn.primitive not in eval_rules:
            return lambda memory: run(CopiedAllocations(memory))
        return run

    def memory_analysis(self):
        """Return the `CompiledMemoryStats`."""
        return memory_stats(self.plan, object_code(self.library))

    def __call__(self, *args):
        """Return the list of results."""
        outputs, arrays = self.lowered.outputs, self.arrays(args)
        found = {buffer: as_bytes(array) for buffer, array in arrays.items()}
        memory = PlannedAllocations(found, self.offsets, scratch_bytes(self.plan.arena))
        for step in self.steps:
            step(memory)
        return [
            ArrayImpl(shaped(arrays[buffer], aval), aval, self.placement)
            for buffer, aval in zip(outputs, self.out_avals)
        ]

    def arrays(self, args):
        """Return NumPy arrays for all buffers but those in the arena."""
        pairs = zip(args, self.plan.donated)
        inputs = [donated_buffer(x) if ours else asbuffer(x) for x, ours in pairs]
        found = dict(zip(self.lowered.inputs, map(as_aligned, inputs)))
        found |= self.constants
        for buffer, aval in zip(self.lowered.outputs, self.out_avals):
            if self.plan.places[buffer].kind == "output" and buffer not in found:
                found[buffer] = pooled_empty(aval.shape, aval.dtype)
        ends = self.lowered.inputs, self.lowered.outputs
        for buffer, (kind, number) in self.plan.places.items():
            if kind in ("input", "output"):
                found[buffer] = found[ends[kind == "output"][number]]
        return found


def shaped(array, aval):
    """Return the numbers of an array as one of a type."""
    same = array.shape == aval.shape and array.dtype == aval.dtype
    return array if same else np.ndarray(aval.shape, aval.dtype, array)


PlannedProgram.dialects = LLVMProgram.dialects | {
    "llvm": lambda program: program.text,
}
backends["planned"] = PlannedProgram
text_formats["memory"] = lambda closed, _, donated: str(
    plan_memory(fused_program(closed), donated)
)
