"""Modes, ranks, standard errors, and kernel density estimation.

Source: D. W. Scott, *Multivariate Density Estimation* (1992); B. W. Silverman, *Density
Estimation for Statistics and Data Analysis* (1986).

References: ``jax.scipy.stats``, ``jax.scipy.stats.gaussian_kde``.
"""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

import math
from typing import Any, NamedTuple

import numpy as np

from minijax import lax, random, vmap
from minijax import numpy as jnp
from minijax.core import Array
from minijax.extend.arguments import canonicalize_axis, check_arraylike, dim_size_along
from minijax.extend.promotion import promote_dtypes_inexact, promoting
from minijax.lax.linalg import cholesky, triangular_solve
from minijax.nn.functions import logsumexp
from minijax.scipy.special.entropies import ndtr
from minijax.tree_util import register_pytree_node_class
from minijax.typing import ArrayLike

# The most frequent value, ranks, and the standard error of a mean.

_METHODS = "average", "min", "max", "dense", "ordinal"


class ModeResult(NamedTuple):
    """Most frequent values, and how frequent they are."""

    mode: Array
    count: Array


def _check_nan_policy(name, policy):
    if policy not in ("propagate", "omit", "raise"):
        raise ValueError(
            f"Illegal nan_policy value {policy!r}; expected one of "
            "{'propagate', 'omit', 'raise'}"
        )
    if policy != "propagate":
        raise NotImplementedError(
            f"{name} does not look for NaN, as nan_policy={policy!r} asks. Use "
            "nan_policy='propagate', and look for them with jnp.isnan before."
        )


@promoting
def mode(
    a: ArrayLike,
    axis: int | None = 0,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    """Return the most frequent value along an axis, the least where several are.

    All NaN are one value, and a large one.

    Args:
      a: an array.
      axis: along which; None for all axes.
      nan_policy: has to be ``"propagate"``.
      keepdims: whether to keep the axis, of size 1.

    Returns:
      A named tuple ``(mode, count)``.

    Reference: ``jax.scipy.stats.mode``.
    """
    _check_nan_policy("mode", nan_policy)
    check_arraylike("mode", a)
    x = jnp.atleast_1d(a)
    shape = [1] * x.ndim if keepdims else []
    if axis is None:
        x = x.reshape(-1, 1)
    else:
        axis = canonicalize_axis(axis, x.ndim)
        shape = [*x.shape[:axis], *[1] * keepdims, *x.shape[axis + 1 :]]
        x = jnp.moveaxis(x, axis, 0)
        x = x.reshape(len(x), math.prod(x.shape[1:]))
    if not x.size:
        dtype = jnp.result_type(float)
        return ModeResult(jnp.full(shape, np.nan, dtype), jnp.zeros(shape, dtype))
    values, counts = vmap(_most_frequent, 1)(x)
    return ModeResult(values.reshape(shape), counts.reshape(shape))


def _most_frequent(x):
    ordered = lax.sort(x)
    if len(x) > 32:
        behind = jnp.searchsorted(ordered, ordered, side="right")
        counts = behind - jnp.searchsorted(ordered, ordered)
    else:
        counts = _equal(ordered[:, None], ordered).sum(1)
    place = counts.argmax()
    return ordered[place], counts[place]


def _equal(x, y):
    """Return where two numbers are equal, or both NaN."""
    return (x == y) | ((x != x) & (y != y))


def rankdata(
    a: ArrayLike,
    method: str = "average",
    *,
    axis: int | None = None,
    nan_policy: str = "propagate",
) -> Array:
    """Return the ranks of values, from 1 on.

    Args:
      a: an array.
      method: which rank equal values get: the ``"average"``, ``"min"`` or ``"max"`` of
        theirs, ``"dense"`` ranks without gaps, or ``"ordinal"`` ones, all different.
      axis: along which; None for the flattened array.
      nan_policy: has to be ``"propagate"``: with a NaN, all ranks are NaN.

    Reference: ``jax.scipy.stats.rankdata``.
    """
    _check_nan_policy("rankdata", nan_policy)
    check_arraylike("rankdata", a)
    if method not in _METHODS:
        raise ValueError(f"unknown method '{method}'")
    if axis is not None:
        return jnp.apply_along_axis(rankdata, axis, a, method)
    return _ranks(jnp.ravel(a), method)


def _ranks(x, method):
    dtype = jnp.result_type(float)
    order = jnp.argsort(x)
    places = jnp.argsort(order)
    ordered = x[order]
    if method == "ordinal":
        ranks = places + 1
    elif method == "dense":
        new = jnp.concatenate([jnp.ones(1, bool), ordered[1:] != ordered[:-1]])
        ranks = new.cumsum()[: len(x)][places]
    else:
        first = jnp.searchsorted(ordered, x) + 1
        last = jnp.searchsorted(ordered, x, side="right")
        ranks = {"min": first, "max": last, "average": (first + last) / 2}[method]
    return jnp.where(jnp.isnan(x).any(), np.nan, ranks.astype(dtype))


def sem(
    a: ArrayLike,
    axis: int | None = 0,
    ddof: int = 1,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Array:
    """Return the standard error of the mean.

    Args:
      a: an array.
      axis: along which; None for all axes.
      ddof: what is subtracted from the count in the standard deviation.
      nan_policy: ``"propagate"``, or ``"omit"`` to leave NaN out.
      keepdims: whether to keep the axis, of size 1.

    Reference: ``jax.scipy.stats.sem``.
    """
    check_arraylike("sem", a)
    [x] = promote_dtypes_inexact(jnp.asarray(a))
    how: dict = {"ddof": ddof, "keepdims": keepdims}
    if nan_policy == "propagate":
        count = x.size if axis is None else dim_size_along(x, axis)
        return x.std(axis, **how) / np.sqrt(count).astype(x.dtype)
    if nan_policy == "omit":
        counts = jnp.logical_not(jnp.isnan(x)).sum(axis, keepdims=keepdims)
        return jnp.nanstd(x, axis, **how) / jnp.sqrt(counts).astype(x.dtype)
    raise ValueError(f"{nan_policy} is not supported")


# Kernel density estimation with normal kernels.

_RULES: dict = {
    "scott": lambda neff, d: neff ** (-1 / (d + 4)),
    "silverman": lambda neff, d: (neff * (d + 2) / 4) ** (-1 / (d + 4)),
}
_PARTS = "neff", "dataset", "weights", "covariance", "inv_cov"


@register_pytree_node_class
class gaussian_kde:
    """A density estimated from points: a normal density around each.

    Args:
      dataset: points, of shape ``[d, n]``, or ``[n]``.
      bw_method: how wide the densities are: ``"scott"``, ``"silverman"``, a number that
        multiplies the deviation of the data, or a function of the estimate that returns
        one. By default Scott's rule.
      weights: of the points, ``[n]``; equal by default.

    Raises:
      ValueError: if shapes do not fit, or for another `bw_method`.
      NotImplementedError: for complex numbers.

    Reference: ``jax.scipy.stats.gaussian_kde``.
    """

    neff: Array
    dataset: Array
    weights: Array
    covariance: Array
    inv_cov: Array

    def __init__(self, dataset: ArrayLike, bw_method: Any = None, weights: Any = None):
        check_arraylike("gaussian_kde", dataset)
        points = jnp.atleast_2d(dataset)
        if jnp.iscomplexobj(points):
            raise NotImplementedError("gaussian_kde does not support complex data")
        if points.size < 2:
            raise ValueError("`dataset` input should have multiple elements.")
        points, shares = _weighted(points, weights)
        self._set(dataset=points, weights=shares, neff=1 / (shares**2).sum())
        factor = self._factor(bw_method)
        spread = jnp.atleast_2d(jnp.cov(points, bias=False, aweights=shares))
        inverse = jnp.linalg.inv(spread) / factor**2
        self._set(covariance=spread * factor**2, inv_cov=inverse)

    def _set(self, **parts):
        for name, part in parts.items():
            object.__setattr__(self, name, part)

    def __setattr__(self, name, value):
        raise AttributeError(
            f"A gaussian_kde cannot be changed: {name} is computed when it is made."
        )

    def _factor(self, method):
        rule = "scott" if method is None else method
        if isinstance(rule, str) and rule in _RULES:
            return _RULES[rule](self.neff, self.d)
        if not isinstance(rule, str):
            if jnp.isscalar(rule):
                return rule
            if callable(rule):
                return rule(self)
        raise ValueError(
            "`bw_method` should be 'scott', 'silverman', a scalar, or a callable."
        )

    def tree_flatten(self) -> tuple:
        """Return the arrays, and nothing else."""
        return tuple(getattr(self, name) for name in _PARTS), None

    @classmethod
    def tree_unflatten(cls, aux_data: None, children: Any) -> "gaussian_kde":
        """Return an estimate made of its arrays."""
        self = cls.__new__(cls)
        self._set(**dict(zip(_PARTS, children)))
        return self

    @property
    def d(self) -> int:
        """The number of dimensions."""
        return self.dataset.shape[0]

    @property
    def n(self) -> int:
        """The number of points."""
        return self.dataset.shape[1]

    def evaluate(self, points: ArrayLike) -> Array:
        """Return the density at points, of shape ``[d, m]`` or ``[m]``.

        Raises:
          ValueError: if they have another number of dimensions than the data.
        """
        return lax.exp(self._terms("evaluate", points)) @ self.weights

    __call__ = pdf = evaluate

    @promoting
    def logpdf(self, x: ArrayLike) -> Array:
        """Return the logarithm of the density at points."""
        return logsumexp(self._terms("logpdf", x) + jnp.log(self.weights), axis=1)

    def _terms(self, name, points):
        """Return for each point the logarithms of the densities around the data."""
        check_arraylike(name, points)
        places = self._places(jnp.asarray(points))
        whiten = cholesky(self.inv_cov)
        gaps = (places.T @ whiten)[:, None] - (self.dataset.T @ whiten)[None]
        size = jnp.log(jnp.diagonal(whiten)).sum() - self.d * np.log(2 * np.pi) / 2
        return size - (gaps * gaps).sum(-1) / 2

    def _places(self, points):
        if jnp.iscomplexobj(points):
            raise NotImplementedError(
                "gaussian_kde does not support complex coordinates"
            )
        places = jnp.atleast_2d(points)
        if places.shape[0] == self.d:
            return places
        if places.shape == (1, self.d):
            return places.reshape(self.d, 1)
        raise ValueError(
            f"points have dimension {places.shape[0]}, dataset has dimension {self.d}"
        )

    def _convolved(self, covariance, mean):
        """Return the integral of the estimate times a normal density."""
        root = cholesky(self.covariance + covariance)
        gap = triangular_solve(
            root, self.dataset - mean[:, None], left_side=True, lower=True
        )
        size = jnp.prod(jnp.sqrt(2 * np.pi) * jnp.diagonal(root))
        return lax.exp(-(gap * gap).sum(0) / 2) @ self.weights / size

    def integrate_gaussian(self, mean: ArrayLike, cov: ArrayLike) -> Array:
        """Return the integral of the estimate times a normal density.

        Raises:
          ValueError: if their shapes are not ``[d]`` and ``[d, d]``.
        """
        mean, cov = jnp.atleast_1d(jnp.squeeze(mean)), jnp.atleast_2d(cov)
        if mean.shape != (self.d,):
            raise ValueError(f"mean does not have dimension {self.d}")
        if cov.shape != (self.d, self.d):
            raise ValueError(f"covariance does not have dimension {self.d}")
        return self._convolved(cov, mean)

    def integrate_box_1d(self, low: ArrayLike, high: ArrayLike) -> Array:
        """Return the probability of an interval, for one dimension.

        Raises:
          ValueError: for data of more dimensions, or limits that are arrays.
        """
        if self.d != 1:
            raise ValueError("integrate_box_1d() only handles 1D pdfs")
        if jnp.ndim(low) or jnp.ndim(high):
            raise ValueError(
                "the limits of integration in integrate_box_1d must be scalars"
            )
        deviation, points = jnp.sqrt(self.covariance[0, 0]), self.dataset[0]
        upper, lower = (ndtr((x - points) / deviation) for x in (high, low))
        return ((upper - lower) * self.weights).sum()

    def integrate_kde(self, other: "gaussian_kde") -> Array:
        """Return the integral of the product of two estimates.

        Raises:
          ValueError: if their dimensions differ.
        """
        if other.d != self.d:
            raise ValueError("KDEs are not the same dimensionality")
        few, many = (self, other) if self.n < other.n else (other, self)
        each = vmap(many._convolved, (None, 1))(few.covariance, few.dataset)
        return each @ few.weights

    @promoting
    def resample(self, key: Array, shape: tuple = ()) -> Array:
        """Return random points of the estimate, of shape ``[d, *shape]``.

        Args:
          key: a random key.
          shape: how many.
        """
        chosen, moved = random.split(key)
        places = random.choice(chosen, self.n, shape, p=self.weights)
        zero = jnp.zeros(self.d, self.covariance.dtype)
        how = {"shape": shape, "dtype": self.dataset.dtype}
        noise = random.multivariate_normal(moved, zero, self.covariance, **how)
        return self.dataset[:, places] + noise.T

    def integrate_box(self, low_bounds: Any, high_bounds: Any, maxpts: Any = None):
        """Refuse: there is `integrate_box_1d`."""
        raise NotImplementedError(
            "only 1D box integrations are supported; use `integrate_box_1d`"
        )

    def set_bandwidth(self, bw_method: Any = None):
        """Refuse: an estimate does not change."""
        raise NotImplementedError(
            "dynamically changing the bandwidth method is not supported"
        )


def _weighted(points, weights):
    n = points.shape[1]
    if weights is None:
        [points] = promote_dtypes_inexact(points)
        return points, jnp.full(n, 1 / n, points.dtype)
    check_arraylike("gaussian_kde", weights)
    points, weights = promote_dtypes_inexact(points, jnp.atleast_1d(weights))
    if weights.ndim != 1:
        raise ValueError("`weights` input should be one-dimensional.")
    if len(weights) != n:
        raise ValueError("`weights` input should be of length n")
    return points, weights / weights.sum()
