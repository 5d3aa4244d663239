"""The picture of two loops that exchange rows."""

import pytest

from minijax_book import figures


def test_both_loops_and_what_goes_between_them():
    figure = figures.exchange(["x0", "x1"], ["h0", "h1", "h2"], ["r0", "r1"], "abc")
    assert "takes x0, x1, carries h0, h1, h2 and hands in the rows r0, r1" in figure.alt
    assert "from the last to the first and carries c, b, a" in figure.alt


def test_the_second_loop_begins_at_the_last_row():
    figure = figures.exchange(["x", "y"], "hij", ["r", "s"], "abc")
    middle = {(node.label, round(node.y)): node.x for node in figure.nodes}
    heights = sorted({y for label, y in middle if label.startswith("step")})
    assert len(heights) == 2
    upper, lower = heights
    assert middle["step 0", upper] == middle["step 1", lower]
    assert middle["step 0", lower] == middle["step 1", upper]


def test_numbers_of_rows_have_to_agree():
    with pytest.raises(ValueError):
        figures.exchange(["x"], ["h", "i"], [], ["a", "b"])
    with pytest.raises(ValueError):
        figures.exchange(["x"], ["h", "i"], ["r"], ["a"])
