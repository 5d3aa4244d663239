"""Code that grows: a later page gives a definition its next version."""

import importlib
import inspect
import sys
import types

import pytest

from book.helper import amending
from book.tools import amendments, export, links, notebook
from book.tools.modules import Package
from book.tools.source import ROOT, BookError, floor
from tests.laws.drafts import INIT, draft

CORE = '''#| export floor1/core
"""Doc."""

import math


def f(x):
    """Return x."""
    return g(x)


def g(x):
    return x


SIZE = 3


class C:
    """A class."""

    wide = False

    # Why a method.
    @property
    def m(self):
        return 1

    def n(self):
        return self.m
'''
F = '#| amend floor1/core f\ndef f(x, y=0):\n    """Return x."""\n    return g(x) + y'
HOOK = """#| amend floor1/core C.m, f
import os

hooks: list = []


@property
def m(self):
    return 2 + len(hooks)


def f(x, y=0, z=os.sep):
    return x, y, z
"""
USE = "1 + 1"


def chapters(folder, *amending, number=2):
    one = draft(folder, 1, INIT, CORE)
    return [one, draft(folder, number, *amending, USE)]


def core(*pages):
    return export.make([*pages])["floor1/core.py"]


def run(text, name="grown"):
    module = types.ModuleType(name)
    exec(text, module.__dict__)
    return module


def test_the_last_version_stands_in_the_first_ones_place(tmp_path):
    made = core(*chapters(tmp_path, F))
    assert made.startswith('"""Doc."""\n\n# Made from chapters/01_floor1.md by')
    assert "# Amended in chapters/02_floor2.md: f (" in made
    assert made.index("def f(x, y=0)") < made.index("def g") < made.index("SIZE")
    assert "def f(x):" not in made
    module = run(made)
    assert module.f(1) == 1 and module.f(1, 2) == 3


def test_methods_entries_imports_and_what_is_new_beside_them(tmp_path):
    made = core(*chapters(tmp_path, HOOK))
    assert made.index("import os\n") < made.index("hooks: list") < made.index("class C")
    assert "Why a method" not in made  # the comment of the old version goes with it
    module = run(made)
    assert module.C().n() == 2 and module.f(1)[1] == 0
    module.hooks.append(0)
    assert module.C().n() == 3


def test_new_methods_and_attributes_of_a_class(tmp_path):
    cell = "#| amend floor1/core C.more, C.wide, C.deep, SIZE\nSIZE = 4\nwide = True\n"
    cell += "deep = SIZE\n\n\ndef more(self):\n    return super().__repr__()"
    made = core(*chapters(tmp_path, cell))
    module = run(made)
    assert module.C().more().startswith("<grown.C") and module.C.wide
    assert module.C.deep == 4 and '"""A class."""\n\n    wide = True\n    deep' in made


def test_two_pages_amend_one_definition_and_each_level_has_its_own(tmp_path):
    one, two = chapters(tmp_path, F)
    three = draft(tmp_path, 3, F.replace("+ y", "+ 10 * y"), USE)
    whole, levels = core(one, two, three), [core(one), core(one, two)]
    assert [run(text).f(1, 2) for text in (whole, levels[1])] == [21, 3]
    with pytest.raises(TypeError):
        run(levels[0]).f(1, 2)
    assert whole.count("# Amended in chapters/") == 2
    module = Package([one, two, three]).modules["floor1/core"]
    assert [c.before.count("y") for c in module.changes] == [0, 2]


def test_a_page_runs_on_the_package_as_the_pages_below_have_left_it(
    tmp_path, monkeypatch
):
    one, two = chapters(tmp_path, F)
    three = draft(tmp_path, 3, F.replace("+ y", "+ 10 * y"), USE)
    export.write(export.make([one, two, three]), tmp_path / "out")
    pages = {page.floor: tmp_path / f"{page.name}.md" for page in (one, two, three)}
    monkeypatch.setattr(export, "find_chapter", pages.__getitem__)
    for level, made in (("2", [one]), ("3", [one, two]), ("4", [one, two, three])):
        low = export.below(floor(level), tmp_path / "out")
        assert low["floor1/core.py"] == export.make(made)["floor1/core.py"], level


def test_pages_that_amend_one_another_are_read_until_none_is_left(
    tmp_path, monkeypatch
):
    def text(command, level, name):
        return f"#| {command}\ndef {name}():\n    return {level}"

    def page(level):
        below = f"amend floor{level - 1}/own f{level - 1}"
        own = text(f"export floor{level}/own", level, f"f{level}")
        cells = own, USE, text(below, level, f"f{level - 1}"), USE
        return draft(tmp_path, level, *(cells if level > 1 else (INIT, own)))

    pages = [*map(page, (1, 2, 3, 4))]
    export.write(export.make(pages), tmp_path / "out")
    paths = {page.floor: tmp_path / f"{page.name}.md" for page in pages}
    monkeypatch.setattr(export, "find_chapter", paths.__getitem__)
    low = export.below(floor("4"), tmp_path / "out")
    assert low["floor3/own.py"] == export.make(pages[:3])["floor3/own.py"]


def test_the_pages_of_a_level_may_amend_other_modules_besides(tmp_path, monkeypatch):
    one = draft(tmp_path, 1, INIT, CORE)
    own = "#| export own\ndef h():\n    return 1"
    two = draft(tmp_path, 2, own, F, USE)
    three = draft(tmp_path, 3, "#| amend floor2/own h\ndef h():\n    return 2", USE)
    export.write(export.make([one, two, three]), tmp_path / "out")
    pages = {page.floor: tmp_path / f"{page.name}.md" for page in (one, two, three)}
    monkeypatch.setattr(export, "find_chapter", pages.__getitem__)
    low = export.below(floor("3"), tmp_path / "out")
    assert low == export.make([one, two])


def test_making_one_page_makes_what_it_amends_or_amends_no_more(tmp_path):
    one, two = chapters(tmp_path, F)
    plain = export.make([one, draft(tmp_path, 2, USE)])
    export.write(plain, tmp_path / "out")
    made = export.make_one(floor("2"), [one, two], tmp_path / "out")
    assert "Amended in chapters/02_floor2.md" in made["floor1/core.py"]
    export.write(made, tmp_path / "out")
    back = export.make_one(
        floor("2"), [one, draft(tmp_path, 2, USE)], tmp_path / "out"
    )
    assert back["floor1/core.py"] == plain["floor1/core.py"]


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("#| amend floor1/core h\ndef h(): pass", "has no h"),
        ("#| amend floor1/none f\ndef f(): pass", "no chapter exports floor1/none"),
        ("#| amend floor1/core f\ndef h(): pass", "defines f 0 times, not once"),
        ("#| amend floor1/core C\nclass C: pass", "C is a class; amend its methods"),
        ("#| amend floor1/core f.m\ndef m(): pass", "f is not a class"),
        ("#| amend floor1/core C.__slots__\n__slots__ = ()", "keeps its __slots__"),
        ("#| amend floor1/core\ndef f(): pass", "write `#| export MODULE` or"),
        ("#| amend floor1/core f\ndef f(): return nowhere", "uses nowhere, exported"),
        ("#| amend floor1/core f\nfrom minijax.floor2.b import y\ndef f(): return y",
            "not of a lower floor"),
    ],
)  # fmt: skip
def test_refusals(tmp_path, cell, said):
    with pytest.raises(BookError, match=said):
        export.make(chapters(tmp_path, "#| export b\ny = 1", cell))


def test_a_page_that_amends_another_ones_name_has_none_like_it(tmp_path):
    with pytest.raises(BookError, match="the page has a f of its own"):
        export.make(chapters(tmp_path, "def f(x):\n    return 1", F))


def test_an_amendment_is_of_a_lower_page_and_has_a_cell_below_it(tmp_path):
    exported = "#| export floor1/core\ndef f(): pass"
    high = [draft(tmp_path, 1, INIT, F, USE), draft(tmp_path, 2, exported)]
    with pytest.raises(BookError, match="amends what it made itself, or a lower"):
        export.make(high)
    with pytest.raises(BookError, match="is exported further down"):
        export.make([draft(tmp_path, 1, INIT, F, exported, USE)])
    with pytest.raises(BookError, match="no cell below uses f"):
        export.make([draft(tmp_path, 1, INIT, CORE), draft(tmp_path, 2, F)])


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package on the way of imports, with a name that is minijax's meanwhile."""
    one, two = chapters(tmp_path, HOOK)
    for name in [n for n in sys.modules if n.partition(".")[0] == "minijax"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(str(tmp_path / "low"))

    def written(*pages):
        export.write(export.make([*pages]), tmp_path / "low" / "minijax")
        importlib.invalidate_caches()
        return importlib.import_module("minijax.floor1.core")

    before = {*sys.modules}
    yield written, one, two
    for name in {*sys.modules} - before:
        if name.partition(".")[0] == "minijax":
            del sys.modules[name]


LINE = HOOK.partition("\n")[0].removeprefix("#| amend ")
CODE = HOOK.partition("\n")[2]


def test_a_cell_acts_when_it_runs_wherever_the_package_holds_a_function(package):
    written, one, _ = package
    module = written(one)
    held, made, copy = module.f, module.C(), types.FunctionType(module.f.__code__, {})
    assert held(1) == 1 and made.n() == 1
    amending.amend(LINE, CODE)
    assert held is module.f and held(1, 2)[:2] == (1, 2)
    assert copy.__code__ is held.__code__  # the same function under another name
    assert made.n() == 2
    module.hooks.append(0)
    assert made.n() == 3


def test_on_the_whole_package_the_cell_changes_nothing(package):
    written, one, two = package
    module = written(one, two)
    before, code = {**vars(module)}, module.f.__code__
    amending.amend(LINE, CODE)
    assert vars(module) == before and module.f.__code__ is code
    amending.amend(LINE, CODE.replace("2 + len", "5 + len"))  # what a reader tries
    assert module.C().n() == 5


def test_the_stamp_of_many_names_is_found_again(package, tmp_path):
    written, one, _ = package
    names = [f"C.method_{n}" for n in range(12)]
    defs = "\n\n\n".join(f"def {name[2:]}(self): return {name}" for name in names)
    cell = f"#| amend floor1/core {', '.join(names)}\n{defs}"
    module = written(one, draft(tmp_path, 2, cell, USE))
    stamp = [x for x in inspect.getsource(module).split("\n") if x.startswith("# ")][2:]
    assert len(stamp) > 2 and max(map(len, stamp)) <= 88
    assert "# Amended in chapters/02_floor2.md" in stamp[0]
    before = {**vars(module.C)}
    line, _, code = cell.removeprefix("#| amend ").partition("\n")
    amending.amend(line, code)  # it is there already
    assert before == {**vars(module.C)}


def test_a_cell_acts_in_a_page_that_runs_in_a_browser(package, monkeypatch):
    written, one, _ = package
    module = written(one)
    path = ROOT / "book" / "web" / "run" / "cells.py"
    cells = types.ModuleType("cells")
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    exec(compile(path.read_text("utf-8"), path, "exec"), cells.__dict__)
    assert cells.run(HOOK, 1) == "[]" and module.C().m == 2


def test_a_page_amends_what_it_has_made_itself(tmp_path, monkeypatch):
    one = draft(tmp_path, 1, INIT, CORE, F, USE)
    assert run(core(one)).f(1, 2) == 3
    main = types.ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", main)
    exec(one.cells[1].code, main.__dict__)
    amending.amend("floor1/core f", F.partition("\n")[2])
    amending.amend("floor1/core C.m", "def m(self): return 7")
    assert main.f(1, 2) == 3 and main.C().m() == 7


def test_super_constants_and_decorated_functions(package):
    written, one, _ = package
    module = written(one)
    other = importlib.import_module("minijax.floor1")
    other.SIZE = module.SIZE = (1, 2)
    code = "def n(self):\n    return super().__hash__()\n\n\nSIZE = 1, 2, 3"
    amending.amend("floor1/core C.n, SIZE", code)
    thing = module.C()
    assert thing.n() == object.__hash__(thing) and other.SIZE == (1, 2, 3)
    module.three, module.SIZE = 3, 3  # the same object under another name
    amending.amend("floor1/core SIZE", "SIZE = 4")
    assert (module.three, module.SIZE) == (3, 4)
    decorated = "import functools\n\n\n@functools.cache\ndef g(x):\n    return x + {}"
    amending.amend("floor1/core g", decorated.format(1))
    held = module.g
    assert module.f(1) == 2
    amending.amend("floor1/core g", decorated.format(2))
    assert module.f(1) == 3 and held is module.g
    plain = "def another(f):\n    return lambda x: f(x) + 100\n\n\n"
    amending.amend("floor1/core g", f"{plain}@another\ndef g(x):\n    return x")
    assert module.f(1) == 101


def test_what_is_kept_of_the_version_before_is_forgotten(package, tmp_path):
    written, one, _ = package
    cell = "#| export floor2/api -> minijax\ncleared = []\n\n\n"
    cell += "def clear_caches():\n    cleared.append(1)"
    module = written(one, draft(tmp_path, 2, cell))
    amending.amend("floor1/core f", "def f(x):\n    return 2")  # nobody has imported it
    api = importlib.import_module("minijax.floor2.api")
    assert not api.cleared
    amending.amend("floor1/core f", "def f(x):\n    return 3")
    assert api.cleared == [1] and module.f(0) == 3


def test_the_page_shows_lines_that_go_and_lines_that_come(tmp_path):
    one, two = chapters(tmp_path, F)
    module = Package([one, two]).modules["floor1/core"]
    lines = amendments.marked(module.changes, two.cells[0])
    assert lines == [
        ("-", "def f(x):"), ("+", "def f(x, y=0):"), ("", '    """Return x."""'),
        ("-", "    return g(x)"), ("+", "    return g(x) + y"),
    ]  # fmt: skip


def test_versions_lead_to_one_another(tmp_path):
    again = F.replace("+ y", "+ 2 * y")
    one = draft(tmp_path, 1, INIT, CORE, USE)
    two = draft(tmp_path, 2, F, USE, again, USE)
    three = draft(tmp_path, 3, again.replace("2 *", "3 *"), USE)
    index = links.Index([one, two, three])
    cells = one.cells[1], two.cells[0], two.cells[2], three.cells[0]
    found = [[(s, p.anchor) for s, p in links.growth(c, index)] for c in cells]
    first, second, third = "amend-f", "amend-f-2", "amend-f"
    assert found == [
        [("f grows in chapter 2", first)],
        [("f as in chapter 1", "def-f"), ("f grows below", second)],
        [("f as above", first), ("f grows in chapter 3", third)],
        [("f as in chapter 2", second)],
    ]
    own = [links.anchors(cell, index) for cell in cells[1:]]
    assert own == [[first], [second], [third]]


def test_a_version_in_another_room_of_the_floor_is_said_to_be_there(tmp_path):
    one = draft(tmp_path, 1, INIT, CORE, USE)
    rest = draft(tmp_path, "1_rest", F, USE)
    index = links.Index([one, rest])
    found = [links.growth(c, index)[0][0] for c in (one.cells[1], rest.cells[0])]
    assert found == ["f grows in the rest of this floor", "f as in chapter 1"]


def test_of_many_lines_that_stay_those_around_a_change_are_shown(tmp_path):
    body = "\n".join(f"    x += {n}" for n in range(20))
    exported = f"#| export floor1/core\ndef f(x):\n{body}\n    return x"
    one = draft(tmp_path, 1, INIT, exported)
    cell = exported.replace("export floor1/core", "amend floor1/core f")
    two = draft(tmp_path, 2, cell.replace("+= 10", "+= 9"), USE)
    module = Package([one, two]).modules["floor1/core"]
    lines = [line for _, line in amendments.marked(module.changes, two.cells[0])]
    assert lines[:3] == ["def f(x):", "# …", "    x += 7"] and lines[-1] == "# …"
    assert lines[5:7] == ["    x += 10", "    x += 9"] and len(lines) == 11
    compile("\n".join(lines), "page", "exec")  # Sphinx reads it as Python


def test_a_new_version_that_no_cell_runs_is_refused(tmp_path):
    one, two = chapters(tmp_path, F)
    unused = draft(tmp_path, 2, "import minijax_book", F, USE)
    used = draft(
        tmp_path, 3, "import minijax_book", F.replace("+ y", "- y"),
        "from minijax.floor1.core import f\n\nf(1, 2)",
    )  # fmt: skip
    export.write(export.make([one]), tmp_path / "low" / "minijax")
    for page, said in ((unused, "no cell uses the new version of f"), (used, None)):
        path = tmp_path / f"{page.name}.md"
        book = notebook.convert(path)
        assert "%%amend floor1/core f" in book.cells[2].source
        if said:
            with pytest.raises(BookError, match=said):
                notebook._run(book, path, tmp_path / "low")
        else:
            notebook._run(book, path, tmp_path / "low")
            assert book.cells[-1].outputs[0].data["text/plain"] == "-1"
