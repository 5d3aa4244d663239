"""Laws 1 to 3: one source, every line in the book, one owner."""

import re
import shutil
import subprocess
import sys
import tomllib
from functools import cache

import nbformat
import pytest

from book.tools import export, folds, notebook, owner, pages
from book.tools.source import (
    CHAPTERS,
    PACKAGE,
    ROOT,
    chapter_paths,
    read_chapter,
    read_chapters,
    slug,
)

PATHS = chapter_paths()
NAMES = [path.stem for path in PATHS]


def test_every_line_of_the_package_comes_from_a_chapter():
    assert not export.differences(export.make(read_chapters()), ROOT / PACKAGE)


@pytest.mark.parametrize("path", PATHS, ids=NAMES)
def test_notebook_is_valid_and_made_from_the_text(path):
    made, chapter = notebook.convert(path), read_chapter(path)
    stored = nbformat.reads(
        path.with_suffix(".ipynb").read_text(encoding="utf-8"), nbformat.NO_CONVERT
    )
    nbformat.validate(stored)
    assert not notebook.first_difference(made, stored)
    exporter_and_jupytext_see_the_same_cells(made, chapter)


def test_every_notebook_has_a_text():
    assert {path.stem for path in CHAPTERS.glob("*.ipynb")} == set(NAMES)


def exporter_and_jupytext_see_the_same_cells(made, chapter):
    code = [cell for cell in made.cells if cell.cell_type == "code"]
    texts = [notebook.as_magic(cell.text) for cell in chapter.cells]
    assert [cell.source for cell in code] == texts
    tags = [tuple(c.metadata.get("tags", ())) for c in code]
    assert tags == [c.tags for c in chapter.cells]
    titles = [bool(c.metadata.get("mystnb")) for c in code]
    assert titles == [folds.is_folded(c) for c in chapter.cells]


def test_contents_list_every_chapter():
    assert (ROOT / "_toc.yml").read_text(encoding="utf-8") == pages.contents()


def test_address_is_the_same_everywhere():
    found = {path: owner.accounts(path) for path in owner.files()}
    notebooks = {path: owner.accounts(path) for path in CHAPTERS.glob("*.ipynb")}
    wrong = {p for p, names in (found | notebooks).items() if names - {owner.current()}}
    assert not wrong, f"addresses differ from pyproject.toml's: {wrong}"


def test_branch_or_tag_is_the_same_everywhere():
    paths = [*owner.files(), *CHAPTERS.glob("*.ipynb")]
    wrong = {p for p in paths if owner.references(p) - {owner.reference()}}
    assert not wrong, f"branches differ from _config.yml's: {wrong}"


def test_every_package_is_packaged():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    listed = set(tomllib.loads(text)["tool"]["setuptools"]["packages"])
    folders = (path.parent for path in (ROOT / PACKAGE).rglob("__init__.py"))
    packages = {".".join(folder.relative_to(ROOT).parts) for folder in folders}
    assert listed == packages


def test_what_the_chapters_draw_with_is_a_distribution_of_its_own():
    ours = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    text = (ROOT / "book/helper/pyproject.toml").read_text(encoding="utf-8")
    book = tomllib.loads(text)
    assert "minijax_book" not in str(ours["project"] | ours["tool"]["setuptools"])
    packages = book["tool"]["setuptools"]["packages"]
    assert packages == ["minijax_book", "minijax_book.data", "minijax_book.emulator"]
    assert book["project"]["version"] == ours["project"]["version"]


def test_version_is_the_same_everywhere():
    texts = [(ROOT / name).read_text() for name in ("pyproject.toml", "CITATION.cff")]
    [project] = re.findall(r'^version = "(.*)"', texts[0], re.M)
    [cited] = re.findall(r"^version: (.*)$", texts[1], re.M)
    init = (ROOT / PACKAGE / "__init__.py").read_text(encoding="utf-8")
    assert project == cited
    assert f'__version__ = "{project}"' in init


def test_the_example_of_the_readme_runs():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    [code] = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    command = [sys.executable, "-W", "error", "-c", code]
    made = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert made.stdout.startswith("[["), made.stderr
    assert "fold add" in made.stdout


def test_style_sheets_are_listed():
    config = (ROOT / "_config.yml").read_text(encoding="utf-8")
    sheets = sorted(path.name for path in (ROOT / "book" / "_static").glob("*.css"))
    assert f"html_css_files: [{', '.join(sheets)}]" in config


@cache
def glossary():
    """Each term of the glossary in small letters, with the text of its entry."""
    text = (ROOT / "book" / "glossary.md").read_text(encoding="utf-8")
    entries = re.findall(r"^\*\*(.+?)\*\*\n: (.+?)(?=\n\n|\Z)", text, re.M | re.S)
    return {term.lower(): meaning for term, meaning in entries}


def defined_in(name):
    """The words which a chapter sets in bold where it defines them."""
    text = (CHAPTERS / f"{name}.md").read_text(encoding="utf-8")
    return {" ".join(m.split()) for m in re.findall(r"\*\*([a-z][\w\s-]+)\*\*", text)}


@pytest.mark.parametrize(("term", "meaning"), glossary().items())
def test_glossary_links_to_where_a_term_is_bold(term, meaning):
    [(name, anchor)] = re.findall(r"\(\.\./chapters/(\w+)\.ipynb#([^)]*)\)", meaning)
    prose = read_chapter(CHAPTERS / f"{name}.md").prose
    parts = re.split(r"^#{1,3} (.*)$", "\n".join(t for _, t in prose), flags=re.M)
    sections = dict(zip(map(slug, parts[1::2]), parts[2::2], strict=True))
    assert f"**{term}" in " ".join(sections[anchor].lower().split())


@pytest.mark.parametrize("name", NAMES)
def test_defined_terms_are_in_the_glossary(name):
    known = glossary()
    unknown = {
        t
        for t in defined_in(name)
        if not {t.lower(), t.lower().removesuffix("s")} & known.keys()
    }
    assert not unknown, "set in bold where it is defined, but not in book/glossary.md"


def test_the_account_is_set_with_nothing_but_python(tmp_path):
    kept = shutil.ignore_patterns("*.py", "*.svg", "_build", "__pycache__")
    for name in ("book", "chapters", ".github"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=kept)
    shutil.copytree(ROOT / "book/tools", tmp_path / "book/tools", dirs_exist_ok=True)
    for name in ("__init__.py", "amending.py"):
        shutil.copy(ROOT / "book/helper" / name, tmp_path / "book/helper")
    for name in ("pyproject.toml", "_config.yml", "README.md", "CITATION.cff"):
        shutil.copy(ROOT / name, tmp_path)
    paths = [path for path in tmp_path.rglob("*") if path.suffix in {".md", ".ipynb"}]
    before = {path: path.read_bytes() for path in paths}
    command = [sys.executable, "-S", "-m", "book.tools.owner", "me", "--at"]
    subprocess.run([*command, "v1.0"], cwd=tmp_path, check=True, capture_output=True)
    text = tmp_path / "chapters" / "01_interception.md"
    stored = nbformat.read(text.with_suffix(".ipynb"), as_version=4)
    made = notebook.convert(text)
    assert any("me/minijax@v1.0" in cell.source for cell in made.cells)
    assert [cell.id for cell in stored.cells] == [cell.id for cell in made.cells]
    command[4:5] = [owner.current()]
    command = [*command, owner.reference()]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    assert before == {path: path.read_bytes() for path in paths}
