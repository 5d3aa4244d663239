"""Set the account in the repository's address, wherever the address stands.

    python -m book.tools.owner you                the account
    python -m book.tools.owner you --at v0.1.0    and the branch or tag to install

The address in `pyproject.toml` is the source; the others are copies of it. Notebooks of
a release install that release: before it is tagged its name is written into them.
It is the first command after forking, and needs nothing but Python.
"""

import argparse
import json
import re
import sys
import tomllib
from pathlib import Path

from book.tools.source import CHAPTERS, ROOT, cell_ids

ADDRESS = re.compile(
    r"(?<=github\.com/)[\w.-]+(?=/minijax)"
    r"|(?<=google\.com/github/)[\w.-]+(?=/minijax)"
    r"|(?<=https://)[\w-]+(?=\.github\.io/minijax)"
)  # the repository, a notebook on Colab, the pages
REFERENCE = re.compile(
    r"(?<=/minijax@)[\w.-]+"
    r"|(?<=/minijax/blob/)[\w.-]+(?=/)"
    r"|(?<=^  branch: )[\w.-]+$",
    re.MULTILINE,
)  # what pip installs, what Colab opens, what a page's buttons lead to
FOLDERS = (".", "book", "chapters", ".github/workflows")
SUFFIXES = {".md", ".toml", ".yml", ".cff", ".bib"}


def current() -> str:
    """The account in `pyproject.toml`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    match = ADDRESS.search(project["project"]["urls"]["Repository"])
    return match[0] if match else ""


def reference() -> str:
    """The branch or tag which the notebooks install, from `_config.yml`."""
    match = REFERENCE.search((ROOT / "_config.yml").read_text(encoding="utf-8"))
    return match[0] if match else ""


def files() -> list[Path]:
    """The texts in which an address may stand."""
    found = [path for folder in FOLDERS for path in (ROOT / folder).glob("*")]
    return sorted(path for path in found if path.suffix in SUFFIXES)


def accounts(path: Path) -> set[str]:
    """The accounts in the addresses of one file."""
    return set(ADDRESS.findall(path.read_text(encoding="utf-8")))


def references(path: Path) -> set[str]:
    """The branches and tags in the addresses of one file."""
    return set(REFERENCE.findall(path.read_text(encoding="utf-8")))


def rename(name: str, at: str) -> None:
    """Write account and branch into every address, and into the stored notebooks."""
    for path in files():
        old = path.read_text(encoding="utf-8")
        new = REFERENCE.sub(at, ADDRESS.sub(name, old))
        if new != old:
            path.write_text(new, encoding="utf-8")
            print(f"changed {path.relative_to(ROOT)}")
    for stored in sorted(CHAPTERS.glob("*.ipynb")):
        _rename_cells(stored, name, at)


def _rename_cells(stored: Path, name: str, at: str) -> None:
    """The same in a notebook: cells whose text changes get the ids of the new text."""
    book = json.loads(stored.read_text(encoding="utf-8"))
    for cell in book["cells"]:
        text = "".join(cell["source"])
        cell["source"] = REFERENCE.sub(at, ADDRESS.sub(name, text)).splitlines(True)
    pairs = [(cell["cell_type"], "".join(cell["source"])) for cell in book["cells"]]
    for cell, key in zip(book["cells"], cell_ids(pairs), strict=True):
        cell["id"] = key
    text = json.dumps(book, ensure_ascii=False, indent=1, sort_keys=True)
    stored.write_text(text + "\n", encoding="utf-8")


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("name", help="the account")
    parser.add_argument("--at", default=reference(), help="branch or tag (as it is)")
    options = parser.parse_args()
    for text in (options.name, options.at):
        if not re.fullmatch(r"[\w.-]+", text):
            sys.exit(f"{text!r} is not a name: make owner NAME=account AT=v0.1.0")
    rename(options.name, options.at)


if __name__ == "__main__":
    main()
