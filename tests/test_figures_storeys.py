"""The picture of a friendly call over the strict operations it comes down to."""

import numpy as np

from minijax_book import figures

WHOLE, REAL = np.zeros((3, 4), "int32"), np.zeros((3, 4), "float32")
OPERATIONS = [("convert", [WHOLE], [REAL]), ("add", [REAL, REAL], [REAL])]


def test_the_call_is_above_its_operations():
    figure = figures.storeys("plus(a, b)", [WHOLE, REAL], OPERATIONS)
    call, *operations = figure.nodes
    assert [node.label for node in figure.nodes] == ["plus(a, b)", "convert", "add"]
    assert all(node.y > call.y + call.height for node in operations)
    assert len({(node.x, node.width) for node in figure.nodes}) == 1


def test_types_are_said():
    alt = figures.storeys("plus(a, b)", [WHOLE, REAL], OPERATIONS).alt
    assert "plus(a, b) of int32[3,4], float32[3,4] comes down to: convert" in alt
    assert "convert of int32[3,4] gives float32[3,4]; add of" in alt


def test_a_call_that_binds_nothing():
    assert "comes down to: nothing" in figures.storeys("a[:]", [REAL], []).alt
