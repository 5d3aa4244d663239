"""Random programs with rules of users mean the same in minijax and in JAX."""

import jax
import pytest

import minijax
from tests.commands import blocks
from tests.random_rules import Program, agree


@pytest.mark.parametrize("block", blocks(3, 6))
def test_block_of_twenty(block):
    checked = 0
    for seed in range(20 * block, 20 * block + 20):
        ours, theirs = Program(minijax, seed), Program(jax, seed)
        if not theirs.is_compared():
            continue
        if seed % 5:
            found = ours.run(minijax.jit), theirs.run(jax.jit)
        else:
            found = ours.run(), theirs.run()
        assert agree(*found, ours.tolerance()), (seed, ours, *found)
        checked += 1
    assert checked >= 8
