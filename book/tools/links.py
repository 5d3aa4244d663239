"""Where names lead: from code, and from pictures, to the cell that defines them.

A name in a cell of a chapter is looked up as Python would: what the page defines and
imports up to there, attributes of modules, and no name that a function binds itself.
"""

import ast
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from functools import cache
from html import escape, unescape
from itertools import pairwise
from typing import NamedTuple

from book.tools import page, syntax
from book.tools.amendments import Change
from book.tools.modules import Module, Package
from book.tools.source import PACKAGE, PARTS, Cell, Chapter, read_chapters, slug

PREFIX = "def-"  # of anchors at cells
_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_SCOPES = _FUNCTIONS | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
_PIECES = re.compile(r"<[^>]*>|&#?\w+;|[^<&]+")
_BOX = re.compile(r"<rect [^>]*><title>(\d+|[IVX]+) [^<]*</title></rect>")
_LABEL = re.compile(r"<text [^>]*>([^<]*)</text>")
_TABLE = re.compile(r'^(\w+)(?:: \w+)? = RuleTable\(\s*"(\w+)"', re.MULTILINE)
_TITLE = re.compile(r"<title id=[^>]*>(?:Floor (\d+) of|(Rule grid)|One function)")


class Target(NamedTuple):
    """A place in the book: page, anchor, what stands there, and its section."""

    page: str
    anchor: str
    says: str
    section: str = ""


class Link(NamedTuple):
    """A stretch of code that leads somewhere."""

    start: int
    end: int
    target: Target


_ROOMS = {-1: "on the ground of this floor", 2: "in the rest of this floor"}
Scope = dict[str, Target | str]  # names on a page: defined things, or dotted modules
Address = Callable[[Target], str]  # how a page spells the way to a place


class Index:
    """All that the chapters define, with the cells that do."""

    def __init__(self, chapters: list[Chapter]):
        self.chapters = chapters
        self.package = Package(chapters)
        self.targets = {
            (module.dotted, name): target(module, cell, name)
            for module in self.package.modules.values()
            for cell in module.cells
            if page.is_seen(module.chapter, cell)
            for name in sorted(syntax.defined(cell.code))
        }
        self.primitives = {
            name.removesuffix("_p"): place
            for (_, name), place in self.targets.items()
            if name.endswith("_p")
        }
        self.tables = self._rule_tables()
        self.places = self._floors_and_parts()

    def scopes(self, chapter: Chapter) -> Iterator[tuple[Cell, Scope]]:
        """The cells of a page, each with the names that it can see."""
        scope: Scope = {}
        for cell in chapter.cells:
            code = syntax.without_magics(cell.code)
            try:
                bound = syntax.defined(code)
                imported = syntax.imports(code)
            except SyntaxError:  # a cell that is meant to fail
                continue
            for name in bound:
                found = self.targets.get((_dotted(cell), name))
                scope.pop(name, None)
                scope |= {name: found} if found else {}
            for node in imported:
                scope |= self._imported(node)
            yield cell, dict(scope)

    def attribute(self, space: str, name: str) -> Target | str | None:
        """What `space.name` is: a module, something defined, or neither."""
        dotted = f"{space}.{name}"
        if dotted in self.package.by_name or dotted in self.package.public:
            return dotted
        owner = self.package.owner(space, name)
        return self.targets.get((owner.dotted, name)) if owner else None

    def _floors_and_parts(self) -> dict[str, Target]:
        """For each floor that has a page, and each part of the book, the first page."""
        found: dict[str, Target] = {}
        for chapter in self.chapters:
            number, room = chapter.floor
            top = Target(f"chapters/{chapter.name}", "", chapter.says)
            part = next(text for end, text in PARTS if number <= end).split()[0]
            if number and not room:
                found |= {str(number): top, part: found.get(part, top)}
        return found

    def _imported(self, node: ast.Import | ast.ImportFrom) -> Scope:
        scope: Scope = {}
        for alias in node.names:
            bound: Target | str | None = None
            if isinstance(node, ast.ImportFrom):
                bound = self.attribute(node.module or "", alias.name)
            elif alias.name.split(".")[0] == PACKAGE:
                bound = alias.name if alias.asname else PACKAGE
            if bound:
                scope[alias.asname or alias.name.split(".")[0]] = bound
        return scope

    def _rule_tables(self) -> dict[str, Target]:
        """Rule tables by the names that they are given as they are made."""
        found = {}
        for cell in (cell for chapter in self.chapters for cell in chapter.cells):
            made = _TABLE.findall(cell.code) if cell.module else []
            for variable, name in made:
                place = self.targets.get((_dotted(cell), variable))
                found[name] = place or self._brought(cell)
        return found

    def _brought(self, cell: Cell) -> Target:
        """The place of what an amendment brings besides its next versions."""
        module = self.package.modules[str(cell.module)]
        return _version(next(c for c in module.changes if c.cell is cell), module)


@cache
def index() -> Index:
    """What the chapters of the repository define."""
    return Index(read_chapters())


def target(module: Module, cell: Cell, name: str) -> Target:
    """The place where a name is defined."""
    says = f"{name}: {PACKAGE}/{module.path}.py, chapter {module.chapter.title}"
    where, section = f"chapters/{cell.chapter}", slug(cell.heading)
    return Target(where, PREFIX + name, says.replace("`", ""), section)


def growth(cell: Cell, index: Index) -> list[tuple[str, Target]]:
    """Where the definitions of a cell had their last version, and have the next one.

    Returns:
      Pairs of what a link says and where it leads.
    """
    module = index.package.modules[str(cell.module)]
    found = []
    for name in cell.amends or sorted(syntax.defined(cell.code)):
        steps = [c for c in module.changes if _is_of(c.name, name, bool(cell.amends))]
        if cell.amends:
            at = [change.cell for change in steps].index(cell)
            first = index.targets.get((module.dotted, name.partition(".")[0]))
            before = _version(steps[at - 1], module) if at else first
            if before:
                found.append(
                    (f"{name} as {_where(before, cell, index, 'above')}", before)
                )
            steps = steps[at + 1 :]
        for change in {c.name: c for c in reversed(steps)}.values():
            place = _version(change, module)
            found.append(
                (f"{change.name} grows {_where(place, cell, index, 'below')}", place)
            )
    return found


def _is_of(changed: str, name: str, alone: bool) -> bool:
    """Whether this is the definition, or, unless `alone`, an entry of that class."""
    return changed == name or (not alone and changed.startswith(f"{name}."))


def _version(change: Change, module: Module) -> Target:
    """The place of a later version of a definition."""
    page, name = change.cell.chapter, change.name
    own = [c for c in module.changes if (c.cell.chapter, c.name) == (page, name)]
    number = own.index(change) + 1  # a page may amend a definition twice
    anchor = f"amend-{name}" + (f"-{number}" if number > 1 else "")
    return Target(f"chapters/{page}", anchor, f"{name}, amended")


def _where(place: Target, cell: Cell, index: Index, here: str) -> str:
    """The page of a place, as a cell of another one says it; `here` on its own."""
    name = place.page.rpartition("/")[2]
    if name == cell.chapter:
        return here
    pages = {each.name: each for each in index.chapters}
    chapter, own = pages[name], pages[cell.chapter]
    if chapter.floor.number == own.floor.number and chapter.floor.room in _ROOMS:
        return _ROOMS[chapter.floor.room]
    return f"in chapter {chapter.title.partition(' · ')[0]}"


def anchors(cell: Cell, index: Index) -> list[str]:
    """The anchors of a cell, one for each name that it defines."""
    if cell.amends:
        module = index.package.modules[str(cell.module)]
        own = [change for change in module.changes if change.cell is cell]
        return [_version(change, module).anchor for change in own]
    names = sorted(syntax.defined(cell.code)) if cell.module else []
    found = [index.targets.get((_dotted(cell), name)) for name in names]
    return [place.anchor for place in found if place]


def in_code(text: str, scope: Scope, index: Index) -> list[Link]:
    """The links in the text of a cell: of each name the first."""
    try:
        tree = ast.parse(syntax.without_magics(text))
    except SyntaxError:
        return []
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    lines, found = text.split("\n"), {}
    for node, name, place in _resolved(tree, scope, index, frozenset()):
        row = node.end_lineno - 1
        end = starts[row] + len(lines[row].encode()[: node.end_col_offset].decode())
        if text[end - len(name) : end] == name:
            found.setdefault(place, Link(end - len(name), end, place))
    return sorted(found.values())


def into_html(html: str, links: list[Link], address: Address) -> str:
    """Code with colours, and the links in it."""
    opening = html.index("<pre>") + len("<pre>") if links else len(html)
    out, at = [html[:opening]], 0
    starts = {link.start: link.target for link in links}
    ends = {link.end for link in links}
    for piece in _pieces(html[opening:], sorted({*starts, *ends})):
        is_text = not piece.startswith("<")
        if is_text and at in starts:
            out.append(_anchor(starts[at], address))
        out.append(piece)
        if is_text:
            at += len(unescape(piece))
            out.append("</a>" if at in ends else "")
    return "".join(out)


def with_marks(html: str, marks: list[str]) -> str:
    """Code with colours, in which lines go (`-`) and lines come (`+`)."""
    if not any(marks):
        return html
    head, opening, rest = html.partition("<pre>")
    body, closing, end = rest.rpartition("</pre>")
    lines = []
    for mark, line in zip(marks, body.removesuffix("\n").split("\n"), strict=True):
        tag = {"-": "del", "+": "ins"}.get(mark)
        lines.append(f"<{tag}>{line}\n</{tag}>" if tag else f"{line}\n")
    return "".join([head, opening, *lines, closing, end])


def _pieces(html: str, marks: list[int]) -> Iterator[str]:
    """Tags, signs like `&lt;`, and text, which is cut where a link starts or ends."""
    at = 0
    for piece in _PIECES.findall(html):
        if piece.startswith("<"):
            yield piece
            continue
        length = 1 if piece.startswith("&") else len(piece)
        inside = marks[bisect_right(marks, at) : bisect_left(marks, at + length)]
        for start, end in pairwise([0, *(mark - at for mark in inside), len(piece)]):
            yield piece[start:end]
        at += length


def into_drawing(svg: str, index: Index, address: Address) -> str:
    """A lift, a ride or a rule grid whose floors and names lead to their pages."""
    kind = _TITLE.search(svg)
    if not kind:
        return svg
    today, is_grid = kind[1], bool(kind[2])

    def linked(match: re.Match[str]) -> str:
        name = unescape(match[1])
        tables, others = index.tables, index.primitives if is_grid else index.places
        place = (tables if "rotate(" in match[0] else others).get(name)
        if not place or name == today:
            return match[0]
        says = escape(place.says, quote=True)
        opening = f'<a href="{escape(address(place))}" aria-label="{says}">'
        return f"{opening}<title>{says}</title>{match[0]}</a>"

    svg = (_LABEL if is_grid else _BOX).sub(linked, svg)
    name = f"mjf mjf-links mjf-{'names' if is_grid else 'boxes'}"
    return svg.replace('class="mjf" role="img"', f'class="{name}" role="group"')


def _resolved(
    node: ast.AST, scope: Scope, index: Index, bound: frozenset[str]
) -> Iterator[tuple[ast.expr, str, Target]]:
    """The names below a node that lead to a definition."""
    if isinstance(node, ast.JoinedStr):  # places in it are known from Python 3.12 on
        return
    if isinstance(node, _SCOPES):
        bound |= _bound(node)
    if isinstance(node, ast.Name | ast.Attribute):
        meant = _meaning(node, scope, index, bound)
        if isinstance(meant, Target):
            yield node, node.id if isinstance(node, ast.Name) else node.attr, meant
    for child in ast.iter_child_nodes(node):
        yield from _resolved(child, scope, index, bound)


def _meaning(
    node: ast.expr, scope: Scope, index: Index, bound: frozenset[str]
) -> Target | str | None:
    if isinstance(node, ast.Name):
        return None if node.id in bound else scope.get(node.id)
    if isinstance(node, ast.Attribute):
        space = _meaning(node.value, scope, index, bound)
        return index.attribute(space, node.attr) if isinstance(space, str) else None
    return None


def _bound(scope: ast.AST) -> set[str]:
    """The names that a function or a comprehension binds."""
    names = set()
    for node in ast.walk(scope):
        if isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef) and node is not scope:
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name)
    return names


def _dotted(cell: Cell) -> str:
    return f"{PACKAGE}.{cell.module}".replace("/", ".").removesuffix(".__init__")


def _anchor(place: Target, address: Address) -> str:
    says = escape(place.says, quote=True)
    return f'<a class="definition" href="{escape(address(place))}" title="{says}">'
