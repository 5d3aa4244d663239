"""Every stack of transformations of the corpus gives JAX's values, or its error.

JAX is asked once for each meaning (a linearized function is a jvp, and so on: see
`tests.corpus.meaning`), in 64 bits, for values, dtypes, weak types and classes of
errors; and once for each program and single transformation in 32 bits.
"""

import jax
import numpy as np
import pytest

import minijax
from tests import composition, corpus

OURS, THEIRS = composition.PROGRAMS, composition.theirs()
TABLE, JAX_TABLE = composition.TABLE, composition.their_table()


_width = []


def forget_other_width(bits):
    """Empty JAX's caches when the width changes: they mix constants of both widths."""
    if _width != [bits]:
        jax.clear_caches()
        _width[:] = [bits]


@pytest.mark.parametrize("name, part", composition.CASES)
def test_answers_are_jax_s(name, part):
    forget_other_width(64)
    found = list(composition.against_jax(name, part))
    assert not found, "\n\n".join(found)


@pytest.mark.parametrize("name", OURS)
def test_types_are_jax_s(name):
    forget_other_width(32)
    for stack in [(), *corpus.stacks(1)]:
        ours = corpus.apply(TABLE, stack, OURS[name][0])
        theirs = corpus.apply(JAX_TABLE, stack, THEIRS[name][0])
        try:
            answer(jax, theirs, THEIRS[name][1])
        except Exception as refusal:
            with pytest.raises(Exception) as caught:
                answer(minijax, ours, OURS[name][1])
            assert caught.type.__name__ == type(refusal).__name__, stack
            continue
        for point in (np.float32(OURS[name][1]), OURS[name][1]):
            mine, other = answer(minijax, ours, point), answer(jax, theirs, point)
            got = mine.shape, mine.dtype, mine.weak_type
            assert got == (other.shape, other.dtype, other.weak_type), stack
            np.testing.assert_allclose(mine, other, rtol=2e-4, atol=1e-5)


def answer(package, f, point):
    """Return what a function of the package computes, as its array."""
    return package.numpy.asarray(f(package.numpy.asarray(point)))
