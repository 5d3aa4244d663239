"""nn, scipy.special, sets and histograms beside real JAX: values, types, slopes.

Each function that is made in a loop is called at once.
"""
# ruff: noqa: B023, E731

import itertools
import re

import jax
import jax.nn.initializers
import jax.scipy.fft
import jax.scipy.ndimage
import jax.scipy.signal
import jax.scipy.special
import jax.scipy.stats
import numpy as np
import pytest

import minijax
from tests.commands import some
from tests.test_nn_functions_activations import REAL

RNG = np.random.default_rng(0)
EPS = {"float16": 2e-3, "bfloat16": 2e-2}
AXES = [0, 1, None, (0, 1), -1]


def results(call, m, args):
    """Return leaves as NumPy arrays with their weakness, or the error."""
    try:
        leaves = jax.tree.leaves(jax.tree.map(lambda x: x, call(m)(*args)))
        leaves = minijax.tree.leaves(call(m)(*args)) if m is minijax else leaves
    except (TypeError, ValueError, LookupError, RuntimeError, ArithmeticError) as error:
        return error
    return [(np.asarray(x), bool(getattr(x, "weak_type", False))) for x in leaves]


def agree(call, *args, rtol=None):
    """Fail unless a function of a package does the same in both packages."""
    ours, theirs = (results(call, m, args) for m in (minijax, jax))
    if isinstance(ours, Exception) or isinstance(theirs, Exception):
        assert isinstance(ours, Exception) and isinstance(theirs, Exception), (
            ours,
            theirs,
        )
        return
    for (x, weak), (y, wanted) in zip(ours, theirs, strict=True):
        assert (x.shape, x.dtype, weak) == (y.shape, y.dtype, wanted)
        eps = rtol or EPS.get(x.dtype.name, 5e-6)
        kind = "complex64" if x.dtype.kind == "c" else "float64"
        x, y = x.astype(kind), y.astype(kind)
        np.testing.assert_allclose(x, y, rtol=eps, atol=eps, equal_nan=True)


ENDS = np.array(
    [-np.inf, -200, -3.5, -1, -0.3, -0.0, 0.0, 1e-3, 0.5, 1, 2, 3, 6, 7, 100]
)
ENDS = np.append(ENDS, [np.inf, np.nan, 88, -88, 1e-30])
ARGS = [
    ENDS.astype("float32"),
    ENDS.astype("float16"),
    np.array([-3, 0, 2, 7], "int32"),
]
ARGS += [np.array([True, False]), 2.5, -2, 0, True]
MORE = ["log1mexp", "glu", "softmax", "log_softmax", "logsumexp", "logmeanexp"]
MORE += ["standardize"]


@pytest.mark.filterwarnings(
    "ignore:invalid value encountered in cast"
)  # JAX's, of -inf
@pytest.mark.parametrize("name", [*REAL, *MORE])
def test_functions_of_one_array(name):
    for x in ARGS:
        agree(lambda m: getattr(m.nn, name), x)
    agree(lambda m: m.jit(getattr(m.nn, name)), ARGS[0])
    agree(lambda m: m.vmap(getattr(m.nn, name)), ARGS[0].reshape(2, 10))
    x = np.array([-50, -3.5, -1, -0.3, -0.0, 0.0, 0.5, 1, 3, 6, 7, 50], "float32")

    def total(m):
        return lambda x: getattr(m.nn, name)(x).sum()

    agree(lambda m: m.grad(total(m)), x)
    twice = lambda m: m.grad(lambda x: (m.grad(total(m))(x) ** 2).sum())
    agree(twice, x[1:-1], rtol=1e-3)


@pytest.mark.parametrize("name, axis", [*itertools.product(MORE[2:], AXES)])
def test_axes_and_masks(name, axis):
    x = RNG.normal(size=(3, 4)).astype("float32")
    mask = np.array([[1, 0, 1, 1], [0, 0, 0, 0], [1, 1, 1, 1]], bool)
    # Squares less the square of the mean: few digits are left of a small variance.
    rtol = 5e-3 if name == "standardize" else None
    agree(lambda m: lambda x: getattr(m.nn, name)(x, axis=axis), x, rtol=rtol)
    masked = lambda m: lambda x: getattr(m.nn, name)(x, axis=axis, where=mask)
    agree(masked, x, rtol=rtol)
    slope = lambda m: m.grad(lambda x: getattr(m.nn, name)(x, axis=axis).sum())
    agree(slope, x, rtol=rtol)


def test_sums_with_factors():
    x = RNG.normal(size=(3, 4)).astype("float32")
    b = np.array([1, -1, 0, 2.0], "float32")
    for how in (
        {"b": b},
        {"b": b, "return_sign": True},
        {"return_sign": True},
        {"b": b, "axis": 1, "keepdims": True},
        {"b": b, "axis": 0, "where": x > 0},
    ):
        for y in (x, x + 1j, (3 * x).astype(int)):
            agree(lambda m, how=how: lambda y: m.nn.logsumexp(y, **how), y)


def test_one_hot():
    for x in (
        np.array([0, 5, -1]),
        np.array([[0, 1], [2, 3]]),
        3,
        np.array(2, "uint8"),
    ):
        for axis, dtype in itertools.product((-1, 0), (None, bool, int)):
            how = {"axis": axis, "dtype": dtype}
            agree(lambda m, how=how: lambda x: m.nn.one_hot(x, 4, **how), x)


POINTS = np.array([-5.5, -2, -1, -0.3, -0.0, 0, 0.2, 0.5, 0.9, 1, 2, 3.7, 10, 50, 150])
POINTS = np.concatenate([POINTS, [-np.inf, np.inf, np.nan]]).astype("float32")
SPECIAL = "gammaln digamma erf erfc erfinv expit gammasgn gamma factorial logit entr"
SPECIAL = [*SPECIAL.split(), "ndtr", "log_ndtr", "ndtri"]
OF_TWO = "betaln beta poch xlogy xlog1py rel_entr kl_div boxcox boxcox1p comb".split()


@pytest.mark.parametrize("name", SPECIAL)
def test_special_functions(name):
    for x in (POINTS, POINTS.astype("float16"), np.array([1, 2, 5]), True, 0.5):
        agree(lambda m: getattr(m.scipy.special, name), x)
    points = np.array([0.2, 0.5, 0.9, 0.7], "float32")
    slope = lambda m: m.vmap(m.grad(getattr(m.scipy.special, name)))
    agree(slope, points, rtol=2e-5)


@pytest.mark.parametrize("name", OF_TWO)
def test_special_functions_of_two(name):
    # JAX's gammaln of large numbers is right to 1e-4 of the gamma function only.
    rtol = 1e-4 if name in ("poch", "comb") else 1e-5
    a = np.array([0.1, 0.5, 1, 2, 7.9, 8.1, 20], "float32")
    a, b = (x.ravel() for x in np.meshgrid(a, a))
    agree(lambda m: getattr(m.scipy.special, name), a, b, rtol=rtol)
    agree(lambda m: getattr(m.scipy.special, name), a.astype(int), b, rtol=rtol)
    agree(lambda m: getattr(m.scipy.special, name), 2, np.array([1, 2]), rtol=rtol)
    for i in (0, 1):
        slope = lambda m, i=i: m.vmap(m.grad(getattr(m.scipy.special, name), i))
        agree(slope, a, b, rtol=20 * rtol)
    zeros = np.array([0, 0, 1, -1, 0], "float32"), np.array([0, 2, 0, 1, -1], "float32")
    agree(lambda m: getattr(m.scipy.special, name), *zeros, rtol=rtol)


SHAPES = [(3, 4), (2, 3, 5), (6,), (), (0, 3)]
INITIALIZERS = """constant uniform normal truncated_normal orthogonal delta_orthogonal
glorot_uniform glorot_normal lecun_uniform lecun_normal he_uniform he_normal
xavier_uniform kaiming_normal""".split()


@pytest.mark.parametrize("name", INITIALIZERS)
def test_initializers(name):
    plain = "orthogonal" in name
    for shape, dtype in itertools.product(SHAPES, (None, "float16", "complex64")):
        if dtype == "complex64" and plain:
            continue

        def call(m, shape=shape, dtype=dtype):
            init = getattr(m.nn.initializers, name)
            init = init(2) if name == "constant" else init()
            return lambda seed: init(m.random.key(seed), shape, dtype)

        agree(call, 3)


SETS = [
    (np.array([3, 1, 4, 1, 5]), np.array([9, 1, 5, 6])),
    (np.array([2.0, 1, 1]), np.array([])),
    (np.array([[1, 2], [3, 4]]), np.array([3, 3, 8])),
    (np.array([0.5, 1]), np.array([1, 2])),
]


@pytest.mark.parametrize("name", ["union1d", "intersect1d", "setdiff1d", "setxor1d"])
def test_sets_of_two(name):
    ways = itertools.product(SETS, (None, 2, 6), (None, -7))
    for (x, y), size, fill in some(ways, 3):
        how = {"size": size, "fill_value": fill}
        agree(lambda m, how=how: lambda x, y: getattr(m.numpy, name)(x, y, **how), x, y)


def test_unique():
    arrays = [np.array([3, 1, 3, 2, 1]), np.array([[1, 2], [1, 2], [0, 1]])]
    arrays += [np.array([np.nan, 1, np.nan, 0, -0.0]), np.array([True, False])]
    options = (None, 0), (None, 2, 7), (None, 9), (True,)
    for x, (axis, size, fill, nan) in itertools.product(
        arrays, itertools.product(*options)
    ):
        how = {"axis": axis, "size": size, "fill_value": fill, "equal_nan": nan}
        agree(
            lambda m, how=how: lambda x: m.numpy.unique(x, True, True, True, **how), x
        )


def test_histograms():
    x, weights = RNG.normal(size=50).astype("float32"), RNG.random(50).astype("float32")
    edges = [10, np.array([-1.0, 0, 0.5, 2])]
    options = edges, (None, (0, 0)), (None, weights), (None, True)
    for bins, ends, w, density in itertools.product(*options):
        both = None if ends is None else [ends, ends]
        one = bins, ends, w, density
        agree(lambda m, one=one: lambda x: m.numpy.histogram(x, *one), x)
        two = bins, both, w, density
        agree(lambda m, two=two: lambda x: m.numpy.histogram2d(x, x[::-1], *two), x)


def attention_options():
    yield from ({}, {"is_causal": True}, {"local_window_size": (2, 0)})
    yield {"query_seq_lengths": np.array([3, 5], "int32")}
    yield {"key_value_seq_lengths": np.array([3, 5], "int32"), "is_causal": True}
    yield {"bias": RNG.normal(size=(1, 4, 5, 6)).astype("float32")}
    yield {"mask": RNG.random((2, 1, 5, 6)) > 0.5, "scale": 0.3}
    yield {"bias": RNG.normal(size=(2, 1, 5, 6)).astype("float32")}
    yield from ({"implementation": "other"}, {"mask": np.ones((5, 6))})


@pytest.mark.parametrize("how", [*attention_options()])
def test_attention(how):
    for heads, dtype in [(4, "float16"), (2, "float32"), (3, "float32")]:
        q = RNG.normal(size=(2, 5, 4, 8)).astype(dtype)
        k, v = (RNG.normal(size=(2, 6, heads, 8)).astype(dtype) for _ in range(2))
        layer = lambda m: lambda *qkv: m.nn.dot_product_attention(*qkv, **how)
        agree(layer, q, k, v)
        agree(
            lambda m: (
                lambda *qkv: m.nn.dot_product_attention(
                    *qkv, **how, return_residual=True
                )
            ),
            *(q, k, v),
        )
        if dtype == "float32":
            loss = lambda m: lambda *qkv: (layer(m)(*qkv) ** 2).sum()
            agree(lambda m: m.grad(loss(m), (0, 1, 2)), q, k, v, rtol=1e-4)


def test_functions_made_of_functions():
    functions = [(lambda x, y: x + y, 0), (lambda x, y: x - 2 * y, None)]
    arrays = [np.arange(6).reshape(2, 3), RNG.normal(size=(2, 3)).astype("float32")]
    for (f, identity), x, axis in itertools.product(functions, arrays, (0, 1, None)):

        def made(m, f=f, identity=identity):
            return m.numpy.frompyfunc(f, 2, 1, identity=identity)

        mask = np.array([True, False, True])
        more = {"axis": axis, "keepdims": True, "initial": 2, "where": mask}
        agree(lambda m: lambda x: made(m).reduce(x, axis=axis), x)
        agree(lambda m: lambda x: made(m).reduce(x, **more), x)
        agree(lambda m: lambda x: made(m).accumulate(x, axis=axis), x)
        agree(
            lambda m: lambda x: made(m).reduceat(x, np.array([0, 1, 0]), axis=axis), x
        )
        agree(lambda m: lambda x: made(m).outer(x, x), x)
        places = np.array([0, 1, 0])
        agree(lambda m: lambda x: made(m).at(x, places, 2, inplace=False), x)


GRIDS = "jnp.arange(6.0).reshape(2, 3)", "jnp.arange(12.0).reshape(3, 4)"
CALLS = """
fft.dct(C); fft.idct(C); fft.dctn(C, norm="ortho"); fft.idctn(C, norm="ortho")
fft.idct(C, n=2); fft.dct(C, n=5, axis=0); fft.dct(C[:, :0]); fft.idctn(C[:0])
signal.correlate2d(G, H, "same"); signal.correlate2d(C[:, :2], C, "same")
signal.correlate2d(H, G, "same"); signal.correlate2d(C, C, "same")
signal.convolve(G, G.T, method="fft"); signal.convolve(G, G.T, "same", "fft")
signal.convolve(G, G.T, "valid", "fft"); signal.correlate(C, C.T, method="fft")
signal.correlate(C, C.T, "same", "fft"); signal.convolve(G, G.T)
ndimage.map_coordinates(N, [HALVES], 1); ndimage.map_coordinates(F, [HALVES], 0)
ndimage.map_coordinates(N, [HALVES], 1, mode="nearest")
ndimage.map_coordinates(N, [HALVES], 0, mode="wrap"); ndimage.map_coordinates(F, [N], 0)
jnp.put(G, jnp.array([-7, 9]), F, inplace=False); jnp.put(F, N - 4, 7, inplace=False)
jnp.put(F, N > 1, F, inplace=False); jnp.put(F, F, F, inplace=False)
jnp.put(G, jnp.int8([-1, 2]), F, inplace=False, mode="clip")
special.loggamma(C); special.loggamma(-3 - C); special.gamma(C / 9)
special.gamma(-2 + 0j)
special.loggamma(0j); jax.jvp(special.loggamma, (-1.3 + 0.4j,), (1 + 0j,))
special.loggamma(jnp.array([1 - 2j, -2.5 + 0j, -2.5 - 1j, jnp.nan + 1j, 30 + 40j]))
jax.jit(jnp.insert)(G, -1, 7.0); jax.jit(jnp.insert)(G, 9, 7.0)
jax.jit(lambda i: jnp.insert(G, i, 7, axis=1))(jnp.array([3, 0, 3, -1, 9]))
jax.jit(lambda i: jnp.insert(H, i, F, axis=1))(1); jax.jit(jnp.insert)(G, N, F)
special.loggamma(HALVES); special.loggamma(-1.5); jax.grad(special.loggamma)(-2.5)
special.erfcx(C); special.expn(0.5, 2.0); special.expn(HALVES[1:], 1.5)
special.hyp1f1(-3.0, 0.0, 2.0); special.hyp1f1(-3.0, -2.0, 2.0)
special.hyp1f1(jnp.array([-3.0, -2.0, -1.0, 0.0, 1.0]), -3.0, 2.0)
special.hyp1f1(jnp.array([-3.0, -2.0, -1.0, 0.0, 1.0]), -3.0, -2.0)
special.hyp1f1(0.0, 0.0, 2.0); special.hyp1f1(3.0, 0.0, 0.0)
special.owens_t(F.astype("float16"), jnp.float16(2))
special.i0(C); special.i0e(C); special.i1(C); special.i1e(1j); lax.bessel_i0e(1j)
stats.bernoulli.cdf(1j, 0.5); stats.bernoulli.ppf(1j, 0.5); stats.geom.pmf(1j, 0.5)
stats.geom.logpmf(1j, 0.5); stats.gumbel_l.pdf(1j); stats.gumbel_l.ppf(1j)
stats.gumbel_r.cdf(1j); stats.gumbel_r.logsf(1j); stats.laplace.cdf(1j)
stats.laplace.pdf(1j); stats.wrapcauchy.pdf(1j, 0.5); stats.wrapcauchy.logpdf(C, 0.5)
stats.gamma.sf(HALVES, -3.0); stats.gamma.logsf(HALVES, -3.0)
stats.gamma.sf(HALVES, 0.0); stats.gamma.sf(HALVES, 2.0); stats.gamma.sf(F, 2, 6, -1)
jnp.var(N, mean=jnp.array([3])); jnp.var(F, mean=N[:1]); jnp.var(C, mean=F[:1])
jnp.std(F.astype("float16"), mean=jnp.float16([5])); jnp.var(G, mean=F)
jnp.var(F, mean=1)
jnp.repeat(G[:, :0], 2, total_repeat_length=1); jnp.repeat(G[:, :0], 2, 1)
jnp.repeat(G[:, :0], 2, 1, total_repeat_length=3)
jnp.polyadd(G, H[:, :3]); jnp.polysub(G, F); jnp.polysub(H, H[:1])
jnp.polyadd(F, F[:1])
jnp.polyfit(N / 2, F * N, 1, full=True); jnp.linalg.lstsq(G[:0], F[:0])
jnp.fft.rfftfreq(5, dtype=int); jnp.fft.fftfreq(5, dtype="uint16")
jnp.fft.fftfreq(4, 0.25, dtype="int32"); jnp.fft.rfftfreq(6, 0.1, dtype="float16")
lax.convert_element_type(1.0, G); lax.bitcast_convert_type(F, G)
"""


@pytest.mark.parametrize("call", re.split(r"; |\n", CALLS.strip()))
def test_calls_beside_jax(call):
    def names(m):
        grids = dict(zip("GH", (eval(text, {"jnp": m.numpy}) for text in GRIDS)))
        spaces = {name: getattr(m.scipy, name) for name in SPACES}
        known = {"jax": m, "jnp": m.numpy, "lax": m.lax, "N": m.numpy.arange(3)}
        known |= {"F": m.numpy.array([5.0, 6, 7]), "C": (1 + 2j) * grids["G"] ** 2 - 1j}
        halves = [-1.5, -0.5, 0.49999997, 0.5, 1.5, 2.5]
        return known | spaces | grids | {"HALVES": m.numpy.array(halves)}

    run = lambda m: lambda: eval(call, names(m))
    agree(run)
    ours, theirs = (results(run, m, ()) for m in (minijax, jax))
    assert not isinstance(ours, Exception) or isinstance(ours, type(theirs))


SPACES = "fft", "signal", "ndimage", "special", "stats"


def test_shapes_and_arrays_like_others_are_jax_s():
    wide = np.ones((2, 3), np.float32)
    for x in (np.float32([1, 2, 3]), 1.5, wide[:, :1], wide[0, :2], np.int8(2)):
        agree(lambda m: m.lax.broadcast_like, x, wide)
    for library in (jax, minijax):
        for shape in ((2, 3), (), (2**40, 1)):
            value = library.lax.shape_as_value(shape)
            assert (value.tolist(), value.ndim) == ([*shape], 1)
            assert value.dtype == ("int64" if 2**40 in shape and shape else "int32")


@pytest.mark.parametrize("name", "unique unique_all union1d setdiff1d setxor1d".split())
def test_sets_of_complex_numbers_with_nan(name):
    parts = [np.nan, 1, -0.0, 0, np.inf, -np.inf, 2]
    pairs = np.array([*itertools.product(parts, parts)], "float32")
    z = np.random.default_rng(0).permutation(pairs).view("complex64")[:, 0]
    more = (z[::3],) if name.endswith("1d") else ()
    ours, theirs = [getattr(m.numpy, name)(z, *more) for m in (minijax, jax)]
    for x, y in zip(*map(jax.tree.leaves, (ours, theirs)), strict=True):
        assert np.array_equal(x, y, equal_nan=True), name
