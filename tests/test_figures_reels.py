"""Pictures that a reader steps through."""

import re
import xml.etree.ElementTree as ElementTree

import pytest

from minijax_book import figures


def pictures(count):
    ends = range(1, count + 1)
    return [(figures.timeline([("a", [("0", 0, k)])]), f"to {k} & on") for k in ends]


def test_reel_is_a_list_first():
    widget = figures.reel(pictures(3), "Longer & longer")
    body = re.sub(r"<(style|script)>.*?</\1>", "", widget.html, flags=re.S)
    root = ElementTree.fromstring(body.replace(" hidden>", ">"))
    assert root.get("aria-label") == "Longer & longer"
    items = list(root.iter("li"))
    assert [li.find("p").text for li in items] == [f"to {k} & on" for k in (1, 2, 3)]
    svg = "{http://www.w3.org/2000/svg}svg"
    assert len({ElementTree.tostring(li.find(svg)) for li in items}) == 3
    assert "2. to 2 & on" in widget.alt and "3 steps" in widget.alt
    assert widget.html == figures.reel(pictures(3), "Longer & longer").html


def test_controls_can_be_reached_by_keyboard():
    html = figures.reel(pictures(2), "Two").html
    assert html.count('<button type="button">') == 2
    assert 'type="range"' in html and 'aria-label="step"' in html


def test_a_reel_has_pictures():
    with pytest.raises(ValueError, match="'Nothing' has no pictures"):
        figures.reel([], "Nothing")
