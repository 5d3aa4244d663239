"""A distribution as a record of formulas, for location 0 and scale 1.

Reference: ``jax.scipy.stats``.
"""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

import inspect
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.core import Array
from minijax.scipy.special.gamma_functions import operands, real_only


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


def distribution(name, derived="", anchored=False, real=False, **formulas):
    """Return a record of functions of promoted arrays.

    Args:
      name: of the distribution.
      derived: names of functions that are exponentials or logarithms of others.
      anchored: whether constants are of the dtype of the first argument, so that its
        results are not weak if that is an array with axes.
      real: whether complex numbers are a TypeError, as where JAX compares them.
      **formulas: functions whose parameters and defaults are those of users.
    """
    for other in derived.split():
        source, outer = DERIVED[other]
        formulas[other] = _after(outer, formulas[source])
    made = {
        key: _of_arrays(name, key, formula, anchored, real)
        for key, formula in formulas.items()
    }
    return Distribution(__name__=name, **made)


def _after(outer, formula):
    def composed(*args):
        return outer(formula(*args))

    composed.__signature__ = inspect.signature(formula)
    return composed


def _of_arrays(name, key, formula, anchored, real):
    signature = inspect.signature(formula)

    def of_arrays(*args, **kwargs):
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        x, *rest = operands(f"{name}.{key}", *bound.args)
        if real:
            real_only(f"{name}.{key}", x, TypeError)
        if anchored and np.ndim(bound.args[0]):
            x = lax.convert_element_type(x, x.dtype)  # it stays, and is not weak
        return formula(x, *rest)

    of_arrays.__signature__ = signature
    of_arrays.__name__, of_arrays.__qualname__ = key, f"{name}.{key}"
    of_arrays.__doc__ = f"Reference: ``jax.scipy.stats.{name}.{key}``."
    return of_arrays


def density(formula, low, high, like):
    """Return the logarithm of a density with location and scale."""

    def moved(x, *shapes, loc, scale):
        z = (x - loc) / scale
        size = lax.log(abs(scale) if like == "mirrored" else scale)
        if low == -np.inf:
            return formula(z, *shapes) - size
        below, above = _beyond(x, loc, scale, low, high)
        outside = below if above is None else below | above
        z = jnp.where(outside, low + 0.5 if high == 1 else low + 1, z)
        return jnp.where(outside, -np.inf, formula(z, *shapes) - size)

    return moved


def _beyond(x, loc, scale, low, high):
    """Return where `x` lies below the support, and where above it, if it has an end."""
    below = lax.lt(x, loc + scale if low else loc)
    return below, None if high == np.inf else lax.gt(x, loc + scale)


def probability(formula, low, high, like):
    """Return a probability with location and scale, or the logarithm of one."""

    def moved(x, *shapes, loc, scale):
        z = (x - loc) / scale
        if low == -np.inf:
            return formula(z, *shapes)
        below, above = _beyond(x, loc, scale, low, high)
        if like == "clamped":
            below, above = _beyond(z, 0, 1, low, high)
        z = z if above is None else jnp.where(above, high, z)
        return formula(jnp.where(below, low, z), *shapes)

    return moved


def quantile(formula, low, high, like):
    """Return an inverse with location and scale."""

    def moved(q, *shapes, loc, scale):
        return loc + scale * formula(q, *shapes)

    return moved


MOVES: dict = {"logpdf": density, "ppf": quantile, "isf": quantile}


def family(
    name,
    derived="",
    support=(-np.inf, np.inf),
    like="",
    valid=None,
    anchored=True,
    real=False,
    beyond="",
    **formulas,
):
    """Return a distribution with `loc` and `scale`, from formulas without them.

    Args:
      name, derived, anchored, real: as in `distribution`.
      support: the ends of where the density is not 0: 0 or 1, and 1 or infinity.
      like: JAX's answers to a negative scale, which is none. ``"mirrored"``: its size
        alone counts. ``"clamped"``: the distance from the location over the scale says
        which probabilities are 0 or 1; without it, the place of the end does.
      valid: None, or a function of all arguments: where the density is not NaN.
      beyond: names of functions whose formulas are for all numbers, and not only for
        those in the support.
      **formulas: functions of a number and the parameters of the shape.
    """
    moved = {}
    for key, formula in formulas.items():
        low, high = (-np.inf, np.inf) if key in beyond.split() else support
        rule = MOVES.get(key, probability)(formula, low, high, like)
        moved[key] = _with_location(rule, inspect.signature(formula))
        if valid and key == "logpdf":
            moved[key] = if_valid(valid, moved[key])
    return distribution(name, derived, anchored, real, **moved)


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
