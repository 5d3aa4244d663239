"""Every stack of up to three transformations of the corpus gives JAX's values.

JAX is asked once for each meaning (a linearized function is a jvp, and so on: see
`tests.corpus.meaning`), in 64 bits, and once for each program and single
transformation in 32 bits, for dtypes, weak types and shapes.
"""

import functools

import jax
import numpy as np
import pytest

import minijax
from tests import corpus

OURS, THEIRS = corpus.programs(minijax), corpus.programs(jax)
TABLE, JAX_TABLE = corpus.transformations(minijax), corpus.transformations(jax)


_width = []


def forget_other_width(bits):
    """Empty JAX's caches when the width changes: they mix constants of both widths."""
    if _width != [bits]:
        jax.clear_caches()
        _width[:] = [bits]


@functools.cache
def jax_answer(name, stack):
    """What JAX computes for a stack on a program."""
    f, point = THEIRS[name]
    return np.asarray(corpus.apply(JAX_TABLE, stack, f)(jax.numpy.asarray(point)))


@pytest.mark.parametrize("name", OURS)
def test_values_are_jax_s(name):
    f, point = OURS[name]
    forget_other_width(64)
    with jax.enable_x64(True), minijax.enable_x64():
        for stack in corpus.stacks(3):
            x = minijax.numpy.asarray(point)
            np.testing.assert_allclose(
                np.asarray(corpus.apply(TABLE, stack, f)(x)),
                jax_answer(name, corpus.meaning(stack)),
                rtol=1e-7,
                atol=1e-9,
                err_msg=f"{stack}",
            )


@pytest.mark.parametrize("name", OURS)
def test_types_are_jax_s(name):
    forget_other_width(32)
    for stack in [(), *corpus.stacks(1)]:
        ours = corpus.apply(TABLE, stack, OURS[name][0])
        theirs = corpus.apply(JAX_TABLE, stack, THEIRS[name][0])
        for point in (np.float32(OURS[name][1]), OURS[name][1]):
            mine = minijax.numpy.asarray(ours(minijax.numpy.asarray(point)))
            other = jax.numpy.asarray(theirs(jax.numpy.asarray(point)))
            got = mine.shape, mine.dtype, mine.weak_type
            assert got == (other.shape, other.dtype, other.weak_type), stack
            np.testing.assert_allclose(mine, other, rtol=2e-4, atol=1e-5)
