"""Switches of the samplers.

Reference: ``jax_default_prng_impl`` and its neighbours in ``jax.config``.
"""

# Made from chapters/32_random_rest.md by `make chapter`;
# edit the chapter, not this file.

import os

from minijax.arrays.settings import _on_or_off, config
from minijax.forgetting.remembering import traced_switches
from minijax.randomness.making_keys import check_implementation


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


for _switch, _default, _accepts in (
    ("jax_default_prng_impl", "threefry2x32", _only_threefry),
    ("jax_threefry_partitionable", "1", _only_partitionable),
    ("jax_high_dynamic_range_gumbel", "0", _on_or_off),
):
    config.define(_switch, os.environ.get(_switch.upper(), _default), _accepts)
# The other two have one value each.
traced_switches.append("jax_high_dynamic_range_gumbel")
