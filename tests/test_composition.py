"""Every stack of transformations of the corpus gives what a simpler stack gives.

The simpler stack has no loops, branches or compiled programs (`corpus.simplest`). Here
is every 256th stack, others for the next program; `LONG=1` and
`python -m tests.composition` take all, and `tests/oracle` asks real JAX.
"""

import numpy as np
import pytest

import minijax
from tests import composition, corpus
from tests.commands import LONG
from tests.composition import PROGRAMS, TABLE


@pytest.mark.parametrize("name, part", composition.CASES)
def test_stacks_that_mean_the_same_agree(name, part):
    found = list(composition.against_itself(name, part, every=1 if LONG else 256))
    assert not found, "\n\n".join(found)


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
        if isinstance(composition.own_answer(name, ("vjp",)), ValueError):
            pytest.skip("a loop of unknown length has no reverse")
        y, pullback = minijax.vjp(f, x)
        _, push = minijax.linearize(f, x)
        t, ct = corpus.pattern(x.shape, x.dtype), corpus.pattern(y.shape, y.dtype)
        forwards = np.sum(np.asarray(push(t)) * ct)
        backwards = np.sum(t * np.asarray(pullback(ct)[0]))
        np.testing.assert_allclose(forwards, backwards, rtol=1e-9)


def test_a_transformation_of_ones_own_is_met_in_all_places():
    """One that changes nothing, and one that forgets derivatives."""
    found = [*composition.against_without(minijax.jit, "sin times x", 0, every=32)]
    assert not found, "\n\n".join(found)


def test_a_transformation_that_forgets_derivatives_is_found():
    def frozen(f):
        return lambda x: f(minijax.lax.stop_gradient(x))

    found = [*composition.against_without(frozen, "sin times x", 0, every=32)]
    assert any("'grad'" in text or "'jvp'" in text for text in found)
