"""The map to the real JAX: a row for each folder, with files."""

import re
from pathlib import Path

import minijax
from book.tools.source import ROOT

PAGE = ROOT / "book" / "reading_jax.md"
ROW = re.compile(r"^\| \[`(\w+)`\]\([^)]+\) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)


def rows():
    """The rows: folder, files of JAX, and what is said."""
    return ROW.findall(PAGE.read_text(encoding="utf-8"))


def folders():
    """The folders of the package."""
    package = Path(minijax.__file__).parent
    return {path.parent.name for path in package.glob("*/__init__.py")}


def test_each_folder_has_a_row():
    names = [folder for folder, *_ in rows()]
    assert sorted(names) == sorted(folders())


def test_each_row_names_files():
    for folder, files, says in rows():
        named = re.findall(r"`([^`]+)`", files)
        assert named, folder
        assert all(name.endswith(".py") for name in named), (folder, named)
        assert len(says) > 10, folder
