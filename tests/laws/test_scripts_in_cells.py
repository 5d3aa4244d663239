"""Scripts for other processes stand in strings: what they import has to be there.

A name that changes is changed in cells by the tools, but not in strings; and a script
that fails in another process prints nothing, which passes for a short answer.
"""

import ast
import importlib
from textwrap import dedent

import pytest

from book.tools.source import PACKAGE, ROOT, read_chapters
from book.tools.syntax import without_magics


def texts(tree):
    """Return all strings of a syntax tree, with a 0 for what an f-string fills in."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = (
                p.value if isinstance(p, ast.Constant) else "0" for p in node.values
            )
            yield "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def imports_in_strings(code):
    """Return the imports of our package, module and name, in scripts in strings."""
    found = set()
    for text in texts(ast.parse(code)):
        if "import" not in text or PACKAGE not in text:
            continue
        try:
            script = ast.parse(dedent(text))
        except SyntaxError:  # a sentence, or a part of a script
            continue
        for line in ast.walk(script):
            if isinstance(line, ast.ImportFrom) and line.module and not line.level:
                found |= {(line.module, a.name) for a in line.names if a.name != "*"}
            elif isinstance(line, ast.Import):
                found |= {(alias.name, None) for alias in line.names}
    return {pair for pair in found if pair[0].split(".")[0] == PACKAGE}


def is_there(module, name):
    """Return whether an import works."""
    try:
        found = importlib.import_module(module)
        if name is not None and not hasattr(found, name):
            importlib.import_module(f"{module}.{name}")
    except ImportError:
        return False
    return True


def places():
    """Cells of the book, and other files that nothing checks."""
    for chapter in read_chapters():
        for cell in chapter.cells:
            yield f"{chapter.name}:{cell.line}", without_magics(cell.text)
    for folder in ("benchmarks", "examples"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")


def test_scripts_in_strings_import_what_is_there():
    found = [(place, imports_in_strings(code)) for place, code in places()]
    lines = [(place, pair) for place, pairs in found for pair in sorted(pairs, key=str)]
    assert len(lines) > 5
    missing = [(place, *pair) for place, pair in lines if not is_there(*pair)]
    assert missing == []


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ('x = "from minijax.core import Trace, nothing"', [True, False]),
        ('x = "import minijax.nowhere"', [False]),
        ('x = "import minijax.lax as lax\\nimport numpy"', [True]),
        ('x = "we import minijax here"', []),
        ("from minijax.core import nothing", []),
    ],
)
def test_what_is_found(code, expected):
    found = sorted(imports_in_strings(code), key=str)
    assert [is_there(*pair) for pair in found] == expected
