"""Random programs with own rules, forgetting and keys agree however they run."""

import pytest

from tests.program_writer import Types
from tests.random_calls import RulesComparison, report
from tests.rules_writer import JVP_RULES, VJP_RULES, RulesProgram


@pytest.mark.parametrize("block", range(4))
def test_block_of_six(block):
    checked = 0
    for seed in range(6 * block, 6 * block + 6):
        comparison = RulesComparison(seed, alone=True, length=3)
        assert not comparison.found, report(seed, comparison)
        checked += comparison.checked
    assert checked >= 60


def test_every_kind_of_rule_is_drawn():
    wanted, met = {*JVP_RULES, *VJP_RULES, "custom_gradient"}, set()
    judges = [Types("minijax")]
    for seed in range(200):
        program = RulesProgram(2 * seed, judges, length=3)
        met.update(program.rules, program.kinds)
        if met >= wanted:
            return
    raise AssertionError(wanted - met)
