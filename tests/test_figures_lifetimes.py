"""Pictures of memory over time."""

import xml.etree.ElementTree as ElementTree

from minijax_book import figures

BANDS = [
    ("argument 0", 400, [("x", -1, 3, 0, 400)], "neutral"),
    ("arena", 800, [("a", 0, 1.5, 0, 400), ("b", 1, 3, 400, 400)]),
]


def test_boxes():
    figure = figures.lifetimes(BANDS, 3)
    ElementTree.fromstring(figure.svg)
    assert figure.svg.count('class="f-device-soft s-device"') == 2
    assert "arena, 800 bytes: a at 0 from 0 to 1.5, b at 400 from 1 to 3" in figure.alt
    assert [text.label for text in figure.texts[-3:]] == ["0", "1", "2"]


def test_nothing_and_a_lot():
    assert "no memory" in figures.lifetimes([], 0).alt
    many = [(f"m{k}" * 9, 10, [("y" * 40, k, k + 1, 0, 10)]) for k in range(40)]
    for figure in (figures.lifetimes(BANDS, 3), figures.lifetimes(many, 60)):
        for box in figure.texts:
            assert box.x >= 0 and box.x + box.width <= figure.width
            assert box.y >= 0 and box.y + box.height <= figure.height
