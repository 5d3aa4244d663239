"""Pictures of keys and of calls."""

import xml.etree.ElementTree as ElementTree

from minijax_book import figures

ROWS = [
    ("f(a, 2)", {"tree": "(*,)", "avals": "f32[3]", "static": "n = 2"}),
    ("f(b, 2)", {"tree": "(*,)", "avals": "i32[3]", "static": "n = 2"}),
    ("f(c)", {"tree": "(*,)", "avals": "i32[3]"}),
]


def test_keys_show_what_changed():
    figure = figures.keys(ROWS)
    ElementTree.fromstring(figure.svg)
    assert len(figure.nodes) == 8
    assert figure.svg.count('class="f-warn-soft s-warn"') == 1
    assert "f(b, 2): (*,), i32[3], n = 2" in figure.alt


def test_visits_show_the_first_of_each_key():
    figure = figures.visits(["a", "b", "a", "a"])
    ElementTree.fromstring(figure.svg)
    assert figure.svg.count('class="f-warn s-warn"') == 2
    assert "a: 3 calls, first call 1, b: 1 calls, first call 2" in figure.alt


def test_nothing_to_draw():
    assert "no keys" in figures.keys([]).alt
    assert "no calls" in figures.visits([]).alt


def test_texts_stay_inside():
    for figure in (figures.keys(ROWS), figures.visits(["a", "b" * 80])):
        for box in figure.texts:
            assert box.x >= 0 and box.x + box.width <= figure.width
            assert box.y >= 0 and box.y + box.height <= figure.height
