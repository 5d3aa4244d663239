"""A card that is emulated, behind the names of CuPy that minijax uses.

`EmulatedCuPy()` stands where the module `cupy` would be. It is used if it is put there
by hand, in `minijax.cuda.driver.cupy_stand_in`, and never otherwise; the card says its
name, `EmulatedCuda`. It is stricter than CuPy:

- what is put into a stream runs late, when it is waited for, and not before;
- new memory holds nonsense, and memory that was given back may not be named again;
- arguments of kernels are addresses of memory that is in use;
- memory is neither asked for nor waited for while a graph is recorded.

No speed, overlap or limit of a driver can be seen. After an error CUDA refuses all
further work; here the rest of the stream is dropped, and the next call is served.
"""

import bisect
import ctypes
import functools
import math
import threading
import weakref
from types import SimpleNamespace

import numpy as np

from . import EmulatorError, Module
from .cublas import EmulatedCublas
from .events import NONSENSE, Event, PinnedMemory

NAME, ARCH = "EmulatedCuda", 80
GRAIN = 512


class EmulatedCudaError(RuntimeError):
    """What CuPy's `CUDARuntimeError` is for an emulated card."""


class OutOfMemoryError(MemoryError):
    """There is no memory left on an emulated card."""


class Pointer:
    """A block of a card's memory, given back when no variable holds this object."""

    def __init__(self, card, ptr, size):
        self._card, self.ptr, self.size = card, ptr, size

    def __del__(self):
        self._card.give_back(self.ptr, self.size)


class CardMemory:
    """All memory of a card: an array of bytes, and which blocks of it are in use."""

    grain = GRAIN  # also when the module is gone, at the end of a process

    def __init__(self, size):
        self.size, self._bytes = size, np.empty(size + GRAIN, np.uint8)
        self.base = -(-self._bytes.ctypes.data // GRAIN) * GRAIN
        self.bytes = self._bytes[self.base - self._bytes.ctypes.data :]
        self.lock = threading.RLock()
        self.top, self.free, self.starts, self.sizes = self.base, {}, [], {}

    def take(self, size):
        """Return the address of a block."""
        room = -(-max(size, 1) // GRAIN) * GRAIN
        with self.lock:
            known = self.free.get(room)
            address = known.pop() if known else self.top
            if not known and self.top + room > self.base + self.size:
                raise OutOfMemoryError(f"Out of memory allocating {size:,} bytes.")
            self.top = max(self.top, address + room)
            if address not in self.sizes:
                bisect.insort(self.starts, address)
            self.sizes[address] = size
            return address

    def give_back(self, address, size):
        """Let a block be taken again."""
        with self.lock:
            room = -(-max(size, 1) // self.grain) * self.grain
            self.free.setdefault(room, []).append(address)
            self.starts.remove(address)
            del self.sizes[address]

    @property
    def in_use(self):
        """How many bytes are in use."""
        return sum(self.sizes.values())

    def at(self, address, size=None):
        """Return the bytes from an address on, to the end of the block or so many.

        Raises:
          EmulatedCudaError: if that is not within one block that is in use.
        """
        address = int(address)
        with self.lock:
            number = bisect.bisect(self.starts, address) - 1
            start = self.starts[number] if number >= 0 else 0
            end = start + self.sizes[start] if number >= 0 else 0
        if not start <= address <= end or address + (size or 0) > end:
            what = f"{size} bytes at {address:#x} are" if size else f"{address:#x} is"
            raise EmulatedCudaError(
                f"cudaErrorIllegalAddress: {what} not in one block of the card's "
                "memory that is in use"
            )
        last = end if size is None else address + size
        return self.bytes[address - self.base : last - self.base]


class Stream:
    """What the card is to do, in this order, when it is waited for."""

    def __init__(self, cupy, non_blocking):
        self.cupy, self.work, self.recorded, self.spoilt = cupy, [], None, False
        self.ptr = len(cupy.streams) + 1
        cupy.streams.append(self)

    def __enter__(self):
        self.cupy.current.append(self)
        return self

    def __exit__(self, *error):
        self.cupy.current.pop()

    def add(self, make):
        """Put work behind what is there already, or record it.

        Args:
          make: a function that finds the memory, and returns what is to be done later.
        """
        if self.recorded is not None:
            self.recorded.append(make)
            return
        with self.cupy.memory.lock:  # or another thread that waits has taken the list
            self.work.append(make())

    def begin_capture(self):
        """Record what is put in from now on; it is not done."""
        assert self.recorded is None, "a graph is being recorded already"
        self.recorded, self.spoilt = [], False

    def end_capture(self):
        """Return what was recorded."""
        graph, self.recorded = Graph(self.recorded), None
        if self.spoilt:
            raise EmulatedCudaError("cudaErrorStreamCaptureInvalidated")
        return graph

    def synchronize(self, last=None):
        """Do the work, all of it or to the end of some that was put in."""
        if self.recorded is not None:
            raise EmulatedCudaError("cudaErrorStreamCaptureUnsupported")
        with self.cupy.memory.lock:
            count = len(self.work) if last is None else self.work.index(last) + 1
            work, later, self.work = self.work[:count], self.work[count:], []
            for act in work:
                try:
                    act()
                except EmulatorError as error:
                    raise EmulatedCudaError(f"cudaErrorAssert: {error}") from error
            self.work = later + self.work

    @property
    def done(self):
        """Whether there is no work; the question spoils what is being recorded."""
        self.spoilt = self.recorded is not None
        return not (self.spoilt or self.work)


class Graph:
    """Work that was recorded."""

    def __init__(self, makes):
        self.makes = makes

    def launch(self, stream):
        """Put the work into a stream."""
        stream.cupy.counts["graphs"] += 1
        for make in self.makes:
            stream.add(make)


_modules = weakref.WeakValueDictionary()


def _module(source):
    """Return compiled kernels, which are shared as long as a function of them lives."""
    module = _modules.get(source)
    if module is None:
        module = _modules[source] = Module(source)
    return module


class NVRTCError(RuntimeError):
    """What the emulated compiler says of a text that it refuses."""


class Compiler:
    """NVRTC for an emulated card: g++ looks at a text, which is the code as well."""

    NVRTCError = NVRTCError

    def __init__(self):
        self.programs, self.compile, self.latest = {}, _module, None

    def getVersion(self):
        """Return the version that it stands for."""
        return 12, 8

    def getSupportedArchs(self):
        """Return the kinds of cards that there is code for."""
        return (ARCH,)

    def createProgram(self, source, name, headers, include_names):
        """Return the number of a new program."""
        number = max(self.programs, default=0) + 1
        self.programs[number] = [source, ""]
        return number

    def compileProgram(self, program, options):
        """Compile a program; what was made is kept until the next one."""
        assert all(type(each) is str for each in options), options
        assert options[-1] == f"-arch=sm_{ARCH}", options
        try:
            self.latest = self.compile(self.programs[program][0])
        except EmulatorError as error:
            self.programs[program][1] = str(error)
            raise NVRTCError("NVRTC_ERROR_COMPILATION") from error

    def getCUBIN(self, program):
        """Return the code of a program."""
        return self.programs[program][0].encode()

    def getPTX(self, program):
        """Return the code of a program, which is no other."""
        return self.getCUBIN(program)

    def getProgramLog(self, program):
        """Return what was said of a program."""
        return self.programs[program][1]

    def destroyProgram(self, program):
        """Forget a program."""
        del self.programs[program]


class LoadedModule:
    """Kernels of CUDA C; g++ compiles them when the first one is asked for."""

    def __init__(self, cupy):
        self.cupy = cupy

    def load(self, code):
        """Take code."""
        self.code = code.decode()

    def get_function(self, name):
        """Return a function of the module, which `launchKernel` knows by its `ptr`."""
        module = _module(self.code)
        count = len(module.sizes(name))
        return Function(self.cupy, count, functools.partial(_put, module, name))


class Function:
    """A function of a card.

    Args:
      cupy: an `EmulatedCuPy`.
      count: how many parameters it has.
      put: has it run: given the `EmulatedCuPy`, the grid, the block, the addresses.
    """

    def __init__(self, cupy, count, put):
        self.count, self.put, self.ptr = count, put, id(self)
        cupy.functions[self.ptr] = self


def _put(module, name, cupy, stream, grid, block, args):
    def make():
        views = [cupy.memory.at(x) if x else np.zeros(0, np.uint8) for x in args]
        return lambda: module.launch(name, grid, block, views, seed=cupy.seed)

    stream.add(make)


class _Device:
    def __init__(self, cupy, id):
        assert 0 <= id < 1, f"there is no card {id}"

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass


class EmulatedCuPy:
    """What stands in for the module `cupy`: one card, made of an array of bytes.

    Args:
      memory: how many bytes the card has.
      seed: of the order in which the threads of kernels run.
      cublas: whether there is a cuBLAS, an `EmulatedCublas`.

    Attributes:
      cublas: that one, or None.
      counts: how many launches there were, graphs, and copies from and to the host.
    """

    __version__ = "14.2.0"

    def __init__(self, memory=2**28, seed=1, cublas=False):
        self.memory, self.seed, self.streams = CardMemory(memory), seed, []
        self.cublas = EmulatedCublas(self) if cublas else None
        self._current = threading.local()
        self.counts = dict.fromkeys(["launches", "graphs", "in", "out", "within"], 0)
        self.functions = weakref.WeakValueDictionary()
        self.cuda = SimpleNamespace(
            Device=functools.partial(_Device, self),
            Stream=functools.partial(Stream, self),
            Event=functools.partial(Event, self),
            alloc=self._alloc,
            alloc_pinned_memory=PinnedMemory,
            nvrtc=Compiler(),
            function=SimpleNamespace(Module=functools.partial(LoadedModule, self)),
            driver=SimpleNamespace(
                launchKernel=self._launch, CUDADriverError=EmulatedCudaError
            ),
            runtime=SimpleNamespace(
                getDeviceCount=lambda: 1,
                getDeviceProperties=self._properties,
                memcpyAsync=self._copy,
                memcpyHostToDevice=1,
                memcpyDeviceToHost=2,
                memcpyDeviceToDevice=3,
                CUDARuntimeError=EmulatedCudaError,
            ),
        )

    @property
    def current(self):
        """The streams that are current in this thread, the innermost last."""
        if not hasattr(self._current, "streams"):
            self._current.streams = []
        return self._current.streams

    def _properties(self, id):
        kind = {"major": ARCH // 10, "minor": ARCH % 10}
        return {"name": NAME.encode(), "totalGlobalMem": self.memory.size, **kind}

    def _launch(self, function, *rest):
        *counts, shared, stream, parameters, extra = rest
        grid, block = tuple(counts[:3]), tuple(counts[3:])
        assert all(type(x) is int and x > 0 for x in counts), f"launch of {counts}"
        assert math.prod(block) <= 1024 and grid[0] < 2**31, f"too large: {counts}"
        assert len(counts) == 6 and shared == extra == 0, rest
        found = self.functions[function]
        count = found.count
        where = list((ctypes.c_uint64 * count).from_address(parameters))
        args = [ctypes.c_uint64.from_address(place).value for place in where]
        self.counts["launches"] += 1
        found.put(self, self.streams[stream - 1], grid, block, args)

    def _alloc(self, size):
        stream = self.current[-1]
        if stream.recorded is not None:
            raise EmulatedCudaError("cudaErrorStreamCaptureUnsupported: alloc")
        address = self.memory.take(size)
        block = self.memory.at(address)
        stream.add(lambda: lambda: block.fill(NONSENSE))
        return Pointer(self.memory, address, size)

    def _copy(self, to, source, size, kind, stream):
        assert stream == self.current[-1].ptr and size > 0, "a copy of nothing"
        way = {1: "in", 2: "out", 3: "within"}[kind]
        near = _host(source if kind == 1 else to, size) if kind < 3 else None
        staged = near.copy() if kind == 1 else None
        self.counts[way] += 1

        def make():
            there = None if kind == 2 else self.memory.at(to, size)
            here = None if kind == 1 else self.memory.at(source, size)
            if kind == 1:
                return lambda: np.copyto(there, staged)
            if kind == 2:
                return lambda: np.copyto(near, here)
            return lambda: np.copyto(there, here)

        self.current[-1].add(make)


def _host(address, size):
    """Return the bytes of the host at an address."""
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))
