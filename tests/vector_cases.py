"""Kernels to try with vectors: sizes around the lanes, and targets that are forced.

python -m tests.vector_cases --seed 7 --count 200 --target avx2

Machine code runs in the process of this command, so that a crash of it ends no test.
"""

import argparse
import sys

from minijax.fusion import fuse
from minijax.passes import simplify
from minijax.targets import TargetLibrary, forced_target, host_target
from minijax.vector_kernels import kernel_function, module_text
from tests import kernel_cases


class LongChance(kernel_cases.Chance):
    """Draws kernels with axes around the lengths of vectors."""

    def sizes(self):
        """Sizes of up to three axes."""
        sizes = [self.one([1, 2, 3, 7, 16]) for _ in range(self.rng.integers(1, 4))]
        place = self.rng.integers(len(sizes))
        sizes[place] = self.one([15, 16, 17, 31, 33, 64, 65, 100, 128, 131])
        return tuple(sizes)


class FusedRecorder(kernel_cases.Recorder):
    """Keeps what the fused kernels of a program have met."""

    def lowered(self, closed):
        """The schedule, fused."""
        return fuse(super().lowered(simplify(closed)))


def target_of(name):
    """The target of a name; this computer for an empty one."""
    return forced_target(name) if name else host_target()


def vector_library(target):
    """A function from kernels to a library for a target."""

    def library(kernels):
        functions = [kernel_function(k, label, target) for label, k in kernels.items()]
        return TargetLibrary(module_text(functions), target)

    return library


def main():
    """Compare kernels; 1 if something differs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--programs", action="store_true")
    parser.add_argument("--fused", action="store_true")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--target", default="")
    parser.add_argument("--together", type=int, default=100)
    options = parser.parse_args()
    if options.programs:
        recorder = FusedRecorder if options.fused else kernel_cases.Recorder
        wrong, met = kernel_cases.of_programs(options.every, recorder)
    else:
        wrong, met = [], []
        for chance in (kernel_cases.Chance, LongChance):
            seed, count = options.seed, options.count
            met += kernel_cases.of_random_kernels(seed, count, chance)
    library = vector_library(target_of(options.target))
    least = 1 if options.fused else 1e-30
    wrong += kernel_cases.differences(met, library, options.together, least)
    print(*wrong, sep="\n\n")
    print(f"{len(met)} kernels, {len(wrong)} differences")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
