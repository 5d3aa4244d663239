"""Arguments of jitted functions as leaves."""

import numpy as np

import minijax.numpy as jnp
from minijax import devices
from minijax.jitting.functions import placed, take_apart


def test_plain_leaves_need_no_tree():
    x = jnp.arange(3)
    assert take_apart((x, 1.0), {}) == ([x, 1.0], ((), (None, None)))


def test_containers_and_names():
    leaves, (names, trees) = take_apart(([1, 2],), {"b": 3, "a": (4,)})
    assert leaves == [1, 2, 4, 3] and names == ("a", "b")
    assert [tree and tree.num_leaves for tree in trees] == [2, 1, None]


def test_leaves_that_are_there_stay_what_they_are():
    device, x = devices("cpu")[0], jnp.arange(3)
    assert placed(x, device) is x
    assert placed(np.arange(3), device).device is device
    assert placed(2.0, device).weak_type
