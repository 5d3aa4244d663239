"""Programs of the corpus and their gradients on an emulated card, beside the CPU.

python -m tests.cuda_programs                  all of them
python -m tests.cuda_programs --every 5        one of five
python -m tests.cuda_programs --cublas         with a stand-in for cuBLAS
python -m tests.cuda_programs --gpu            on the GPU of this machine

Each is run twice (the second time as a graph), and with its argument given up. Kernels
are compiled by the hundred, so that all programs are lowered before the first one runs.
"""

import functools
import sys
import warnings

import numpy as np

import minijax
import minijax.numpy as jnp
from minijax import grad, jit
from tests import corpus
from tests.commands import options_of, reported
from tests.emulated_card import card_of
from tests.kernel_cases import alike
from tests.late_card import LateCuPy


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


def differences(every=1, cublas=False, real=False):
    """Return what is different on a card; and how many programs were run."""
    table, wrong = cases(every), []
    table = {n: (*row, expected_of(*row)) for n, row in table.items()}
    table = {name: row for name, row in table.items() if row[2] is not None}
    with card_of(real, kind=LateCuPy, cublas=cublas) as (gpu, _):
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
    options = options_of(__doc__, every=1, cublas=False, gpu=False)
    wrong, count = differences(options.every, options.cublas, options.gpu)
    return reported(f"{count} programs", wrong)


if __name__ == "__main__":
    sys.exit(main())
