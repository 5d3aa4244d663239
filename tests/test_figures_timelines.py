"""Pictures of who works when."""

import xml.etree.ElementTree as ElementTree

import pytest

from minijax_book import figures

ROWS = [("main", [("0", 0, 10), ("2", 10, 25, "warn")]), ("a helper", [("1", 5, 20)])]


def test_timeline():
    figure = figures.timeline(ROWS)
    ElementTree.fromstring(figure.svg)
    wanted = "main: 0 from 0 to 10, 2 from 10 to 25; a helper: 1 from 5 to 20"
    assert wanted in figure.alt
    for box in figure.texts:
        assert box.x >= 0 and box.x + box.width <= figure.width
        assert box.y >= 0 and box.y + box.height <= figure.height


def test_nobody():
    assert "nobody" in figures.timeline([]).alt
    assert "a: nothing" in figures.timeline([("a", [])]).alt


def test_roles_are_known():
    with pytest.raises(ValueError, match="unknown role"):
        figures.timeline([("a", [("0", 0, 1, "purple")])])
