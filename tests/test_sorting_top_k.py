"""The largest elements, and the functions of NumPy that sort."""

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import grad, jit, lax, make_jaxpr, vmap
from minijax.test_util import check_grads
from tests.sorting_cases import DTYPES, numbers, order, same_bits

REAL = [name for name in DTYPES if name != "complex64"]


def by_bits(x):
    """The places from the largest down: by the bits of floats, the first of equals."""
    if x.dtype.kind in "biu":
        wide = x.astype(np.int64)
        return np.array(sorted(range(len(x)), key=lambda i: -wide[i]), int)
    bits = x.view(f"i{x.dtype.itemsize}").astype(np.int64)
    low = -(1 << (8 * x.dtype.itemsize - 1))
    ranks = np.where(bits >= 0, bits, low - 1 - bits)
    return np.array(sorted(range(len(x)), key=lambda i: -ranks[i]), int)


@pytest.mark.parametrize("name", REAL)
def test_top_k(name):
    for size in (1, 2, 9, 33):
        x = numbers(name, (size,))
        for k in {0, 1, size // 2, size}:
            wanted = by_bits(x)[:k]
            for call in (lax.top_k, jit(lax.top_k, static_argnums=1)):
                values, places = call(jnp.asarray(x), k)
                assert np.array_equal(places, wanted), (name, size, k)
                assert same_bits(values, x[wanted]) and places.dtype == np.int32


@pytest.mark.parametrize("name", REAL)
def test_top_k_of_long_rows(name):
    """Blocks are selected where there are enough of them: 64 numbers for each of k."""
    for size in (63, 64, 65, 257):
        x = numbers(name, (size,))
        for k in (1, 2, 4):
            wanted = by_bits(x)[:k]
            for call in (lax.top_k, jit(lax.top_k, static_argnums=1)):
                values, places = call(jnp.asarray(x), k)
                assert np.array_equal(places, wanted), (name, size, k)
                assert same_bits(values, x[wanted]) and places.dtype == np.int32
    rows = np.sin(np.arange(1040.0)).astype("float32").reshape(4, 130, 2)
    wanted = np.argsort(-rows, 1, kind="stable")[:, :2]
    places = vmap(lambda x: lax.top_k(x, 2, axis=0)[1])(rows)
    assert np.array_equal(places, wanted)


def test_top_k_along_axes_and_in_batches():
    x = numbers("float32", (3, 4, 5))
    for axis in range(3):
        values, places = lax.top_k(x, 2, axis=axis)
        rows = np.moveaxis(x, axis, -1).reshape(-1, x.shape[axis])
        wanted = np.array([row[by_bits(row)[:2]] for row in rows])
        moved = np.moveaxis(np.asarray(values), axis, -1).reshape(-1, 2)
        assert same_bits(moved, wanted)
        each = vmap(lambda row: lax.top_k(row, 2, axis=axis % 2), axis)(x)  # noqa: B023
        assert each[0].shape[0] == x.shape[axis]
        assert values.shape == places.shape
    smooth = np.sin(np.arange(20.0)).astype("float32").reshape(4, 5)
    check_grads(lambda x: lax.top_k(x, 2, axis=0)[0], (smooth,), order=2)


def test_refused():
    for error, words, call in [
        (ValueError, "must be nonnegative", lambda: lax.top_k(jnp.arange(3), -1)),
        (ValueError, "no larger than size", lambda: lax.top_k(jnp.arange(3), 4)),
        (ValueError, "not compatible", lambda: lax.top_k(jnp.arange(3) * 1j, 1)),
        (ValueError, "out of bounds", lambda: lax.top_k(jnp.float32(1), 0)),
        (ValueError, "floating", lambda: lax.approx_max_k(jnp.arange(3), 1)),
        (ValueError, "positive", lambda: lax.approx_max_k(jnp.ones(3), 0)),
        (TypeError, "'kind' argument", lambda: jnp.sort(jnp.arange(3), kind="heap")),
        (TypeError, "'order' argument", lambda: jnp.argsort(jnp.arange(3), order="x")),
        (TypeError, "len > 0", lambda: jnp.lexsort(())),
        (ValueError, "same shape", lambda: jnp.lexsort((jnp.ones(2), jnp.ones(1)))),
        (NotImplementedError, "complex", lambda: jnp.partition(jnp.ones(3) * 1j, 1)),
        (ValueError, "method can", lambda: jnp.quantile(jnp.ones(3), 0, method="x")),
        (ValueError, "complex", lambda: jnp.median(jnp.ones(3) * 1j)),
        (TypeError, "no elements", lambda: jnp.median(jnp.ones((0, 3)))),
        (TypeError, "no elements", lambda: jnp.quantile(jnp.ones((2, 0)), 0.5, axis=1)),
        (TypeError, "no elements", lambda: jnp.nanmedian(jnp.ones((0, 3)), axis=0)),
        (ValueError, "out != None", lambda: jnp.median(jnp.ones(3), out=1)),
        (ValueError, "1-dimensional", lambda: jnp.searchsorted(jnp.ones((2, 2)), 1)),
    ]:  # fmt: skip
        with pytest.raises(error, match=words):
            call()
    with pytest.raises(NotImplementedError, match="aggregate_to_topk=False"):
        lax.approx_max_k(jnp.ones(3), 1, aggregate_to_topk=False)


def test_approximate_ones_are_exact():
    x = numbers("float32", (50,), 3)
    x = np.where(np.isnan(x), np.float32(0.5), x)
    for call, sign in ((lax.approx_max_k, -1), (lax.approx_min_k, 1)):
        values, places = call(x, 7)
        wanted = order(sign * x)[:7]
        assert np.array_equal(places, wanted) and same_bits(values, x[wanted])
    assert "approx_top_k[" in str(make_jaxpr(lambda x: lax.approx_max_k(x, 2))(x))
    rows = vmap(lambda x: lax.approx_min_k(x, 2)[0], 1)(x.reshape(25, 2))
    assert rows.shape == (2, 2)


@pytest.mark.parametrize("name", DTYPES)
def test_sort_and_argsort(name):
    x = numbers(name, (40,))
    a, up = jnp.asarray(x), order(x)
    down = np.array(order(x[::-1]))[::-1]
    down = len(x) - 1 - down  # from the largest down, the first of equals first
    assert same_bits(a.sort(), x[up]) and np.array_equal(a.argsort(), up)
    assert same_bits(jnp.sort(a, descending=True), x[up][::-1])
    assert np.array_equal(jnp.argsort(a, descending=True), down)
    assert same_bits(jnp.sort(a.reshape(5, 8), axis=None), a.sort())
    assert np.array_equal(jnp.lexsort((a, a)), up)
    assert jnp.argsort(a, dtype="int8").dtype == np.int8


@pytest.mark.parametrize("name", ["int8", "uint8", "int32", "float32", "float16"])
def test_partition(name):
    x = np.random.default_rng(0).permutation(30).astype(name).reshape(2, 15)
    for kth in (0, 4, -1):
        found, places = jnp.partition(x, kth), jnp.argpartition(x, kth)
        taken = np.take_along_axis(x, np.asarray(places), 1)
        assert np.array_equal(np.sort(taken), np.sort(found))
        assert np.array_equal(taken[:, kth], np.asarray(found)[:, kth])
        rows = np.sort(x)
        assert np.array_equal(np.asarray(found)[:, kth], rows[:, kth])
        low = kth % 15
        assert np.array_equal(np.sort(np.asarray(found)[:, :low]), rows[:, :low])
    assert jnp.partition(x, 1, axis=0).shape == x.shape


@pytest.mark.parametrize("method", ["linear", "lower", "higher", "midpoint", "nearest"])
def test_quantiles_are_those_of_numpy(method):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(3, 4, 5))
    holes = np.where(rng.random(x.shape) < 0.3, np.nan, x)
    with minijax.enable_x64():
        for axis in (None, 0, -1, (0, 2)):
            for q in (0.0, 0.3, 1.0, np.array([0.1, 0.77])):
                for keepdims in (False, True):
                    how = {"axis": axis, "method": method, "keepdims": keepdims}
                    for name, a in (("quantile", x), ("nanquantile", holes)):
                        found = getattr(jnp, name)(a, q, **how)
                        wanted = getattr(np, name)(a, q, **how)
                        np.testing.assert_allclose(found, wanted, rtol=1e-12)
        assert np.isnan(jnp.quantile(holes, 0.5))
        np.testing.assert_allclose(jnp.median(x, 1), np.median(x, 1))
        np.testing.assert_allclose(jnp.nanmedian(holes, 0), np.nanmedian(holes, 0))
        found = jit(jnp.percentile)(x, 30.0)
        np.testing.assert_allclose(found, np.percentile(x, 30.0))
        np.testing.assert_allclose(
            jnp.nanpercentile(holes, 30), np.nanpercentile(holes, 30)
        )


def test_weighted_quantiles_and_gradients():
    x, w = np.float32([3, 1, 2, 5]), np.float32([1, 2, 1, 4])
    for q in (0.1, 0.3, 0.5, 0.9):
        found = jnp.quantile(x, q, method="inverted_cdf", weights=w)
        assert found == np.quantile(x, q, method="inverted_cdf", weights=w)
    assert np.array_equal(grad(jnp.median)(x), [0.5, 0, 0.5, 0])
    slopes = jit(vmap(grad(jnp.median)))(np.stack([x, x[::-1]]))
    assert np.array_equal(slopes, [[0.5, 0, 0.5, 0], [0, 0.5, 0, 0.5]])


@pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.2.0",
    reason="NumPy 2.1 itself mixes weights up along several axes",
)
@pytest.mark.parametrize("name", ["quantile", "nanquantile", "percentile"])
@pytest.mark.parametrize(
    "axis", [1, -1, (0, 1), (1, 0), (2, 0), (-1, 0), (2, 1, 0), (1, 2, 0), (2, 1)]
)
def test_weights_have_the_axes_in_the_order_named(name, axis):
    rng = np.random.default_rng(6)
    x = rng.normal(size=(3, 4, 5))
    all_of_them = rng.random(x.shape) + 0.1
    axes = axis if isinstance(axis, tuple) else (axis,)
    few = rng.random([x.shape[i] for i in axes]) + 0.1
    q = np.array([0.2, 0.7]) * (100 if name == "percentile" else 1)
    # There is no NaN, so it is the same; NumPy's own nanquantile is an IndexError.
    numpys = np.percentile if name == "percentile" else np.quantile
    with minijax.enable_x64():
        for w in (few, all_of_them):
            for keepdims in (False, True):
                how = {"axis": axis, "keepdims": keepdims, "method": "inverted_cdf"}
                found = getattr(jnp, name)(x, q, weights=w, **how)
                wanted = numpys(x, q, weights=w, **how)
                np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("side", ["left", "right"])
def test_searching(side):
    rng = np.random.default_rng(2)
    a = np.sort(rng.integers(0, 9, 20)).astype(np.float32)
    a[-1], v = np.nan, rng.integers(-1, 11, (3, 4)).astype(np.float32)
    v[0, 0] = np.nan
    for call in (jnp.searchsorted, jit(jnp.searchsorted, static_argnames="side")):
        assert np.array_equal(call(a, v, side=side), np.searchsorted(a, v, side=side))
    mixed = rng.permutation(20)
    found = jnp.searchsorted(a[mixed], v, side, sorter=np.argsort(mixed))
    assert np.array_equal(found, np.searchsorted(a, v, side=side))
    assert jnp.searchsorted(a[:0], 1.0) == 0 and jnp.searchsorted(a, 3.0).shape == ()
    for bins in (a[:-1], a[:-1][::-1]):
        found = jnp.digitize(v[1:], bins, right=side == "left")
        assert np.array_equal(found, np.digitize(v[1:], bins, right=side == "left"))


@pytest.mark.parametrize("side", ["left", "right"])
def test_an_array_is_searched_for_its_own_numbers(side):
    a = jnp.array([1.0, 2.0, 2.0, 3.0])
    wanted = np.searchsorted(np.asarray(a), np.asarray(a), side)
    for call in (jnp.searchsorted, jit(jnp.searchsorted, static_argnames="side")):
        assert np.array_equal(call(a, a, side=side), wanted)
    assert np.array_equal(jit(lambda a: jnp.searchsorted(a, a, side))(a), wanted)
    assert np.array_equal(jnp.digitize(a, a, right=side == "left"), wanted)


@pytest.mark.parametrize("name", [*REAL, "complex64"])
def test_numbers_in_order_become_complex(name):
    x = numbers(name, (9,)) if name != "bool" else np.array([True, False, True])
    for call in (jnp.sort_complex, jit(jnp.sort_complex)):
        found = call(jnp.asarray(x))
        assert found.dtype == np.complex64
        assert np.array_equal(found, jnp.sort(x).astype(np.complex64), equal_nan=True)


def test_tangents_of_the_largest_of_64_bits_without_x64():
    with minijax.enable_x64():
        x = minijax.numpy.asarray([5.0, 4.0, 0.0])
    top = lambda x: minijax.lax.top_k(x, 2)[0]  # noqa: E731
    for wrap in (lambda f: f, minijax.jit):
        result, tangent = wrap(lambda x: minijax.jvp(top, (x,), (x,)))(x)
        np.testing.assert_array_equal(result, [5, 4])
        np.testing.assert_array_equal(tangent, [5, 4])
        gradient = wrap(minijax.grad(lambda x: top(x)[1]))(x)
        np.testing.assert_array_equal(gradient, [0, 1, 0])
