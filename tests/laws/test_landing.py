"""The first page: everything on it is made, and agrees with what there is."""

import re
import struct

import pytest

from book.helper.figures import FLOORS
from book.helper.rides import Storey, ride
from book.tools import card, landing, owner, pages
from book.tools.source import ROOT, read_chapters


@pytest.fixture(scope="module")
def page():
    """The text of the first page."""
    return landing.page()


def test_picture_agrees_with_the_package():
    made = {landing.PICTURE: landing.picture().svg, landing.FAVICON: landing.favicon()}
    for path, svg in made.items():
        stored = (ROOT / path).read_text(encoding="utf-8")
        assert stored == svg, f"run `make book` and commit {path}"


def test_each_floor_is_in_the_contents_with_minutes(page):
    for chapter in read_chapters():
        if chapter.floor.is_spine:
            assert re.search(rf"\(chapters/{chapter.name}.ipynb\).* minutes", page)


def test_slots_are_filled(page):
    assert "<!--" not in page and page.startswith("# ")
    assert f"github/{owner.current()}/minijax/blob/{owner.reference()}/chapters" in page
    assert len(re.findall(r":::\{button-", page)) == 3


def test_the_parts_of_the_lift_are_those_of_the_contents():
    parts = dict.fromkeys(floor.part for floor in FLOORS)
    assert [part.replace("  ", " · ") for part in parts] == [p for _, p in pages.PARTS]


def test_a_ride_needs_a_storey_with_a_text():
    with pytest.raises(ValueError, match="no storey"):
        ride("x", [Storey("V", "to come")])


@pytest.mark.parametrize(
    "text, name",
    [
        ("https://github.com/OWNER/minijax", "OWNER"),
        ("git+https://github.com/a.b/minijax@main", "a.b"),
        ("https://colab.research.google.com/github/me/minijax/blob", "me"),
        ("https://you-2.github.io/minijax/", "you-2"),
        ("https://github.com/jax-ml/jax", None),
    ],
)
def test_addresses_are_found(text, name):
    assert owner.ADDRESS.findall(text) == ([name] if name else [])


def test_the_card_of_links_is_that_of_today():
    png = card.PICTURE.read_bytes()
    assert card.stored(png) == card.digest(landing.card()), "run `make card`, commit"
    assert struct.unpack(">II", png[16:24]) == landing.CARD


def test_a_picture_keeps_the_hash_of_its_text():
    png = card.PICTURE.read_bytes()
    assert card.stored(card.label(png, "<svg/>")) == card.digest("<svg/>")
    assert card.stored(b"") == ""
