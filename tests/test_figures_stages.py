"""The picture of one program in its stages."""

import xml.etree.ElementTree as ElementTree

from minijax_book import figures

ROWS = [
    [("jaxpr", "look a\nb = mul a a")],
    [("known half", "look a\nb = mul a a"), ("linear half", "d = mul b a")],
]


def test_stages():
    figure = figures.stages(ROWS, "look")
    ElementTree.fromstring(figure.svg)
    assert "jaxpr: look a; known half: look a; linear half: none" in figure.alt
    assert figure.svg.count("M") >= 2
    for box in figure.texts:
        assert box.x >= 0 and box.x + box.width <= figure.width
        assert box.y >= 0 and box.y + box.height <= figure.height


def test_no_stages():
    assert "no stages" in figures.stages([], "look").alt
