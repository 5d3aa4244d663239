# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.prng.random_primitives import define_prng_impl as define_prng_impl
from minijax.prng.random_primitives import random_seed as random_seed
from minijax.prng.random_primitives import seed_with_impl as seed_with_impl
from minijax.prng.random_primitives import threefry_2x32 as threefry_2x32
from minijax.prng.random_primitives import threefry_prng_impl as threefry_prng_impl
from minijax.random.bit_generators import rbg_prng_impl as rbg_prng_impl
from minijax.random.bit_generators import unsafe_rbg_prng_impl as unsafe_rbg_prng_impl
