"""An emulator of CUDA: kernels in CUDA C run on a CPU, and each access is checked.

The source of a kernel, as it stands, is compiled by g++ with a header that holds what
CUDA C has and C++ has not (`cuda.h`). A runtime (`emulator.cpp`) runs one block after
the other, with a fiber for each thread. With `checks`, every access to memory has to
stay inside of its array, be aligned, read what was written, and not race with another
thread; the bytes that move are counted.

It shows no speed, no overlap, no limits of a driver; tensor cores, inline assembly and
cooperative groups are not emulated.
"""

import contextlib
import ctypes
import functools
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import NamedTuple

import numpy as np

HERE = Path(__file__).parent
_KERNEL = re.compile(
    r"__global__\s+(?:__launch_bounds__\s*\([^)]*\)\s*)?void\s+"
    r"(?:__launch_bounds__\s*\([^)]*\)\s*)?(\w+)\s*\("
)
_COMMON = """
-std=c++20 -fPIC -g1 -ffp-contract=off -fno-strict-aliasing -fno-math-errno
-fwrapv -fno-ipa-reference
""".split()  # an int wraps, and other threads write shared variables while one waits
_CHECKED = ["-O1", "-fsanitize=thread", "-DEMULATED_CHECKS", "-w"]
_PLAIN = ["-O2", "-w"]


class EmulatorError(RuntimeError):
    """A kernel that does what it must not, or that cannot be compiled or launched."""


class Traffic(NamedTuple):
    """What the warps of the first blocks asked of memory at one line of the source.

    Attributes:
      line: of the source, from 1.
      write: whether it stores.
      shared: whether shared memory is meant, and not global memory.
      requests: how many there were: one for each warp and each time.
      bytes: that the lanes asked for.
      sectors: of 32 bytes that moved; 0 for shared memory.
      least: how many sectors, or for shared memory turns, would have been enough.
      turns: that the banks of shared memory took; 0 for global memory.
    """

    line: int
    write: bool
    shared: bool
    requests: int
    bytes: int
    sectors: int
    least: int
    turns: int


class _Place(ctypes.Structure):
    _fields_ = [(axis, ctypes.c_uint) for axis in "xyz"]


class _Array(ctypes.Structure):
    _fields_ = [
        ("first", ctypes.c_void_p),
        ("last", ctypes.c_void_p),
        ("writable", ctypes.c_int),
        ("grain", ctypes.c_uint),
    ]


class _Launch(ctypes.Structure):
    _fields_ = [
        ("kernel", ctypes.c_void_p),
        ("arguments", ctypes.c_void_p),
        ("shared_range", ctypes.c_void_p),
        ("grid", _Place),
        ("block", _Place),
        ("flags", ctypes.c_int),
        ("seed", ctypes.c_uint64),
        ("first_block", ctypes.c_uint64),
        ("last_block", ctypes.c_uint64),
        ("arrays", ctypes.POINTER(_Array)),
        ("array_count", ctypes.c_int),
    ]


class _Counts(ctypes.Structure):
    _fields_ = [
        ("pc", ctypes.c_void_p),
        *[
            (name, ctypes.c_uint64)
            for name in ("requests", "bytes", "sectors", "least", "turns")
        ],
        ("write", ctypes.c_int),
        ("shared", ctypes.c_int),
    ]


CHECK, RACES, TRAFFIC, FLUSH = 1, 2, 4, 8
SHARED = 48 * 1024  # bytes that a block has
_lock = threading.RLock()


def compiler():
    """Return the command of a C++ compiler.

    Raises:
      EmulatorError: where there is none.
    """
    command = os.environ.get("CXX") or "g++"
    if shutil.which(command.split()[0]) is None:
        raise EmulatorError(
            f"The emulator compiles kernels with {command}, which is not installed "
            "here. On Debian and Ubuntu: apt-get install g++. CXX names another one."
        )
    return command.split()


def is_there():
    """Return whether there is a compiler, without which nothing can be emulated."""
    try:
        return bool(compiler())
    except EmulatorError:
        return False


def _folder():
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(root) / "minijax-emulator"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise EmulatorError(f"{command[0]} refuses this:\n{done.stderr[:3000]}")


def _made(name, make):
    """Return the path of a cached file, which `make` writes if it is not there."""
    path = _folder() / name
    if not path.exists():
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            fresh = Path(folder) / path.name
            make(fresh)
            fresh.replace(path)
    return path


def _digest(*texts):
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:20]


def _source(name):
    return (HERE / name).read_text()


@functools.cache
def _runtime():
    """Return the runtime, compiled and loaded, and its path."""
    parts = ["fibers.h", "threads.h", "checks.h", "traffic.h", "emulator.cpp"]
    name = f"libemulator-{_digest(*map(_source, parts), *compiler())}.so"
    flags = ["-std=c++20", "-O2", "-g1", "-shared", "-fPIC"]

    def make(path):
        _run([*compiler(), *flags, "-o", str(path), str(HERE / "emulator.cpp")])

    path = _made(name, make)
    library = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    library.emulator_message.restype = ctypes.c_char_p
    return library, path


@functools.cache
def _header(flags):
    """Return the path of a copy of `cuda.h`; what it compiles to lies beside it.

    A compiler that cannot use that reads the copy. It halves the time of a kernel.
    """
    name = f"cuda-{_digest(_source('cuda.h'), *flags, *compiler())}.h"
    path = _made(name, lambda path: path.write_text(_source("cuda.h")))
    command = [*compiler(), *flags, "-x", "c++-header", str(path), "-o"]
    with contextlib.suppress(EmulatorError):
        _made(f"{name}.gch", lambda fresh: _run([*command, str(fresh)]))
    return path


def _place(numbers):
    return _Place(*(*numbers, 1, 1, 1)[:3])


class Module:
    """Kernels of CUDA C, compiled for the emulator.

    Args:
      source: their text.
      checks: whether each access to memory is checked; without, it runs faster.
    """

    def __init__(self, source, checks=True):
        self.source, self.checks = source, checks
        self.names = _KERNEL.findall(source)
        runtime, self._beside = _runtime()
        flags = [*_COMMON, *(_CHECKED if checks else _PLAIN)]
        made = _digest(
            source, *flags, *compiler(), _source("cuda.h"), str(self._beside)
        )
        self.path = _made(f"{made}.so", functools.partial(self._compile, flags))
        self._library = ctypes.CDLL(str(self.path))
        self._sizes = {}

    def _compile(self, flags, path):
        text, thing = path.with_suffix(".cu.cpp"), path.with_suffix(".o")
        exports = [f"EMULATED_KERNEL({name})" for name in self.names]
        text.write_text("\n".join([self.source, *exports, "EMULATED_MODULE", ""]))
        header = ["-include", str(_header(tuple(flags)))]
        _run([*compiler(), *flags, *header, "-c", str(text), "-o", str(thing)])
        link = ["-shared", "-nostdlib", "-o", str(path), str(thing), str(self._beside)]
        found = f"-Wl,-rpath,{self._beside.parent}"
        _run([*compiler(), *link, found, "-lm", "-lgcc"])

    def sizes(self, name):
        """Return the bytes of each argument; of what a pointer leads to, negative."""
        if name not in self.names:
            raise EmulatorError(f"There is no kernel {name!r}; there are {self.names}.")
        if name not in self._sizes:
            out = (ctypes.c_int * 256)()
            count = self._library[f"emulated_sizes_{name}"](out)
            self._sizes[name] = list(out[:count])
        return self._sizes[name]

    def launch(self, name, grid, block, arguments, seed=0, flags=None, blocks=None):
        """Run a kernel.

        Args:
          name: of the kernel.
          grid, block: tuples of 1 to 3 numbers of blocks, and of threads in a block.
          arguments: NumPy arrays for pointers (one that is not writable, for what the
            kernel only reads), NumPy scalars for numbers.
          seed: of the order in which blocks and threads run; 0: as they are numbered.
          flags: which of `CHECK`, `RACES` (between threads, in arrays too), `TRAFFIC`,
            `FLUSH` (subnormal numbers to 0), added; by default `CHECK + RACES`.
          blocks: a pair: run the blocks from the first number to the second only.

        Raises:
          EmulatorError: if an access, a barrier or the launch is wrong; it names the
            line of the source, the block and the thread.
        """
        pointers, ranges, keep = self._arguments(name, arguments)
        if self._shared.get(name, 0) > SHARED:
            raise EmulatorError(
                f"{name}: more shared memory than 48 KiB: {self._shared[name]:,} bytes"
            )
        if flags is None:
            flags = CHECK | RACES
        first, last = blocks or (0, 2**63)
        arrays = (_Array * max(1, len(ranges)))(*ranges)
        launch = _Launch(
            ctypes.cast(self._library[f"emulated_call_{name}"], ctypes.c_void_p),
            ctypes.cast(pointers, ctypes.c_void_p),
            ctypes.cast(self._library.emulated_shared, ctypes.c_void_p),
            _place(grid), _place(block), flags if self.checks else flags & FLUSH,
            seed, first, last, arrays, len(ranges),
        )  # fmt: skip
        with _lock:
            runtime, _ = _runtime()
            failed = runtime.emulator_launch(ctypes.byref(launch))
            message = runtime.emulator_message().decode()
            self._counted = self._counts(runtime) if flags & TRAFFIC else []
        del keep
        if failed:
            raise EmulatorError(f"{name}: {self._with_lines(message)}")

    def _arguments(self, name, arguments):
        sizes = self.sizes(name)
        if len(sizes) != len(arguments):
            raise EmulatorError(
                f"{name} takes {len(sizes)} arguments; it was given {len(arguments)}."
            )
        pointers, ranges, keep = (ctypes.c_void_p * max(1, len(sizes)))(), [], []
        for i, (given, size) in enumerate(zip(arguments, sizes)):
            number = isinstance(given, np.generic)
            fits = given.nbytes == size if number else isinstance(given, np.ndarray)
            if not fits or number != (size > 0):
                raise EmulatorError(_misfit(name, i, given, size))
            if not number:
                start = given.ctypes.data
                end, can_write = start + given.nbytes, int(given.flags.writeable)
                ranges.append(_Array(start, end, can_write, -size))
            value = np.array(given if number else start)
            keep.append(value)
            pointers[i] = value.ctypes.data
        return pointers, _with_fine_grains(ranges), keep

    def traffic(self):
        """Return what the last launch with `TRAFFIC` counted: a list of `Traffic`."""
        return sorted(self._counted)

    def _counts(self, runtime):
        out = (_Counts * 4096)()
        count = min(4096, runtime.emulator_counts(out, 4096))
        lines = self._lines([entry.pc for entry in out[:count]])
        return [
            Traffic(
                line, bool(entry.write), bool(entry.shared),
                entry.requests, entry.bytes, entry.sectors, entry.least, entry.turns,
            )
            for line, entry in zip(lines, out)
        ]  # fmt: skip

    def _lines(self, addresses):
        """Return the lines that instructions were made from; 0: unknown."""
        if not addresses or shutil.which("addr2line") is None:
            return [0] * len(addresses)
        base = ctypes.cast(self._library.emulated_shared, ctypes.c_void_p).value
        base -= self._offset
        asked = [hex(address - base - 1) for address in addresses]
        command = ["addr2line", "-e", str(self.path), *asked]
        text = subprocess.run(command, capture_output=True, text=True).stdout
        found = [re.search(r"\.cu\.cpp:(\d+)", line) for line in text.splitlines()]
        return [int(match[1]) if match else 0 for match in found]

    @functools.cached_property
    def _offset(self):
        """Where `emulated_shared` stands in the file, in bytes from its start."""
        place = re.search(r"^(\w+) .*T emulated_shared$", self._symbols, re.M)
        return int(place[1], 16)

    @functools.cached_property
    def _symbols(self):
        command = ["nm", "-S", "--defined-only", str(self.path)]
        return subprocess.run(command, capture_output=True, text=True).stdout

    @functools.cached_property
    def _shared(self):
        """How many bytes of shared memory kernels have, if all of them have many.

        The variables of all kernels stand in one section of the module; a block has
        those of its own kernel, and perhaps those of functions that it calls.
        """
        first, last = ctypes.c_void_p(), ctypes.c_void_p()
        self._library.emulated_shared(ctypes.byref(first), ctypes.byref(last))
        if (last.value or 0) - (first.value or 0) <= SHARED:
            return {}
        base = ctypes.cast(self._library.emulated_shared, ctypes.c_void_p).value
        base -= self._offset
        found = dict.fromkeys(["", *self.names], 0)
        for place, size, owner in re.findall(
            r"^(\w+) (\w+) \w (\S+)$", self._symbols, re.M
        ):
            if first.value <= base + int(place, 16) < last.value:
                [own] = [x for x in self.names if f"_ZZ{len(x)}{x}E" in owner] or [""]
                found[own] += int(size, 16)
        return {name: size + found[""] for name, size in found.items()}

    def _with_lines(self, message):
        def line(match):
            [number] = self._lines([int(match[1], 16)])
            return f"line {number}" if number else match[0]

        return re.sub(r"pc (0x[0-9a-f]+)", line, message)


def _with_fine_grains(ranges):
    """Return ranges of arrays; where some overlap, with the shadows of the finest."""
    ends = [(each.first or 0, each.last or 0, each.grain) for each in ranges]
    for each in ranges:
        first, last = each.first or 0, each.last or 0
        grains = [grain for start, end, grain in ends if start < last and first < end]
        each.grain = min([each.grain, *grains])
    return ranges


def _misfit(name, i, given, size):
    kind = type(given).__name__
    what = f"{kind} of {given.dtype}" if hasattr(given, "dtype") else kind
    wanted = f"a NumPy scalar of {size} bytes" if size > 0 else "a NumPy array"
    return f"{name}: argument {i} is {what}; the kernel takes {wanted}."
