"""What the host spends on a call of a program of a card, where the card does nothing.

python -m tests.cuda_host_work            microseconds of CPU time, the least of many

In place of CuPy stands what takes launches, graphs and memory and does nothing, in as
little time as Python can, so that what is left is the package's own work.
"""

import functools
import sys
import time
from types import SimpleNamespace

import numpy as np

import minijax
import minijax.numpy as jnp
from minijax import jit, make_jaxpr
from minijax.cuda.device import CudaProgram, lower_for_gpu
from minijax.cuda.program_steps import launches_in
from minijax_book.emulator.cupy_card import EmulatedCuPy, Stream
from tests.emulated_card import emulated_gpu

ROUNDS, CALLS = 40, 50


def nothing(*args):
    """Do nothing: a kernel of a card that is not there."""


class IdleStream(Stream):
    """A stream that forgets its work."""

    def add(self, make):
        """Do nothing."""

    def end_capture(self):
        """Return a graph that does nothing."""
        super().end_capture()
        return SimpleNamespace(launch=nothing)


class Block:
    """Memory that is not there, at an address that is handed out again."""

    __slots__ = ("ptr",)
    free = [4096 + 512 * number for number in range(4096)]

    def __init__(self, size):
        self.ptr = self.free.pop()

    def __del__(self):
        self.free.append(self.ptr)


class IdleCuPy(EmulatedCuPy):
    """A card that takes work and does none."""

    def __init__(self, **options):
        super().__init__(**options)
        function = SimpleNamespace(ptr=0)
        module = SimpleNamespace(load=nothing, get_function=lambda name: function)
        self.cuda.function.Module = lambda: module
        self.cuda.driver.launchKernel = nothing
        self.cuda.Stream = functools.partial(IdleStream, self)
        self.cuda.alloc = Block
        self.cuda.runtime.memcpyAsync = nothing


def repeated(n):
    """Return a program of n launches that fusion leaves apart, all of one shape."""

    def f(x):
        for _ in range(n):
            x = jnp.tanh(x)[::-1].cumsum()
        return x

    return f


def microseconds(f, *args):
    """Return the CPU time of a warm call, in microseconds, the least of some rounds."""
    for _ in range(5):
        f(*args)
    best = 1e9
    for _ in range(ROUNDS):
        start = time.process_time()
        for _ in range(CALLS):
            f(*args)
        best = min(best, time.process_time() - start)
    return 1e6 * best / CALLS


def rows():
    """Return names, numbers of launches, and microseconds of a call."""
    found = []
    with emulated_gpu(kind=IdleCuPy) as (gpu, _):
        x = minijax.device_put(np.ones(64, np.float32), gpu)
        found.append(("x + x, eager", 1, microseconds(lambda x: x + x, x)))
        for n in (1, 4, 16):
            f, closed = jit(repeated(n)), make_jaxpr(repeated(n))(x)
            steps, program = launches_of(f, x), CudaProgram(closed, device=gpu)
            found.append((f"{n} totals, one by one", steps, microseconds(program, x)))
            found.append((f"{n} totals, as a graph", steps, microseconds(f, x)))
    return found


def launches_of(f, x):
    """Return how many launches a program makes."""
    return len(launches_in(lower_for_gpu(make_jaxpr(f)(x))))


def main():
    """Print what calls cost."""
    for name, launches, cost in rows():
        print(f"{name:26} {launches:3} launches {cost:7.1f} µs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
