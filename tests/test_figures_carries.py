"""The picture of a carry that goes round."""

import pytest

from minijax_book import figures


def test_the_condition_is_asked_once_more_than_the_body_runs():
    figure = figures.carry(["2", "1.5", "1.4"], ["yes", "yes", "no"])
    labels = [node.label for node in figure.nodes]
    assert [label for label in labels if label.startswith("round")] == [
        "round 0",
        "round 1",
    ]
    assert "round by round: 2 (yes), 1.5 (yes), 1.4 (no)" in figure.alt


def test_a_loop_without_a_round():
    figure = figures.carry(["1"], ["no"])
    assert [node.label for node in figure.nodes] == ["1", "no"]


def test_each_carry_has_its_answer():
    with pytest.raises(ValueError):
        figures.carry(["1", "2"], ["no"])
