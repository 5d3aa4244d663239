"""The trapezoidal rule.

Reference: ``jax.scipy.integrate.trapezoid``.
"""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax import numpy as jnp
from minijax.core import Array
from minijax.typing import ArrayLike


def trapezoid(
    y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1
) -> Array:
    """Return integrals along an axis by the trapezoidal rule, as `jnp.trapezoid`.

    Reference: ``jax.scipy.integrate.trapezoid``.
    """
    return jnp.trapezoid(y, x, dx, axis)
