"""Stacks of transformations around and inside of `shard_map`, beside JAX: a share."""

import numpy as np

from tests import mesh_stacks


def test_stacks_are_those_of_jax():
    wrong, count, _ = mesh_stacks.compare(every=110, first=7)
    assert not wrong and count > 20


def test_a_difference_is_noticed():
    one = np.ones(8, "float32")
    assert mesh_stacks.same(one, one) and not mesh_stacks.same(one, 1.01 * one)
    assert not mesh_stacks.same("ValueError: no", one)
