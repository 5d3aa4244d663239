"""One thread: `loss` and its eight examples are the same on every page."""

import re

import nbformat
import pytest

from book.tools.source import CHAPTERS, read_chapters

DATA = (
    "rng = np.random.default_rng(0)",
    'rng.normal(size=(8, 3)).astype("float32")',
    'rng.normal(size=8).astype("float32")',
    "[0.5, -1.0, 0.25]",
)
LOSS = "2.9855"  # what the prologue prints
LAST = 16  # the last chapter that has them; page 1 has no arrays
PAGES = [
    chapter
    for chapter in read_chapters()
    if chapter.floor.is_spine and chapter.floor.number <= LAST
]
THREADED = [page for page in PAGES if page.name != "01_interception"]


@pytest.mark.parametrize("page", THREADED, ids=lambda page: page.name)
def test_a_page_has_the_examples_and_calls_its_function(page):
    code = "\n\n".join(cell.code for cell in page.cells)
    places = [code.find(line) for line in DATA]
    assert -1 not in places, "the examples of the prologue are not on this page"
    assert places == sorted(places)
    assert re.search(r"\bloss\(\w+, x, y\)", code)


@pytest.mark.parametrize("page", THREADED, ids=lambda page: page.name)
def test_its_value_is_the_prologues(page):
    assert LOSS in printed(page.name)


def test_the_gradient_comes_back():
    gradient = re.search(r"Array\(\[(.*?)\], dtype", printed("00_prologue"))[1]
    numbers = re.findall(r"-?\d\.\d{4}", gradient)
    assert len(numbers) == 3
    for name in ("04_forward", "10_reverse"):
        assert all(number in printed(name) for number in numbers), name


def printed(name):
    """Everything that the cells of a page have printed."""
    book = nbformat.read(CHAPTERS / f"{name}.ipynb", as_version=4)
    outputs = [o for cell in book.cells for o in cell.get("outputs", ())]
    texts = [o.get("text") or o.get("data", {}).get("text/plain", "") for o in outputs]
    return "\n".join(texts)
