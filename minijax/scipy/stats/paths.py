"""The paths of distributions, which Python may import like modules.

Reference: ``jax.scipy.stats.norm`` and its like, which are modules there.
"""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

import sys
from types import ModuleType

DISTRIBUTIONS = """
    bernoulli beta betabinom binom cauchy chi2 dirichlet expon gamma gennorm geom
    gumbel_l gumbel_r laplace logistic multinomial multivariate_normal nbinom norm
    pareto poisson t truncnorm uniform vonmises wrapcauchy
""".split()


class DistributionPath(ModuleType):
    """What Python finds at the path of a distribution: its functions."""

    def __getattr__(self, name):
        space, _, distribution = self.__name__.rpartition(".")
        found = sys.modules[space].__getattr__(distribution)
        if found is self:
            raise AttributeError(f"{self.__name__} has no {name!r} yet")
        return getattr(found, name)


def offer_paths(space):
    """Let ``import space.norm`` find the distribution of that name."""
    paths = [f"{space}.{distribution}" for distribution in DISTRIBUTIONS]
    sys.modules.update({path: DistributionPath(path) for path in paths})
