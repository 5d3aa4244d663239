"""The budget of a page that a reader walks from beginning to end."""

import re

import pytest

from book.tools import spine
from book.tools.source import chapter_paths, read_chapter
from tests.laws.drafts import draft

PATHS = chapter_paths()
NAMES = [path.stem for path in PATHS]
MANY = "> " + "word " * 3000


@pytest.mark.parametrize("path", PATHS, ids=NAMES)
def test_page_keeps_its_budget(path):
    found = spine.faults(read_chapter(path))
    assert not found, "\n".join(found)


def test_measure(tmp_path):
    shown = '#| export m\n"""Doc.\n\nMore."""\nimport os\n\n\ndef f():\n    pass'
    folded = "#| export m\ng = 1\nh = 2", "hide-cell"
    picture = "figures.lift(2)", "hide-input"
    row = spine.measure(draft(tmp_path, 2, "> two words", shown, folded, picture, "1"))
    expected = {"exported": 3, "folded": 2, "code": 4, "cell": 3, "folds": 1}
    # The title of the page has five words: the sharp sign and the dot count.
    assert vars(row) == {"words": 7, "untitled": 0} | expected


CODE = "#| export m\n" + "x = 1\n" * 25
USED = "#| export m\nx = 1"


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ([MANY], None),
        (["> Few words."], r"floor2.md: 7 words, not 1800 to 5200; the page explains"),
        (
            [MANY, MANY],
            r"6005 words, not 1800 to 5200; move sections to 02_floor2_rest",
        ),
        (
            [MANY, CODE + "y = 2", "print(y)"],
            r"floor2.md:\d+ .*a cell of 26 lines, at most 25; cut",
        ),
        (
            [MANY, *[CODE] * 11, "print(x)"],
            r"275 exported lines shown, at most 250; move modules",
        ),
        ([MANY, *["x = 1\n" * 20] * 26], r"520 lines of code shown, at most 500"),
        ([MANY, *[(CODE, "hide-cell")] * 5], r"5 folds of exported code, at most 4"),
        ([MANY, ("print()", "hide-input")], r"a fold without a title"),
        ([MANY, USED, "x + 1", "> ## On", USED, "x + 2"], None),
        (
            [MANY, USED, "> ## On", "x + 1"],
            r"floor2.md:\d+ .*no cell uses this one; add one below",
        ),
    ],
)
def test_a_broken_budget_is_refused(tmp_path, cells, message):
    found = spine.faults(draft(tmp_path, 2, *cells))
    assert len(found) == (message is not None), found
    assert not message or re.search(message, found[0])


def test_back_rooms_and_the_prologue_need_titles_only(tmp_path):
    untitled = "print()", "hide-input"
    for number in (0, "2_rest", "2_ground"):
        page = draft(tmp_path, number, *["x = 1\n" * 40] * 20, untitled)
        [fault] = spine.faults(page)
        assert "fold without a title" in fault


def test_the_table_has_a_line_for_each_page(tmp_path):
    lines = spine.table([draft(tmp_path, n, MANY) for n in (2, 3)]).split("\n")
    assert [line.split()[0] for line in lines] == ["page", "02_floor2", "03_floor3"]
