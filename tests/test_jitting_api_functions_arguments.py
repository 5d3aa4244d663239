"""Arguments of jitted functions as leaves."""

import numpy as np

import minijax
import minijax.numpy as jnp
from minijax import devices
from minijax.arrays.devices import default_placement
from minijax.jitting.api import placements_of_leaves, take_apart


def test_plain_leaves_need_no_tree():
    x = jnp.arange(3)
    assert take_apart((x, 1.0), {}) == ([x, 1.0], ((), (None, None)))


def test_containers_and_names():
    leaves, (names, trees) = take_apart(([1, 2],), {"b": 3, "a": (4,)})
    assert leaves == [1, 2, 4, 3] and names == ("a", "b")
    assert [tree and tree.num_leaves for tree in trees] == [2, 1, None]


def test_arrays_that_name_no_device_have_no_places_in_the_key():
    here, x = default_placement(), jnp.arange(3)
    assert placements_of_leaves([x, np.arange(3), 2.0], here) is None
    there = minijax.device_put(x, devices("cpu")[0])
    assert placements_of_leaves([x, 2.0, there], here) == (here, None, there.placement)
