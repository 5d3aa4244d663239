"""The nearest code of each observation.

Reference: ``jax.scipy.cluster.vq.vq``.
"""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax import numpy as jnp
from minijax.core import Array
from minijax.lax.promotion import promote_dtypes_inexact
from minijax.typing import ArrayLike


def vq(
    obs: ArrayLike, code_book: ArrayLike, check_finite: bool = True
) -> tuple[Array, Array]:
    """Return for each observation the number of the nearest code, and its distance.

    Args:
      obs: observations, of shape ``[m, n]``, or numbers, ``[m]``.
      code_book: codes, of shape ``[k, n]`` or ``[k]``.
      check_finite: not used.

    Raises:
      ValueError: if their shapes do not fit.

    Reference: ``jax.scipy.cluster.vq.vq``.
    """
    x, codes = promote_dtypes_inexact(jnp.asarray(obs), jnp.asarray(code_book))
    if x.ndim != codes.ndim:
        raise ValueError("Observation and code_book should have the same rank")
    if x.ndim not in (1, 2):
        raise ValueError("ndim different than 1 or 2 are not supported")
    if x.ndim == 1:
        x, codes = x[:, None], codes[:, None]
    gaps = jnp.linalg.norm(x[:, None] - codes[None], axis=-1)
    return jnp.argmin(gaps, -1), jnp.min(gaps, -1)
