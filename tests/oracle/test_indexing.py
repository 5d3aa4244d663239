"""Indices, gathers and scatters beside real JAX: values, dtypes, derivatives, texts."""

import importlib
import warnings

import jax
import numpy as np
import pytest

import minijax
from tests.indexing_cases import INDICES, MASK, USES, WINDOWS, I, K, X

NUMBERS = np.random.default_rng(2)
MODES = "clip", "fill", "promise_in_bounds"
CLIPPED_EXTREMES = ("clip", "_min"), ("clip", "_max")
DTYPES = "bool int8 uint8 int32 float16 float32 complex64".split()


def outcome(m, call):
    """The results of a call as NumPy's arrays, or what it raises."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return [np.asarray(x) for x in m.tree_util.tree_leaves(call(m))]
    except Exception as error:
        return error


def agree(call, name=None):
    ours, theirs = outcome(minijax, call), outcome(jax, call)
    if isinstance(theirs, Exception) or isinstance(ours, Exception):
        assert type(ours).__name__ == type(theirs).__name__, (name, ours, theirs)
        return
    for x, y in zip(ours, theirs, strict=True):
        assert (x.shape, x.dtype) == (y.shape, y.dtype), name
        rtol = 1e-3 if x.dtype.itemsize == 2 else 1e-5
        np.testing.assert_allclose(x, y, rtol=rtol, atol=1e-5, err_msg=str(name))


WHOLE = "arrays", "traced", "set"


@pytest.mark.parametrize("use", USES)
def test_indices(use):
    step = 1 if use in WHOLE else 3
    for index in INDICES[len(use) % step :: step]:
        agree(lambda m: USES[use](m, m.numpy.asarray(X), index), index)  # noqa: B023


def stacked(x, axis):
    return x if axis is None else np.stack([x, x[::-1]], axis)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", WINDOWS)
def test_gathers(name, mode):
    numbers, shape, sizes = WINDOWS[name]

    def gather(m, x, indices):
        numbers_ = m.lax.GatherDimensionNumbers(*numbers)
        return m.lax.gather(x, indices, numbers_, sizes, mode=mode)

    def energy(m, x, indices):
        return m.numpy.nansum(gather(m, x, indices) ** 2)

    for dtype in ("int32", "uint8"):
        indices = NUMBERS.integers(-2, 7, shape).astype(dtype)
        agree(lambda m: gather(m, X, indices))  # noqa: B023
        agree(lambda m: m.jit(lambda x, i: gather(m, x, i))(X, indices))  # noqa: B023
        agree(lambda m: m.jit(m.grad(lambda x, i: energy(m, x, i)))(X, indices))  # noqa: B023
    axes = [(0, None), (None, 0), (2, 0)][(len(name) + len(mode)) % 3]
    args = stacked(X, axes[0]), stacked(indices, axes[1])
    agree(lambda m: m.jit(m.vmap(lambda x, i: gather(m, x, i), axes))(*args))


@pytest.mark.parametrize("how", ["", "_add", "_sub", "_mul", "_min", "_max"])
@pytest.mark.parametrize("name", WINDOWS)
def test_scatters(name, how):
    numbers, shape, sizes = WINDOWS[name]
    indices = NUMBERS.integers(-1, 6, shape).astype("int32")
    gathering = jax.lax.GatherDimensionNumbers(*numbers)
    updates = jax.eval_shape(
        lambda x, i: jax.lax.gather(x, i, gathering, sizes), X, indices
    )
    updates = NUMBERS.normal(size=updates.shape).astype("float32")
    unique = name in ("one column", "no number")
    mode = MODES[len(name) % 3]

    # JAX's derivatives of clipped extremes are wrong, jax#40626.
    curved = "fill" if (mode, how) in CLIPPED_EXTREMES else mode

    def scatter(m, x, i, u, mode=mode):
        numbers_ = m.lax.ScatterDimensionNumbers(*numbers)
        how_ = {"mode": mode, "unique_indices": unique}
        return getattr(m.lax, f"scatter{how}")(x, i, u, numbers_, **how_)

    def energy(m):
        return lambda x, i, u: (scatter(m, x, i, u, curved) ** 2).sum()

    args = X, indices, updates
    agree(lambda m: scatter(m, *args))
    agree(lambda m: m.jit(lambda *args: scatter(m, *args))(*args))
    agree(lambda m: m.jit(m.grad(energy(m), (0, 2)))(*args))
    axes = [(0, None, None), (None, 0, None), (2, 0, 1)][(len(name) + len(how)) % 3]
    several = [stacked(*pair) for pair in zip(args, axes)]
    agree(lambda m: m.jit(m.vmap(lambda *args: scatter(m, *args), axes))(*several))


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(dtype):
    x, i = (X[0] * 3).astype(dtype), np.array([[0, -1], [2, 9]])

    def read(x, i):
        return x[i], x.at[i].get(mode="fill"), x[:, i[0]]

    agree(lambda m: m.jit(read)(x, i))
    agree(lambda m: m.jit(lambda x, i: x.at[i].set(x[0, 0]))(x, i))
    for how in ("add", "mul", "min", "max", "subtract"):
        agree(lambda m: m.jit(lambda x, i: getattr(x.at[i], how)(x[0]))(x, i))  # noqa: B023


def test_what_does_not_fit_into_the_dtype():
    agree(lambda m: m.numpy.arange(5).at[1].set(2.5))
    agree(lambda m: m.numpy.arange(5, dtype="int8").at[1].add(300))
    agree(lambda m: m.numpy.ones(3).at[1].set(1j))
    agree(lambda m: m.numpy.ones(3).at[np.array(1)].set(np.ones(2)))
    for make in (minijax.numpy.arange, jax.numpy.arange):
        with pytest.warns(FutureWarning, match="scatter inputs have incompatible"):
            make(5).at[1].set(np.float32(2.5))


TEXTS = {
    "x[i]": lambda m: lambda x, i: x[i],
    "x[s]": lambda m: lambda x, i: x[i[0]],
    "x[s, 0]": lambda m: lambda x, i: x[i[0], 0],
    "x[i, :, 0]": lambda m: lambda x, i: x[i, :, 0],
    "x[:, s:e, i]": lambda m: lambda x, i: x[:, 1:3, i],
    "x[mask]": lambda m: lambda x, i: x[MASK],
    "x[::2, i]": lambda m: lambda x, i: x[::2, i],
    "x[..., None, u]": lambda m: lambda x, i: x[..., None, i.astype("uint8")],
    "add": lambda m: lambda x, i: x.at[i].add(1.0),
    "set": lambda m: lambda x, i: x.at[i, 1].set(1.0),
    "apply": lambda m: lambda x, i: x.at[i].apply(m.numpy.sin),
    "get": lambda m: lambda x, i: x.at[i].get(mode="fill", fill_value=2.0),
    "gradient": lambda m: m.grad(lambda x, i: x[i].sum()),
    "take": lambda m: lambda x, i: m.numpy.take(x, i, axis=1),
    "along": lambda m: lambda x, i: m.numpy.take_along_axis(x, i[:, None, None], 0),
}


@pytest.mark.parametrize("name", TEXTS)
def test_texts(name):
    ours = str(minijax.make_jaxpr(TEXTS[name](minijax))(X, K.astype("int32")))
    with jax.disable_jit(name in ("take", "along")):
        theirs = str(jax.make_jaxpr(TEXTS[name](jax))(X, K.astype("int32")))
    for absent in (" sharding=None", " out_sharding=None", "dimensions=None "):
        theirs = theirs.replace(absent, "")
    assert " ".join(ours.split()) == " ".join(theirs.split())


def test_batches_of_indices():
    pairs = np.stack([I, I[::-1], 0 * I, I])
    agree(lambda m: m.vmap(lambda x, i: x[i])(X, pairs))
    agree(lambda m: m.vmap(lambda x, i: x.at[i].add(2.0), (None, 0))(X, pairs))
    agree(lambda m: m.vmap(lambda x, i: x[i], (2, 0), 1)(X[..., :3], pairs[:3]))
    agree(lambda m: m.jit(m.vmap(lambda x, s: x[s, 1]))(X, pairs[:, 0]))
    agree(lambda m: m.vmap(lambda x, s: x.at[s, 1].set(3.0))(X, pairs[:, 0]))


def test_dynamic_slices():
    agree(lambda m: m.lax.dynamic_slice(X, (1, -1, 9), (2, 2, 2)))
    agree(lambda m: m.lax.dynamic_slice_in_dim(X, -2, 2, 1))
    agree(lambda m: m.lax.dynamic_index_in_dim(X, -1, 1, False))
    agree(lambda m: m.lax.dynamic_update_slice(X, X[:1], (3, 3, 3)))
    agree(lambda m: m.lax.dynamic_update_index_in_dim(X, X[0], 7, 0))
    agree(lambda m: m.lax.dynamic_update_slice_in_dim(X, X[:2], -3, 0))
    starts = np.array([0, 1, -1, 9])

    def cut(m):
        return lambda x, s: m.lax.dynamic_slice(x, (s, 0), (2, 2))

    agree(lambda m: m.vmap(cut(m))(X, starts))
    agree(
        lambda m: m.vmap(lambda x, s: m.lax.dynamic_update_slice(x, x[:2], (s, 0)))(
            X, starts
        )
    )
    for wrong in ((1, 1), (1.0, 1, 1)):
        agree(lambda m: m.lax.dynamic_slice(X, wrong, (2, 2, 2)))  # noqa: B023
    agree(lambda m: m.lax.dynamic_slice(X, (1, 1, 1), (9, 2, 2)))


OUTSIDE = (7, (-9,), (None, 9, slice(0, 2)), (..., 99), (7, slice(None, None, 2)),
    (slice(None, None, -1), 9), (5, [0, 1]))  # fmt: skip


@pytest.mark.parametrize("index", OUTSIDE, ids=str)
def test_an_integer_outside_is_the_programs_to_clamp(index):
    x = np.arange(24, dtype="float32").reshape(4, 6)
    agree(lambda m: m.numpy.asarray(x)[index])
    agree(lambda m: m.grad(lambda x: (x[index] ** 2).sum())(x))
    checkify = {m: importlib.import_module(f"{m.__name__}.experimental.checkify")
        for m in (jax, minijax)}  # fmt: skip

    def told(m):
        f = checkify[m].checkify(lambda x: x[index], errors=checkify[m].index_checks)
        error, _ = f(m.numpy.asarray(x))
        return m.numpy.asarray("out-of-bounds" in (error.get() or ""))

    agree(told)
    assert bool(told(minijax))
    if index in (7, (-9,), (..., 99)):
        ours, theirs = (m.make_jaxpr(lambda x: x[index])(x) for m in (minijax, jax))
        assert str(ours) == str(theirs)


def test_keys_are_looked_up():
    def words(m, f):
        return m.random.key_data(f(m.random.split(m.random.key(0), 5)))

    for index in (2, np.array([0, 2, 2])):
        agree(lambda m: words(m, lambda k: k[index]))  # noqa: B023
        agree(lambda m: words(m, lambda k: m.numpy.take(k, index)))  # noqa: B023
        agree(lambda m: m.jit(lambda i: words(m, lambda k: k[i]))(index))  # noqa: B023
    agree(lambda m: words(m, lambda k: k.at[1].set(m.random.key(7))))
