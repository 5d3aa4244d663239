"""Distributions beside those of real JAX: values, dtypes, gradients, vmap, keywords."""

import inspect
from functools import partial

import jax
import jax.scipy.stats
import numpy as np
import pytest

import minijax
import minijax.scipy.stats

X = np.array([-2.5, -1.0, -0.1, 0.0, 0.2, 0.5, 1.0, 1.7, 3.0, 6.0], "float32")
Q = np.array([-0.1, 0.0, 0.01, 0.3, 0.5, 0.8, 0.999, 1.0, 1.1, np.nan], "float32")
K = np.array([-1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 9.0], "float32")
MOVED = {"loc": np.float32(0.3), "scale": np.float32(1.5)}
# For each distribution, parameters of its shape; and then its location and scale.
SHAPES = {
    **dict.fromkeys(
        ["norm", "cauchy", "laplace", "logistic", "expon", "uniform"], ((), MOVED)
    ),
    **dict.fromkeys(["gumbel_r", "gumbel_l"], ((), MOVED)),
    **dict.fromkeys(["gamma", "chi2", "t", "pareto"], ((2.5,), MOVED)),
    "beta": ((2.5, 0.7), MOVED),
    "truncnorm": ((-1.0, 2.0), MOVED),
    "gennorm": ((1.5,), {}),
    "vonmises": ((2.0,), {}),
    "wrapcauchy": ((0.4,), {}),
    "bernoulli": ((0.3,), {}),
    "binom": ((5.0, 0.3), {"loc": np.float32(1.0)}),
    "betabinom": ((5.0, 2.0, 1.5), {}),
    "nbinom": ((3.0, 0.3), {"loc": np.float32(1.0)}),
    "geom": ((0.3,), {"loc": np.float32(1.0)}),
    "poisson": ((2.5,), {}),
}
COUNTS = {"bernoulli", "binom", "betabinom", "nbinom", "geom", "poisson"}


def methods(name):
    """The functions of a distribution of JAX, by name."""
    of = getattr(jax.scipy.stats, name)
    return {n: getattr(of, n) for n in dir(of) if not n.startswith("_")}


def arguments(name, key):
    """What the function is called with: parameters, and keywords."""
    shapes, moved = SHAPES[name]
    return [None, *map(np.float32, shapes)], moved


def everything(library, name):
    """Values and slopes of all functions, by vmap of jvp, in one program."""
    record = getattr(library.scipy.stats, name)

    def all_of(x, q):
        found = {}
        for key in KEYS[name]:
            args, moved = arguments(name, key)
            here = q if key in ("ppf", "isf") else x
            function = partial(getattr(record, key), **moved)
            if name in COUNTS:  # slopes in the parameters alone
                found[key] = library.jvp(partial(function, here), *moving(args[1:]))
            elif (name, key) in JAX_REFUSES or name == "beta":
                one = partial(lambda f, rest, x: f(x, *rest), function, args[1:])
                slope = () if "gumbel" in name else library.jvp(one, *moving([here]))
                found[key] = (one(here), *slope[1:])
            else:
                found[key] = library.jvp(function, *moving([here, *args[1:]]))
        return found

    return library.jit(library.vmap(all_of))(K if name in COUNTS else X, Q)


def moving(primals):
    """Primals and their tangents, for one direction."""
    return tuple(primals), tuple(np.float32(0.3 * i + 0.5) for i in range(len(primals)))


JAX_REFUSES = {("gumbel_r", "ppf"), ("gumbel_l", "ppf")}
KEYS = {name: [k for k in methods(name) if k != "entropy"] for name in SHAPES}


@pytest.mark.parametrize("name", SHAPES)
def test_a_distribution_is_jax_s(name):
    ours, theirs = (everything(library, name) for library in (minijax, jax))
    for key in KEYS[name]:
        (mine, *slope), (wanted, *wanted_slope) = ours[key], theirs[key]
        assert mine.dtype == wanted.dtype
        np.testing.assert_allclose(mine, wanted, 3e-5, 3e-6, err_msg=key)
        for one, other in zip(slope, wanted_slope, strict=True):
            clear = np.isfinite(other) & np.isfinite(wanted)
            np.testing.assert_allclose(one[clear], other[clear], 3e-4, 1e-4, key)


def test_distributions_have_the_functions_and_signatures_of_jax():
    for name in [*SHAPES, "dirichlet", "multinomial", "multivariate_normal"]:
        ours = getattr(minijax.scipy.stats, name)
        for key, theirs in methods(name).items():
            there = inspect.signature(theirs).parameters.values()
            here = inspect.signature(getattr(ours, key)).parameters.values()
            wanted = [(p.name, p.default) for p in there]
            assert [(p.name, p.default) for p in here] == wanted, f"{name}.{key}"


def test_several_numbers_together_are_jax_s():
    rng = np.random.default_rng(0)
    cov = np.float32([[2.0, 0.5], [0.5, 1.0]])
    points = rng.normal(size=(3, 2)).astype("float32")
    shares = np.float32([[0.2, 0.5], [0.3, 0.5], [0.5, 0.0]])
    table = np.float32([[3, 1, 1], [2, 2, 3]])

    def found(library):
        stats = library.scipy.stats
        yield stats.multivariate_normal.logpdf(points, points[0], cov)
        yield stats.multivariate_normal.pdf(points, points[0], np.float32(2.0))
        yield stats.multivariate_normal.logpdf(points, 0.5, 2.0)
        yield library.grad(
            lambda c: stats.multivariate_normal.logpdf(points, points[0], c).sum()
        )(cov)
        yield stats.dirichlet.logpdf(shares, np.float32([1.5, 2.0, 1.0]))
        yield stats.dirichlet.pdf(shares[:2, 0], np.float32([1.5, 2.0, 1.0]))
        yield stats.multinomial.pmf(np.array([1, 2]), 3, np.float32([0.4, 0.6]))
        yield stats.multinomial.pmf(np.array([1, 2]), 4, np.float32([0.4, 0.6]))
        yield stats.poisson.entropy(np.float32([0.0, 3.0, 40.0, 200.0]))
        for axis in (1, None):
            yield from stats.mode(table, axis)
            yield stats.sem(table, axis)
        yield stats.rankdata(table, "max", axis=1)
        for method in ("average", "min", "dense", "ordinal"):
            yield stats.rankdata(table, method)
        yield stats.rankdata(np.float32([1.0, np.nan]))
        yield from stats.mode(table, None, keepdims=True)
        yield stats.sem(np.float32([1, np.nan, 4, 6]), nan_policy="omit")

    for mine, other in zip(found(minijax), found(jax), strict=True):
        assert (mine.shape, mine.dtype) == (other.shape, other.dtype)
        np.testing.assert_allclose(mine, other, 2e-5, 1e-6)
