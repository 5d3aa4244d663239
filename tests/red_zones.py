"""Guard bytes around all the memory that machine code is given.

    with RedZones() as zones:
        result = minijax.jit(f)(zones.laid_out(x, "reversed"))
    zones.problems   # texts: who wrote where nobody may write

Results, arenas and donated buffers come from a pool that puts guard bytes before and
behind each; arguments are laid out between guard bytes; and the buffers of an arena lie
apart, none where another has been, so that what lies between two is nobody's. Temporary
numbers that would be variables of a function are put into the arena, too. All memory is
full of `NONSENSE` before it is written, and results are compared with what they were
when they are given back.
"""

import contextlib
import sys

import numpy as np

from minijax.arrays.array import ArrayImpl, as_array_impl, typeof
from minijax.cpu_backend import backend as cpu_backend
from minijax.cpu_backend import program_codegen as steps_text
from minijax.jitting.arguments import is_deleted
from minijax.jitting.stages import nbytes
from minijax.kernels import lowering as kernel_backends
from minijax.memory import allocator as planned_backend
from minijax.memory import allocator as result_memory
from minijax.memory import buffer_assignment as arenas

GUARD, ALIGNMENT, NONSENSE = 192, 64, 0xA5
BYTES = np.dtype(np.uint8)
KEPT = 40  # results that are held while others are computed


def zone(memory, start, end):
    """Return some bytes of a block."""
    return np.frombuffer(memory, BYTES)[start:end]


class Guarded:
    """So many bytes at an aligned address, between guard bytes.

    Attributes:
      memory: the block, with the `offset` of its bytes, as the pool has it.
    """

    def __init__(self, size, what):
        self.size, self.what = size, what
        self.memory = result_memory.HeapBlock(size + 2 * GUARD + ALIGNMENT)
        whole = zone(self.memory, 0, None)
        whole[:] = NONSENSE
        self.memory.offset = GUARD + -(whole.ctypes.data + GUARD) % ALIGNMENT

    @property
    def bytes(self):
        """The bytes between the guards."""
        return zone(self.memory, self.memory.offset, self.memory.offset + self.size)

    def is_held(self):
        """Whether an array is in it."""
        return sys.getrefcount(self.memory) > 2

    def problem(self):
        """Say which guard bytes were overwritten, or return None."""
        start, end = self.memory.offset, self.memory.offset + self.size
        for side, where in (("before", (0, start)), ("behind", (end, None))):
            [places] = np.nonzero(zone(self.memory, *where) != NONSENSE)
            if places.size:
                first = int(places[0]) - (start if side == "before" else 0)
                return f"{places.size} bytes written {side} {self} (at {first})"
        return None

    def __str__(self):
        return f"{self.what} of {self.size} bytes"


class GuardedPool:
    """Hands out memory between guard bytes, and none twice."""

    def __init__(self, zones):
        self.zones = zones

    def take(self, size):
        """Return a block."""
        return self.zones.guarded(size, "memory").memory


def used(plan, start=0):
    """Yield the stretches of an arena that a plan uses, pairs of a start and an end."""
    for buffer, (kind, at) in plan.places.items():
        if kind == "arena":
            yield start + at, start + at + nbytes(buffer)
    for number, at in plan.workspaces.items():
        yield start + at, start + at + plan.steps[number].workspace
    for number, inner in plan.nested.items():
        for each in inner:
            yield from used(each, start + plan.blocks.get(number, 0))


class RedZones:
    """While this lasts, memory lies between guard bytes.

    Args:
      apart: whether each buffer of an arena is to have a place of its own. Otherwise
        they follow each other in one place, as always, and nothing is seen there.

    Attributes:
      problems: texts.
    """

    def __init__(self, apart=True):
        self.apart, self.problems = apart, []
        self.blocks, self.arenas, self.kept = [], [], []

    # What is guarded.

    def guarded(self, size, what):
        """Return a new `Guarded` that is checked from now on."""
        block = Guarded(size, what)
        self.blocks.append(block)
        return block

    def scratch(self, size):
        """As `result_memory.scratch`; the arena is known again."""
        block = self.guarded(size, "arena")
        self.arenas.append(block)
        return block.bytes

    def allocate(self, memory, buffer):
        """As `Memory.__missing__`: the bytes of a buffer that is asked for first."""
        memory[buffer] = self.guarded(nbytes(buffer), str(buffer)).bytes
        return memory[buffer]

    def laid_out(self, x, layout="plain"):
        """Return a NumPy array with the numbers of `x`, between guard bytes."""
        x = np.asarray(x)
        return LAYOUTS[layout](self, x)

    def like(self, x, shape=None):
        """Return an array of a shape for numbers like those of `x`."""
        shape = x.shape if shape is None else shape
        size = int(np.prod(shape)) * x.dtype.itemsize
        block = self.guarded(size, f"{x.dtype.name}{list(shape)}")
        return np.ndarray(shape, x.dtype, block.memory, block.memory.offset)

    def array(self, x):
        """Return an array of the package whose buffer may be donated."""
        x = np.asarray(x)
        buffer = self.like(x)
        buffer[...] = x
        return ArrayImpl(buffer, typeof(as_array_impl(x)))

    # What is checked.

    def check(self):
        """Look at all guards, and at results that were kept."""
        self.problems += filter(None, [block.problem() for block in self.blocks])
        self.blocks = [b for b in self.blocks if b.is_held() and not b.problem()]
        for result, numbers in self.kept:
            if not is_deleted(result) and np.asarray(result).tobytes() != numbers:
                self.problems.append(f"a result has changed: {result.aval}")
        return self.problems

    def keep(self, results):
        """Hold results, and look now and then whether they are as they were."""
        self.kept += [(x, np.asarray(x).tobytes()) for x in results]
        self.kept = self.kept[-KEPT:]

    def check_arena(self, plan, arenas):
        """Look at what lies between the buffers of an arena."""
        for block in [b for b in arenas if b.size == plan.arena][:1]:
            free = np.ones(block.size, bool)
            for start, end in used(plan):
                free[start:end] = False
            [places] = np.nonzero(free & (block.bytes != NONSENSE))
            if places.size:
                self.problems.append(
                    f"{places.size} bytes written between buffers (at {places[0]})\n"
                    f"{plan}"
                )

    def watched(self, call):
        """Return the call of a program, with a look at its arena behind it."""

        def checked_call(program, *args):
            before = len(self.arenas)
            results = call(program, *args)
            if self.apart:
                self.check_arena(program.plan, self.arenas[before:])
            del self.arenas[before:]
            self.keep(results)
            return results

        return checked_call

    def __enter__(self):
        self.stack = contextlib.ExitStack()
        put = self.put
        put(result_memory, "pool", GuardedPool(self))
        put(
            kernel_backends.BufferAllocations,
            "__missing__",
            lambda memory, buffer: self.allocate(memory, buffer),
        )
        for module in (cpu_backend, planned_backend):
            put(module, "scratch_bytes", self.scratch)
        for program in (cpu_backend.CPUProgram, planned_backend.PlannedProgram):
            put(program, "__call__", self.watched(program.__call__))
        if self.apart:
            rounded = arenas.align_up
            put(arenas, "align_up", lambda size: rounded(size) + ALIGNMENT)
            put(arenas.Arena, "free", lambda arena, start, size: None)
            put(steps_text, "SMALL_LOCAL_BYTES", -1)
        return self

    def put(self, owner, name, value):
        """Replace an attribute until the end."""
        self.stack.callback(setattr, owner, name, getattr(owner, name))
        setattr(owner, name, value)

    def __exit__(self, *error):
        self.stack.close()
        self.check()


# How the numbers of an argument may lie in memory.


def plain(zones, x):
    out = zones.like(x)
    out[...] = x
    return out


def fortran(zones, x):
    return plain(zones, x.T).T


def flipped(zones, x):
    """Along all axes: strides are negative."""
    every = (slice(None, None, -1),) * x.ndim
    return plain(zones, x[every])[every]


def strided(zones, x):
    """Every second number of a longer row."""
    if not x.ndim:
        return plain(zones, x)
    out = zones.like(x, (*x.shape[:-1], 2 * x.shape[-1]))[..., ::2]
    out[...] = x
    return out


def in_rows(zones, x):
    """The middle of a wider matrix."""
    if not x.ndim:
        return plain(zones, x)
    out = zones.like(x, (*x.shape[:-1], x.shape[-1] + 5))[..., 3:-2]
    out[...] = x
    return out


def crooked(zones, x):
    """At an address that is no multiple of the size of a number."""
    block = zones.guarded(x.nbytes + 1, f"crooked {x.dtype.name}{list(x.shape)}")
    out = np.ndarray(x.shape, x.dtype, block.memory, block.memory.offset + 1)
    out[...] = x
    return out


def read_only(zones, x):
    out = plain(zones, x)
    out.flags.writeable = False
    return out


LAYOUTS = {
    layout.__name__: layout
    for layout in (plain, fortran, flipped, strided, in_rows, crooked, read_only)
}
