"""Lanes: what passes between a function and its traces, in order."""

import xml.etree.ElementTree as ElementTree

import pytest

from minijax_book import figures

NAMES = ["f", "WatchTrace", "EvalTrace"]
EVENTS = [(1, "mul"), (2, "mul"), (-2, "1.00"), (-1, "1.00"), (1, "tanh"), (-1, "0.76")]


def test_operations_go_down_and_results_come_up():
    figure = figures.lanes(NAMES, EVENTS)
    ElementTree.fromstring(figure.svg)
    assert "mul goes down to WatchTrace; mul goes down to EvalTrace" in figure.alt
    assert "1.00 comes up from EvalTrace; 1.00 comes up from WatchTrace" in figure.alt
    for box in figure.texts:
        assert box.x >= 0 and box.x + box.width <= figure.width
        assert box.y >= 0 and box.y + box.height <= figure.height


def test_what_goes_straight_on_is_one_line():
    boxes = figures.lanes(NAMES, EVENTS).texts[len(NAMES) :]
    down, on, up, back, *_ = (box.x for box in boxes)
    assert down == on < up == back


def test_a_role_must_exist():
    with pytest.raises(ValueError, match="unknown role"):
        figures.lanes(NAMES, EVENTS, {"f": "pink"})
