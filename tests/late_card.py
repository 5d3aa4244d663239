"""An emulated card that compiles the kernels of many programs together.

g++ takes half a second for a kernel alone, and a tenth of that for one of many. What is
put into a stream is done at a wait, so kernels are compiled then, with all others that
have come since.
"""

import functools
import re

import numpy as np

from minijax.gpu.cuda_source import PRELUDE
from minijax_book.emulator import Module
from minijax_book.emulator.cupy_card import EmulatedCuPy, Function
from tests import cuda_sources

TOGETHER = 150  # functions
FUNCTION = re.compile(r'(?=^(?:extern "C" __global__|__device__) )', re.M)
NAME = re.compile(r"(\w+)\(")


def kernels_of(code):
    """Return kernels by their names, each with the functions in front of it."""
    found, before = {}, []
    for text in FUNCTION.split(code.removeprefix(PRELUDE)):
        before.append(text.strip())
        if text.startswith("extern"):
            head = re.sub(r"__launch_bounds__\(\d+\)", "", text)
            found[NAME.search(head)[1]] = "\n".join(filter(None, before))
            before = []
    return found


class LateModule:
    """Kernels that are compiled with those of other programs."""

    def __init__(self, cupy):
        self.cupy = cupy

    def load(self, code):
        """Take code, which waits."""
        self.kernels = kernels_of(code.decode())
        for name, text in self.kernels.items():
            if text not in self.cupy.modules:
                self.cupy.waiting[text] = name

    def get_function(self, name):
        """Return a function that puts a launch into a stream."""
        text = self.kernels[name]
        inside = re.search(rf"\b{name}\(([^)]*)\)", text)[1]
        parameters = re.sub("<[^>]*>", "", inside).split(",")
        put = functools.partial(put_late, name, text)
        return Function(self.cupy, len(parameters), put)


def put_late(name, text, cupy, stream, grid, block, args):
    """Put a launch into a stream; its function is compiled when it runs."""

    def make():
        views = [cupy.memory.at(x) if x else np.zeros(0, np.uint8) for x in args]
        return lambda: cupy.module_of(text).launch(
            name, grid, block, views, seed=cupy.seed
        )

    stream.add(make)


class LateCuPy(EmulatedCuPy):
    """An emulated card that compiles the kernels of many programs together.

    Attributes:
      waiting: from texts of kernels that are not compiled yet to their names.
      modules: from texts of kernels to what was compiled.
    """

    def __init__(self, **options):
        super().__init__(**options)
        self.waiting, self.modules = {}, {}
        self.cuda.function.Module = functools.partial(LateModule, self)
        self.cuda.nvrtc.compile = str  # later, with others

    def module_of(self, text):
        """Return the module of a kernel, which is compiled then with all that wait."""
        while text not in self.modules:
            self.compile()
        return self.modules[text]

    def compile(self):
        """Compile some kernels that wait, no two of one name."""
        batch: dict = {}
        for text, name in self.waiting.items():
            if len(batch) < TOGETHER:
                batch.setdefault(name, text)
        source = PRELUDE + "\n\n".join(batch.values())
        module = Module(cuda_sources.kept(source))
        for text in batch.values():
            self.modules[text] = module
            del self.waiting[text]
