"""Dot-product attention: means of values, weighted by how keys fit to queries.

Source: Vaswani and others, *Attention is all you need*, 2017.
Reference: ``jax.nn.dot_product_attention``.
"""

# Made from chapters/33_library.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.compositions.normalisation import softmax


def attend(query, key, value, bias, allowed, scale):
    """Return the means of values, and the scores.

    Args:
      query: of shape ``[B, T, K, G, H]``: G heads of queries share a head of keys.
      key, value: of shape ``[B, S, K, H]``.
      bias: None, or what is added to the scores ``[B, K, G, T, S]``.
      allowed: None, or booleans of that shape: which pairs count.
      scale: the factor of the scores.
    """
    wide = jnp.promote_types(query.dtype, np.float32)
    heads = ((4,), (3,)), ((0, 2), (0, 2))  # sum over H, for each of B and K
    scores = lax.dot_general(query, key, heads, preferred_element_type=wide)
    scores = scores.transpose(0, 1, 3, 2, 4) * jnp.array(scale, scores.dtype)
    if bias is not None:
        scores = (scores + bias).astype(scores.dtype)
    if allowed is not None:
        scores = jnp.where(allowed, scores, very_small(scores.dtype))
    scores = scores.astype(np.float32)
    shares = softmax(scores).astype(key.dtype)
    means = lax.dot_general(shares, value, (((4,), (1,)), ((0, 1), (0, 2))))
    return means.transpose(0, 3, 1, 2, 4), scores


def very_small(dtype):
    """Return a score that gets no share, and is finite in 32 bits."""
    return jnp.array(-0.7 * min(jnp.finfo(dtype).max, jnp.finfo("float32").max), dtype)
