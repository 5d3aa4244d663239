"""Gathers and scatters: places, modes, what is refused, and every backend."""

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import jit, lax
from tests.backends_here import HERE
from tests.indexing_cases import WINDOWS, X

MODES = "clip", "fill"
WAYS = {
    "": lambda old, new: new,
    "_add": np.add,
    "_sub": np.subtract,
    "_mul": np.multiply,
    "_min": np.minimum,
    "_max": np.maximum,
}


def windows_of(numbers, shape, sizes, indices):
    """The slices of a gather's windows, by Python's loops, one for each index."""
    inside, dropped, mapped, shared, index_shared = (*numbers, (), ())[:5]
    for index in np.ndindex(indices.shape[:-1]):
        starts = [0] * len(shape)
        for axis, place in zip(shared, index_shared):
            starts[axis] = index[place]
        for axis, number in zip(mapped, indices[index]):
            starts[axis] = int(number)
        yield index, starts


def element_places(name, indices, mode):
    """Pairs of a place in the result and one in `X`, or None where it is outside."""
    numbers, _, sizes = WINDOWS[name]
    inside, dropped, mapped, shared = (*numbers, ())[:4]
    kept = [a for a in range(X.ndim) if a not in (*dropped, *shared)]
    for index, starts in windows_of(numbers, X.shape, sizes, indices):
        most = [whole - size for whole, size in zip(X.shape, sizes)]
        fits = all(0 <= starts[axis] <= most[axis] for axis in mapped)
        for axis in mapped:
            starts[axis] = min(max(starts[axis], 0), most[axis])
        for offset in np.ndindex(*[sizes[axis] for axis in kept]):
            place = [*index]
            for axis, step in zip(inside, offset):
                place.insert(axis, step)
            source = [*starts]
            for axis, step in zip(kept, offset):
                source[axis] += step
            yield tuple(place), tuple(source) if fits or mode == "clip" else None


def indices_for(name, dtype="int32", seed=0):
    shape = WINDOWS[name][1]
    return np.random.default_rng(seed).integers(-2, 7, shape).astype(dtype)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", WINDOWS)
def test_gather_is_a_loop(name, mode):
    numbers, _, sizes = WINDOWS[name]
    numbers = lax.GatherDimensionNumbers(*numbers)
    for dtype in ("int32", "int8", "uint64"):
        indices = indices_for(name, dtype)

        def f(x, indices):
            return lax.gather(x, indices, numbers, sizes, mode=mode)

        found = np.array(f(X, indices))
        wanted = np.full_like(found, np.nan)
        for place, source in element_places(name, indices, mode):
            if source is not None:
                wanted[place] = X[source]
        np.testing.assert_array_equal(found, wanted)
        for backend in HERE:
            np.testing.assert_array_equal(jit(f, backend=backend)(X, indices), wanted)


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("name", WINDOWS)
def test_scatter_is_a_loop(name, how):
    numbers, _, sizes = WINDOWS[name]
    mode, indices = MODES[len(how) % 2], indices_for(name, seed=3)
    gathering = lax.GatherDimensionNumbers(*numbers)
    shape = lax.gather(X, indices, gathering, sizes).shape
    updates = np.random.default_rng(4).normal(size=shape).astype("float32")
    numbers = lax.ScatterDimensionNumbers(*numbers)

    def f(x, indices, updates):
        return getattr(lax, f"scatter{how}")(x, indices, updates, numbers, mode=mode)

    wanted = X.copy()
    for place, target in element_places(name, indices, mode):
        if target is not None:
            wanted[target] = WAYS[how](wanted[target], updates[place])
    np.testing.assert_allclose(f(X, indices, updates), wanted, rtol=1e-5, atol=1e-6)
    for backend in HERE:
        found = jit(f, backend=backend)(X, indices, updates)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("backend", HERE)
@pytest.mark.parametrize("dtype", "bool int8 uint16 int64 float16 complex64".split())
def test_dtypes(dtype, backend):
    x = np.array([1, 0, 3, 2]).astype(dtype)
    places = jnp.array([2, 2, 0])
    with minijax.enable_x64():
        found = jit(lambda x: x[places], backend=backend)(x)
        np.testing.assert_array_equal(found, x[[2, 2, 0]])
        assert found.dtype == x.dtype
        for name, ufunc in {"max": np.maximum, "add": np.add}.items():
            if dtype == "bool" and name == "add":
                continue  # there is no sum of bools
            call = jit(lambda x: getattr(x.at[places], name)(x[:3]), backend=backend)  # noqa: B023
            wanted = x.copy()
            ufunc.at(wanted, [2, 2, 0], x[:3])
            np.testing.assert_array_equal(call(x), wanted)


@pytest.mark.parametrize("backend", HERE)
def test_functions_are_applied_as_often_as_named(backend):
    double = jit(lambda x, i: x.at[i].apply(lambda x: 2 * x), backend=backend)
    x, places = jnp.arange(4.0), jnp.array([1, 1, 3, 9])
    np.testing.assert_array_equal(double(x, places), [0, 4, 2, 6])


REFUSED = {
    "must be sorted": {"offset_dims": (2, 1)},
    "must not repeat": {"offset_dims": (1, 1)},
    "Offset|Invalid offset_dims": {"offset_dims": (1, 9)},
    "only collapse slice dims with bound 1": {"sizes": (2, 5, 3)},
    "out of range": {"sizes": (1, 9, 3)},
    "one slice size for every": {"sizes": (1, 5)},
    "elements in start_index_map": {"start_index_map": (0, 1)},
    "Invalid start_index_map": {"start_index_map": (7,)},
    "All components": {"collapsed_slice_dims": ()},
    "must be disjoint": {
        "operand_batching_dims": (0,), "start_indices_batching_dims": (0,)
    },
    "equal numbers": {"operand_batching_dims": (1,)},
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_is_refused(words):
    numbers = {"offset_dims": (1, 2), "collapsed_slice_dims": (0,)}
    numbers |= {"start_index_map": (0,)} | REFUSED[words]
    sizes = numbers.pop("sizes", (1, 5, 3))
    numbers = lax.GatherDimensionNumbers(**numbers)
    with pytest.raises(TypeError, match=words):
        lax.gather(X, np.zeros((4, 1), int), numbers, sizes)


def test_scatters_that_are_refused():
    numbers = lax.ScatterDimensionNumbers((1, 2), (0,), (0,))
    good = np.zeros((4, 5, 3), "float32")
    for words, updates in {
        "of rank 3": good[0],
        "Bounds of the window": np.zeros((4, 6, 3), "float32"),
        "Bounds of the scatter": np.zeros((3, 5, 3), "float32"),
        "the same dtypes": good.astype(int),
    }.items():
        with pytest.raises(TypeError, match=words):
            lax.scatter(X, np.zeros((4, 1), int), updates, numbers)
    with pytest.raises(ValueError, match="integer type"):
        lax.scatter(X, np.zeros((4, 1)), good, numbers)
    with pytest.raises(ValueError, match="Unknown gather mode"):
        lax.scatter(X, np.zeros((4, 1), int), good, numbers, mode="wrap")


def test_large_arrays_are_split_over_workers():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, 70)).astype("float32")
    places = rng.integers(0, 3000, 5000)
    np.testing.assert_array_equal(jit(lambda x, i: x[i])(x, places), x[places])
    wanted = np.zeros_like(x)
    np.add.at(wanted, places, 1)
    found = jit(lambda i: jnp.zeros((3000, 70)).at[i].add(1.0))(places)
    np.testing.assert_array_equal(found, wanted)
    last = np.zeros(3000, int)
    last[places] = np.arange(5000)
    found = jit(lambda i: jnp.zeros(3000, int).at[i].set(jnp.arange(5000)))(places)
    np.testing.assert_array_equal(found, last)
