"""Find the hooks of the package: what one module opens, and others fill.

python -m book.tools.hooks     print them, one to a line

A hook is an object of a module (a table of rules, a registry, a dict, a set, a list, a
`Hook`) that another module changes: as it is imported, which is seen by importing all
modules in the order of their pages, or later, which is read in their texts.
"""

import ast
import importlib
import importlib.machinery
import json
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple

from book.tools import syntax
from book.tools.modules import Module, Package
from book.tools.source import PACKAGE, ROOT, floor, read_chapters

KINDS = {  # by the name of a class: the heading of the page, and what is asked when
    "RuleTable": (
        "Tables of rules, by primitive",
        "The rule of the primitive is asked, or the default of the table.",
    ),
    "dict": (
        "Methods, by type or name",
        "What stands at the key is asked; a key is set once, in any order.",
    ),
    "set": ("Sets", "Asked is whether something is in it."),
    "list": (
        "Lists",
        "All are asked, in the order of the pages that fill it, unless the sentence "
        "says otherwise.",
    ),
    "Hook": (
        "Values, of which the latest counts",
        "The value of the last page in the row is asked, and no other.",
    ),
}


class Found(NamedTuple):
    """A hook: its module and name, its kind, what is said of it, and who fills it."""

    module: str
    name: str
    kind: str
    sentence: str
    at_import: list[str]
    later: list[str]


@cache
def found() -> list[Found]:
    """All hooks, those of low pages first; a process of its own imports the package."""
    command = [sys.executable, "-m", "book.tools.hooks", "--json"]
    out = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True)
    return [Found(*each) for each in json.loads(out.stdout)]


def page() -> str:
    """The page that lists all hooks."""
    package = Package(read_chapters())
    lines = ["# All hooks in one table", "", _TEXT]
    for kind, (heading, order) in KINDS.items():
        rows = [hook for hook in found() if hook.kind == kind]
        lines += ["", f"## {heading}", "", f"{len(rows)} of them. {order}", ""]
        lines += ["| hook | what it is | opened on | filled on |", "|---|---|---|---|"]
        lines += [_row(hook, package) for hook in rows]
    return "\n".join(lines) + "\n"


def _row(hook: Found, package: Package) -> str:
    pages = {module.dotted: module.chapter.name for module in package.modules.values()}
    fillers = [
        before + _links([pages[name] for name in names])
        for before, names in (("", hook.at_import), ("while it runs: ", hook.later))
        if names
    ]
    module = hook.module.removeprefix(f"{PACKAGE}.")
    cells = [
        f"`{hook.name}` of `{module}`",
        hook.sentence,
        _links([opened_on(package.by_name[hook.module], hook.name)]),
        "; ".join(fillers) or "programs that use the package",
    ]
    return f"| {' | '.join(cells)} |"


def opened_on(module: Module, name: str) -> str:
    """The page that makes an object of a module: an amendment may have brought it."""
    for cell in (*module.cells, *module.amending):
        if name in syntax.defined(cell.code):
            return cell.chapter
    return module.chapter.name


_TEXT = (
    "A page of the book adds to lower pages in one of four ways: it fills a table of "
    "rules, sets an entry of a registry, joins a list or a set, or puts a value in the "
    "place of the one before. Each object by which a page can do so is a **hook**. "
    "(An amendment leaves none: the lower module has the new lines.) "
    "Who opens a hook and who fills it was found by importing the package in the order "
    "of its pages and comparing all objects before and after each module, and by "
    "reading which functions fill one later. The second column repeats the comments "
    "that stand beside the hooks in their modules."
)


def _links(names: list[str]) -> str:
    """Links to pages, each once, called by the numbers of their floors."""
    return ", ".join(
        f"[{str(floor(name)).replace('_', ' ')}](../chapters/{name}.ipynb)"
        for name in dict.fromkeys(names)
    )


class Watch:
    """Who changes which object of which module, as the package is imported."""

    def __init__(self) -> None:
        self.places: dict[int, tuple[str, str, Any]] = {}
        self.before: dict[int, Any] = {}
        self.fillers: dict[int, dict[str, None]] = {}
        self.running: list[ModuleType] = []

    def look(self, module: ModuleType | None = None) -> None:
        """Note what has changed since the last look, by the module that runs.

        Args:
          module: what has run, up to a line or to its end; it may have new objects.
        """
        for name, value in vars(module).items() if module else ():
            if kind_of(value) and not name.startswith("_"):
                self.places.setdefault(id(value), (module.__name__, name, value))
        for key, (_, _, value) in self.places.items():
            now = _contents(value)
            if self.running and now != self.before.get(key, now):
                self.fillers.setdefault(key, {})[self.running[-1].__name__] = None
            self.before[key] = now

    def import_all(self, modules: list[Module]) -> None:
        """Import modules in this order, and look before and after each."""
        loader, watch = importlib.machinery.SourceFileLoader, self
        execute = loader.exec_module

        def exec_module(self: Any, module: ModuleType) -> None:
            if not module.__name__.startswith(PACKAGE):
                return execute(self, module)
            watch.look(watch.running[-1] if watch.running else None)
            watch.running.append(module)
            try:
                execute(self, module)
                watch.look(module)
            finally:
                watch.running.pop()

        loader.exec_module = exec_module  # type: ignore[method-assign]
        try:
            for module in modules:
                importlib.import_module(module.dotted)
        finally:
            loader.exec_module = execute  # type: ignore[method-assign]


def kind_of(value: object) -> str | None:
    """The kind of hook that an object could be, or None."""
    names = [cls.__name__ for cls in type(value).__mro__]
    return next((kind for kind in KINDS if kind in names), None)


def _contents(value: Any) -> Any:
    """Something that changes when the entries of an object do."""
    if isinstance(value, dict):
        return {id(key): id(entry) for key, entry in value.items()}
    return [*map(id, value)] if isinstance(value, (list, set)) else id(value.value)


CHANGING = frozenset(
    "append add extend insert update setdefault pop remove discard clear".split()
)


def changes(text: str, package: Package) -> Iterator[tuple[str, str]]:
    """Yield, as module and name, what the text of a module changes of other modules."""
    tree = ast.parse(text)
    came = {
        alias.asname or alias.name: (package.owner(node.module, alias.name), alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }
    for node in ast.walk(tree):
        for name in filter(None, map(_changed, _targets(node))):
            owner, original = came.get(name, (None, ""))
            if owner:
                yield owner.dotted, original


def _targets(node: ast.AST) -> list[ast.expr]:
    """What a statement, or a call of a method that changes its object, writes to."""
    if isinstance(node, ast.Assign):
        targets = [e for t in node.targets for e in getattr(t, "elts", [t])]
        return [t for t in targets if not isinstance(t, ast.Name)]
    if isinstance(node, ast.AugAssign):
        return [node.target]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return [node.func.value] if node.func.attr in CHANGING else []
    return []


def _changed(target: ast.expr) -> str | None:
    """The name of the object that a target is an entry of, or the value."""
    while isinstance(target, ast.Subscript):
        target = target.value
    if isinstance(target, ast.Attribute) and target.attr == "value":
        target = target.value
    return target.id if isinstance(target, ast.Name) else None


def sentence(module: str, name: str) -> str:
    """The comment above the line that makes an object, or behind it."""
    lines = _text(module).splitlines()
    starts = (f"{name} = ", f"{name}: ", f"{name}, ", f"{name} |= ")
    number = next((i for i, line in enumerate(lines) if line.startswith(starts)), None)
    if number is None:
        return ""
    if "  # " in lines[number]:
        return lines[number].partition("  # ")[2]
    first = number
    while lines[first - 1].startswith("# "):
        first -= 1
    return " ".join(line.removeprefix("# ") for line in lines[first:number])


@cache
def _text(module: str) -> str:
    path = ROOT.joinpath(*module.split("."))
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return path.read_text("utf-8")


def search() -> list[Found]:
    """Import the whole package into this process, and find all hooks."""
    package, watch = Package(read_chapters()), Watch()
    modules = sorted(package.modules.values(), key=lambda m: m.chapter.floor)
    watch.import_all(modules)
    later: dict[tuple[str, str], dict[str, None]] = {}
    for module in modules:
        for place in changes(_text(module.dotted), package):
            later.setdefault(place, {})[module.dotted] = None
    order, hooks = [m.dotted for m in modules], []
    for key, (module_name, name, value) in watch.places.items():
        at_import = [x for x in watch.fillers.get(key, ()) if x != module_name]
        then = [x for x in later.get((module_name, name), ()) if x not in at_import]
        kind = kind_of(value)
        if kind and (at_import or then or kind == "Hook") and module_name in order:
            said = sentence(module_name, name)
            hooks.append(Found(module_name, name, kind, said, at_import, then))
    return sorted(hooks, key=lambda hook: (order.index(hook.module), hook.name))


if __name__ == "__main__":
    hooks = search()
    if "--json" in sys.argv:
        print(json.dumps(hooks))
    else:
        for hook in hooks:
            print(hook.kind, f"{hook.module}.{hook.name}", hook.sentence, sep="\t")
