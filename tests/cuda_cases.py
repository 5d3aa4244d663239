"""Kernels in CUDA C, run by the emulator beside NumPy, each launch forced upon them.

python -m tests.cuda_cases --seed 7 --count 200     random kernels
python -m tests.cuda_cases --places                 with computed places, likewise
python -m tests.cuda_cases --programs --every 19    kernels of programs, likewise
python -m tests.cuda_cases --how warps              one launch only, see LAUNCHES
"""

import ctypes
import sys

import numpy as np

from minijax.gpu.cuda_text import cuda_function
from minijax.gpu.launches import LaunchShape, is_shareable, launch_of, outer_axes
from minijax.gpu.operations import PRELUDE
from minijax_book.emulator import EmulatorError, Module
from tests import kernel_cases
from tests.commands import options_of, reported

LAUNCHES = {
    "chosen": launch_of,
    "alone": lambda kernel: LaunchShape(outer_axes(kernel)),
    "warps": lambda kernel: LaunchShape(outer_axes(kernel), 32, 8),
    "blocks": lambda kernel: LaunchShape(outer_axes(kernel), 96, 1),
    "across": lambda kernel: LaunchShape(outer_axes(kernel), 8, 32, True),
}


def forced(kernel, how):
    """Return a launch of that kind, if the kernel's loops may be shared at all."""
    return LAUNCHES[how if is_shareable(kernel) else "alone"](kernel)


def source_of(kernels, how="chosen"):
    """Return the text of kernels, by their labels."""
    texts = [cuda_function(k, forced(k, how), name) for name, k in kernels.items()]
    return PRELUDE + "\n".join(texts)


class CudaLibrary:
    """Kernels in the emulator, as `kernel_cases.differences` wants them."""

    def __init__(self, kernels, how="chosen", edit=str, seed=1):
        self.kernels, self.how, self.seed = kernels, how, seed
        self.module = Module(edit(source_of(kernels, how)))
        self.complaints = []

    def function(self, label, count):
        """Return a function of addresses of parameters that launches a kernel."""
        kernel = self.kernels[label]
        launch = forced(kernel, self.how)
        written = {store.parameter for store in kernel.stores}

        def start(*addresses):
            views = [
                _view(address, parameter, parameter in written)
                for address, parameter in zip(addresses, kernel.parameters)
            ]
            grid, block = (launch.blocks(kernel),), (launch.threads,)
            try:
                if grid[0]:
                    self.module.launch(label, grid, block, views, seed=self.seed)
            except EmulatorError as error:
                self.complaints.append(f"{kernel}\n{launch}: {error}")

        return start


def _view(address, parameter, writable):
    size = parameter.size * parameter.dtype.itemsize
    if size == 0:
        return np.zeros(0, np.uint8)
    view = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))
    view.flags.writeable = writable
    return view


def differences(met, how="chosen"):
    """What the emulator leaves in memory, or says, that it should not."""
    libraries = []

    def library_of(kernels):
        libraries.append(CudaLibrary(kernels, how))
        return libraries[-1]

    wrong = kernel_cases.differences(met, library_of, together=200)
    return wrong + [text for library in libraries for text in library.complaints]


def main():
    """Compare kernels under each launch; 1 if something differs."""
    options = options_of(
        __doc__, seed=0, count=200, every=19, places=False, programs=False, how=""
    )
    chance = kernel_cases.PlacesChance if options.places else kernel_cases.Chance
    wrong, met = [], []
    if options.programs:
        wrong, met = kernel_cases.of_programs(options.every)
    else:
        met = kernel_cases.of_random_kernels(options.seed, options.count, chance)
    for how in [options.how] if options.how else LAUNCHES:
        found = differences(met, how)
        print(f"{how}: {len(met)} kernels, {len(found)} differences", flush=True)
        wrong += found
    return reported(f"{len(met)} kernels", wrong)


if __name__ == "__main__":
    sys.exit(main())
