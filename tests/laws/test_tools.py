"""The exporter: what it makes of a chapter, and what it refuses."""

import os
import py_compile
import subprocess
import sys

import pytest

from book.tools import export, files, laws, mistakes, modules, public, syntax
from book.tools.modules import Package
from book.tools.source import (
    BookError,
    chapter_paths,
    exercises,
    find_chapter,
    floor,
    read_chapter,
    slug,
)
from book.tools.speed import speed_page
from tests.laws.drafts import INIT, draft


def made(folder, *cells):
    """The package of one chapter with these cells below an `__init__`."""
    return export.make([draft(folder, 1, INIT, *cells)])


def test_a_module_has_header_docstring_imports_and_cells(tmp_path):
    first = '#| export core\n"""Doc."""\n\nimport os\n\n\ndef f():\n    return np.e'
    second = "#| export core\nimport numpy as np\n"
    second += "from collections import abc, UserDict\nx = 1"
    assert made(tmp_path, first, "ignored = f()", second)["core.py"] == (
        '"""Doc."""\n\n'
        "# Made from chapters/01_floor1.md by `make chapter`;\n"
        "# edit the chapter, not this file.\n\n"
        "import os\nfrom collections import UserDict, abc\n\nimport numpy as np\n\n\n"
        "def f():\n    return np.e\n\n\nx = 1\n"
    )


def test_names_of_the_same_chapter_are_imported(tmp_path):
    core = "#| export core\nimport math\n\n\nclass Var: pass"
    user = "#| export user\ndef f(x: 'Var'):\n    return math.exp(x)"
    text = made(tmp_path, core, user)["user.py"]
    assert "from minijax.core import Var\n" in text
    assert "import math\n" in text


def test_variables_of_comprehensions_are_no_names_of_the_module():
    code = "a = [x for x in y]\nb = {x: z for x, z in y}\nc = {(d := x) for x in y}"
    assert syntax.defined(code) == {"a", "b", "c", "d"}
    assert syntax.used(code) == {"y"}
    inside = "def f():\n    return [x for x in y] + [g for _ in ()]"
    assert syntax.used(inside) == {"y", "g"}


def test_local_names_are_not_imported(tmp_path):
    core = "#| export core\ndef trace(): pass"
    user = "#| export user\ndef f(trace):\n    return [trace for trace in trace]"
    assert "import" not in made(tmp_path, core, user)["user.py"]


def test_public_names_are_listed(tmp_path):
    cell = "#| export core -> minijax\ndef f(): pass\n\n\n_g = 1\nh = 2"
    text = made(tmp_path, cell)["_public.py"]
    assert '"minijax.core": "f h"' in text
    assert "_g" not in text


DOOR = "__getattr__, __dir__ = None, None"


def house(folder):
    """A chapter with four doors: behind one there is a folder of names."""
    one = draft(folder, 1, INIT, "#| export _own\nx = 1", "#| export errors\ny = 1",
        f"#| export lax/__init__\n{DOOR}", "#| export lax/a -> minijax.lax\nc = b = 1",
        "#| export rooms/d -> minijax\ne = 1", "#| export interpreters/ad\nz = 1",
        f"#| export interpreters/__init__\n{DOOR}",
    )  # fmt: skip
    one.folder = "rooms"
    return one


def test_users_import_doors_and_not_what_is_behind_them(tmp_path):
    doors = Package([house(tmp_path)]).doors
    names = "errors lax interpreters.ad interpreters".split()
    assert doors == ["minijax", *[f"minijax.{name}" for name in names]]


def test_stubs_tell_what_the_public_names_are(tmp_path):
    one, two = house(tmp_path), draft(tmp_path, 2, "#| export g -> minijax\nh = 1")
    stubs = {k: v for k, v in export.make([one]).items() if k.endswith(".pyi")}
    told = {path: text.splitlines()[2:] for path, text in stubs.items()}
    doors = "errors interpreters lax".split()
    names = [f"minijax import {name} as {name}" for name in doors]
    names += ["minijax.rooms.d import e as e"]
    assert told["__init__.pyi"] == ["__version__: str", *[f"from {x}" for x in names]]
    names = "from minijax.lax.a import b as b", "from minijax.lax.a import c as c"
    assert told["lax/__init__.pyi"] == [*names]
    folders = {f"{name}__init__.pyi" for name in ("", "lax/", "interpreters/")}
    assert told.keys() == folders
    export.write(export.make([one]), tmp_path / "out")
    made = export.make_one(floor("2"), [one, two], tmp_path / "out")
    assert made["lax/__init__.pyi"] == stubs["lax/__init__.pyi"]
    assert "from minijax.floor2.g import h as h" in made["__init__.pyi"]


def test_names_that_are_imported_as_themselves_are_handed_on(tmp_path):
    cell = "#| export names -> minijax\n"
    cell += "from math import pi as pi, tau, e as number\nx = 1"
    out = made(tmp_path, cell)
    assert '"minijax.names": "pi x"' in out["_public.py"]
    assert "tau" not in out["_public.py"]
    assert "from math import e as number" in out["names.py"]
    assert "number" not in out["_public.py"]
    assert "from minijax.names import pi as pi" in out["__init__.pyi"]


def test_a_stub_does_not_hide_what_a_door_defines_itself(tmp_path):
    own = f"#| export core\n{DOOR}\n\n\nclass Trace: pass"
    cells = own, "#| export names -> minijax.core\nx = 1"
    out = made(tmp_path, *cells)
    assert '"minijax.names": "x"' in out["_public.py"]
    assert "core.py" in out and "core.pyi" not in out
    out = made(tmp_path, f"#| export core\n{DOOR}", cells[1])
    assert "from minijax.names import x as x" in out["core.pyi"]


def test_a_stub_has_the_names_of_a_table_of_places(tmp_path):
    places = 'PLACES = {"minijax.rooms.d": "e f"}'
    out = made(tmp_path, f"#| export core\n{places}\n\n\ndef __getattr__(name): ...")
    told = out["core.pyi"].splitlines()[2:]
    assert told == [f"from minijax.rooms.d import {name} as {name}" for name in "ef"]


def test_definitions_know_their_cell(tmp_path):
    one = draft(tmp_path, 1, INIT, "#| export core -> minijax\nh = 2")
    assert modules.definitions([one])["minijax", "h"].index == 2


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (["#| export a\nx = 1", "#| export a\nx = 2"], "x is exported by cell 2"),
        (["#| export a\nx = 1", "x = 2"], "x is exported by cell 2"),
        (["#| export a\ndef f(): pass", "#| export b\ndef f(): pass"], "f is exported"),
        (["#| export a\ndef f(): pass", "for f in []: pass"], "f is exported"),
        (["#| export a\ndef f(): pass", "from math import sin as f"], "f is exported"),
        (["#| export a\n%time x = 1"], "with a magic"),
        (["#| export a\ndef f(:"], "invalid syntax"),
        (["#| export a\ndef f(): return g"], "a uses g, exported by no cell"),
        (["g = 1", "#| export a\ndef f(): return g"], "a uses g, exported by no cell"),
        (["#| export a b"], "cannot read"),
        (["x = 1\n#| export a"], "first line"),
        (["#| export a\nfrom minijax.b import x", "#| export b\nx = 1"], "lower floor"),
        (["from minijax import a", "#| export a\nx = 1"], "lower floor"),
        (["#| export a\nfrom minijax.b import x"], "no chapter exports minijax.b.x"),
        (["#| export a\nfrom .b import x"], "relative imports"),
        (
            ["#| export a\ndef f(): return g()", "#| export b\ndef g(): return f()"],
            "import cycle minijax.a -> minijax.b -> minijax.a",
        ),
        (
            [
                "#| export a -> minijax\nx = 1",
                "#| export b -> minijax\ndef __f(): pass",
            ],
            None,
        ),
        (["#| export a -> *\nx = 1", "#| export a -> minijax\ny = 1"], None),
        (["#| export a -> minijax\ndef a(): pass"], "would hide the public name a"),
        (["#| export a -> minijax.a\nx = 1"], "minijax.a is a lazy namespace"),
        (
            ["#| export a -> minijax\ndef b(): pass", "#| export b\nx = 1"],
            "module minijax.b would hide the public name b of minijax.a",
        ),
        (["#| export a -> minijax.x\ndef a(): pass"], None),
    ],
)
def test_refusals(tmp_path, cells, message):
    if message is None:
        made(tmp_path, *cells)
        return
    with pytest.raises(BookError, match=message):
        made(tmp_path, *cells)


def test_two_chapters_may_not_write_one_module(tmp_path):
    one = draft(tmp_path, 1, INIT, "#| export floor1/a\nx = 1")
    two = draft(tmp_path, 2, "#| export floor1/a\ny = 1")
    with pytest.raises(BookError, match="belongs to 01_floor1 already"):
        Package([one, two])


def test_two_modules_may_not_have_one_public_name(tmp_path):
    one = draft(tmp_path, 1, INIT, "#| export a -> minijax\nx = 1")
    two = draft(tmp_path, 2, "#| export b -> minijax\nx = 1")
    with pytest.raises(BookError, match="public in minijax.a already"):
        export.make([one, two])


def test_a_higher_floor_may_not_be_imported_by_its_public_name(tmp_path):
    one = draft(tmp_path, 1, INIT, "def late():\n    from minijax import grad")
    two = draft(tmp_path, 2, "#| export b -> minijax\ndef grad(): pass")
    with pytest.raises(BookError, match="minijax.grad is of 02_floor2"):
        export.make([one, two])
    three = draft(tmp_path, 3, "from minijax import grad")
    one.cells.pop()
    export.make([one, two, three])


def test_no_chapter_makes_an_empty_package():
    assert export.make([])["__init__.py"] == export.EMPTY


def test_one_chapter_alone_keeps_the_names_of_the_others(tmp_path):
    one = draft(tmp_path, 1, INIT, "#| export a -> minijax\nx = 1")
    two = draft(tmp_path, 2, "#| export b -> *\ny = 1")
    out = tmp_path / "out"
    names = {"gone": "minijax.a", "y": "minijax.other", "z": "minijax.old"}
    tables = {"minijax": names}, ["minijax.much", "minijax.old"]
    tables = *tables, {"minijax.much": "minijax.other", "minijax.old": "minijax.other"}
    files = {"_public.py": public.render(*tables)}
    files["old.py"] = "# Made from chapters/01_floor1.md by `make chapter`;\n"
    files["other.py"] = "# Made from chapters/03_floor3.md by `make chapter`;\n"
    export.write(files, out)
    made = export.make_one(floor("1"), [one, two], out)
    assert export.left_over(floor("1"), made, out) == ["old.py"]
    export.write(made, out)
    names = {"x": "minijax.a", "y": "minijax.other"}
    spaces = {"minijax": names}
    waiting = {"minijax.much": "minijax.other"}
    assert public.read(out) == (spaces, ["minijax.much"], waiting)
    export.write(export.make_one(floor("2"), [one, two], out), out)
    both = ["minijax.floor2.b", "minijax.much"]
    assert public.read(out) == (spaces, both, waiting)


def test_a_floor_has_back_rooms(tmp_path):
    order = "3", "2_rest", "2_upper", "2", "2_ground"
    made = [draft(tmp_path, n, "x = 1") for n in order]
    (tmp_path / "notes.md").touch()
    names = [c.name for c in sorted(made, key=lambda c: c.floor)]
    rooms = [f"02_floor2{room}" for room in ("_ground", "", "_upper", "_rest")]
    assert names == [*rooms, "03_floor3"]
    assert [c.floor.is_spine for c in sorted(made, key=lambda c: c.floor)] == [
        *(False, True, True, False),
        True,
    ]
    assert [path.stem for path in chapter_paths(tmp_path)] == names
    assert find_chapter(floor("2_rest"), tmp_path).stem == "02_floor2_rest"
    assert str(floor("02_arrays_rest")) == "2_rest"
    with pytest.raises(BookError, match="no chapter 4"):
        find_chapter(floor("4"), tmp_path)
    with pytest.raises(BookError, match="'b2' is not a floor"):
        floor("b2")


def test_the_rest_of_a_floor_lies_between_its_neighbours(tmp_path):
    zero = draft(tmp_path, 1, INIT)
    one = draft(tmp_path, 2, "#| export a\nx = 1")
    code = "#| export b\nfrom minijax.floor2.a import x\n\ny = x"
    two = draft(tmp_path, "2_rest", code)
    code = "#| export c\nfrom minijax.floor2.b import y\n\nz = y"
    three = draft(tmp_path, 3, code)
    made = export.make([zero, one, two, three])
    assert "from minijax.floor2.b import y" in made["floor3/c.py"]
    assert "02_floor2.md" in made["floor2/__init__.py"]


def test_the_lowest_page_of_a_floor_makes_a_package_of_its_folder(tmp_path):
    zero = draft(tmp_path, 1, INIT)
    ground = draft(tmp_path, "2_ground", "#| export lib/a\nx = 1")
    spine = draft(tmp_path, 2, "#| export lib/b\ny = 1")
    chapters = [zero, ground, spine]
    for made in (export.make(chapters), export.make(chapters[::-1])):
        assert "02_floor2_ground.md" in made["lib/__init__.py"]
    export.write(made, tmp_path / "out")
    assert "lib/__init__.py" in export.below(floor("2"), tmp_path / "out")


def test_the_prologue_may_use_everything_and_exports_nothing(tmp_path):
    zero = draft(tmp_path, 0, "from minijax import x")
    one = draft(tmp_path, 1, INIT, "#| export a -> minijax\nx = 1")
    assert "a.py" in export.make([zero, one])
    zero = draft(tmp_path, 0, "#| export b\ny = 1")
    with pytest.raises(BookError, match="the prologue exports nothing"):
        export.make([zero, one])


def test_modules_that_register_are_listed_and_have_no_public_names(tmp_path):
    cell = "#| export {} -> *\nmethods = {{}}"
    one = draft(tmp_path, 1, INIT, cell.format("z"))
    two = draft(tmp_path, 2, cell.format("a"))
    text = export.make([one, two])["_public.py"]
    assert text.endswith(
        'REGISTERS: list[str] = [\n    "minijax.z",\n    "minijax.floor2.a",\n]\n'
    )
    assert "methods" not in text
    assert not modules.definitions([one, two])
    assert export.make([])["_public.py"].endswith("REGISTERS: list[str] = []\n")


def test_modules_that_register_may_wait_for_another(tmp_path):
    one = draft(tmp_path, 1, INIT, "#| export grid -> minijax\ng = 1")
    two = draft(tmp_path, 2, "#| export a -> * with grid\nx = {}")
    with pytest.raises(BookError, match="floor2.a waits for minijax.floor2.grid"):
        export.make([one, two])
    two = draft(tmp_path, 2, "#| export a -> * with floor1/grid\nx = {}")
    with pytest.raises(BookError, match="which no chapter makes"):
        export.make([one, two])
    here = "#| export b -> minijax\ny = 1"
    two = draft(tmp_path, 2, here, "#| export a -> * with b\nx = {}")
    text = export.make([one, two])["_public.py"]
    assert '"minijax.floor2.a": "minijax.floor2.b",' in text
    cells = [f"#| export a -> * with {x}\nx{x} = {{}}" for x in "bc"]
    two = draft(tmp_path, 2, here, "#| export c -> minijax\nz = 1", *cells)
    with pytest.raises(BookError, match="waits for two"):
        export.make([one, two])


def test_a_mistake_of_another_chapter_leaves_it_out(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(export, "chapter_paths", lambda: chapter_paths(tmp_path))
    draft(tmp_path, 1, INIT, "#| export floor1/a -> minijax.floor1\nx = 1")
    draft(tmp_path, 2, "#| export b\ndef f(:")
    draft(tmp_path, 3, "#| export floor1/a\ny = 1")
    draft(tmp_path, 4, "#| export floor1/x\ny = 1")
    found = export._readable(floor("1"))
    assert [c.name for c in found] == ["01_floor1"]
    said = capsys.readouterr().err
    assert "invalid syntax" in said and "belongs to 01_floor1" in said
    assert "would hide the public name x" in said
    with pytest.raises(BookError, match="invalid syntax"):
        export._readable(floor("2"))


def test_shared_files_are_written_by_one_at_a_time(tmp_path):
    lock = tmp_path / "lock"
    held = pytest.raises(BookError, match="another make has held lock")
    with files.alone(lock), held, files.alone(lock, patience=0.1):
        pass
    with files.alone(lock, patience=0.1):
        assert files.write(tmp_path / "a" / "b", "x")
    assert not files.write(tmp_path / "a" / "b", "x")
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b"]


def test_the_floors_below_are_taken_from_the_package(tmp_path):
    zero = draft(tmp_path, 1, INIT)
    one = draft(tmp_path, 2, "#| export a -> minijax\nx = 1")
    two = draft(tmp_path, "2_rest", "#| export b -> *\ny = 1")
    export.write(export.make([zero, one, two]), tmp_path / "out")
    low = export.below(floor("2_rest"), tmp_path / "out")
    shared = {"__init__.py", "__init__.pyi", "_public.py", "py.typed"}
    assert set(low) == shared | {"floor2/__init__.py", "floor2/a.py"}
    assert '"minijax.floor2.a": "x"' in low["_public.py"]
    assert "REGISTERS: list[str] = []" in low["_public.py"]
    high = export.below(floor("3"), tmp_path / "out")
    assert high == export.make([zero, one, two])
    lowest = export.below(floor("2"), tmp_path / "out")
    assert set(lowest) == shared - {"__init__.pyi"}  # there is no name yet


def test_a_copy_keeps_what_python_has_compiled(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "m.py").write_text("def f(): pass")
    original, copy = tmp_path / "one/m.py", tmp_path / "two/m.py"
    os.utime(original, (1, 1))
    files.keep_compiled(original, copy)  # there is nothing yet
    py_compile.compile(str(original), doraise=True)
    files.keep_compiled(original, copy)
    code = "import m; print(m.f.__code__.co_filename)"
    run = [sys.executable, "-v", "-c", code]
    done = subprocess.run(run, cwd=copy.parent, capture_output=True, text=True)
    assert done.stdout == f"{copy}\n" and "matches" in done.stderr
    copy.write_text("def g(): pass")
    files.keep_compiled(original, copy)  # another text now
    assert copy.stat().st_mtime > 1


def test_writing_then_checking_finds_no_difference(tmp_path, capsys):
    made_files = made(tmp_path, "#| export a\nx = 1")
    export.write(made_files, tmp_path / "out")
    assert not export.differences(made_files, tmp_path / "out")
    (tmp_path / "out" / "a.py").write_text("x = 2\n")
    (tmp_path / "out" / "b.py").write_text("")
    found = export.differences(made_files, tmp_path / "out")
    assert "+x = 1" in found and "minijax/b.py: differs" in found
    export.write(made_files, tmp_path / "out")
    export.remove(["b.py"], tmp_path / "out")
    assert not export.differences(made_files, tmp_path / "out")
    assert "removed minijax/b.py" in capsys.readouterr().out
    assert public.read(tmp_path / "out") == ({"minijax": {}}, [], {})


def test_packages_are_listed_for_the_wheel(tmp_path):
    for folder in ("minijax", "minijax/lax"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "__init__.py").touch()
    (tmp_path / "pyproject.toml").write_text('x = 1\npackages = ["minijax"]\ny = 2\n')
    export.list_packages(tmp_path)
    text = (tmp_path / "pyproject.toml").read_text()
    assert text == 'x = 1\npackages = ["minijax", "minijax.lax"]\ny = 2\n'


def test_output_folder_and_floors_from_the_command_line(tmp_path):
    command = [sys.executable, "-m", "book.tools.export", "--upto", "0", "--out"]
    subprocess.run([*command, str(tmp_path)], check=True, capture_output=True)
    files = {path.name for path in (tmp_path / "minijax").iterdir()}
    assert files == {"__init__.py", "_public.py", "py.typed"}


def test_reading_tags_headings_and_exercises(tmp_path):
    path = tmp_path / "01_a.md"
    path.write_text(
        "---\ntitle: x\n---\n# 1 · A\n\n## `B` and *c*!\n\n**1 ★ (5 minutes).** Do.\n\n"
        "````{code-cell} ipython3\n---\ntags: [hide-cell, gpu]\n---\n"
        "# no heading\n````\n"
        "```python\n# no heading either\n```\n"
    )
    read = read_chapter(path)
    assert read.cells[0].tags == ("hide-cell", "gpu")
    assert [text for _, text in read.headings] == ["1 · A", "`B` and *c*!"]
    assert read.cells[0].line == 14
    assert exercises(read) == [(8, "**1 ★ (5 minutes).** Do.")]
    assert slug("`B` and *c*!") == "b-and-c"


def test_an_open_fence_is_refused(tmp_path):
    path = tmp_path / "01_a.md"
    path.write_text("# 1\n```{code-cell} ipython3\nx = 1\n")
    with pytest.raises(BookError, match="01_a.md:2: this fence is never closed"):
        read_chapter(path)


def test_imports_are_sorted_as_ruff_sorts_them():
    lines = {
        "import sys",
        "from __future__ import annotations",
        "from minijax.core import bind",
        "from minijax.core import Trace",
        "from minijax.core import MAX",
        "import minijax.numpy as jnp",
        "import numpy as np",
        "from functools import partial",
    }
    assert syntax.sorted_imports(lines) == (
        "from __future__ import annotations\n\n"
        "import sys\nfrom functools import partial\n\n"
        "import numpy as np\n\n"
        "import minijax.numpy as jnp\nfrom minijax.core import MAX, Trace, bind"
    )


def test_long_imports_are_broken():
    names = [f"a_name_of_some_length_{n}" for n in range(5)]
    text = syntax.sorted_imports({f"from minijax.core import {n}" for n in names})
    assert text.startswith("from minijax.core import (\n    a_name")
    assert text.endswith(",\n)")


def test_checks_of_one_chapter_ignore_cells_meant_to_fail(tmp_path):
    bad = ("def f(:", "raises-exception")
    one = draft(tmp_path, 1, INIT, bad, "%%time\nx = 1", "%pip install x")
    laws.check(Package([one]), one)


def test_the_page_of_measurements_names_rows_that_are_behind():
    row = {
        "us": {"minijax": 1.0, "jax": 2000.0, "eager": 4000.0},
        "ratio": {"jax": 0.5, "numpy": 2.0, "eager": 0.00025},
        "quartiles": {"jax": [0.4, 0.6]}, "must": 0.7, "goal": 0.3,
    }  # fmt: skip
    about = dict.fromkeys("date processor minijax jax numpy python".split(), "?")
    rows = {"early": row, "late": row | {"must": 0.4}, "sort": "chapter 14", "x": None}
    page = speed_page({"versions": about, "rows": rows})
    assert "Not yet where they must be: late." in page
    assert "| early | 1.0 | 2,000 | 0.50 | 0.40–0.60 | 0.7 | 0.3 |" in page
    assert "| sort (not there yet: chapter 14) |" in page
    assert "| program | / eager | / NumPy |" in page
    assert "| early | 0.00025 | 2 |" in page
    kept = speed_page({"versions": about, "rows": {"HMM fit": row}})
    assert "All rows are where they must be." in kept
    assert "| HMM fit | 4.000 | 0.001 | 2.000 | 4,000 |" in kept
    few = row | {"ratio": {"jax": 0.5}}
    assert "##" not in speed_page({"versions": about, "rows": {"few": few}})


def test_the_page_of_errors_is_what_its_mistakes_say_now():
    page = (mistakes.ROOT / mistakes.PAGE).read_text(encoding="utf-8")
    assert page == mistakes.page(), "python -m book.tools.mistakes writes it"


def test_the_table_of_public_names_is_read_as_it_is_written(tmp_path):
    many = {f"name_{n:02}": "minijax.b" for n in range(40)} | {"x": "minijax.a"}
    table = {"minijax": many, "minijax.lax": {}}
    text = public.render(table, ["minijax.c"], {"minijax.c": "minijax.a"})
    (tmp_path / "_public.py").write_text(text, encoding="utf-8")
    assert public.read(tmp_path) == (table, ["minijax.c"], {"minijax.c": "minijax.a"})
    assert max(map(len, text.splitlines())) <= 88
    values: dict = {}
    exec(text, values)
    assert values["PUBLIC"] == table
