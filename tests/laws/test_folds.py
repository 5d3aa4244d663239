"""Folded cells say what is in them, in their own words or in ours."""

import nbformat
import pytest

from book.tools import folds, notebook
from book.tools.source import BookError, read_chapters
from tests.laws.drafts import draft

EXERCISE = "> ## Exercises\n\n**1 ★ (5 minutes).** Do it."


def title(folder, *cell):
    """The title of a cell that is folded."""
    chapter = draft(folder, 2, cell)
    return folds.title(chapter, chapter.cells[0])


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("def f(): pass", "f"),
        ("_g = 1\ndef f(): pass\nh = 2", "f, h and _g"),
        ("a, b, c, d, e = range(5)", "a, b, c and 2 more"),
        ("neg_p, neg = unary()\nabs_p, abs = unary()", "neg and abs"),
        (f"def {'f' * 40}(): pass\ndef {'g' * 40}(): pass", f"{'f' * 40} and 1 more"),
        ("def _f(): pass\n_g = 1", "Helpers of floor2/m: _f and _g"),
        ("rules[x] = 1\nrules[y] = 2", "Entries of rules"),
        ('"""Doc."""\nimport math', "Imports of floor2/m"),
        ("__getattr__, __dir__ = namespace()", "The namespace minijax.floor2.m"),
    ],
)
def test_title_of_exported_code(tmp_path, code, expected):
    assert title(tmp_path, f"#| export m\n{code}", "hide-cell") == expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("figures.lift(2)", folds.PICTURE),
        ("figures.table([[1]])", folds.TABLE),
        ("fig, ax = plt.subplots()", folds.PICTURE),
        ("def helper(): pass", "helper"),
    ],
)
def test_title_of_an_example(tmp_path, code, expected):
    assert title(tmp_path, code, "hide-input") == expected


def test_a_written_title_comes_first(tmp_path):
    assert title(tmp_path, "x = 1", "hide-cell", "One number") == "One number"
    assert title(tmp_path, "print()", "hide-output", '"All lines"') == "All lines"


def test_solutions_are_called_so(tmp_path):
    solution = "x = 1", "hide-cell"
    chapter = draft(tmp_path, 2, solution, EXERCISE, solution, solution, solution)
    titles = [folds.title(chapter, cell) for cell in chapter.cells]
    assert titles == ["x", "Solution", "Solution, part 2", "Solution, part 3"]


def test_a_fold_that_says_nothing_is_refused(tmp_path):
    with pytest.raises(BookError, match=r"02_floor2.md:8 .*write `:title: "):
        title(tmp_path, "print(1)", "hide-cell")
    with pytest.raises(BookError, match="fold without a title"):
        notebook.convert(tmp_path / "02_floor2.md")


def test_a_title_without_a_fold_is_refused(tmp_path):
    with pytest.raises(BookError, match="tag it hide-cell"):
        draft(tmp_path, 2, ("x = 1", "gpu", "A number"))


@pytest.mark.parametrize("text", ["a: b", "x #2", "`x`", "[x]", "it's:", '"a'])
def test_a_title_that_yaml_reads_otherwise_is_refused(tmp_path, text):
    with pytest.raises(BookError, match=r"floor2.md:7: cannot read the title .*quotes"):
        draft(tmp_path, 2, ("x = 1", "hide-cell", text))


@pytest.mark.parametrize("text", ["52 more: all", "x #2", "(one), it's 2:1", "52"])
def test_the_notebook_has_the_title_of_the_text(tmp_path, text):
    wanted = f'"{text}"' if ": " in text or " #" in text else text
    draft(tmp_path, 2, ("x = 1", "hide-cell", wanted))
    book = notebook.convert(tmp_path / "02_floor2.md")
    assert book.cells[-1].metadata["mystnb"]["code_prompt_show"] == text


def test_titles_between_dashes(tmp_path):
    text = "```{code-cell}\n---\ntags: [hide-cell]\ntitle: A number\n---\nx = 1\n```\n"
    chapter = draft(tmp_path, 2, f"> {text}")
    assert chapter.cells[0].title == "A number"


def test_the_notebook_has_the_titles(tmp_path):
    draft(tmp_path, 2, "y = 1", ("x = 1", "hide-cell", "One number"))
    book = notebook.convert(tmp_path / "02_floor2.md")
    nbformat.validate(book)
    shown, folded = [c.metadata for c in book.cells if c.cell_type == "code"]
    assert "mystnb" not in shown and "title" not in folded
    assert folded["mystnb"]["code_prompt_show"] == "One number"


def test_every_fold_of_the_book_has_a_title():
    assert not [error for c in read_chapters() for error in folds.untitled(c)]
