"""Each primitive on an emulated card, eager and compiled, beside the CPU.

python -m tests.cuda_primitives            all of them
python -m tests.cuda_primitives --every 7  one of seven
python -m tests.cuda_primitives --gpu      on the GPU of this machine

The samples are those of `tests.test_rule_tables`. What a card leaves to the host is
listed in `BY_THE_HOST`, with the reason; `tests.test_cuda_primitives` holds the list.
"""

import sys

import numpy as np

import minijax
from minijax import jit, make_jaxpr
from minijax.cuda.device import lower_for_gpu
from minijax.cuda.program_steps import cuda_launches
from minijax.kernels.lowering import Evaluate
from tests.commands import options_of, reported
from tests.emulated_card import card_of
from tests.kernel_cases import alike
from tests.late_card import LateCuPy
from tests.test_rule_tables import SAMPLES, operands

BY_LAPACK = "LAPACK's algorithms have no kernels of ours"
COMPLEX = "of complex numbers, it has no kernel on any floor"
BY_THE_HOST = {
    **dict.fromkeys("cholesky eig eigh lu qr svd triangular_solve".split(), BY_LAPACK),
    **dict.fromkeys("geqrf hessenberg householder_product ormqr".split(), BY_LAPACK),
    **dict.fromkeys("schur tridiagonal tridiagonal_solve".split(), BY_LAPACK),
    **dict.fromkeys("symmetric_product cholesky_update".split(), BY_LAPACK),
    "lu_pivots_to_permutation": "a short list of exchanges, which wait for each other",
    "fft": "NumPy's, as on the CPU",
    **dict.fromkeys("acos asin atan asinh atanh exp2".split(), COMPLEX),
}


def bound(primitive, params):
    """Return a primitive as a function of arrays."""
    return lambda *xs: primitive.bind_all(*xs, **params)


def cases(most=3):
    """Return triples of a primitive, its parameters and types of operands."""
    return [
        (primitive, params, types)
        for primitive, samples in SAMPLES.items()
        for types, params in samples[:most]
    ]


def left_to_the_host(most=3):
    """Return the names of the primitives whose programs a card cannot do alone."""
    found = set()
    for primitive, params, types in cases(most):
        closed = make_jaxpr(bound(primitive, params))(*operands(primitive, types))
        steps = [*lower_for_gpu(closed).walk()]
        left = [s for s in steps if type(s) not in cuda_launches and not s.programs]
        assert all(isinstance(step, Evaluate) for step in left), left
        found |= {step.eqn.primitive.name for step in left}
    return found


def differences(every=1, most=2, real=False):
    """Return what is different on a card, and how many programs were run."""
    drawn, wrong = cases(most)[::every], []
    with card_of(real, kind=LateCuPy) as (gpu, _):
        calls = [call for case in drawn for call in called(*case, gpu)]
        for name, found, wanted in calls:
            pairs = zip(found, wanted, strict=True)
            wrong += [
                f"{name}: {x} and not {y}"
                for x, y in pairs
                if not alike(np.asarray(x), np.asarray(y), least=1e-2)
            ]
    return wrong, len(calls)


def called(primitive, params, types, gpu):
    """Return names, results and what they should be, of two calls of a primitive."""
    f, xs = bound(primitive, params), operands(primitive, types)
    wanted, far = minijax.tree.leaves(f(*xs)), minijax.device_put(xs, gpu)
    ways = {"eager": f, "compiled": jit(f)}
    return [
        (f"{primitive.name} {way} {types}", minijax.tree.leaves(run(*far)), wanted)
        for way, run in ways.items()
    ]


def main():
    """Compare primitives; 1 if something differs."""
    options = options_of(__doc__, every=1, gpu=False)
    wrong, count = differences(options.every, real=options.gpu)
    print("left to the host:", ", ".join(sorted(left_to_the_host())))
    return reported(f"{count} programs", wrong)


if __name__ == "__main__":
    sys.exit(main())
