"""Make the pages that nobody writes: contents, indices, rule grid, speed.

python -m book.tools.pages           write the made pages of book/: names, grid, ...
python -m book.tools.pages --toc     write _toc.yml too
python -m book.tools.pages --check   exit 1 if _toc.yml is not up to date
python -m book.tools.pages --built   exit 1 if a page is missing in _build/html
"""

import argparse
import importlib
import json
import re
import sys
from pathlib import Path

from book.tools import compatibility, export, files, hooks, links, modules, suites
from book.tools.solutions import solutions_page
from book.tools.source import (
    PACKAGE,
    PARTS,
    ROOT,
    BookError,
    Chapter,
    chapter_paths,
    floor,
    floor_of,
    read_chapter,
    slug,
)
from book.tools.speed import speed_page

FRONT = ["how_to_read", "notation"]
BACK = """
    one_function errors names compatibility grid hooks switches speed suites solutions
    glossary
    differences reading_jax grammars teachers how_built bibliography
""".split()
MADE = """
    one_function names compatibility grid hooks switches speed suites solutions
""".split()
RECORD = ROOT / "benchmarks" / "recorded.json"
COPY = "book/helper/recorded.json"  # chapters show rows of it


def contents() -> str:
    """The text of `_toc.yml`: the pages there are, in the order of reading."""
    front = ["index", *(_page(p) for p in _run() if floor_of(p).number == 0)]
    front += [f"book/{name}" for name in FRONT if _written(name)]
    lines = ["# Made by `make chapters`: the floors in order, then the reference."]
    lines += ["format: jb-book", f"root: {front[0]}", "parts:"]
    lines += _part("Before we start", front[1:])
    start = 0
    for end, caption in PARTS:
        found = [p for p in _run() if start < floor_of(p).number <= end]
        lines += _part(caption, [_page(p) for p in found if floor_of(p).is_spine])
        start = end
    rooms = [_page(path) for path in _run() if not floor_of(path).is_spine]
    lines += _part("Back rooms", rooms)
    lines += _part("Reference", [f"book/{name}" for name in BACK if _written(name)])
    return "\n".join(lines) + "\n"


def pages() -> list[str]:
    """The pages of the committed `_toc.yml`, without suffix."""
    text = (ROOT / "_toc.yml").read_text(encoding="utf-8")
    return re.findall(r"(?:root|file): (\S+)", text)


def names_page(chapters: list[Chapter]) -> str:
    """The index: each public name with its floor, linked to where it is defined."""
    lines = ["# Index of names", "", _NAMES_TEXT]
    last = ("", "")
    entries = modules.definitions(chapters).items()
    for (space, name), cell in sorted(entries, key=lambda e: (e[0][0], _letters(e))):
        here = (space, name[0].upper())
        if space != last[0]:
            lines += ["", f"## `{space}`"]
        lines += [","] if here == last else ["", f"{here[1]}\n:"]
        page = f"../chapters/{cell.chapter}.ipynb#{slug(cell.heading)}"
        lines[-1] += f" [`{name}`]({page})&nbsp;{floor(cell.chapter.split('_')[0])}"
        last = here
    return "\n".join(lines).replace("\n,", ",\n  ") + "\n"


def rule_tables() -> list:
    """The rule tables of the whole package, those of low floors first."""
    folder = ROOT / PACKAGE
    makers = {path: export.made_by(path) for path in folder.rglob("*.py")}
    for _, path in sorted((maker, p) for p, maker in makers.items() if maker):
        importlib.import_module(export.dotted(str(path.relative_to(folder))))
    core = sys.modules.get(f"{PACKAGE}.core")
    return list(core.rule_tables) if core else []


def grid_page(tables: list) -> str:
    """All rules in one table: a dot, a ring for a default, a number for a reason."""
    lines = ["# All rules in one table", "", _GRID_TEXT, ""]
    index = links.index()
    names = [_linked(table.name, table.name, index.tables) for table in tables]
    lines += [f"| primitive | {' | '.join(names)} |", f"|{'---|' * (len(names) + 1)}"]
    reasons: list[str] = []
    for primitive in primitives(tables):
        cells = [_grid_cell(table, primitive, reasons) for table in tables]
        name = _linked(f"`{primitive.name}`", primitive.name, index.primitives)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    if not primitives(tables):
        lines[-2:] = ["There is no primitive yet."]
    lines += ["", *(f"{n}. {text}" for n, text in enumerate(reasons, start=1))]
    return "\n".join(lines).rstrip() + "\n"


def primitives(tables: list) -> list:
    """All primitives of some tables, in the order of their names."""
    found = {p.name: p for table in tables for p in (*table, *table.reasons)}
    return [found[name] for name in sorted(found)]


def state(table: dict, primitive: object) -> str:
    """What a place of the grid holds: a key of `count_rules`."""
    if primitive in table:
        return "rules"
    if primitive in table.reasons:  # type: ignore[attr-defined]
        return "reasons"
    has_default = table.default is not None  # type: ignore[attr-defined]
    return "defaults" if has_default else "holes"


def switches_page() -> str:
    """Each switch of JAX, its default, and what it means here."""
    known = importlib.import_module(f"{PACKAGE}.arrays.config")
    values = importlib.import_module(PACKAGE).config.values
    lines = ["# Switches", "", _SWITCHES_TEXT]
    for status, text in _STATUSES.items():
        lines += ["", f"## {status.capitalize()}", "", text, ""]
        lines += ["| switch | by default | here |", "|---|---|---|"]
        found = [switch for switch in known.statuses() if switch[1] == status]
        for name, _, meaning in sorted(found):
            lines += [f"| `{name}` | `{values[name]!r}` | {meaning} |"]
    return "\n".join(lines) + "\n"


def write_pages() -> None:
    """Write the made pages, those whose text changed."""
    chapters = [read_chapter(path) for path in _run()]
    _write("book/names.md", names_page(chapters))
    _write("book/solutions.md", solutions_page(chapters))
    _write("book/compatibility.md", compatibility.page())
    _write("book/grid.md", grid_page(rule_tables()))
    _write("book/hooks.md", hooks.page())
    _write("book/switches.md", switches_page())
    record = RECORD.read_text(encoding="utf-8")
    _write("book/speed.md", speed_page(json.loads(record)))
    _write(COPY, record)
    _write("book/suites.md", suites.page())


def write_contents() -> None:
    """Write `_toc.yml`."""
    _write("_toc.yml", contents())


def missing() -> list[str]:
    """Pages of `_toc.yml` which the built book does not have."""
    html = ROOT / "_build" / "html"
    return [page for page in pages() if not (html / f"{page}.html").exists()]


def main(arguments: list[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for flag in ("--toc", "--check", "--built"):
        parser.add_argument(flag, action="store_true")
    options = parser.parse_args(arguments)
    if options.built:
        lost = missing()
        for page in lost:
            print(f"not built: {page}")
        if not lost:
            print(f"{len(pages())} pages; open _build/html/index.html")
        return bool(lost)
    if options.check:
        stale = (ROOT / "_toc.yml").read_text(encoding="utf-8") != contents()
        print("_toc.yml is stale: run `make chapters`" if stale else "contents agree")
        return stale
    if options.toc:
        write_contents()
    write_pages()
    return 0


_NAMES_TEXT = (
    "Each public name and its floor. A name leads to the section that defines it. "
    "Which names of JAX are missing is told by [Compatibility](compatibility.md)."
)
_SWITCHES_TEXT = (
    "The switches of `jax.config` in JAX 0.10.2, as they are set where this page was "
    "made. A switch is set by `jax.config.update(name, value)`, by the environment "
    "variable with its name in capital letters, on the command line "
    "(`jax.config.parse_flags_with_absl()` reads it), or for a block by its context "
    "manager, which is called like the switch without `jax_`. Another name is an "
    "`AttributeError`, as in JAX."
)
_STATUSES = {
    "done": "These mean what they mean in JAX.",
    "accepted": "These take the values that JAX takes, keep them, and change nothing.",
    "refused": (
        "These would promise what does not happen: a value that is not the default is "
        "a `NotImplementedError` with the sentence below."
    ),
}

_MARKS = {"rules": "●", "defaults": "○", "holes": " "}
_GRID_TEXT = (
    "Rows are primitives, columns are the tables that give them a meaning. ● is a rule "
    "of the primitive's own. ○ is the rule that the table has for every primitive "
    "without one: an equation is printed in the ordinary way, its cost is one "
    "operation for each element of its results. A number leads to the reason, below, "
    "why there is no rule on purpose. An empty place is a hole."
)


def _run() -> list[Path]:
    """The texts of the chapters which have been run."""
    return [path for path in chapter_paths() if path.with_suffix(".ipynb").exists()]


def _page(path: Path) -> str:
    return f"chapters/{path.stem}"


def _written(name: str) -> bool:
    return name in MADE or (ROOT / "book" / f"{name}.md").exists()


def _letters(entry: tuple[tuple[str, str], object]) -> tuple[str, str]:
    """The order of an index: small and capital letters together."""
    return entry[0][1].upper(), entry[0][1]


def _part(caption: str, files: list[str]) -> list[str]:
    lines = [f"- caption: {caption}", "  chapters:"]
    return [*lines, *(f"  - file: {file}" for file in files)] if files else []


def _linked(text: str, name: str, places: dict[str, links.Target]) -> str:
    place = places.get(name)
    return f"[{text}](../{place.page}.ipynb#{place.section})" if place else text


def _grid_cell(table: dict, primitive: object, reasons: list[str]) -> str:
    kind = state(table, primitive)
    if kind != "reasons":
        return _MARKS[kind]
    reason = table.reasons[primitive]  # type: ignore[attr-defined]
    if reason not in reasons:
        reasons.append(reason)
    return str(reasons.index(reason) + 1)


def _write(path: str, text: str) -> None:
    if files.write(ROOT / path, text):
        print(f"wrote {path}")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BookError as error:
        sys.exit(f"pages: {error}")
