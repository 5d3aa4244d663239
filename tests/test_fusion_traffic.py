"""Fusion leaves no more kernels, and moves no more bytes, than the table says."""

import itertools

import pytest

from minijax.fusion.fusion_pass import fuse
from tests import fusion_traffic


@pytest.mark.filterwarnings("ignore")
def test_no_more_kernels_and_bytes_than_recorded():
    programs = itertools.islice(fusion_traffic.programs(), 0, None, 8)
    rows = {name: fusion_traffic.summary(fuse(each)) for name, each in programs}
    assert len(rows) > 120
    assert not fusion_traffic.more(rows, fusion_traffic.recorded())


def test_a_row_that_has_grown_is_found():
    table = {"a": (2, 100, 0, 0), "b": (1, 50, 0, 0)}
    rows = {"a": (2, 101, 0, 0), "b": (1, 50, 9, 0), "c": (3, 3, 0, 0)}
    assert fusion_traffic.more(rows, table) == ["a"]
    assert len(fusion_traffic.differences(rows, table)) == 2
