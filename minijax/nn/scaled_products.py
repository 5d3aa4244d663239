"""Matrix products with a factor for each block of terms (microscaling, MX).

Reference: ``jax.nn.scaled_matmul``; *OCP Microscaling Formats (MX) Specification*.
"""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

from typing import Any

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.arrays.dtypes import canonicalize_dtype
from minijax.core import Array


def scaled_matmul(
    lhs: Array,
    rhs: Array,
    lhs_scales: Array,
    rhs_scales: Array,
    preferred_element_type: Any = np.float32,
) -> Array:
    """Multiply rows by rows, each block of terms times its two factors.

    Args:
      lhs: of shape ``[B, M, K]``.
      rhs: of shape ``[B, N, K]``.
      lhs_scales: of shape ``[B, M, K / block]``.
      rhs_scales: of shape ``[B, N, K / block]``.
      preferred_element_type: the dtype of the result; terms are added in float32.

    Returns:
      An array of shape ``[B, M, N]``.

    Raises:
      ValueError: if axes or sizes do not fit.

    Reference: ``jax.nn.scaled_matmul``.
    """
    dtype = canonicalize_dtype(preferred_element_type)
    arrays = [*map(jnp.asarray, (lhs, rhs, lhs_scales, rhs_scales))]
    _check_scales(*[x.shape for x in arrays])
    x, y = (_times(*pair) for pair in zip(arrays[:2], arrays[2:]))
    return lax.dot_general(x, y, (((2,), (2,)), ((0,), (0,)))).astype(dtype)


def _times(x, scales):
    """Return an array of float32 in which each block has been multiplied."""
    block = x.shape[2] // max(scales.shape[2], 1)
    factors = jnp.repeat(scales.astype(np.float32), block, axis=2)
    return x.astype(np.float32) * factors


def _check_scales(lhs, rhs, lhs_scales, rhs_scales):
    shapes = lhs, rhs, lhs_scales, rhs_scales
    told = f"got lhs {lhs}, rhs {rhs}, lhs_scales {lhs_scales}, rhs_scales {rhs_scales}"
    if any(len(shape) != 3 for shape in shapes):
        raise ValueError(
            f"scaled_matmul requires all inputs to be 3-dimensional arrays, {told}"
        )
    for words, x, y in (("inputs", *shapes[:2]), ("scales", *shapes[2:])):
        if x[::2] != y[::2]:
            raise ValueError(
                f"scaled_matmul requires {words} to have matching batch and contract "
                f"dimensions, {told}"
            )
    if lhs_scales[:2] != lhs[:2] or rhs_scales[:2] != rhs[:2]:
        raise ValueError(
            "scaled_matmul requires scales to match non-contract dimensions of "
            f"inputs, {told}"
        )
    if not lhs_scales[2] or lhs[2] % lhs_scales[2]:
        raise ValueError(
            "scaled_matmul requires the contract dimension to be a multiple of that of "
            f"the scales, {told}"
        )
