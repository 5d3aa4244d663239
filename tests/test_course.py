"""The course: stubs, checks that notice what is wrong, the way from page to page."""

import ast
import re

import nbformat
import pytest

from book.course import __main__ as command
from book.course import assignments, folder
from book.course.checks import check, expected_results, files_in, runner
from book.course.run import Result, agrees
from book.course.stage import amended, spines, stage
from book.course.stubs import TO_WRITE, Work, filled, stubbed
from book.tools import files
from book.tools.source import PACKAGE, BookError, floor
from tests.commands import LONG
from tests.course_mutants import is_named, mutants, verdict_on

# Each takes seconds; `LONG=1` walks all pages.
PAGES = spines() if LONG else [floor("1")]
WRONG, TRIED = 5, 12  # wrong versions that must be noticed, of so many at most
MODULE = '''"""A module."""
import math

TABLE = {}
KINDS = ("a", "b")


@cached
def area(r):
    """The area of a circle."""
    return math.pi * r**2


class Circle:
    """A circle."""

    sides = 0
    size = property(lambda self: area(self.r))

    def __init__(self, r):
        # Its radius.
        self.r = r


unit = Circle(1)
TABLE["area"] = area
TABLE["size"] = TABLE["area"](1)
TABLE["unit"] = unit
'''
STUB = '''"""A module."""
import math

TABLE = {}
KINDS = ("a", "b")


# What a circle covers.
@cached
def area(r):
    """The area of a circle."""
    raise NotImplementedError(
        "to write: area, "
        "chapter 0, Circles"
    )


class Circle:
    """A circle."""

    sides = 0
    #> size = property(…)

    def __init__(self, r):
        raise NotImplementedError(
            "to write: Circle.__init__, "
            "chapter 0, Circles"
        )


#> unit = Circle(1)
TABLE["area"] = area
TABLE["size"] = TABLE["area"](1)
#> TABLE['unit'] = unit
'''


@pytest.fixture(scope="module")
def runs():
    """A process that runs pages."""
    with runner() as found:
        yield found


@pytest.fixture
def work():
    """What the reader of a small module writes."""
    where = dict.fromkeys(("area", "Circle"), "chapter 0, Circles")
    return Work.of([MODULE], where, {"area": "What a circle covers."}, set())


def put(folder, texts):
    for path, text in texts.items():
        files.write(folder / PACKAGE / path, text)


def test_stubs_keep_signatures_and_what_runs_without_them(work):
    assert stubbed(MODULE, work) == STUB


def test_stubs_are_filled_piece_by_piece(work):
    without_note = STUB.replace("# What a circle covers.\n", "")
    assert filled(without_note, MODULE, work) == MODULE
    own = "    return 3 * r * r\n"
    stub = re.compile(r"    raise .*?\n    \)\n", re.S)
    begun = stub.sub(own, without_note, count=1)
    assert own in filled(begun, MODULE, work)
    assert filled(begun, MODULE, work).count("raise") == 0


@pytest.mark.parametrize("page", [*PAGES, floor("3")][: len(spines())], ids=str)
def test_stubs_of_a_page_can_be_filled_with_ours(page):
    at = stage(page)
    left = at.unwritten(at.started)
    assert len(left) >= 5
    made = at.filled(at.started)
    assert at.unwritten({**at.started, **made}) == []
    for path, text in made.items():
        assert meaning(text) == meaning(at.reference[path]), path


def meaning(text):
    """The statements of a module, apart from its imports, in any order."""
    body = ast.parse(text).body
    kept = [n for n in body if not isinstance(n, ast.Import | ast.ImportFrom)]
    return sorted(map(ast.dump, kept))


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_ours_passes_and_an_empty_stub_does_not(page, runs, tmp_path):
    at = stage(page)
    put(tmp_path / "ours", at.reference)
    verdict = check(at, tmp_path / "ours", runs)
    assert verdict.passed and verdict.judged >= 0.8 * len(at.chapter.cells)
    put(tmp_path / "stub", at.started)
    verdict = check(at, tmp_path / "stub", runs)
    assert not verdict.passed and verdict.unwritten == at.unwritten(at.started)
    assert f"chapter {page}," in str(verdict) and "Next to write" in str(verdict)


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_wrong_versions_are_noticed_and_named(page, runs):
    at, told = stage(page), []
    for mutant in mutants(at)[:TRIED]:
        verdict = verdict_on(mutant, at, runs)
        if not verdict.passed and is_named(mutant, verdict):
            told.append(str(verdict))
        if len(told) == WRONG:
            break
    assert len(told) == WRONG
    assert all("section" in text and f"chapter {page}" in text for text in told)


def test_what_fails_on_ours_is_not_judged_and_times_are_not_compared():
    fine, other = Result(1, "1", "", [], []), Result(1, "2", "", [], [])
    failed = Result(1, "", "TypeError: no", [], [])
    assert agrees(fine, fine) and not agrees(other, fine)
    assert agrees(failed, failed) and not agrees(failed, fine)
    slow, clocked = fine._replace(error="AssertionError: "), fine._replace(printed=None)
    assert agrees(other, clocked) and agrees(slow, clocked)
    assert not agrees(failed, clocked)


def test_a_reader_goes_on_with_ours(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(command, "LAST", tmp_path / "last")
    mine = tmp_path / "mine"
    assert command.main(["start", str(mine)]) == 0
    assert command.main(["check"]) == 1
    assert "Next to write: Primitive" in capsys.readouterr().out
    core = mine / PACKAGE / "core.py"
    text = core.read_text()
    stub = r"raise NotImpl[^)]*Primitive.__init__[^)]*\)"
    core.write_text(re.sub(stub, "self.name = name", text))
    assert command.main(["next"]) == 1
    assert "`next --ours`" in capsys.readouterr().out
    assert command.main(["next", "--ours"]) == 0
    assert "Chapter 2" in capsys.readouterr().out
    assert "self.name = name" in core.read_text() and TO_WRITE not in core.read_text()
    assert (mine / PACKAGE / "arrays" / "array.py").read_text().count(TO_WRITE) >= 5
    assert command.main(["show", "Primitive.bind_all"]) == 0
    assert "check_leaked_tracers(self, args)" in capsys.readouterr().out
    with pytest.raises(BookError, match="`next` goes on"):
        command.main(["check", "3"])
    with pytest.raises(BookError, match="define no nonsense"):
        command.main(["show", "nonsense"])
    with pytest.raises(BookError, match="not empty"):
        command.main(["start", str(mine)])


def test_what_a_page_amends_is_the_readers_to_amend(tmp_path):
    put(tmp_path, stage(floor("2")).reference)
    core = tmp_path / PACKAGE / "core.py"
    core.write_text(core.read_text() + "\n\ndef mine():\n    return 1\n")
    folder.move_on(tmp_path, stage(floor("2")))
    at, text = stage(floor("3")), core.read_text()
    [cell] = at.foreign
    assert all(at.mark(cell, name) in text for name in cell.amends)
    assert "def mine()" in text
    left = [name for name in at.unwritten(files_in(tmp_path, at)) if "amended" in name]
    assert len(left) == len(cell.amends)
    made = at.filled(files_in(tmp_path, at))
    assert "__array_priority__ = " in made["core.py"] and "def mine()" in text
    with pytest.raises(BookError, match="has no Array"):
        amended(text.replace("class Array(", "class Values("), cell, at.whole)


def test_names_that_later_pages_import_are_missed(runs):
    at = stage(floor("1"))
    text = at.reference["core.py"].replace("def trace_scope", "def scope_of_trace")
    [absent] = at.absent({"core.py": text})
    assert absent.startswith("core.py: trace_scope, for 0")


def test_an_assignment_is_a_notebook_without_answers(tmp_path, runs):
    at = stage(floor("1"))
    book = assignments.notebook(at)
    texts = [cell.source for cell in book.cells if cell.cell_type == "code"]
    assert sum(TO_WRITE in text for text in texts) >= 6
    assert "CountTrace" not in "".join(texts)
    path = tmp_path / "a.ipynb"
    nbformat.write(book, path)
    with pytest.raises(BookError, match="Trace.life, Trace.alive is still to write"):
        assignments.files_of(at, path)
    ours = {c.index: c.text.replace("#| amend", "%%amend") for c in at.chapter.cells}
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    for number, cell in enumerate(code, start=1):
        if cell.source.startswith(("#| export", "%%amend")) or number > len(code) - 2:
            cell.source = ours[number]
    nbformat.write(book, path)
    made, answers = assignments.files_of(at, path)
    assert meaning(made["core.py"]) == meaning(at.reference["core.py"])
    assert len(answers) == 2
    book.cells = [cell for cell in book.cells if "class Primitive" not in cell.source]
    nbformat.write(book, path)
    with pytest.raises(BookError, match="keep each, and its first line"):
        assignments.files_of(at, path)


def test_solutions_of_readers_are_tried(runs, tmp_path):
    at = stage(floor("1"))
    number, cell = 1, at.solutions[1]
    put(tmp_path, at.reference)
    wrong = cell.text.replace("0) + 1", "0) + 2")
    for text, said in ((cell.text, "Right"), (wrong, "Not the same yet")):
        verdict = check(at, tmp_path, runs, answers={str(cell.index): text})
        assert verdict.passed and said in verdict.exercises[0]
        assert f"Exercise {number}" in str(verdict)


def test_results_of_ours_are_kept(runs):
    at = stage(floor("1"))
    path = expected_results(at, at.chapter, runs)
    before = path.stat().st_mtime_ns
    assert expected_results(at, at.chapter, runs).stat().st_mtime_ns == before
