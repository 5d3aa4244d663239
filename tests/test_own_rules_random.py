"""Random programs with rules of users mean the same in every way of running them."""

import pytest

import minijax
from tests.commands import blocks
from tests.random_rules import Program, agree

BACKENDS = "python", "cpu"


@pytest.mark.parametrize("block", blocks(3, 6))
def test_block_of_ten(block):
    checked = 0
    for seed in range(10 * block, 10 * block + 10):
        program = Program(minijax, 37 * seed)
        eager = program.run()
        if isinstance(eager, str):  # a rule for one direction, asked for the other
            continue
        for backend in BACKENDS:
            with minijax.config.override("minijax_backend", backend):
                found = program.run(minijax.jit)
            assert agree(found, eager, program.tolerance()), (seed, backend, program)
            checked += 1
    assert checked >= 6


def test_every_rule_is_drawn():
    words = {
        word
        for seed in range(200)
        for word in Program(minijax, seed).words
        if "/" in word
    }
    assert {word.partition("/")[0] for word in words} >= {
        *("jvp jvps jvp_tree jvp_static jvp_zeros gradient".split()),
        *("vjp vjp_tree vjp_static vjp_zeros vjp_remat".split()),
    }
