"""The dtype of keys, by the name of their generator."""

# Made from chapters/32_random_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax.arrays.dtypes import ExtendedDType
from minijax.randomness.keys import KEY
from minijax.randomness.making_keys import check_implementation


def key_dtype(impl_spec: str | None = None) -> ExtendedDType:
    """Return the dtype of the keys of a generator.

    Reference: ``jax.random.key_dtype``.
    """
    check_implementation(impl_spec)
    return KEY
