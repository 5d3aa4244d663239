"""Chapters, links and names in prose lead somewhere."""

import re

import pytest

from book.tools import quoted, references
from book.tools.source import CHAPTERS, read_chapters
from tests.laws.drafts import draft

ALL = read_chapters()


def test_all_references_lead_somewhere():
    wrong = references.complaints(ALL)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("See chapter 99.", "chapters/01_a.md:7: there is no chapter 99"),
        ("See chapters 3, 4 and 77.", "no chapter 77"),
        ("See chapters 12–58.", "no chapter 58"),
        ("See chapter 28 and chapters 3 to 5.", None),
        ("[x](00_prologue.ipynb)", None),
        ("[x](99_none.ipynb)", "no such page"),
        ("[x](09_linearize.ipynb#nowhere)", "the headings there are .*in-jax"),
        ("[x](09_linearize.ipynb#in-jax)", None),
        ("[x](../book/grid.md) [y](../book/glossary.md)", None),
        ("[x](../book/none.md)", "no such page"),
        ("[x](https://a.org/b.md) [y](#here)", None),
        ("`jnp.sinus(x)`", r"`jnp.sinus` is no name of the package, .*_missing_names"),
        ("`lax.foo` and `minijax.bar`", r"`minijax.bar` is no name"),
        ("`jnp.sin(lax.add(x, y))`, `minijax.grad`", None),
        ("`minijax.core.Trace`, `jnp.linalg.norm`, `lax.sort`", None),
        ("`minijax.core.Track`", "is no name"),
        ("`jax._src.lax.foo` in `jax/_src/lax.py`", None),
    ],
)
def test_what_leads_nowhere_is_told(line, message):
    found = references.in_text(CHAPTERS / "01_a.md", [(7, line)], ALL)
    assert bool(found) == bool(message), found
    assert not message or re.search(message, "\n".join(found))


def test_code_names_chapters_too(tmp_path):
    page = draft(tmp_path, 2, 'print("this comes with chapter 99")')
    assert "there is no chapter 99" in references.in_code(page)[0]


@pytest.mark.parametrize(
    ("text", "strange"),
    [
        ("We call `process_primitiv(x)`.", ["process_primitiv"]),
        ("We call `process_primitive(x)`, `len(xs)` and `vaddps`.", []),
        ("## In JAX\n\nThere is `_pjit_linearise`.", []),
        ("## In JAX\n\nA.\n\n## Checkpoint\n\n`_pjit_linearise`", ["_pjit_linearise"]),
    ],
)
def test_names_in_backticks_exist(tmp_path, text, strange):
    found = [*quoted.strange_names(draft(tmp_path, 2, f"> {text}"))]
    assert len(found) == len(strange)
    assert all(f"`{name}` is in no code" in f for name, f in zip(strange, found))


NEXT = "> ## Checkpoint\n\nThe {} brings more.\n\n## Exercises\n\nThe next chapter."


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("next chapter", "is no link; what comes next is 03_floor3.ipynb: link"),
        ("[next floor](03_floor3.ipynb#a)", None),
        ("[next chapter](04_floor4.ipynb)", "leads to 04_floor4.ipynb; what comes"),
        ("chapter after", None),
    ],
)
def test_the_next_chapter_is_the_page_that_comes_next(tmp_path, words, message):
    two = draft(tmp_path, 2, NEXT.format(words))
    found = references.next_page(two, draft(tmp_path, 3))
    assert bool(found) == bool(message), found
    assert not message or message in found[0]


def test_after_the_last_page_comes_nothing(tmp_path):
    [found] = references.next_page(draft(tmp_path, 2, NEXT.format("next floor")), None)
    assert "this is the last page" in found


def test_back_rooms_are_not_next(tmp_path):
    pages = [draft(tmp_path, number) for number in (2, "2_rest", "3_ground", 3)]
    [(first, second)] = references._neighbours(pages)
    assert (first, second) == (pages[0], pages[3])


def test_the_second_spine_of_a_floor_is_next(tmp_path):
    pages = [draft(tmp_path, number) for number in (2, "2_upper", "2_rest", 3)]
    found = references._neighbours(pages)
    assert found == [(pages[0], pages[1]), (pages[1], pages[3])]


def test_a_back_room_is_linked_from_its_spine(tmp_path):
    rest, link = draft(tmp_path, "2_rest"), "> See [the rest](02_floor2_rest.ipynb)."
    [found] = references.unlinked_rooms([draft(tmp_path, 2), rest])
    assert "link to 02_floor2_rest.ipynb from the place in 02_floor2.md" in found
    assert not references.unlinked_rooms([draft(tmp_path, 2, link), rest])
    pages = [draft(tmp_path, 2), draft(tmp_path, "2_upper", link), rest]
    assert not references.unlinked_rooms(pages)
    assert "not there" in references.unlinked_rooms([rest])[0]


def test_the_command_tells_everything(monkeypatch, capsys, tmp_path):
    page = draft(tmp_path, 2, "> See chapter 99.")
    monkeypatch.setattr(references, "read_chapters", lambda: [page])
    assert references.main() == 1
    said = capsys.readouterr().out
    assert "chapters/02_floor2.md:6: there is no chapter 99" in said
