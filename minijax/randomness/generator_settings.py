# Made from chapters/31_random_rest.md by `make chapter`;
# edit the chapter, not this file.
"""Switches of the generator, each with the one value that it can have.

Reference: ``jax.default_prng_impl``, ``jax.threefry_partitionable``.
"""

import os
from contextlib import AbstractContextManager

import numpy as np

from minijax.arrays.settings import _on_or_off, config
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


def _only_threefry(name):
    check_implementation(name)
    return "threefry2x32"


def _only_partitionable(value):
    if not _on_or_off(value):
        raise NotImplementedError(
            "jax_threefry_partitionable is always on here: the numbers that it gives "
            "up are those of JAX before 0.5."
        )
    return True


for _name, _default, _accepts in (
    ("jax_default_prng_impl", "threefry2x32", _only_threefry),
    ("jax_threefry_partitionable", "1", _only_partitionable),
):
    config.define(_name, os.environ.get(_name.upper(), _default), _accepts)


def key_dtype(impl: str | None = None) -> np.dtype:
    """Return the dtype of the keys of a generator.

    Reference: ``jax.random.key_dtype``.
    """
    check_implementation(impl)
    return KEY
