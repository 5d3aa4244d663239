"""Law 9 and the budgets: docstrings, short functions, short modules."""

import ast
import re
import statistics
from functools import cache

import pytest

from book.tools import public as public_names
from book.tools.source import PACKAGE, ROOT
from book.tools.syntax import statements

MODULES = sorted((ROOT / PACKAGE).rglob("*.py"))
TOOLS = sorted((ROOT / "book").rglob("*.py"))
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


def name_of(path):
    """A path as the repository knows it."""
    return str(path.relative_to(ROOT))


@cache
def tree_of(path):
    """The syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def length(function):
    """Lines of a function, decorators and docstring apart."""
    text = function.body[0] if ast.get_docstring(function) else None
    inside = text.end_lineno - text.lineno + 1 if text else 0
    return function.end_lineno - function.lineno + 1 - inside


def functions(tree):
    """All functions and methods of a file."""
    return [node for node in statements(tree) if isinstance(node, FUNCTIONS)]


@pytest.mark.parametrize("path", MODULES + TOOLS, ids=name_of)
def test_module(path):
    """It is short, and so are its functions; the package's have docstrings, alone."""
    text, tree = path.read_text(encoding="utf-8"), tree_of(path)
    if path.name != "_public.py":  # a table that the exporter writes
        assert len(text.splitlines()) <= 1000
    assert not {f.name: length(f) for f in functions(tree) if length(f) > 50}
    if path in MODULES:
        assert ast.get_docstring(tree), "no docstring of the module"
        assert not [node.name for node in public(tree) if not ast.get_docstring(node)]
        assert not re.search(r"\b(TODO|FIXME|XXX)\b", text)
        assert not re.search(r"\b(this|next) chapter\b|\bchapter\s+\d", text, re.I)


def public(tree):
    """The public functions and classes of a module, but for overloads."""
    kinds = (*FUNCTIONS.__args__, ast.ClassDef)
    for node in tree.body:
        if not isinstance(node, kinds) or node.name.startswith("_"):
            continue
        if not is_overload(node):
            yield node


def is_overload(node):
    """Return whether a function says only how it may be called."""
    return "overload" in map(ast.unparse, node.decorator_list)


def public_functions():
    """Each function that a user finds in a namespace, with what it is called there."""
    for space, names in public_names.read(ROOT / PACKAGE)[0].items():
        for name, module in names.items():
            path = ROOT.joinpath(*module.split("."))
            path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
            top = [n for n in tree_of(path).body if isinstance(n, FUNCTIONS)]
            found = [node for node in top if node.name == name]
            typed = [node for node in found if is_overload(node)]
            yield from ((f"{space}.{name}", node) for node in typed or found)


def test_public_functions_are_annotated():
    """Arguments and result, so that a user's type checker knows them."""
    found, bare = 0, set()
    for name, node in public_functions():
        args = node.args
        wanted = [*args.posonlyargs, *args.args, *args.kwonlyargs]
        found += 1
        if node.returns is None or not all(arg.annotation for arg in wanted):
            bare.add(name)
    assert found > 700 and not bare


def test_functions_keep_the_budget():
    lengths = sorted(length(f) for path in MODULES for f in functions(tree_of(path)))
    assert statistics.median(lengths) <= 7
    assert lengths[len(lengths) * 9 // 10] <= 20
