"""Random programs of control flow mean the same in every way of running them.

`tests/oracle` takes the next ones, and asks JAX. `make unit LONG=1` takes more.
"""

import pytest

from tests.commands import blocks
from tests.random_control import ControlComparison, report


@pytest.mark.parametrize("block", blocks(1, 32))
def test_block_of_six(block):
    checked = 0
    for seed in range(6 * block, 6 * block + 6):
        comparison = ControlComparison(seed, alone=True)
        assert not comparison.found, report(seed, comparison)
        checked += comparison.checked
    assert checked >= 90
