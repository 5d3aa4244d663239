"""The CUDA driver by CuPy, and arrays in the memory of a card.

No other module touches CuPy.

Reference: https://docs.cupy.dev/en/stable/reference/cuda.html.
"""

# Made from chapters/35_device_ground.md by `make chapter`;
# edit the chapter, not this file.

import ctypes
import hashlib
import importlib
import os
import threading
from array import array
from collections import deque
from contextlib import suppress
from itertools import repeat
from sys import getrefcount
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

import minijax
from minijax.arrays.array import ArrayImpl, asbuffer
from minijax.arrays.dtypes import _on_or_off, config
from minijax.cpu_backend.control_flow import While
from minijax.dispatch.compilation_cache import cached_object_code
from minijax.errors import JaxRuntimeError, out_of_memory_error
from minijax.jaxprs.types import Hook
from minijax.jitting.stages import nbytes
from minijax.memory.allocator import PlannedAllocations, arena_offsets

# The interface of the CUDA driver, by CuPy: memory, a stream, kernels, graphs.

OLDEST = 13  # major version of CuPy
EXTRAS = (
    'pip install "minijax-book[cuda12]" for a driver of CUDA 12, '
    '"minijax-book[cuda13]" for one of CUDA 13'
)

COMPILER = (
    "The kernels could not be compiled. If NVRTC, the compiler of CUDA, is not there, "
    "the extra has it: " + EXTRAS
)
# Of the compiler: the language, and that numbers below the least normal one stay.
OPTIONS = "-std=c++17", "-ftz=false"
# What returns the code of a program for a known card, and for a newer one.
CODES = {"sm": "getCUBIN", "compute": "getPTX"}

# What is used in place of CuPy, for example an emulated card; None for CuPy.
cupy_stand_in = Hook(None)


def cupy_library():
    """Return CuPy, or what stands in for it.

    Raises:
      RuntimeError: if CuPy is not installed, cannot be imported, or is too old.
    """
    if cupy_stand_in.value is not None:
        return cupy_stand_in.value
    try:
        cupy = importlib.import_module("cupy")
    except ModuleNotFoundError as error:
        raise RuntimeError(f"CuPy is not installed ({error}): {EXTRAS}.") from error
    except ImportError as error:
        raise RuntimeError(f"CuPy cannot be imported: {error}") from error
    if int(cupy.__version__.split(".")[0]) < OLDEST:
        raise RuntimeError(
            f"CuPy {cupy.__version__} is too old; {OLDEST} is the oldest that will do: "
            f"{EXTRAS}."
        )
    return cupy


def cuda_device_count():
    """Return how many cards there are, 1 at least.

    Raises:
      RuntimeError: if there is none, or no way to use it.
    """
    cupy = cupy_library()
    try:
        count, why = cupy.cuda.runtime.getDeviceCount(), "the driver sees none"
    except cupy.cuda.runtime.CUDARuntimeError as error:
        count, why = 0, str(error)
    if not count:
        raise RuntimeError(
            f"CuPy {cupy.__version__} is installed, but there is no GPU that it could "
            f"use: {why}."
        )
    return count


config.define(
    "minijax_wait_for_kernels",
    os.environ.get("MINIJAX_WAIT_FOR_KERNELS", "0"),
    _on_or_off,
)


class CudaContext:
    """A card and its stream of work, which is done in order, and later.

    Work is put in within `with card, card.lock, card.device`: errors of CUDA are told,
    one thread is in there, and Ctrl-C does not leave the lock behind.

    Args:
      id: number of the card.

    Raises:
      RuntimeError: if there is no such card.

    Attributes:
      name, memory: of the card, and how many bytes it has.
      lock: held by the thread that puts work in.
      device: CuPy's, which is its current one in a `with` block.
      pending: descriptions of the latest work that was not waited for.
      libraries: what libraries keep for the card, by their names.
      answers: the `HostReadback` that no loop uses.
      errors: those of CUDA, which come late, whatever is asked for then.
    """

    def __init__(self, id):
        cupy, count = cupy_library(), cuda_device_count()
        if not 0 <= id < count:
            raise RuntimeError(f"There is no card {id}; there are {count}, from 0 on.")
        self._cupy, self.id, self.lock = cupy, id, threading.RLock()
        self.pending: deque = deque(maxlen=8)
        self.libraries, self.answers = {}, []
        self.device = cupy.cuda.Device(id)
        with self.device:
            self._stream = cupy.cuda.Stream(non_blocking=True)
        runtime, driver = cupy.cuda.runtime, cupy.cuda.driver
        self.errors = runtime.CUDARuntimeError, driver.CUDADriverError
        properties = cupy.cuda.runtime.getDeviceProperties(id)
        self.name = properties["name"].decode()
        self.memory = properties["totalGlobalMem"]
        self._arch = 10 * properties["major"] + properties["minor"]

    def allocate(self, nbytes):
        """Return new memory, an object with an address, `ptr`; it lives as long.

        Raises:
          MemoryError: if the card has not so much left.
        """
        with self, self.lock, self.device, self._stream:
            return self._cupy.cuda.alloc(nbytes)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if kind is not None and issubclass(kind, self.errors):
            raise self.failed(error) from error

    def failed(self, error):
        """Return the error that tells of one of CUDA, and of the latest work."""
        latest = "".join(f"\n  {what}" for what in [*self.pending])
        return JaxRuntimeError(
            f"INTERNAL: {self.name} has failed: {error}\nIt was one of these, or "
            f"earlier; the latest stands last:{latest}\nWith the switch "
            "minijax_wait_for_kernels it fails at the launch."
        )

    def copy_to_device(self, address, numbers):
        """Copy an array of NumPy, whose rows lie one after the other, to the card."""
        runtime = self._cupy.cuda.runtime
        self._copy(
            address, numbers.ctypes.data, numbers.nbytes, runtime.memcpyHostToDevice
        )

    def copy_to_host(self, numbers, address):
        """Fill an array of NumPy from the card, and wait until it is full."""
        runtime = self._cupy.cuda.runtime
        self._copy(
            numbers.ctypes.data, address, numbers.nbytes, runtime.memcpyDeviceToHost
        )
        self.wait()

    def copy_on_device(self, to, source, nbytes):
        """Copy from one address of the card to another; the two must not overlap."""
        self._copy(to, source, nbytes, self._cupy.cuda.runtime.memcpyDeviceToDevice)

    def _copy(self, to, source, nbytes, kind):
        cupy = self._cupy
        with self, self.lock, self.device, self._stream:
            if nbytes:
                stream = self._stream.ptr
                cupy.cuda.runtime.memcpyAsync(to, source, nbytes, kind, stream)

    def compiled(self, source):
        """Return the machine code of CUDA C, or code that the driver makes it of.

        Raises:
          JaxRuntimeError: if it cannot be compiled, with what the compiler says.
        """
        nvrtc, best = self._cupy.cuda.nvrtc, self._arch
        known = [arch for arch in nvrtc.getSupportedArchs() if arch <= best]
        if not known:
            raise RuntimeError("NVRTC makes no code for a card as old as this one.")
        kind = "sm" if best in known else "compute"
        program = nvrtc.createProgram(source, "minijax.cu", (), ())
        try:
            nvrtc.compileProgram(program, (*OPTIONS, f"-arch={kind}_{max(known)}"))
            return getattr(nvrtc, CODES[kind])(program)
        except nvrtc.NVRTCError as error:
            said = f"INTERNAL: {self.name}: {error}\n{nvrtc.getProgramLog(program)}"
            raise JaxRuntimeError(said) from error
        finally:
            nvrtc.destroyProgram(program)

    def load(self, source, names):
        """Compile CUDA C, if its code is not on disk; return its functions, by names.

        Raises:
          JaxRuntimeError: if it cannot be compiled, with what the compiler says.
        """
        cupy = self._cupy

        def key():
            version = minijax.__version__, cupy.cuda.nvrtc.getVersion(), self._arch
            parts = *map(str, version), *OPTIONS, self.name, source
            return hashlib.sha256("\0".join(parts).encode()).hexdigest()

        with self, self.lock, self.device:
            try:
                code = cached_object_code(key, lambda: self.compiled(source))
            except JaxRuntimeError:
                raise
            except RuntimeError as error:
                said = f"INTERNAL: {self.name}: {error}\n{COMPILER}"
                raise JaxRuntimeError(said) from error
            module = cupy.cuda.function.Module()
            module.load(code)
            return {name: module.get_function(name) for name in names}

    def launch(self, function, blocks, threads, addresses, what=""):
        """Have a function run by so many blocks of so many threads.

        Args:
          function: one of those that `load` returns.
          blocks, threads: numbers.
          addresses: of its parameters.
          what: it is, for errors.
        """
        given = array("Q", addresses)
        start, count = given.buffer_info()
        where = array("Q", range(start, start + 8 * count, 8))
        shape = blocks, 1, 1, threads, 1, 1
        with self, self.lock, self.device:
            self.pending.append(what)
            self._cupy.cuda.driver.launchKernel(
                function.ptr, *shape, 0, self._stream.ptr, where.buffer_info()[0], 0
            )
        if config.minijax_wait_for_kernels:
            self.wait()

    @property
    def stream(self):
        """The address of the stream, for libraries."""
        return self._stream.ptr

    def call(self, function, *args, what=""):
        """Return what a function of a library returns, which puts in work.

        Args:
          function: of a library that knows the stream.
          args: of it.
          what: it is, for errors.
        """
        with self, self.lock, self.device, self._stream:
            self.pending.append(what)
            result = function(*args)
        if config.minijax_wait_for_kernels:
            self.wait()
        return result

    def record(self, act):
        """Return a graph of the launches that `act()` makes, which are not run."""
        with self, self.lock, self.device, self._stream:
            self._stream.begin_capture()
            try:
                act()
            except BaseException:
                with suppress(*self.errors):
                    self._stream.end_capture()
                raise
            return self._stream.end_capture()

    def replay(self, graph, what=""):
        """Have the launches of a graph run."""
        with self, self.lock, self.device:
            self.pending.append(what)
            graph.launch(self._stream)

    @property
    def is_done(self):
        """Whether there is no work left."""
        # to ask would spoil a graph that another thread records
        with self, self.lock, self.device:
            return self._stream.done

    def wait(self):
        """Return when all work is done.

        Raises:
          JaxRuntimeError: if some of it failed; it names the latest kernels.
        """
        # or it would disturb a graph that another thread records
        with self, self.lock, self.device:
            try:
                self._stream.synchronize()
            except self.errors as error:
                raise self.failed(error) from error
            finally:
                self.pending.clear()


class HostReadback:
    """Bytes of a card on their way to the host; two may be under way.

    Args:
      card: a `CudaContext`.
    """

    def __init__(self, card):
        cuda = card._cupy.cuda
        self.card, self._asked, self._told = card, 0, 0
        with card, card.lock, card.device:
            self._near = cuda.alloc_pinned_memory(2)
            self._events = [cuda.Event(block=False, disable_timing=True) for _ in "12"]
        self._bytes = (ctypes.c_uint8 * 2).from_address(self._near.ptr)

    def ask(self, address):
        """Have a byte of the card copied to the host, behind the work so far."""
        card, place = self.card, self._asked % 2
        event, runtime = self._events[place], card._cupy.cuda.runtime
        kind, to = runtime.memcpyDeviceToHost, self._near.ptr + place
        with card, card.lock, card.device, card._stream:
            runtime.memcpyAsync(to, address, 1, kind, card._stream.ptr)
            event.record(card._stream)
        self._asked += 1

    def wait_copy(self):
        """Wait for the byte that was asked for first, and return whether it is not 0.

        Raises:
          JaxRuntimeError: if the work in front of it failed.
        """
        place = self._told % 2
        event = self._events[place]
        with self.card as card, card.lock, card.device:
            event.synchronize()
        self._told += 1
        return self._bytes[place] != 0

    def close(self):
        """Forget what was asked for, and let another loop ask."""
        self._told = self._asked
        self.card.answers.append(self)


class CudaLaunch(NamedTuple):
    """A function of CUDA C, and how a step launches it.

    Attributes:
      label: name of the function.
      text: of it.
      blocks, threads: how many there are, of the latter in a block.
      buffers: those of its parameters.
    """

    label: str
    text: str
    blocks: int
    threads: int
    buffers: list


# Arrays in the memory of a card: stretches of bytes, and buffers with a shape.


class DeviceBytes:
    """Some bytes in the memory of a card.

    Args:
      card: a `CudaContext`.
      memory: what holds the memory; None for no bytes.
      address: of the first byte.
      size: how many there are.
    """

    __slots__ = ("address", "card", "memory", "size")

    def __init__(self, card, memory, address, size):
        self.card, self.memory, self.address, self.size = card, memory, address, size

    def __len__(self):
        return self.size

    def fetch(self):
        """Return the bytes as an array of NumPy, when all work is done."""
        near = np.empty(self.size, np.uint8)
        self.card.copy_to_host(near, self.address)
        return near

    def fill(self, numbers):
        """Copy an array of NumPy here."""
        self.card.copy_to_device(self.address, np.ascontiguousarray(numbers))
        return self

    def __getitem__(self, key):
        if not isinstance(key, slice):
            return self.fetch()[key]
        start, stop, _ = key.indices(self.size)
        return DeviceBytes(self.card, self.memory, self.address + start, stop - start)

    def __setitem__(self, key, other):
        here = self[key]
        if here.address != other.address:
            self.card.copy_on_device(here.address, other.address, here.size)

    def view(self, dtype):
        """Return the numbers as an array of NumPy, when all work is done."""
        return self.fetch().view(dtype)


def device_allocate(card, size, what="a result"):
    """Return `DeviceBytes` in new memory.

    Raises:
      JaxRuntimeError: if the card has not so much left.
    """
    if not size:
        return DeviceBytes(card, None, 0, 0)
    try:
        memory = card.allocate(size)
    except MemoryError as error:
        what, kind = f"{what} on {card.name}", np.dtype("uint8")
        raise out_of_memory_error(what, (size,), kind) from error
    return DeviceBytes(card, memory, memory.ptr, size)


class DeviceBuffer:
    """The buffer of an array whose numbers lie on a card.

    Args:
      bytes: the `DeviceBytes`.
      shape, dtype: of the array.
    """

    __slots__ = ("__weakref__", "bytes", "dtype", "shape")

    def __init__(self, bytes, shape, dtype):
        self.bytes, self.shape, self.dtype = bytes, shape, dtype

    @property
    def address(self):
        """The address of the first number, in the memory of the card."""
        return self.bytes.address

    def numbers(self):
        """Return them as a new array of NumPy, when all work is done."""
        if self.dtype.itemsize == 0:
            return np.zeros(self.shape, self.dtype)
        near = np.empty(self.shape, self.dtype)
        self.bytes.card.copy_to_host(near, self.bytes.address)
        return near

    def __array__(self, *args, **kwargs):
        raise TypeError("The buffer lies on a card; device_get fetches an array.")


_held = SimpleNamespace(buffer=object())
ALONE = getrefcount(_held.buffer)  # if one object holds it


def donated_bytes(x):
    """Return the bytes of an array that is given up, or a copy if they are shared."""
    data = x._buffer.bytes
    if getrefcount(x._buffer) > ALONE:
        copy = device_allocate(data.card, data.size)
        copy[:] = data
        return copy
    return data


class DeviceAllocations(PlannedAllocations):
    """The memory of one call, on a card."""

    def __missing__(self, buffer):
        if buffer in self.offsets:
            return super().__missing__(buffer)
        data = device_allocate(self.arena.card, nbytes(buffer))
        dict.__setitem__(self, buffer, data)
        return data


def offsets_with_readbacks(plan):
    """Return offsets in an arena, and its size; what tests of loops say stands last."""
    offsets, size = arena_offsets(plan), plan.arena
    for step in plan.planned.walk():
        if type(step) is While:
            offsets[step.test.outputs[0]], size = size, size + 16
    return offsets, size


def memory_of_ends(program, inputs):
    """Return bytes on the card for arguments, constants and results."""
    ends, places, of = program.lowered, program.plan.places, f" of {program.name}"
    found = dict(zip(ends.inputs, inputs)) | program.constants
    for buffer in ends.outputs:
        if places[buffer].kind == "output" and buffer not in found:
            found[buffer] = device_allocate(
                program.card, nbytes(buffer), "a result" + of
            )
    both = {"input": ends.inputs, "output": ends.outputs}
    for buffer, (kind, number) in places.items():
        if kind in both:
            found[buffer] = found[both[kind][number]]
    return found


def argument_bytes(program, x, ours):
    """Return the bytes of an argument on the card, its own if it is given up."""
    if ours and isinstance(x, ArrayImpl) and x.device is program.device:
        return donated_bytes(x)
    return asbuffer(x, program.device).bytes


def enqueue_program(program, inputs):
    """Put the steps of a program into the stream; return the buffers of its results.

    Args:
      program: a `CudaProgram`.
      inputs: a list of `DeviceBytes`.
    """
    found, size = memory_of_ends(program, inputs), program.room
    kept = program.arenas
    taken = sum(map(len, inputs))
    what = f"the arena of {program.name}, whose arguments take {taken} bytes,"
    arena = kept.pop() if kept else device_allocate(program.card, size, what)
    program.start(DeviceAllocations(found, program.offsets, arena))
    kept.append(arena)
    pairs = zip(program.lowered.outputs, program.out_avals)
    return [DeviceBuffer(found[x], aval.shape, aval.dtype) for x, aval in pairs]


def call_device_program(program, args):
    """Return the results of a program for arrays, and numbers of the host."""
    pairs = zip(args, program.plan.donated)
    inputs = [argument_bytes(program, x, ours) for x, ours in pairs]
    results = enqueue_program(program, inputs)
    return list(map(ArrayImpl, results, program.out_avals, repeat(program.placement)))
