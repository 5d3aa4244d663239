"""Slopes at special points are those of JAX, but where JAX's are known to be wrong.

See `tests.slopes`, which finds the functions.
"""

from functools import partial

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import minijax  # noqa: E402
from tests.known_differences import SLOPES_FROM_JAX  # noqa: E402
from tests.slopes import POINTS, elementwise, slopes  # noqa: E402
from tests.special_values import small  # noqa: E402


def different(label, f, compiled=False):
    """Return the points at which the slopes of a function differ."""
    ours = slopes(minijax, partial(f, minijax), compiled)
    theirs = slopes(jax, partial(f, jax), True)
    found = set()
    for x, y in zip(ours, theirs):
        with np.errstate(all="ignore"):
            x, y = x.astype(float), y.astype(float)
            near = np.isclose(x, y, 1e-2, 1e-6) | (np.isnan(x) & np.isnan(y))
        near |= (abs(POINTS) > 1e18) | small(POINTS) | np.isnan(POINTS)
        found |= {*POINTS[~near].tolist()}
    return found


LABELED = dict(elementwise())


@pytest.mark.parametrize("module", ["lax", "numpy", "nn", "scipy.special"])
def test_slopes_beside_jax(module):
    found = {}
    for label, f in LABELED.items():
        if label.rpartition(".")[0] == module and label not in SLOPES_FROM_JAX:
            try:
                points = different(label, f)
            except (NotImplementedError, ValueError):
                continue
            if points:
                found[label] = points
    assert not found


def missing(f):
    """Return where a value is finite, its slope is NaN, and JAX's is a number."""
    with np.errstate(all="ignore"):
        known = np.isfinite(np.asarray(f(minijax, POINTS)))
    known &= ~small(POINTS) & ((abs(POINTS) < 1e18) | np.isinf(POINTS))
    ours, theirs = slopes(minijax, partial(f, minijax)), slopes(jax, partial(f, jax))
    found = [known & np.isnan(x) & ~np.isnan(y) for x, y in zip(ours, theirs)]
    return {*POINTS[np.any(found, axis=0)].tolist()}


def test_no_slope_of_a_distribution_is_missing():
    found = {}
    for label, f in LABELED.items():
        try:
            points = missing(f) if "stats" in label else ()
        except (NotImplementedError, TypeError, ValueError):
            continue
        if points:
            found[label] = points
    assert not found
