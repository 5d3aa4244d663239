"""The picture of running combinations: columns are elements, rows are rounds."""

import pytest

from minijax_book import figures

FOUR = [
    ((0, 0), (1, 1)),
    ((2, 2), (3, 3)),
    ((0, 1), (2, 3)),
    ((0, 1), (2, 2)),
]


def test_what_can_be_made_together_stands_in_one_row():
    figure = figures.prefix_tree(FOUR)
    tops = {node.label: node.y for node in figure.nodes}
    assert tops["0…1"] == tops["2…3"] > tops["0"] == tops["3"]
    assert tops["0…3"] == tops["0…2"] > tops["0…1"]
    assert "round 1: 0 with 1, 2 with 3; round 2: 0…1 with 2…3, 0…1" in figure.alt


def test_a_stretch_stands_below_its_last_element():
    lefts = {node.label: node.x for node in figures.prefix_tree(FOUR).nodes}
    assert lefts["0…3"] == lefts["2…3"] == lefts["3"] > lefts["0…2"] == lefts["2"]


def test_stretches_are_neighbours_that_are_there():
    with pytest.raises(ValueError, match="no neighbours"):
        figures.prefix_tree([((0, 0), (2, 2))])
    with pytest.raises(ValueError, match="not been put together"):
        figures.prefix_tree([((0, 1), (2, 2))])
