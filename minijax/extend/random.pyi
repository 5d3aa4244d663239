# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.prng.generators import random_seed as random_seed
from minijax.prng.generators import seed_with_impl as seed_with_impl
from minijax.prng.generators import threefry_2x32 as threefry_2x32
from minijax.prng.generators import threefry_prng_impl as threefry_prng_impl
