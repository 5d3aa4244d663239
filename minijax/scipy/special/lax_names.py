"""Special functions with the names of `minijax.lax`.

Reference: ``jax.lax``.
"""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax.arrays.avals import typeof
from minijax.arrays.checks import check_kind
from minijax.lax.promotion import promote_dtypes
from minijax.scipy.special.bessel import scaled_i0, scaled_i1
from minijax.scipy.special.gamma_functions import special_of
from minijax.scipy.special.incomplete import (
    gamma_slope,
    incomplete_beta,
    lower_gamma,
    upper_gamma,
)
from minijax.scipy.special.zetas import hurwitz_zeta, polygamma_of


def _of_floats(name, what, parameters, function):
    """Return a special function that refuses integers, as `minijax.lax` does."""
    promoting = special_of(name, what, parameters, function)

    def of_arrays(*args, **kwargs):
        operands = promote_dtypes(*args, *kwargs.values())
        check_kind(name, "hf", [typeof(x) for x in operands])
        return promoting(*args, **kwargs)

    of_arrays.__signature__ = promoting.__signature__
    of_arrays.__name__ = of_arrays.__qualname__ = name
    of_arrays.__doc__ = f"""Compute {what}, element by element, of floats.

    Raises:
      TypeError: for integers, booleans and complex numbers.

    Reference: ``jax.lax.{name}``.
    """
    return of_arrays


igamma = _of_floats(
    "igamma", "the lower incomplete gamma function", "a x", lower_gamma
)
igammac = _of_floats("igammac", "1 less `igamma`", "a x", upper_gamma)
igamma_grad_a = _of_floats(
    "igamma_grad_a", "the derivative of `igamma` in `a`", "a x", gamma_slope
)
betainc = _of_floats(
    "betainc", "the incomplete beta function", "a b x", incomplete_beta
)
bessel_i0e = _of_floats("bessel_i0e", "``exp(-|x|) I0(x)``", "x", scaled_i0)
bessel_i1e = _of_floats("bessel_i1e", "``exp(-|x|) I1(x)``", "x", scaled_i1)
polygamma = _of_floats(
    "polygamma", "the derivative of number `m` of digamma", "m x", polygamma_of
)
zeta = _of_floats("zeta", "the Hurwitz zeta function", "x q", hurwitz_zeta)
