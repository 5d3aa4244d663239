"""Random programs with own rules, forgetting and keys agree however they run."""

import pytest

from tests.random_calls import RulesComparison, report


@pytest.mark.parametrize("block", range(4))
def test_block_of_six(block):
    checked = 0
    for seed in range(6 * block, 6 * block + 6):
        comparison = RulesComparison(seed, alone=True, length=3)
        assert not comparison.found, report(seed, comparison)
        checked += comparison.checked
    assert checked >= 60
