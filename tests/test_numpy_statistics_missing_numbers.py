"""Folds that pass over NaN, beside NumPy."""

import numpy as np
import pytest

import minijax
from minijax import numpy as jnp
from tests.catalogue_cases import calls, difference_from_numpy


@pytest.mark.parametrize("text", calls("missing_numbers"))
def test_numbers_are_those_of_numpy(text):
    assert difference_from_numpy(text, jnp) is None


def test_derivatives_pass_over_nan():
    x = np.float32([1, np.nan, 3])
    assert np.array_equal(minijax.grad(jnp.nansum)(x), [1, 0, 1])
    assert np.allclose(minijax.grad(jnp.nanmean)(x), [0.5, 0, 0.5])
    assert np.all(np.isfinite(minijax.grad(jnp.nanvar)(x)))


@pytest.mark.parametrize("ddof", [0.5, 1.5, 3.5])
def test_a_correction_need_not_be_an_integer(ddof):
    x = np.float32([1, np.nan, 3, 8])
    total = ((x[[0, 2, 3]] - 4) ** 2).sum()
    wanted = total / (3 - ddof) if ddof < 3 else np.nan
    for run in (minijax.jit, lambda f: f):
        found = run(lambda x: jnp.nanvar(x, ddof=ddof))(x)
        np.testing.assert_allclose(found, wanted, rtol=1e-6)
        found = run(lambda x: jnp.nanstd(x, ddof=ddof))(x)
        np.testing.assert_allclose(found, wanted**0.5, rtol=1e-6)


def test_examples_are_folded_one_by_one():
    w = np.float32([[1, np.nan, 3], [4, 5, np.nan]])
    for fold in (jnp.nansum, jnp.nanmax, jnp.nanmean, jnp.nanvar, jnp.nanargmin):
        assert np.allclose(minijax.vmap(fold)(w), fold(w, axis=1))
