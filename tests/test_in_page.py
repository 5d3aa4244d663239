"""Pages that run in a browser: what prepares them, and what runs their cells."""

import io
import json
import runpy
import subprocess
import sys
import tarfile
import zipfile

import pytest

from book.tools import in_page
from book.tools.source import ROOT, read_chapter

CELLS = ROOT / "book" / "web" / "run" / "cells.py"
PROGRAM = """
import json, sys
sys.path.insert(0, sys.argv[1])
import cells_of_page as page
for cell in json.load(open(sys.argv[2])):
    for kind, text in json.loads(page.run(cell["source"], cell["number"])):
        if kind == "error":
            sys.exit(f"cell {cell['number']}: {text}")
import minijax
assert minijax.__file__.startswith(sys.argv[1]) and "llvmlite" not in sys.modules
answers = [cell["source"] for cell in json.load(open(sys.argv[2])) if cell["solution"]]
for answer in answers:
    print(page.check(answer, answer))
"""


@pytest.fixture
def page():
    """The module that runs cells, as a page has it; names of this process stay."""
    was = sys.modules["__main__"]
    found = runpy.run_path(str(CELLS))
    yield found
    sys.modules["__main__"] = was


def outputs(page, source, number=1):
    return json.loads(page["run"](source, number))


def test_values_are_displayed_and_prints_kept_in_order(page):
    source = "print('a')\ndisplay(1)\nprint('b')\n2 + 3"
    wanted = [["text/plain", text] for text in ("a\n", "1", "b\n", "5")]
    assert outputs(page, source) == wanted
    assert outputs(page, "x = 4") == [] and outputs(page, "x") == [["text/plain", "4"]]
    assert outputs(page, "%precision 4\nNone") == []


def test_the_richest_picture_is_taken(page):
    source = "class A:\n    def _repr_html_(self):\n        return '<b>a</b>'\nA()"
    assert outputs(page, source) == [["text/html", "<b>a</b>"]]


def test_errors_name_the_cell_and_its_line(page):
    [[kind, text]] = outputs(page, "y = 1\n1 / 0", 7)
    assert kind == "error" and "cells.py" not in text
    assert 'File "<ipython-input-7-page>", line 2' in text and "1 / 0" in text
    assert text.endswith("ZeroDivisionError: division by zero\n")
    [[kind, text]] = outputs(page, "y = = 1", 8)
    assert kind == "error" and "SyntaxError" in text
    before, [kind, text] = outputs(page, "print('so far')\nraise KeyError('k')")
    assert before == ["text/plain", "so far\n"] and kind == "error"


SOLUTION = """def double(x):
    return 2 * x


print(double(4))
assert double(3) == 6
"""


@pytest.mark.parametrize(
    "answer, said",
    [
        ("def double(x):\n    return x + x", "Right: with your double"),
        ("def double(x):\n    return x * x", "Your double fails: AssertionError"),
        ("def double(x):\n    return 2.0 * x", "Not the same yet. Yours: ['8.0\\n']"),
        ("def double(x) return 2", "This is no Python: expected ':'"),
        ("def twice(x):\n    return x + x", "The solution defines double"),
    ],
)
def test_answers_are_checked_by_what_the_solution_does(page, answer, said):
    assert page["check"](answer, SOLUTION).startswith(said)
    assert outputs(page, "'double' in dir()") == [["text/plain", "False"]]


@pytest.mark.parametrize("name", ["01_interception", "10_reverse"])
def test_a_page_runs_on_what_the_browser_gets(tmp_path, name):
    with zipfile.ZipFile(io.BytesIO(in_page.package())) as file:
        file.extractall(tmp_path)
    (tmp_path / "cells_of_page.py").write_text(CELLS.read_text())
    cells = in_page.cells(read_chapter(ROOT / "chapters" / f"{name}.md"))
    (tmp_path / "page.json").write_text(json.dumps(cells))
    paths = str(tmp_path), str(tmp_path / "page.json")
    command = [sys.executable, "-c", PROGRAM, *paths]
    made = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert made.returncode == 0, made.stdout + made.stderr
    said = made.stdout.splitlines()
    fine = "Right", "It runs. The results differ each time", "The solution defines :"
    assert said and all(line.startswith(fine) for line in said), made.stdout


def test_answers_whose_results_differ_each_time_are_not_judged(page):
    page["main"].__dict__["turns"] = []
    solution = "def f():\n    turns.append(1)\n    return len(turns)\n\n\nprint(f())"
    assert page["check"](solution, solution).startswith("It runs. The results differ")


def test_pages_of_three_parts_can_run():
    names = [chapter.name for chapter in in_page.chapters()]
    assert names[0].startswith("01_") and names[-1].startswith("16_scan")


def test_without_npm_there_is_no_button_and_the_build_says_why(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(in_page, "KEPT", tmp_path / "npm")
    monkeypatch.setattr(in_page, "HTML", tmp_path / "html")
    monkeypatch.setattr(in_page.shutil, "which", lambda name: None)
    in_page.main()
    said = capsys.readouterr().out
    assert said == "pages cannot be run in a browser: npm is not installed\n"
    assert not (tmp_path / "html").exists()


def test_what_npm_gives_is_unpacked_and_pages_get_their_script(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(in_page, "KEPT", tmp_path)
    monkeypatch.setattr(in_page, "HTML", tmp_path / "html")
    with tarfile.open(tmp_path / f"pyodide-{in_page.VERSION}.tgz", "w:gz") as tar:
        for name in in_page.FILES:
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size = 3
            tar.addfile(entry, io.BytesIO(b"abc"))
    (tmp_path / "html" / "chapters").mkdir(parents=True)
    for chapter in in_page.chapters():
        page = tmp_path / "html" / "chapters" / f"{chapter.name}.html"
        page.write_text("<html><body><h1>a</h1></body></html>")
    in_page.main()
    in_page.main()
    assert "pages can be run in a browser" in capsys.readouterr().out
    run = tmp_path / "html" / "_static" / "run"
    assert (run / "pyodide" / "pyodide.mjs").read_bytes() == b"abc"
    assert json.loads((run / "run.json").read_text())["packages"] == in_page.PACKAGES
    assert json.loads((run / "pages" / "04_forward.json").read_text())
    text = (tmp_path / "html" / "chapters" / "04_forward.html").read_text()
    assert text.count('data-page="04_forward"') == 1
