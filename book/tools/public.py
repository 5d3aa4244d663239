"""The tables in `minijax/_public.py`: who has which public name, who fills tables."""

import ast
from pathlib import Path

from book.tools.modules import Package
from book.tools.source import Chapter

Names = dict[str, dict[str, str]]
Tables = tuple[Names, list[str]]

HEAD = '''\
# Made from the chapters by `make chapters`; edit them, not this file.
"""Public names with the modules which define them; modules which fill tables."""

'''


def tables(package: Package) -> Tables:
    """The public names of all chapters, and the modules that register."""
    return package.public, package.registers


def merge(old: Tables, package: Package, chapter: Chapter, gone: set[str]) -> Tables:
    """The tables, anew for one chapter and as before for the others.

    Args:
      old: the tables so far.
      package: all chapters which can be read.
      chapter: the one which is made.
      gone: modules which it made once and makes no more.
    """
    own = {module.dotted for module in package.of(chapter)}
    stale = own | gone
    public = {space: _without(names, stale) for space, names in old[0].items()}
    for space, names in package.public.items():
        new = {name: module for name, module in names.items() if module in own}
        public[space] = public.get(space, {}) | new
    ranks = {name: rank for rank, name in enumerate(package.registers)}
    registers = {*old[1]} - stale | (own & ranks.keys())
    return (
        {space: names for space, names in public.items() if names},
        sorted(registers, key=lambda name: (ranks.get(name, len(ranks)), name)),
    )


def only(tables: Tables, modules: set[str]) -> Tables:
    """The part of the tables which speaks of these modules."""
    public = {
        space: {name: module for name, module in names.items() if module in modules}
        for space, names in tables[0].items()
    }
    return public, [name for name in tables[1] if name in modules]


def read(folder: Path) -> Tables:
    """The tables in the `_public.py` of a package folder; empty if there is none."""
    path = folder / "_public.py"
    found = {"PUBLIC": {}, "REGISTERS": []}
    body = ast.parse(path.read_text(encoding="utf-8")).body if path.exists() else []
    for node in body:
        if isinstance(node, ast.AnnAssign) and node.value:
            found[ast.unparse(node.target)] = ast.literal_eval(node.value)
    return found["PUBLIC"], found["REGISTERS"]


def render(public: Names, registers: list[str]) -> str:
    """The text of `_public.py`."""
    lines = [HEAD, "PUBLIC: dict[str, dict[str, str]] = {\n"]
    for namespace, names in sorted(public.items()):
        lines.append(f'    "{namespace}": {{\n')
        lines += [f'        "{name}": "{names[name]}",\n' for name in sorted(names)]
        lines.append("    },\n")
    inside = [f'    "{name}",\n' for name in registers]
    listed = ["\n", *inside] if registers else []
    return "".join([*lines, "}\n\nREGISTERS: list[str] = [", *listed, "]\n"])


def _without(names: dict[str, str], modules: set[str]) -> dict[str, str]:
    return {name: module for name, module in names.items() if module not in modules}
