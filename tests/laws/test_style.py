"""Law 9 and the budgets: docstrings, short functions, short modules."""

import ast
import re
import statistics

import pytest

from book.tools.source import PACKAGE, ROOT
from book.tools.syntax import statements

MODULES = sorted((ROOT / PACKAGE).rglob("*.py"))
TOOLS = sorted((ROOT / "book").rglob("*.py"))
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


def name_of(path):
    """A path as the repository knows it."""
    return str(path.relative_to(ROOT))


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
        assert len(text.splitlines()) <= 400
    assert not {f.name: length(f) for f in functions(tree) if length(f) > 50}
    if path in MODULES:
        assert ast.get_docstring(tree), "no docstring of the module"
        assert not [node.name for node in public(tree) if not ast.get_docstring(node)]
        assert not re.search(r"\b(TODO|FIXME|XXX)\b", text)
        assert not re.search(r"\b(this|next) chapter\b", text, re.I)


def public(tree):
    """The public functions and classes of a module, but for overloads."""
    kinds = (*FUNCTIONS.__args__, ast.ClassDef)
    for node in tree.body:
        if not isinstance(node, kinds) or node.name.startswith("_"):
            continue
        if "overload" not in map(ast.unparse, node.decorator_list):
            yield node


def test_functions_keep_the_budget():
    lengths = sorted(length(f) for path in MODULES for f in functions(tree_of(path)))
    assert statistics.median(lengths) <= 7
    assert lengths[len(lengths) * 9 // 10] <= 20
