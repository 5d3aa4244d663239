"""Random programs mean the same in minijax and in JAX: see `tests.random_programs`."""

import pytest

pytest.importorskip("jax")

from tests.random_programs import Comparison


@pytest.mark.parametrize("block", range(15))
def test_block_of_ten(block):
    comparisons = [Comparison(seed) for seed in range(10 * block, 10 * block + 10)]
    assert sum(comparison.checked for comparison in comparisons) > 70
    found = [text for comparison in comparisons for text in comparison.found]
    assert not found, "\n\n".join(found)
