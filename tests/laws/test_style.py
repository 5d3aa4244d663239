"""Law 9 and the budgets: docstrings, short functions, short modules."""

import ast
import re
import statistics

import pytest

from book.tools.source import PACKAGE, ROOT

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


def functions(path):
    """All functions and methods of a file."""
    return [node for node in ast.walk(tree_of(path)) if isinstance(node, FUNCTIONS)]


@pytest.mark.parametrize("path", MODULES + TOOLS, ids=name_of)
def test_module_is_short(path):
    if path.name == "_public.py":
        return  # a table that the exporter writes
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400


@pytest.mark.parametrize("path", MODULES + TOOLS, ids=name_of)
def test_functions_are_short(path):
    long = {f.name: length(f) for f in functions(path) if length(f) > 50}
    assert not long


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_public_names_have_docstrings(path):
    tree = tree_of(path)
    kinds = (*FUNCTIONS.__args__, ast.ClassDef)
    found = [node for node in tree.body if isinstance(node, kinds)]
    public = [
        node
        for node in found
        if not node.name.startswith("_")
        and "overload" not in map(ast.unparse, node.decorator_list)
    ]
    assert ast.get_docstring(tree), "no docstring of the module"
    assert not [node.name for node in public if not ast.get_docstring(node)]


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_package_stands_alone(path):
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"\b(TODO|FIXME|XXX)\b", text)
    assert not re.search(r"\b(this|next) chapter\b", text, re.I)


def test_functions_keep_the_budget():
    lengths = sorted(length(f) for path in MODULES for f in functions(path))
    assert statistics.median(lengths) <= 7
    assert lengths[len(lengths) * 9 // 10] <= 20
