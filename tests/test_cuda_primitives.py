"""What a card does itself of all primitives; a share of them, run there."""

import pytest

from minijax_book import emulator
from tests import cuda_primitives
from tests.commands import LONG


def test_the_host_does_what_is_listed_and_nothing_else():
    assert cuda_primitives.left_to_the_host() == {*cuda_primitives.BY_THE_HOST}


@pytest.mark.skipif(not emulator.is_there(), reason="no C++ compiler here")
def test_a_share_of_the_primitives():
    wrong, count = cuda_primitives.differences(every=1 if LONG else 23)
    assert not wrong and count >= 10
