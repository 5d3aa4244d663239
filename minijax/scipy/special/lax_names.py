# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.
"""Special functions with the names of `minijax.lax`.

Reference: ``jax.lax``.
"""

from minijax.scipy.special.bessel import scaled_i0, scaled_i1
from minijax.scipy.special.gamma_functions import special_of
from minijax.scipy.special.incomplete import (
    gamma_slope,
    incomplete_beta,
    lower_gamma,
    upper_gamma,
)
from minijax.scipy.special.zetas import hurwitz_zeta, polygamma_of

igamma = special_of("igamma", "the lower incomplete gamma function", "a x", lower_gamma)
igammac = special_of("igammac", "1 less `igamma`", "a x", upper_gamma)
igamma_grad_a = special_of(
    "igamma_grad_a", "the derivative of `igamma` in `a`", "a x", gamma_slope
)
betainc = special_of(
    "betainc", "the incomplete beta function", "a b x", incomplete_beta
)
bessel_i0e = special_of("bessel_i0e", "``exp(-|x|) I0(x)``", "x", scaled_i0)
bessel_i1e = special_of("bessel_i1e", "``exp(-|x|) I1(x)``", "x", scaled_i1)
polygamma = special_of(
    "polygamma", "the derivative of number `m` of digamma", "m x", polygamma_of
)
zeta = special_of("zeta", "the Hurwitz zeta function", "x q", hurwitz_zeta)
