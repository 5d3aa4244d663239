# Made from chapters/11_jit.md by `make chapter`;
# edit the chapter, not this file.
"""Which programs do more than return results.

A program with effects is run even if nobody needs its results. Reference:
``jax.core.Effect``.
"""

from minijax.printing import jaxprs_in_params

# Primitives that do something besides returning results, such as printing.
effectful = set()


def has_effects(jaxpr):
    """Return whether running a jaxpr does more than return results.

    Args:
      jaxpr: a `Jaxpr` or a `ClosedJaxpr`.
    """
    return any(map(_acts, jaxpr.eqns))


def _acts(eqn):
    inner = jaxprs_in_params(eqn.params)
    return eqn.primitive in effectful or any(map(has_effects, inner))
