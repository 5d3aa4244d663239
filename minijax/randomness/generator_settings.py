# Made from chapters/31_random_rest.md by `make chapter`;
# edit the chapter, not this file.
"""Switches of the generator and of its checker, for a ``with`` block.

Reference: ``jax.default_prng_impl``, ``jax.threefry_partitionable``.
"""

from contextlib import AbstractContextManager

import numpy as np

from minijax.arrays.settings import config
from minijax.randomness.keys import KEY
from minijax.randomness.making_keys import check_implementation


def default_prng_impl(new_val: str) -> AbstractContextManager:
    """Return a context manager inside which keys belong to a generator.

    Reference: ``jax.default_prng_impl``.
    """
    return config.override("jax_default_prng_impl", new_val)


def threefry_partitionable(new_val: bool = True) -> AbstractContextManager:
    """Return a context manager inside which each number depends on its place alone.

    Reference: ``jax.threefry_partitionable``.
    """
    return config.override("jax_threefry_partitionable", new_val)


def debug_key_reuse(new_val: bool = True) -> AbstractContextManager:
    """Return a context manager inside which using a key twice is an error.

    Reference: ``jax.debug_key_reuse``.
    """
    return config.override("jax_debug_key_reuse", new_val)


def key_dtype(impl: str | None = None) -> np.dtype:
    """Return the dtype of the keys of a generator.

    Reference: ``jax.random.key_dtype``.
    """
    check_implementation(impl)
    return KEY
