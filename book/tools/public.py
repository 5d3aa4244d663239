"""The tables in `minijax/_public.py`: who has which public name, who fills tables.

The same names are written into stubs, which tell type checkers and editors what they
are; Python does not read those.
"""

import ast
import re
import textwrap
from collections.abc import Container, Mapping
from pathlib import Path

from book.tools import syntax
from book.tools.modules import Package
from book.tools.source import PACKAGE, Chapter

WIDTH = 88

Names = dict[str, dict[str, str]]
Tables = tuple[Names, list[str], dict[str, str]]

HEAD = '''\
"""Public names by the modules which define them; modules which fill tables."""

# Made from the chapters by `make chapters`; edit them, not this file.

# For each module that users import: the modules that have its names.
NAMES: dict[str, dict[str, str]] = {
'''
PUBLIC = '''}

PUBLIC: dict[str, dict[str, str]] = {
    space: {name: module for module in homes for name in homes[module].split()}
    for space, homes in NAMES.items()
}

WAITING: dict[str, str] = {'''
STUB = "# Made from the chapters by `make chapters`; edit them, not this file.\n\n"


def tables(package: Package) -> Tables:
    """The names of all chapters, the modules that register, and what these await."""
    return package.public, package.registers, package.waiting


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
    there = own | (old[0].keys() - stale)
    waiting = {name: old[2][name] for name in old[2].keys() - stale} | package.waiting
    return (
        {space: names for space, names in public.items() if names or space in there},
        sorted(registers, key=lambda name: (ranks.get(name, len(ranks)), name)),
        {name: waiting[name] for name in sorted(registers & waiting.keys())},
    )


def only(tables: Tables, modules: set[str]) -> Tables:
    """The part of the tables which speaks of these modules."""
    public = {
        space: {name: module for name, module in names.items() if module in modules}
        for space, names in tables[0].items()
        if space in modules or space == PACKAGE
    }
    waiting = {name: awaited for name, awaited in tables[2].items() if name in modules}
    return public, [name for name in tables[1] if name in modules], waiting


def read(folder: Path) -> Tables:
    """The tables in the `_public.py` of a package folder; empty if there is none."""
    path = folder / "_public.py"
    found = {"NAMES": {}, "REGISTERS": [], "WAITING": {}}
    body = ast.parse(path.read_text(encoding="utf-8")).body if path.exists() else []
    for node in body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) in found:
            found[ast.unparse(node.target)] = ast.literal_eval(node.value)
    names = {space: _by_name(homes) for space, homes in found["NAMES"].items()}
    return names, found["REGISTERS"], found["WAITING"]


def render(public: Names, registers: list[str], waiting: dict[str, str]) -> str:
    """The text of `_public.py`: names of one module stand together, in a few lines."""
    lines = [HEAD]
    for namespace, names in sorted(public.items()):
        lines.append(f'    "{namespace}": {{' + "\n" * bool(names))
        for module, own in sorted(_by_module(names).items()):
            lines.append(_listed(f'        "{module}": ', own))
        lines.append("    },\n" if names else "},\n")
    late = [f'    "{name}": "{waiting[name]}",\n' for name in sorted(waiting)]
    lines += [PUBLIC, "\n" * bool(late), *late]
    inside = [f'    "{name}",\n' for name in registers]
    listed = ["\n", *inside] if registers else []
    return "".join([*lines, "}\n\nREGISTERS: list[str] = [", *listed, "]\n"])


def _by_module(names: dict[str, str]) -> dict[str, list[str]]:
    """From modules to the names that they have, in the order of the alphabet."""
    found: dict[str, list[str]] = {}
    for name in sorted(names):
        found.setdefault(names[name], []).append(name)
    return found


def _by_name(homes: dict[str, str]) -> dict[str, str]:
    pairs = [(name, module) for module in homes for name in homes[module].split()]
    return dict(sorted(pairs))


def _listed(key: str, names: list[str]) -> str:
    """An entry of a dictionary: a text of names, in lines that are not too long."""
    text = " ".join(names)
    if len(key) + len(text) + 3 <= WIDTH:
        return f'{key}"{text}",\n'
    inside = textwrap.wrap(text, WIDTH - 12, break_on_hyphens=False)
    body = "".join(f"{' ' * 12}{line}\n" for line in inside)
    return f'{key}"""\n{body}        """,\n'


def stubs(public: Names, texts: Mapping[str, str]) -> dict[str, str]:
    """The texts of the stubs, by their paths.

    Args:
      public: from modules for users to their names, and the modules that have these.
      texts: of the modules of the package, by their paths.
    """
    found = {}
    for space, names in public.items():
        given = names | _instead(space, texts)
        lines = [f"from {given[name]} import {name} as {name}\n" for name in names]
        below = [x.rpartition(".")[2] for x in public if x.rpartition(".")[0] == space]
        lines += [f"from {space} import {name} as {name}\n" for name in below]
        path = _path(space, texts)
        text = texts.get(path.removesuffix("i"), "")
        if _has_its_own(text):
            continue
        lines += _placed(text) + _shorter(space, public, text) + _added(space, texts)
        if lines:
            head = STUB + "__version__: str\n" * (space == PACKAGE)
            found[path] = head + "".join(sorted(lines, key=_order))
    return found


def _has_its_own(text: str) -> bool:
    """Whether a module defines names that a stub of its public ones would hide."""
    return "\n__getattr__" in text and bool(re.search("^class ", text, re.MULTILINE))


def _instead(space: str, texts: Mapping[str, str]) -> dict[str, str]:
    """Names of which users get another object: the tables `INSTEAD` of higher floors.

    Returns:
      From names to the modules that have these objects under the same names.
    """
    found = {}
    for path, text in texts.items():
        if "\nINSTEAD = " in text:
            names = _table(text, "INSTEAD").get(space, "").split()
            found |= dict.fromkeys(names, _dotted(path))
    return found


def _dotted(path: str) -> str:
    return f"{PACKAGE}.{path.removesuffix('.py').replace('/', '.')}"


def _table(text: str, name: str) -> dict[str, str]:
    """The literal dictionary that a module has at its top under a name, or none."""
    for node in ast.parse(text).body if f"{name} = " in text else ():
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return ast.literal_eval(node.value)
    return {}


def _placed(text: str) -> list[str]:
    """What a module hands out from the places that its table `PLACES` names."""
    places = _table(text, "PLACES").items()
    names = [(place, name) for place, text in places for name in text.split()]
    return [f"from {place} import {name} as {name}\n" for place, name in names]


def _added(space: str, texts: Mapping[str, str]) -> list[str]:
    """What modules of higher floors add to the table `_functions` of a module."""
    lines = []
    table = re.compile(rf"^from {re.escape(space)} import _functions as (\w+)$", re.M)
    for path, text in texts.items():
        borrowed = " import _functions as " in text  # a search takes far longer
        if borrowed and (found := table.search(text)):
            for name in re.findall(rf'^{found[1]}\["(\w+)"\] = \1$', text, re.M):
                lines.append(f"from {_dotted(path)} import {name} as _{name}\n")
                lines.append(f"{name} = _{name}\n")
    return lines


def _shorter(space: str, public: Names, text: str) -> list[str]:
    """What a module hands out under shorter names: `tree.map` is `tree_map`.

    They are the functions which it imports, or which its neighbour `tree_util` has, or
    whose module it names in a table of short names.
    """
    if "def __getattr__" not in text:
        return []
    prefix = space.rpartition(".")[2] + "_"
    found = dict(public.get(f"{space}_util", {}))
    for node in syntax.imports(text):
        if isinstance(node, ast.ImportFrom):
            found |= {alias.name: str(node.module) for alias in node.names}
    named = re.findall(r'"(\w+)": "(minijax\.\w[\w.]*)"', text)
    found |= {f"{prefix}{name}": module for name, module in named}
    lines = []
    for name in (name for name in found if name.startswith(prefix)):
        lines.append(f"from {found[name]} import {name} as _{name}\n")
        lines.append(f"{name.removeprefix(prefix)} = _{name}\n")
    return lines


def _order(line: str) -> tuple[bool, str]:
    return not line.startswith("from "), line


def _path(space: str, paths: Container[str]) -> str:
    path = space.partition(".")[2].replace(".", "/")
    is_file = f"{path}.py" in paths
    return f"{path}.pyi" if is_file else f"{path}/__init__.pyi".lstrip("/")


def _without(names: dict[str, str], modules: set[str]) -> dict[str, str]:
    return {name: module for name, module in names.items() if module not in modules}
