"""Histograms, beside NumPy."""

import itertools

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import grad, jit

RNG = np.random.default_rng(0)
X = RNG.normal(size=60).astype("float32")
WEIGHTS = RNG.random(60).astype("float32")
BINS = [1, 7, np.array([-1, 0, 0.5, 2], "float32"), np.array([0, 1, 2])]


@pytest.mark.parametrize(
    "bins, range, weights, density",
    [*itertools.product(BINS, [None, (-1, 1.5)], [None, WEIGHTS], [None, True])],
)
def test_beside_numpy(bins, range, weights, density):
    how = {"weights": weights, "density": density}
    for x in (X, np.round(3 * X)):
        for ours, theirs in zip(
            jnp.histogram(x, bins, range, **how), np.histogram(x, bins, range, **how)
        ):
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
    both = None if range is None else [range, range]
    for ours, theirs in zip(
        jnp.histogram2d(X, X[::-1], bins, both, **how),
        np.histogram2d(X, X[::-1], bins, both, **how),
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_more_axes_and_the_last_edge():
    points = RNG.normal(size=(40, 3)).astype("float32")
    counts, edges = jnp.histogramdd(points, [2, 3, 4])
    wanted, _ = np.histogramdd(points, [2, 3, 4])
    assert np.array_equal(counts, wanted) and [len(e) for e in edges] == [3, 4, 5]
    assert jnp.histogram(jnp.array([0.0, 1.0, 1.0]), 2)[0].tolist() == [1, 2]
    ends = jnp.histogram(jnp.array([jnp.nan, 2.0, -1.0, 0.5]), 1, (0, 1))[0]
    assert ends.tolist() == [1]
    same = jnp.histogram_bin_edges(jnp.array([2.0, 2.0]), 2)
    assert same.tolist() == [1.5, 2, 2.5]


def test_compiled_and_differentiated_in_its_weights():
    edges = jnp.array([-1.0, 0.0, 1.0])
    f = jit(lambda x, w: jnp.histogram(x, edges, weights=w)[0])
    wanted = np.histogram(X, edges, weights=WEIGHTS)[0]
    np.testing.assert_allclose(f(X, WEIGHTS), wanted, rtol=1e-5)
    slopes = grad(lambda w: f(X, w) @ jnp.array([1.0, 10.0]))(WEIGHTS)
    assert np.array_equal(slopes, np.where(X < 0, 1, 10) * (np.abs(X) <= 1))


def test_mistakes():
    with pytest.raises(NotImplementedError, match="string values for `bins`"):
        jnp.histogram(X, "auto")
    with pytest.raises(ValueError, match=r"weights should have the same shape"):
        jnp.histogram(X, weights=WEIGHTS[:3])
    with pytest.raises(ValueError, match="bins has 2 entries for 3 axes"):
        jnp.histogramdd(np.ones((4, 3)), [2, 2])
    with pytest.raises(ValueError, match="`range` must be"):
        jnp.histogram(X, 3, (1, 2, 3))
