"""Random kernels in parts: loops that are cut, and folds in two kernels.

    python -m tests.thread_cases --seed 0 --count 1000 [--target avx2]

The parts of a loop, done in any order, leave the same bits as the whole kernel; the two
kernels of a fold, or three, leave what the one leaves, but for the rounding of sums.
Machine code runs in the process of this command.
"""

import ctypes
import sys
from itertools import pairwise

import numpy as np

from minijax.kernels.checker import check_kernel
from minijax.kernels.ir import Affine
from minijax.kernels.loop_nests import Kernel, interpret
from minijax.llvm.codegen import module_ir
from minijax.llvm.targets import TargetLibrary, kernel_function
from minijax.threads.atomics import ceil_div
from minijax.threads.parallel_loops import grain_unit, parallel_loop, range_function
from minijax.threads.split_reductions import (
    final_fold_kernel,
    partial_fold_kernel,
    remainder_fold_kernel,
    split_of_folds,
)
from tests import kernel_cases
from tests.commands import options_of, reported
from tests.red_zones import RedZones
from tests.vector_cases import made_by_hand, target_of


class LongAxis(kernel_cases.Chance):
    """Draws kernels with an axis that is long enough to be cut."""

    def sizes(self):
        """Sizes of up to three axes."""
        sizes = [self.one([1, 2, 3, 7]) for _ in range(self.rng.integers(1, 4))]
        place = 0 if self.rng.random() < 0.6 else self.rng.integers(len(sizes))
        sizes[place] = self.one([33, 64, 68, 100, 128, 131, 200, 340])
        return tuple(sizes)


def random_kernels(seed, count):
    """Yield kernels whose nodes are all needed, and whose folds are stored once."""
    chance = LongAxis(seed)
    for number in range(count):
        kernel = kernel_cases.tidy(chance.kernel(number))
        [store] = kernel.stores
        moving = [k in store.node.level for k in range(len(kernel.sizes))]
        place = Affine(0, tuple(x * y for x, y in zip(store.place.strides, moving)))
        place = place._replace(offset=-place.bounds(kernel.sizes)[0])
        needed = {store.node}
        for node in reversed(kernel.nodes):
            needed.update(node.args if node in needed else ())
        nodes = tuple(node for node in kernel.nodes if node in needed)
        stores = (store._replace(place=place),)
        yield Kernel(kernel.name, kernel.sizes, kernel.parameters, nodes, stores)


def memory_of(kernels, rng):
    """Small whole numbers for the parameters of kernels, by name."""
    parameters = {b.name: b for kernel in kernels for b in kernel.parameters}.values()
    return {b.name: rng.integers(-3, 4, b.size).astype(b.dtype) for b in parameters}


def parts_of(kernel, loop, rng):
    """Starts and ends of parts of a loop, in disorder."""
    size, unit = kernel.sizes[loop.axis], grain_unit(loop)
    units = ceil_div(size, unit)
    places = sorted({0, units, *rng.integers(0, units, 3).tolist()})
    parts = [*pairwise(min(place * unit, size) for place in places)]
    rng.shuffle(parts)
    return parts


def differs_in_parts(kernel, target, rng):
    """Whether a kernel leaves other bits in parts; None if it has no parts."""
    loop = parallel_loop(kernel, target)
    if loop is None:
        return None
    made = kernel_function(kernel, "whole", target)
    part = range_function(kernel, "part", target, grain_unit(loop))
    library = TargetLibrary(module_ir([made, part]), target)
    zones, numbers = RedZones(), memory_of([kernel], rng)
    wanted, found = (
        {name: zones.laid_out(x) for name, x in numbers.items()} for _ in range(2)
    )
    names = [parameter.name for parameter in kernel.parameters]
    library.function("whole", len(names))(*[wanted[x].ctypes.data for x in names])
    kinds = [ctypes.c_void_p] * len(names) + [ctypes.c_int64] * 2
    address = library.engine.get_function_address("part")
    for start, end in parts_of(kernel, loop, rng):
        pointers = [found[x].ctypes.data for x in names]
        ctypes.CFUNCTYPE(None, *kinds)(address)(*pointers, start, end)
    differ = any(wanted[x].tobytes() != found[x].tobytes() for x in names)
    return differ or bool(zones.check())


def differs_in_two(kernel, cut, rng):
    """Whether the two kernels of a fold leave something else than the one."""
    makers = (
        partial_fold_kernel,
        *([remainder_fold_kernel] if cut.final_nodes else []),
        final_fold_kernel,
    )
    kernels = [check_kernel(make(kernel, cut)) for make in makers]
    wanted = memory_of([kernel, *kernels], rng)
    found = {name: numbers.copy() for name, numbers in wanted.items()}
    with np.errstate(all="ignore"):
        interpret(kernel, wanted), [interpret(each, found) for each in kernels]
        return not all(
            np.allclose(found[b.name], wanted[b.name], 1e-3, 1e-2, equal_nan=True)
            for b in kernel.parameters
        )


def differences(kernels, target):
    """Return kernels that differ, and how many were cut in each of the two ways."""
    wrong, counts = [], [0, 0]
    for number, kernel in enumerate(kernels):
        rng, todo = np.random.default_rng(number), [kernel]
        if cut := split_of_folds(kernel):
            counts[1] += 1
            todo += [partial_fold_kernel(kernel, cut)]
            todo += [remainder_fold_kernel(kernel, cut)] if cut.final_nodes else []
            wrong += [kernel] * differs_in_two(kernel, cut, rng)
        for each in todo:
            found = differs_in_parts(each, target, rng)
            counts[0] += found is not None
            wrong += [each] * bool(found)
    return wrong, counts


def main():
    """Compare kernels; 1 if something differs."""
    options = options_of(__doc__, seed=0, count=100, made=False, target="")
    random = random_kernels(options.seed, options.count)
    kernels = made_by_hand() if options.made else random
    wrong, counts = differences(kernels, target_of(options.target))
    return reported("{} loops and {} folds cut".format(*counts), wrong)


if __name__ == "__main__":
    sys.exit(main())
