"""Dot-product attention with masks and lengths; scaled matrix products.

References: ``jax.nn.dot_product_attention``, ``jax.nn.scaled_matmul``; *OCP
Microscaling Formats (MX) Specification*.
"""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

from typing import Any

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.arrays.dtypes import canonicalize_dtype
from minijax.core import Array
from minijax.extend.promotion import promoting
from minijax.nn.functions import dot_product_attention_and_scores, logsumexp
from minijax.typing import ArrayLike

# Dot-product attention, with masks, windows and lengths.


def allowed_pairs(masks, causal, window, lengths, sizes):
    """Return which pairs count, as booleans that fit ``[B, heads, T, S]``, or None.

    Args:
      masks: a list of such booleans.
      causal: whether a query at i sees keys up to i.
      window: None, or how far a query sees to the left and to the right.
      lengths: for queries and keys None, or integers ``[B]``.
      sizes: T and S.
    """
    rows, columns = (lax.broadcasted_iota("int32", sizes, i) for i in (0, 1))
    masks = list(masks)
    if causal:
        masks.append(rows >= columns)
    if window is not None:
        left, right = window
        masks.append((rows <= columns + left) & (rows >= columns - right))
    for length, places in zip(lengths, (rows, columns)):
        if length is not None:
            masks.append(places < lax.expand_dims(length, (1, 2, 3)))
    together = None
    for mask in masks:
        together = mask if together is None else together & mask
    return together


@promoting
def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: str | None = None,
    return_residual: bool = False,
) -> Any:
    """Return means of values, weighted by the softmax of products of queries and keys.

    Args:
      query: of shape ``[B, T, N, H]``, or ``[T, N, H]``.
      key, value: of shape ``[B, S, K, H]``, or ``[S, K, H]``; K divides N, and groups
        of N / K heads of queries share a head of keys.
      bias: added to the scores, of shape ``[B or 1, N or 1, T, S]``.
      mask: booleans of such a shape; what is False gets no share.
      scale: factor of the scores; ``1 / sqrt(H)`` by default.
      is_causal: whether a query at i sees keys up to i only.
      query_seq_lengths, key_value_seq_lengths: of shape ``[B]``, of dtype int32: how
        many positions are real; means at those that are not are 0.
      local_window_size: how far a query sees to the left and to the right.
      implementation: None or ``"xla"``, which are the same here.
      return_residual: whether to return the logarithms of the sums as well.

    Returns:
      An array like `query`, or a pair of it and one of shape ``[B, T, N]``. Scores and
      shares are computed in 32 bits at least.

    Raises:
      ValueError: for shapes or dtypes that do not fit; it names the argument.
      NotImplementedError: for ``implementation="cudnn"``.

    Reference: ``jax.nn.dot_product_attention``.
    """
    _check_implementation(implementation)
    shape = np.shape(query)
    query, key, value = map(_four, (query, key, value))
    bias, mask = (None if x is None else _four(x) for x in (bias, mask))
    lengths = [
        None if x is None else jnp.asarray(x)
        for x in (query_seq_lengths, key_value_seq_lengths)
    ]
    _check_shapes(query, key, value, bias, mask, lengths)
    (B, T, N, H), (_, S, K, _) = query.shape, key.shape
    window = local_window_size
    window = (window, window) if isinstance(window, int) else window
    masks = [] if mask is None else [mask]
    allowed = allowed_pairs(masks, is_causal, window, lengths, (T, S))
    bias, allowed = (_by_group(x, K, N // K) for x in (bias, allowed))
    scale = 1 / np.sqrt(H) if scale is None else scale
    heads = query.reshape(B, T, K, N // K, H)
    means, scores = dot_product_attention_and_scores(
        heads, key, value, bias, allowed, scale
    )
    if lengths[0] is not None:
        real = jnp.arange(T)[None, :] < lengths[0][:, None]
        means = means * real[:, :, None, None, None].astype(means.dtype)
    if not return_residual:
        return means.reshape(shape)
    sums = logsumexp(scores, -1).astype(key.dtype).transpose(0, 3, 1, 2)
    return means.reshape(shape), lax.stop_gradient(sums.reshape(shape[:-1]))


def _check_implementation(name):
    if name == "cudnn":
        raise NotImplementedError(
            "There is no cuDNN here: call dot_product_attention with "
            "implementation=None."
        )
    if name not in (None, "xla"):
        raise ValueError(f"Unsupported implementation option: {name}")


def _four(x):
    """Return `x` with four axes at least."""
    z = jnp.asarray(x)
    return lax.expand_dims(z, tuple(range(4 - z.ndim))) if z.ndim < 4 else z


def _check_shapes(query, key, value, bias, mask, lengths):
    _check("key", key, [-1] * 4)
    B, S, K, H = key.shape
    _check("value", value, [B, S, K, H], key.dtype)
    _check("query", query, [B, -1, -1, H], key.dtype)
    _check("mask", mask, [-1] * 4, np.dtype(bool))
    _check("bias", bias, [-1] * 4)
    for name, length in zip(("query_seq_lengths", "key_value_seq_lengths"), lengths):
        _check(name, length, [B], np.dtype("int32"))
    if query.shape[2] % K:
        raise ValueError(
            "The number of query heads must be a multiple of key/value heads, but got "
            f"{query.shape[2]} vs {K}"
        )


def _check(name, x, shape, dtype=None):
    if x is None:
        return
    if x.ndim != len(shape):
        raise ValueError(f"{name} ndim should be {len(shape)}, but got {x.ndim}")
    if dtype is not None and x.dtype != dtype:
        raise ValueError(f"{name} dtype should be {dtype}, but got {x.dtype}")
    if any(size not in (-1, found) for size, found in zip(shape, x.shape)):
        raise ValueError(f"{name} shape should be {shape}: but got {x.shape}")


def _by_group(x, heads, groups):
    """Split the axis of heads of ``[B, N or 1, T, S]`` in heads and groups."""
    if x is None or x.ndim < 4:
        return x
    split = (heads, groups) if x.shape[1] > 1 else (1, 1)
    return x.reshape(x.shape[0], *split, *x.shape[2:])


# Matrix products with a factor for each block of terms (microscaling, MX).


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
