"""Primitives of random numbers.

Reference: ``jax.extend.core.primitives``.
"""

# Made from chapters/32_random_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax.randomness.keys import prng_key as prng_key
from minijax.randomness.keys import random_bits_p as random_bits_p
from minijax.randomness.keys import random_fold_in_p as random_fold_in_p
from minijax.randomness.keys import random_seed_p as random_seed_p
from minijax.randomness.keys import random_split_p as random_split_p
