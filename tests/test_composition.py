"""Every stack of up to three transformations, on every program of the corpus.

Stacks that mean the same must give the same; `tests/oracle` asks real JAX what it is.
"""

import numpy as np
import pytest

import minijax
from tests import corpus

PROGRAMS = corpus.programs(minijax)
TABLE = corpus.transformations(minijax)


@pytest.mark.parametrize("name", PROGRAMS)
def test_stacks_that_mean_the_same_agree(name):
    f, point = PROGRAMS[name]
    answers = {}

    def answer(stack):
        if stack not in answers:
            x = minijax.numpy.asarray(point)
            answers[stack] = np.asarray(corpus.apply(TABLE, stack, f)(x))
        return answers[stack]

    with minijax.enable_x64():
        for stack in corpus.stacks(3):
            simple = answer(corpus.meaning(stack))
            np.testing.assert_allclose(
                answer(stack), simple, rtol=1e-7, atol=1e-9, err_msg=f"{stack}"
            )


@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_are_limits(name):
    """Central differences, in the direction of the corpus, at first order."""
    f, point = PROGRAMS[name]
    if name == "convert":
        pytest.skip("it passes through float32, too coarse for differences")
    with minijax.enable_x64():
        x = minijax.numpy.asarray(point)
        step = 1e-6 * corpus.pattern(x.shape, x.dtype)
        slope = (np.asarray(f(x + step)) - np.asarray(f(x - step))) / 2e-6
        np.testing.assert_allclose(TABLE["jvp"](f)(x), slope, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", PROGRAMS)
def test_pullback_is_the_transpose_of_the_derivative(name):
    f, point = PROGRAMS[name]
    with minijax.enable_x64():
        x = minijax.numpy.asarray(point)
        y, pullback = minijax.vjp(f, x)
        _, push = minijax.linearize(f, x)
        t, ct = corpus.pattern(x.shape, x.dtype), corpus.pattern(y.shape, y.dtype)
        forwards = np.sum(np.asarray(push(t)) * ct)
        backwards = np.sum(t * np.asarray(pullback(ct)[0]))
        np.testing.assert_allclose(forwards, backwards, rtol=1e-9)
