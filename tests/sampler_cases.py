"""Each sampler with parameters, for tests with and without JAX: draws of a shape."""

import math

import numpy as np

LOGITS = np.log(np.float32([1, 2, 7]))

WEIGHTS = np.float32([0.1, 0.3, 0.05, 0.2, 0.35])


def grid(shape):
    """Numbers in rows of three, as many rows as a sample has elements."""
    return np.arange(3 * math.prod(shape), dtype=np.float32).reshape(-1, 3)


# Deterministic arithmetic of bits: equal to JAX's in every bit.
EXACT = {
    "bernoulli": lambda r, k, s: r.bernoulli(k, 0.3, s),
    "bernoulli high": lambda r, k, s: r.bernoulli(k, 0.001, s, "high"),
    "randint": lambda r, k, s: r.randint(k, s, -3, 6),
    "randint wide": lambda r, k, s: r.randint(k, s, -7, 2**31 - 1),
    "randint int8": lambda r, k, s: r.randint(k, s, -200, 300, "int8"),
    "randint int16": lambda r, k, s: r.randint(k, s, -9, 3000, "int16"),
    "randint uint8": lambda r, k, s: r.randint(k, s, 0, 256, "uint8"),
    "randint uint16": lambda r, k, s: r.randint(k, s, 5, 3000, "uint16"),
    "randint uint32": lambda r, k, s: r.randint(k, s, 5, 3000, "uint32"),
    "randint empty": lambda r, k, s: r.randint(k, s, 5, 5),
    "rademacher": lambda r, k, s: r.rademacher(k, s),
    "rademacher int8": lambda r, k, s: r.rademacher(k, s, "int8"),
    "permutation": lambda r, k, s: r.permutation(k, 5 + math.prod(s)),
    "permutation of rows": lambda r, k, s: r.permutation(k, grid(s)),
    "permutation of columns": lambda r, k, s: r.permutation(k, grid(s), 1),
    "permutation alone": lambda r, k, s: r.permutation(k, grid(s), 0, True),
    "choice": lambda r, k, s: r.choice(k, 50_000, s),
    "choice once": lambda r, k, s: r.choice(k, 50_000, s, replace=False),
}
# Integers that come of floats: a rounding may move one of many.
COUNTED = {
    "categorical": lambda r, k, s: r.categorical(k, LOGITS, shape=s),
    "categorical high": lambda r, k, s: r.categorical(k, LOGITS, shape=s, mode="high"),
    "choice weighted": lambda r, k, s: r.choice(k, 5, s, p=WEIGHTS),
    "geometric": lambda r, k, s: r.geometric(k, np.float32(0.2), s),
    "poisson few": lambda r, k, s: r.poisson(k, 3.0, s),
    "poisson many": lambda r, k, s: r.poisson(k, 40.0, s),
    "binomial few": lambda r, k, s: r.binomial(k, 10.0, 0.3, s),
    "binomial many": lambda r, k, s: r.binomial(k, 1000.0, 0.7, s),
}
FORMULAS = {
    "exponential": lambda r, k, s: r.exponential(k, s),
    "laplace": lambda r, k, s: r.laplace(k, s),
    "logistic": lambda r, k, s: r.logistic(k, s),
    "cauchy": lambda r, k, s: r.cauchy(k, s),
    "gumbel": lambda r, k, s: r.gumbel(k, s),
    "gumbel high": lambda r, k, s: r.gumbel(k, s, mode="high"),
    "gumbel highest": lambda r, k, s: r.gumbel(k, s, mode="highest"),
    "pareto": lambda r, k, s: r.pareto(k, 2.5, s),
    "rayleigh": lambda r, k, s: r.rayleigh(k, np.float32(2.5), s),
    "wald": lambda r, k, s: r.wald(k, np.float32(1.5), s),
    "triangular": lambda r, k, s: r.triangular(k, -1.0, 0.5, 2.0, s),
    "lognormal": lambda r, k, s: r.lognormal(k, 0.5, s),
    "weibull_min": lambda r, k, s: r.weibull_min(k, 2.0, 1.5, s),
    "maxwell": lambda r, k, s: r.maxwell(k, s),
    "double_sided_maxwell": lambda r, k, s: r.double_sided_maxwell(k, 1.0, 2.0, s),
    "truncated_normal": lambda r, k, s: r.truncated_normal(k, -1.0, 2.0, s),
}
GAMMAS = {
    "gamma below 1": lambda r, k, s: r.gamma(k, 0.3, s),
    "gamma": lambda r, k, s: r.gamma(k, 3.5, s),
    "loggamma": lambda r, k, s: r.loggamma(k, 0.01, s),
    "beta": lambda r, k, s: r.beta(k, 0.5, 2.0, s),
    "dirichlet": lambda r, k, s: r.dirichlet(k, np.float32([0.5, 1, 3]), s),
    "chisquare": lambda r, k, s: r.chisquare(k, 3.0, s),
    "f": lambda r, k, s: r.f(k, 3.0, 5.0, s),
    "t": lambda r, k, s: r.t(k, 4.0, s),
    "generalized_normal": lambda r, k, s: r.generalized_normal(k, 1.5, s),
    "ball": lambda r, k, s: r.ball(k, 3, 2.0, s),
}
FLOATS = {**FORMULAS, **GAMMAS}
CASES = {**EXACT, **COUNTED, **FLOATS}
# Those whose draws are vectors or matrices.
COVARIANCE = np.float32([[2.0, 0.5, 0.1], [0.5, 1.0, 0.2], [0.1, 0.2, 0.5]])
VECTORS = {
    "multivariate_normal": lambda r, k, s: r.multivariate_normal(
        k, np.float32([1, 2, 3]), COVARIANCE, s
    ),
    "orthogonal": lambda r, k, s: r.orthogonal(k, 2, s),
    "multinomial": lambda r, k, s: r.multinomial(
        k, 20.0, np.float32([0.2, 0.3, 0.5]), shape=(*s, 3)
    ),
}
# Those of bits, floats and normal numbers are drawn in all widths, in tests of theirs.
PLAIN = {"bits", "uniform", "normal"}
