# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.
"""A distribution as a record of formulas, for location 0 and scale 1.

Reference: ``jax.scipy.stats``.
"""

import inspect
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.core import Array
from minijax.scipy.special.gamma_functions import operands


class Distribution(SimpleNamespace):
    """The functions of a probability distribution.

    Each distribution has some of them: the density `pdf` or the probability `pmf`, the
    cumulative `cdf` and what is left of 1, `sf`, with their logarithms, and the
    inverses `ppf` and `isf`.
    """

    pdf: Callable[..., Array]
    logpdf: Callable[..., Array]
    pmf: Callable[..., Array]
    logpmf: Callable[..., Array]
    cdf: Callable[..., Array]
    logcdf: Callable[..., Array]
    sf: Callable[..., Array]
    logsf: Callable[..., Array]
    ppf: Callable[..., Array]
    isf: Callable[..., Array]
    entropy: Callable[..., Array]

    def __repr__(self):
        return f"<distribution {self.__name__}: {', '.join(self._functions())}>"

    def _functions(self):
        return [name for name in vars(self) if not name.startswith("_")]


DERIVED = {
    "pdf": ("logpdf", lax.exp),
    "pmf": ("logpmf", lax.exp),
    "cdf": ("logcdf", lax.exp),
    "sf": ("logsf", lax.exp),
    "logcdf": ("cdf", lax.log),
    "logsf": ("sf", lax.log),
}


def distribution(name, derived="", **formulas):
    """Return a record of functions of promoted arrays.

    Args:
      name: of the distribution.
      derived: names of functions that are exponentials or logarithms of others.
      **formulas: functions whose parameters and defaults are those of users.
    """
    for other in derived.split():
        source, outer = DERIVED[other]
        formulas[other] = _after(outer, formulas[source])
    made = {key: _of_arrays(name, key, formula) for key, formula in formulas.items()}
    return Distribution(__name__=name, **made)


def _after(outer, formula):
    def composed(*args):
        return outer(formula(*args))

    composed.__signature__ = inspect.signature(formula)
    return composed


def _of_arrays(name, key, formula):
    signature = inspect.signature(formula)

    def of_arrays(*args, **kwargs):
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return formula(*operands(f"{name}.{key}", *bound.args))

    of_arrays.__signature__ = signature
    of_arrays.__name__, of_arrays.__qualname__ = key, f"{name}.{key}"
    of_arrays.__doc__ = f"Reference: ``jax.scipy.stats.{name}.{key}``."
    return of_arrays


def density(formula, low, high):
    """Return the logarithm of a density with location and scale."""

    def moved(x, *shapes, loc, scale):
        z = (x - loc) / scale
        outside = (z < low) | (z > high)
        middle = low + 0.5 if high == 1 else low + 1
        z = z if low == -np.inf else jnp.where(outside, middle, z)
        value = formula(z, *shapes) - lax.log(scale)
        return value if low == -np.inf else jnp.where(outside, -np.inf, value)

    return moved


def probability(formula, low, high):
    """Return a probability with location and scale, or the logarithm of one."""

    def moved(x, *shapes, loc, scale):
        z = (x - loc) / scale
        if low != -np.inf:
            z = jnp.where(z < low, low, jnp.where(z > high, high, z))
        return formula(z, *shapes)

    return moved


def quantile(formula, low, high):
    """Return an inverse with location and scale."""

    def moved(q, *shapes, loc, scale):
        return loc + scale * formula(q, *shapes)

    return moved


MOVES = {"logpdf": density, "ppf": quantile, "isf": quantile}


def family(name, derived="", support=(-np.inf, np.inf), **formulas):
    """Return a distribution with `loc` and `scale`, from formulas without them.

    Args:
      name, derived: as in `distribution`.
      support: the ends of where the density is not 0.
      **formulas: functions of a number and the parameters of the shape.
    """
    moved = {}
    for key, formula in formulas.items():
        rule = MOVES.get(key, probability)(formula, *map(float, support))
        moved[key] = _with_location(rule, inspect.signature(formula))
    return distribution(name, derived, **moved)


def _with_location(rule, signature):
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    last = [inspect.Parameter("loc", kind, default=0)]
    last.append(inspect.Parameter("scale", kind, default=1))

    def formula(*args):
        *shapes, loc, scale = args
        return rule(*shapes, loc=loc, scale=scale)

    formula.__signature__ = signature.replace(
        parameters=[*signature.parameters.values(), *last]
    )
    return formula


def if_valid(valid, formula):
    """Return a formula that is NaN where its parameters are not valid."""

    def checked(*args):
        return jnp.where(valid(*args), formula(*args), np.nan)

    checked.__signature__ = inspect.signature(formula)
    return checked


def between(q, value):
    """Return a quantile; NaN where `q` is no probability."""
    return jnp.where((q >= 0) & (q <= 1), value, np.nan)
