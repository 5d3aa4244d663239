"""Plots: the same text each time, words of their own, colours that follow the page."""

import re
import xml.etree.ElementTree as ElementTree

import pytest

from minijax_book import figures, plots

matplotlib = pytest.importorskip("matplotlib")


def plot(panels=1, **words):
    """A plot with a curve, two names and a picture's worth of words."""
    from matplotlib.figure import Figure

    with matplotlib.rc_context():
        figures.plot_style()
        figure = Figure()
        for panel in figure.subplots(1, panels, squeeze=False).flat:
            panel.plot([1, 2, 3], [1, 4, 9], marker="o", label="squares")
            panel.plot([1, 2], [2, 2])
            panel.set(xlabel="x & y", ylabel="value", **words)
        return plots.draw(figure)


def test_words_are_those_of_the_plot():
    assert plot().alt == "Plot. value against x & y: squares"
    assert plot(title="Growth").alt == "Growth. value against x & y: squares"
    each = "A: value against x & y: squares"
    assert plot(2, title="A").alt == f"Plot. {each}; {each}"


def test_a_plot_is_the_same_text_each_time_and_is_xml():
    first = plot().svg
    assert first == plot().svg and "<metadata" not in first
    root = ElementTree.fromstring(first)
    assert [child.tag.rpartition("}")[2] for child in root][:2] == ["title", "desc"]


def test_names_are_referred_to():
    svg = plot().svg
    for name in re.findall(r' id="([^"]+)"', svg):
        assert len(re.findall(rf"#{name}\b|labelledby=[^>]*{name}", svg)) >= 1, name


def test_colours_follow_the_page():
    svg = plot().svg
    body = svg[svg.index("<defs>") :]
    used = {*re.findall(r"(?:fill|stroke): (#\w+)", body)}
    assert "var(--mjf-primal, #1a67a8)" in body and "var(--mjf-ink" in body
    assert not used & {light for light, _ in figures_palette().values()}


def figures_palette():
    """The palette of the book."""
    from minijax_book.svg import PALETTE

    return PALETTE


def test_outside_of_notebooks_nothing_is_shown():
    assert plots.show_in_notebooks() is None
