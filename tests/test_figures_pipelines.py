"""The picture of the whole pipeline."""

import pytest

from minijax_book import figures
from minijax_book.pipelines import PARTS, Part


@pytest.mark.parametrize("part", PARTS)
def test_each_part_can_be_lit(part):
    figure = figures.pipeline(part.name)
    assert f"Today: {part.name}, {part.says}" in figure.alt
    assert figure.svg.count('stroke="#a95000"') == 1  # the tone of what is lit


def test_several_parts_and_what_is_said():
    figure = figures.pipeline(("fusion", "memory plan"), says="one loop instead of six")
    assert "Today: fusion, one loop instead of six; memory plan, where" in figure.alt
    assert "one loop instead of six" in figure.svg


def test_all_parts_are_there_in_order():
    figure = figures.pipeline()
    assert " → ".join(part.name for part in PARTS) in figure.alt
    assert "Today" not in figure.alt
    assert [box.label for box in figure.nodes] == [part.name for part in PARTS]
    assert figure.width <= 720  # the text column of a page


def test_other_parts():
    own = [Part("text", "letters"), Part("parse", "of it a tree", True)]
    assert (
        "text → parse. Today: parse, of it a tree"
        in figures.pipeline("parse", parts=own).alt
    )


def test_an_unknown_part():
    with pytest.raises(ValueError, match="no part is called 'fuse'.* fusion"):
        figures.pipeline("fuse")


def test_nothing_is_cut_off():
    assert "…" not in figures.pipeline([part.name for part in PARTS]).svg
