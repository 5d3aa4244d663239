"""Write a module as text."""

import ast

from book.tools import modules, syntax
from book.tools.amendments import stamp
from book.tools.modules import Module, Package
from book.tools.source import CHAPTERS, Chapter, read_chapter

_HEAD = """\
# Made from chapters/{}.md by `make chapter`;
# edit the chapter, not this file.
"""


def front(chapter: Chapter) -> str:
    """The text of a package that holds modules of a floor.

    A ground makes the package, since it is the lowest page; the floor's own page says
    what the package is about.
    """
    floor = CHAPTERS / f"{chapter.name.removesuffix('_ground')}.md"
    about = read_chapter(floor) if floor.exists() else chapter
    return f'"""{about.says}"""\n\n{_HEAD.format(chapter.name)}'


def render(package: Package, module: Module) -> str:
    """The text of a module: docstring, who wrote it, imports, then the cells."""
    parts = []
    bodies = [_body(text) for text in module.texts]
    docstring = _docstring(module.texts[0])
    if docstring:
        text = ast.get_source_segment(module.texts[0], docstring)
        parts.append(f"{text}\n\n")
        bodies[0] = syntax.without_lines(bodies[0], [syntax.parse(bodies[0]).body[0]])
    parts.append(_HEAD.format(module.chapter.name))
    later = [cell for cell in module.amending if cell.chapter != module.chapter.name]
    parts += [f"{stamp(cell)}\n" for cell in later]
    imports = syntax.sorted_imports(modules.needed(package, module))
    if imports:
        parts.append(f"\n{imports}\n")
    body = "\n\n\n".join(text for text in bodies if text)
    return "".join(parts) + (_gap(body, imports) + body + "\n" if body else "")


def _docstring(code: str) -> ast.expr | None:
    body = syntax.parse(code).body
    first = body[0].value if body and isinstance(body[0], ast.Expr) else None
    text = isinstance(first, ast.Constant) and isinstance(first.value, str)
    return first if text else None


def _body(code: str) -> str:
    return syntax.without_lines(code, list(syntax.imports(code)))


def _gap(body: str, imports: str) -> str:
    """Two blank lines before a def or class after imports, else one."""
    blocks = ("def ", "class ", "@", "async ")
    return "\n\n" if imports and body.startswith(blocks) else "\n"
