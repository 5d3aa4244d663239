"""Names and arguments that packages ask for, beside JAX."""

import importlib

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import minijax  # noqa: E402

from .raised import raised  # noqa: E402


def same_leaves(ours, theirs):
    ours, theirs = (list(map(np.asarray, jax.tree.leaves(t))) for t in (ours, theirs))
    assert len(ours) == len(theirs)
    for mine, its in zip(ours, theirs):
        assert (mine.shape, mine.dtype) == (its.shape, its.dtype)
        np.testing.assert_array_equal(mine, its)


def on_both(run):
    """Compare what a function of the package returns, as leaves of trees."""
    return same_leaves(run(minijax), run(jax))


# jnp.delete at places that are traced.


@pytest.mark.parametrize("dtype", ["int8", "int32"])
@pytest.mark.parametrize(
    ("axis", "places"),
    [(None, [3, 1]), (2, [3, 0]), (1, [-1]), (0, [0, 1]), (None, []), (2, [[0], [2]])],
)
def test_distinct_places_of_delete_may_be_traced(dtype, axis, places):
    x, places = np.arange(24.0).reshape(2, 3, 4), np.asarray(places, dtype)

    def run(j):
        def fun(x, i):
            return j.numpy.delete(x, i, axis, assume_unique_indices=True)

        both = fun(x, places), j.jit(fun)(x, places)
        return *both, j.grad(lambda x: (fun(x, places) ** 2).sum())(np.float32(x))

    on_both(run)


def test_places_of_delete_that_are_not_called_distinct_must_be_known():
    def run(j):
        return j.jit(j.numpy.delete)(j.numpy.arange(4), j.numpy.array([1]))

    assert raised(lambda: run(minijax))[0] == raised(lambda: run(jax))[0]


def module(j, path):
    return importlib.import_module(f"{j.__name__}.{path}")
