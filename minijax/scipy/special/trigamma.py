"""The derivative of `digamma`: the polygamma function of order 1."""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

from importlib import import_module

from minijax import lax
from minijax.extend.rules import jvp_rules
from minijax.forward_mode.jvp import defjvp_unary


def _trigamma(z, x):
    polygamma_of = import_module("minijax.scipy.special.gamma_functions").polygamma_of
    return polygamma_of(lax.full_like(x, 1), x)


jvp_rules[lax.digamma_p] = defjvp_unary(lax.digamma_p, _trigamma)
