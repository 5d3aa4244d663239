"""Programs of the corpus and their gradients on an emulated card, beside the CPU.

python -m tests.cuda_programs                  all of them
python -m tests.cuda_programs --every 5        one of five

Each is run twice (the second time as a graph), and with its argument given up. Kernels
are compiled by the hundred, so that all programs are lowered before the first one runs.
"""

import functools
import re
import sys
import warnings

import numpy as np

import minijax
import minijax.numpy as jnp
from minijax import grad, jit
from minijax.gpu.operations import PRELUDE
from minijax_book.emulator import Module
from minijax_book.emulator.cupy_card import EmulatedCuPy
from tests import corpus, cuda_sources
from tests.commands import options_of, reported
from tests.emulated_card import emulated_gpu
from tests.kernel_cases import alike

TOGETHER = 150  # functions
FUNCTION = re.compile(r'(?=^(?:extern "C" __global__|__device__) )', re.M)


def functions_of(code):
    """Return the functions of a program's text, without what stands before them."""
    found = FUNCTION.split(code.removeprefix(PRELUDE))
    return [text.strip() for text in found if text.strip()]


class LateModule:
    """Kernels that are compiled with those of other programs."""

    def __init__(self, cupy, code):
        self.cupy = cupy
        cupy.waiting.update(dict.fromkeys(functions_of(code)))

    def get_function(self, name):
        """Return a function that puts a launch into the current stream."""
        return functools.partial(put_late, self.cupy, name)


def put_late(cupy, name, grid, block, args):
    """Put a launch into the current stream; its function is compiled when it runs."""
    cupy.counts["launches"] += 1

    def make():
        views = [cupy.memory.at(x) if x else np.zeros(0, np.uint8) for x in args]
        return lambda: cupy.module_of(name).launch(
            name, grid, block, views, seed=cupy.seed
        )

    cupy.current[-1].add(make)


class LateCuPy(EmulatedCuPy):
    """An emulated card that compiles the kernels of many programs together.

    Attributes:
      waiting: texts of functions that are not compiled yet.
      modules: from names of kernels to what was compiled.
    """

    def __init__(self, **options):
        super().__init__(**options)
        self.waiting, self.modules = {}, {}
        self.RawModule = functools.partial(LateModule, self)

    def module_of(self, name):
        """Return the module of a kernel, which is compiled then with all that wait."""
        if name not in self.modules:
            self.compile()
        return self.modules[name]

    def compile(self):
        """Compile all functions that wait."""
        texts, self.waiting = [*self.waiting], {}
        while texts:
            cut = next(
                (k for k in range(TOGETHER, len(texts)) if is_kernel(texts, k)), None
            )
            first, texts = texts[:cut], texts[cut:] if cut else []
            source = PRELUDE + "\n\n".join(first)
            module = Module(cuda_sources.kept(source))
            self.modules.update(dict.fromkeys(module.names, module))


def is_kernel(texts, k):
    """Return whether a module may end before a text: its helpers come with a kernel."""
    return texts[k - 1].startswith('extern "C"')


def cases(every=1):
    """Return functions with a point, by names: programs, gradients of their sums."""
    found = {}
    for name, (f, point) in corpus.programs(minijax).items():
        found[name] = f, point
        found[f"gradient of {name}"] = grad(functools.partial(total, f)), point
    return dict([*found.items()][::every])


def total(f, x):
    """Return the sum of the results of a program."""
    leaves = minijax.tree.leaves(f(x))
    return sum(jnp.sum(jnp.real(leaf) * 1.0) for leaf in leaves)


def expected_of(f, point):
    """Return what the CPU makes of a program; None if it refuses it."""
    try:
        return minijax.tree.leaves(jit(f)(jnp.asarray(point)))
    except (TypeError, ValueError, RuntimeError):
        return None


def differences(every=1):
    """Return what is different on a card; and how many programs were run."""
    table, wrong = cases(every), []
    table = {n: (*row, expected_of(*row)) for n, row in table.items()}
    table = {name: row for name, row in table.items() if row[2] is not None}
    with emulated_gpu(kind=LateCuPy) as (gpu, _):
        calls = [call for name, row in table.items() for call in called(name, row, gpu)]
        wrong += [text for call in calls for text in compared(*call)]
    return wrong, len(table)


def called(name, row, gpu):
    """Return names, results and what they should be, of four calls of a program."""
    f, point, reference = row
    run, given, found = jit(f), jit(f, donate_argnums=0), []
    for number, way in enumerate([run, run, run, given]):
        x = minijax.device_put(jnp.asarray(point), gpu)
        with warnings.catch_warnings():  # some give up what no result can take
            warnings.filterwarnings("ignore", "Some donated buffers")
            results = minijax.tree.leaves(way(x))
        found.append((f"{name}, call {number}", results, reference))
    return found


def compared(name, results, reference):
    """Return what is different in the results of one call."""
    pairs = zip(map(np.asarray, results), map(np.asarray, reference), strict=True)
    return [
        f"{name}: {ours} and not {theirs}"
        for ours, theirs in pairs
        if not alike(ours, theirs, least=1e-2)
    ]


def main():
    """Compare programs; 1 if something differs."""
    options = options_of(__doc__, every=1)
    wrong, count = differences(options.every)
    return reported(f"{count} programs", wrong)


if __name__ == "__main__":
    sys.exit(main())
