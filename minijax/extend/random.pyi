# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.doorways.generator_names import random_seed as random_seed
from minijax.doorways.generator_names import seed_with_impl as seed_with_impl
from minijax.doorways.generator_names import threefry_2x32 as threefry_2x32
from minijax.doorways.generator_names import threefry_prng_impl as threefry_prng_impl
