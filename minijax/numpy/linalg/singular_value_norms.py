"""Matrix norms by singular values: the spectral norm and the nuclear norm.

Importing this fills ``minijax.numpy.tensor_contractions.norm_orders``.

Reference: ``jax.numpy.linalg.norm``.
"""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax import numpy as jnp
from minijax.numpy.tensor_contractions import norm_orders


def by_singular_values(fold):
    """Return a norm of matrices along two axes, a fold of their singular values."""

    def size(x, axes, keepdims):
        from minijax.linear_algebra.numpy_linalg import svdvals  # few need it

        result = fold(svdvals(jnp.moveaxis(x, axes, (-2, -1))))
        return jnp.expand_dims(result, axes) if keepdims else result

    return size


norm_orders[2] = by_singular_values(lambda s: s.max(-1, initial=0))
norm_orders[-2] = by_singular_values(lambda s: s.min(-1))
norm_orders["nuc"] = by_singular_values(lambda s: s.sum(-1))
