"""The course: stubs, checks that notice what is wrong, the way from page to page."""

import ast
import re
import sys

import nbformat
import pytest

from book.course import __main__ as command
from book.course import assignments, folder
from book.course.checks import (
    Failure,
    Verdict,
    _block,
    _lower,
    _suspects,
    check,
    expected_results,
    files_in,
    runner,
)
from book.course.run import Result, _noted, agrees
from book.course.stage import _inserted, amended, spines, stage
from book.course.stubs import TO_WRITE, Work, filled, is_put_back, pieces, stubbed
from book.tools import files
from book.tools.source import PACKAGE, BookError, floor
from tests.commands import LONG
from tests.course_mutants import Mutant, is_named, mutants, verdict_on

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


def test_statements_that_only_lose_their_sign_are_counted_apart(work):
    back = [piece.name for piece in pieces(MODULE, work) if is_put_back(piece)]
    assert back == ["unit", "TABLE['unit']"]


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


SLIPS = {
    "RuleTable.__init__": ("        rule_tables.append(self)\n", ""),
    "Primitive.bind": (
        "results if self.multiple_results else results[0]",
        "results[0]",
    ),
}


@pytest.mark.parametrize("name", SLIPS)
def test_what_a_reader_got_past_chapter_1_is_noticed(name, runs):
    at = stage(floor("1"))
    text = at.reference["core.py"]
    assert text.count(SLIPS[name][0]) == 1
    wrong = Mutant("core.py", name, "by a reader", text.replace(*SLIPS[name]))
    verdict = verdict_on(wrong, at, runs)
    assert not verdict.passed and is_named(wrong, verdict)


def test_suspects_of_the_page_come_first_and_the_latest_of_them():
    at = stage(floor("1"))
    text = at.reference["core.py"]
    lines = text.split("\n")

    def place(line):
        return "core.py", lines.index(line) + 1

    bind, scope = (
        place("    def bind(self, *args, **params):"),
        place("def trace_scope(trace):"),
    )
    lower = "_registry.py", 3
    texts = {"core.py": text, "_registry.py": "import math\n\nsize = math.pi\n"}

    def found(trail, *ran):
        noted = [Result(n, "", "", [], places) for n, places in enumerate(ran, start=1)]
        named = _suspects(at, texts, trail, noted, len(ran))
        return [re.sub(r".*: (\S+) \(.*", r"\1", text) for text in named]

    every = [lower, bind, scope]
    assert found([], [bind, lower], [scope], every) == [
        "trace_scope",
        "Primitive.bind",
        "size",
    ]
    assert found([], [bind, scope], every)[0] == "size"  # ran for the first time
    fresh = [[]] * (len(at.chapter.cells) - 1)  # the latest on the page first
    assert found([], *fresh, [bind, scope]) == ["trace_scope", "Primitive.bind"]
    assert found([bind, lower], []) == ["size", "Primitive.bind"]  # raised there
    assert found([bind, lower, scope], [])[:2] == ["trace_scope", "Primitive.bind"]


def test_errors_that_come_through_lower_pages_of_the_reader_are_placed(tmp_path):
    at = stage(floor("3"))
    put(tmp_path, at.reference)
    path = tmp_path / PACKAGE / "arrays" / "array.py"
    path.write_text(path.read_text() + "\nmine = 1\n")
    trail = [("arrays/array.py", 150), ("core.py", 60), ("numpy/array_methods.py", 80)]
    assert [*_lower(tmp_path, at, trail)] == ["arrays/array.py"]


def test_a_cell_that_watches_calls_is_watched_itself(tmp_path):
    file, space = tmp_path / PACKAGE / "a.py", {}
    exec(compile("def f():\n    return 1\n", str(file), "exec"), space)
    codes, seen = set(), []
    before = sys.setprofile
    with _noted(codes, tmp_path / PACKAGE):
        sys.setprofile(lambda frame, event, _: seen.append(frame.f_code.co_name))
        space["f"]()
        sys.setprofile(None)
    assert codes == {space["f"].__code__} and "f" in seen
    assert sys.setprofile is before


def test_of_long_texts_the_lines_around_the_difference_are_shown():
    text = "\n".join(map(str, range(40)))
    assert _block(text)[-2:] == ["    12", "    …"]
    assert len(_block("a" * 10_000)[0]) < 500
    around = _block(text, 20)
    assert around[0] == around[-1] == "    …" and "    20" in around
    assert len(around) == len(_block(text)) and _block(text, 39)[-1] == "    39"
    failure = Failure("print(x)", "Here", "a.md:1", text, text.replace("25", "twenty"))
    assert "    twenty" in str(Verdict("1", 0, 1, [], failure))


def test_a_lower_page_waits_for_what_a_higher_one_has_to_write():
    failure = Failure("f()", "Here", "a.md:1", "", "", missing="explain, chapter 8")
    assert "Next to write: explain" in str(Verdict("8", 0, 1, [], failure))
    failure.page = "7"
    told = str(Verdict("7", 0, 1, [], failure, skipped=2))
    assert "Chapter 7 can be checked again when this is written: explain" in told
    assert "fail on ours too: 2." in told


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
    assert "`#>` is a statement to put back" in capsys.readouterr().out
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
    with monkeypatch.context() as patch:
        patch.setattr(folder, "look", lambda *_: Verdict("2", 1, 1, [], None))
        assert command.main(["check"]) == 0
        assert "`next` goes on" in capsys.readouterr().out
    assert command.main(["show", "Primitive.bind_all"]) == 0
    assert "check_leaked_tracers(self, args)" in capsys.readouterr().out
    with pytest.raises(BookError, match="`next` goes on"):
        command.main(["check", "3"])
    with pytest.raises(BookError, match="define no nonsense"):
        command.main(["show", "nonsense"])
    with pytest.raises(BookError, match="not empty"):
        command.main(["start", str(mine)])


def test_what_a_page_amends_is_the_readers_to_amend(tmp_path):
    put(tmp_path, stage(floor("7")).reference)
    module = tmp_path / PACKAGE / "jaxprs/jaxpr.py"
    module.write_text(module.read_text() + "\n\ndef mine():\n    return 1\n")
    said = "\n".join(folder.move_on(tmp_path, stage(floor("7"))))
    assert "jaxprs/jaxpr.py: 07_jaxprs_rest has amended make_jaxpr" in said
    assert "does not agree" not in said
    at, text = stage(floor("8")), module.read_text()
    [cell] = at.foreign
    assert all(at.mark(cell, name) in text for name in cell.amends)
    inside = text.partition("class EquationTrace(")[2].partition("\nclass ")[0]
    assert "#> amend EquationTrace.record (" in inside  # and not above the class
    assert "def mine()" in text
    left = [name for name in at.unwritten(files_in(tmp_path, at)) if "amended" in name]
    assert len(left) == len(cell.amends)
    made = at.filled(files_in(tmp_path, at))["jaxprs/jaxpr.py"]
    assert "eqn.source = source_info_hook.value()" in made and "def mine()" in text
    with pytest.raises(BookError, match="has no EquationTrace"):
        amended(text.replace("class EquationTrace(", "class Tape("), cell, at.whole)


def test_what_is_new_in_a_class_is_named_in_it():
    text = "class A:\n    x = 1\n\n    def f(self):\n        return 1\n"
    put_in = _inserted(text, "A.y", ["#> amend A.y (new here)"])
    assert put_in == text.replace("x = 1\n", "x = 1\n    #> amend A.y (new here)\n")
    put_in = _inserted(text, "A.f", ["#> amend A.f"])
    assert put_in == text.replace("    def f", "    #> amend A.f\n    def f")
    assert _inserted(text, "B.y", ["#> amend B.y"]) == text


def test_next_says_what_back_rooms_amend_and_what_breaks(tmp_path):
    at = stage(floor("2"))
    ours = at.reference["arrays/array.py"]
    stand = re.search(r"def _weak_scalar.*?\n\n", ours, re.S)[0]
    body = stand.partition("return ")[2]
    own = ours.replace(stand, f"def _weak_scalar(kind):\n    return lambda x: {body}")
    said = {}
    for name, call in (
        ("late", "lambda x: _weak_scalar({})(x)"),
        ("early", "_weak_scalar({})"),
    ):
        text = own
        for kind in ("int", "float", "complex"):
            text = text.replace(f"lambda x: _weak_scalar({kind})", call.format(kind))
        put(tmp_path / name, at.reference | {"arrays/array.py": text})
        said[name] = "\n".join(folder.move_on(tmp_path / name, at))
        assert (
            "arrays/array.py: 02_arrays_rest has amended asbuffer, typeof" in said[name]
        )
    assert "chapter 2 does not agree any more" in said["late"]
    assert "arrays/array.py: aval_rules[" in said["late"]
    assert "could not be imported (NameError" in said["early"]
    assert "does not agree" not in said["early"]
    assert (
        tmp_path / "early" / "kept" / at.name / "arrays/array.py"
    ).read_text() == text


def test_names_that_later_pages_import_are_missed(runs):
    at = stage(floor("1"))
    text = at.reference["core.py"].replace("def trace_scope", "def scope_of_trace")
    [absent] = at.absent({"core.py": text})
    assert absent.startswith("core.py: trace_scope, for 0")


def test_an_assignment_is_a_notebook_without_answers(tmp_path, runs):
    at = stage(floor("1"))
    book = assignments.notebook(at)
    texts = [cell.source for cell in book.cells if cell.cell_type == "code"]
    assert sum(TO_WRITE in text for text in texts) >= 5
    assert "CountTrace" not in "".join(texts)
    path = tmp_path / "a.ipynb"
    [emptied] = [cell for cell in book.cells if "amend core Trace.life" in cell.source]
    emptied.source = emptied.source.partition("\n")[0]
    nbformat.write(book, path)
    with pytest.raises(BookError, match="Trace.life, Trace.alive, .*is still to write"):
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
