"""What is refused of folders, rooms and names, with the place and the mend."""

import re

import pytest

from book.tools import export
from book.tools.modules import Package
from book.tools.source import DOORS, BookError, floor, read_chapter, read_chapters
from tests.laws.drafts import INIT, draft

A = "#| export a\nx = 1"
B = "#| export b\ny = 1"


def refusal(folder, *pages):
    """What the tools say about a first chapter and these pages."""
    zero = draft(folder, 1, INIT)
    with pytest.raises(BookError) as caught:
        export.make([zero, *(draft(folder, *page) for page in pages)])
    return str(caught.value)


def test_a_module_lies_on_one_page_of_a_floor(tmp_path):
    said = refusal(tmp_path, (2, A), ("2_rest", "#| export a\ny = 1"))
    assert re.match(r"chapters/02_floor2_rest.md:\d+ .*a belongs to 02_floor2 al", said)
    assert "move the cell there" in said


@pytest.mark.parametrize(
    ("low", "high", "message"),
    [
        ("2", "2_rest", "a spine does not import its rest"),
        ("2_ground", "2", "a ground does not import its spine"),
        ("2_ground", "2_rest", "a ground does not import its rest"),
        ("2", "2_upper", "a spine does not import its upper spine"),
        ("2_upper", "2_rest", "an upper spine does not import its rest"),
        ("2", "3", "is of 03_floor3, not of a lower floor; register"),
    ],
)
def test_rooms_import_downwards(tmp_path, low, high, message):
    code = f"#| export a\nfrom minijax.floor{high[0]}.b import y"
    said = refusal(tmp_path, (low, code), (high, B))
    assert f"chapters/02_floor{low}.md:" in said
    assert message in said


def test_a_name_of_the_same_page_is_not_imported(tmp_path):
    said = refusal(tmp_path, (2, B, "#| export a\nfrom minijax.floor2.b import y as z"))
    assert "the cell has it already" in said


def test_a_floor_that_exports_has_a_folder(tmp_path):
    zero = draft(tmp_path, 1, INIT)
    two = draft(tmp_path, 2, A, home="")
    with pytest.raises(BookError, match="02_floor2.md: cell 1 .* write `floor: NAME`"):
        export.make([zero, two])
    export.make([zero, draft(tmp_path, 2, "x = 1", home="")])


def test_floors_do_not_share_a_folder(tmp_path):
    pages = [draft(tmp_path, 1, INIT), draft(tmp_path, 2, A, home="house")]
    pages.append(draft(tmp_path, 3, B, home="house"))
    with pytest.raises(BookError, match="03_floor3.md: .*house belongs to 02_floor2;"):
        export.make(pages)


def test_rooms_of_a_floor_share_its_folder(tmp_path):
    pages = [draft(tmp_path, 1, INIT), draft(tmp_path, 2, A, home="house")]
    wrong = draft(tmp_path, "2_rest", B, home="shed")
    with pytest.raises(BookError, match="2_rest.md: .*write `floor: house` as in 02_"):
        export.make([*pages, wrong])
    export.make([*pages, draft(tmp_path, "2_rest", B, home="house")])


@pytest.mark.parametrize("folder", ["my-folder", "a/b", "", "Arrays", "2nd"])
def test_a_folder_has_a_plain_name(tmp_path, folder):
    path = tmp_path / "02_a.md"
    path.write_text(f"---\nfloor: {folder}\n---\n# 2 · A\n", encoding="utf-8")
    with pytest.raises(BookError, match=r"02_a.md:2: cannot read 'floor: .*'; write"):
        read_chapter(path)


def test_a_folder_is_not_called_like_a_public_name(tmp_path):
    zero = draft(tmp_path, 1, INIT, "#| export core -> minijax\ndef grad(): pass")
    two = draft(tmp_path, 2, A, home="grad")
    with pytest.raises(BookError, match="folder minijax.grad would hide .* name grad"):
        export.make([zero, two])


def test_a_public_name_has_one_module(tmp_path):
    public = "#| export {} -> minijax.lax\nclass f: pass"
    said = refusal(tmp_path, (2, public.format("a")), (3, public.format("b")))
    assert re.match(
        r"chapters/03_floor3.md:\d+ .*f is public in minijax.floor2.a", said
    )
    assert "give it another name" in said
    said = refusal(tmp_path, (2, public.format("a"), public.format("b")))
    assert "f is public in minijax.floor2.a already" in said


def test_a_page_is_told_of_its_own_mistake(tmp_path, monkeypatch):
    """And not a neighbour, whose folder it has hidden."""
    draft(tmp_path, 1, INIT)
    draft(tmp_path, 2, "#| export floor1/x\nx = 1")
    draft(tmp_path, 3, "#| export a -> minijax.floor1\nx = 1")
    paths = sorted(tmp_path.glob("*.md"))
    monkeypatch.setattr(export, "chapter_paths", lambda: paths)
    with pytest.raises(BookError, match="02_floor2.md.*would hide the public name x"):
        export.make_one(floor("2"), export._readable(floor("2")), tmp_path)


def test_a_name_is_looked_for_where_it_is(tmp_path):
    above = "#| export c\nfrom minijax.floor2.{} import {}"
    said = refusal(tmp_path, (2, A, B), (3, above.format("b", "x")))
    assert "floor3.md:" in said
    assert "minijax.floor2.b does not define x; minijax.floor2.a does" in said
    said = refusal(tmp_path, (2, A), (3, above.format("b", "x")))
    assert "no chapter exports minijax.floor2.b.x; minijax.floor2.a does" in said
    said = refusal(tmp_path, (2, A), (3, above.format("a", "q")))
    assert said.endswith("minijax.floor2.a does not define q")


def test_names_that_a_sibling_gives_to_a_module_are_its_own(tmp_path):
    """The exporter writes that import; and some modules make names while they run."""
    b, c = "#| export b\ny = x", "#| export c\nfrom minijax.floor2.b import x"
    lazy = "#| export b\ndef __getattr__(name): return 1"
    for cells in ((A, b), (lazy,)):
        zero = draft(tmp_path, 1, INIT)
        export.make([zero, draft(tmp_path, 2, *cells), draft(tmp_path, 3, c)])


def test_each_door_is_there_and_names_are_handed_out_by_doors_alone():
    package = Package(read_chapters())
    doors = {f"minijax.{path}".replace("/", ".") for path in DOORS} | {"minijax"}
    assert {*package.doors} == doors == package.public.keys()
