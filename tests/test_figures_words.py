"""Pictures of memory as words, and tables of recorded times."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from minijax_book import figures, records

ROOT = Path(__file__).resolve().parents[1]
TABLES = [
    ("array", 4096, [("references", "some"), ("buffer", 8192), ("ndim", 1)]),
    ("buffer", 8192, [("data", 2**40), ("owner", 4096), ("self", 8192)]),
]


def test_words():
    figure = figures.words(TABLES, {"array": "primal"})
    ElementTree.fromstring(figure.svg)
    assert "array: references some, buffer → buffer, ndim 1" in figure.alt
    assert "data an address, owner → array" in figure.alt
    for box in figure.texts:
        assert box.x >= 0 and box.x + box.width <= figure.width
        assert box.y >= 0 and box.y + box.height <= figure.height


def test_nothing():
    assert "nothing" in figures.words([]).alt


def test_recorded_rows():
    shown = figures.recorded("sin f32, 1e5", "matrix product")
    names = [row[0] for row in shown.rows]
    assert names[:2] == ["sin f32, 1e5", "matrix product, 16"] and len(names) == 8
    assert shown.caption.startswith("Recorded on 20") and "JAX" in shown.caption
    with pytest.raises(ValueError, match="nothing was recorded of a row"):
        figures.recorded("a row")


def test_the_copy_is_the_record():
    if not (ROOT / "benchmarks").exists():
        pytest.skip("the package alone")
    original = ROOT / "benchmarks" / "recorded.json"
    assert records.RECORD.read_text("utf-8") == original.read_text("utf-8")
