"""What a piece of Python defines, uses and imports, without running it."""

import ast
import builtins
import re
import symtable
import sys
from collections.abc import Collection, Iterator
from functools import cache

_MAGIC = re.compile(r"^([ \t]*)[%!].*$", re.MULTILINE)
_BUILTINS = frozenset(dir(builtins)) | {"__file__", "__path__", "__annotations__"}


def parse(code: str) -> ast.Module:
    """Parse plain Python."""
    return ast.parse(code)


def without_magics(code: str) -> str:
    """The code with each line of IPython magic replaced by `pass`."""
    if not _MAGIC.search(code):
        return code
    try:
        parse(code)
    except SyntaxError:
        return _MAGIC.sub(r"\1pass", code)
    return code


@cache
def defined(code: str) -> set[str]:
    """Names which the code binds at its top level, imports apart."""
    top = _symbols(code)
    names = {s.get_name() for s in top.get_symbols() if s.is_assigned()}
    for table in _tables(top):
        names |= {
            s.get_name()
            for s in table.get_symbols()
            if s.is_declared_global() and s.is_assigned()
        }
    return names - {"_"}


@cache
def handed_on(code: str) -> set[str]:
    """Names which the code imports `as` themselves: it hands them on."""
    found = [alias for node in imports(code) for alias in node.names]
    return {alias.name for alias in found if alias.asname == alias.name}


@cache
def used(code: str) -> set[str]:
    """Names which the code looks up at module level or beyond."""
    names = set()
    top = _symbols(code)
    for table in _tables(top):
        for symbol in table.get_symbols():
            outer = table is top or symbol.is_global()
            if outer and symbol.is_referenced():
                names.add(symbol.get_name())
    return names - _BUILTINS


@cache
def annotated(code: str) -> set[str]:
    """Names in annotations, those in quotes included."""
    hints = (hint for node in statements(parse(code)) for hint in _hints(node))
    return {name for hint in hints for name in _names_of_hint(hint)} - _BUILTINS


@cache
def imports(code: str) -> list[ast.Import | ast.ImportFrom]:
    """The import statements at the top level."""
    body = parse(code).body if "import" in code else []
    return [node for node in body if isinstance(node, ast.Import | ast.ImportFrom)]


@cache
def all_imports(code: str) -> list[ast.Import | ast.ImportFrom]:
    """The import statements anywhere in the code."""
    nodes = statements(parse(code))
    return [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """All statements inside of a node; their expressions are not looked into."""
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        inside = getattr(node, name, ())
        for inner in inside if isinstance(inside, list) else ():
            yield inner
            yield from statements(inner)


def without_lines(code: str, nodes: list[ast.stmt]) -> str:
    """The code without the lines of these statements."""
    lines = code.split("\n")
    drop = {n for s in nodes for n in range(s.lineno - 1, (s.end_lineno or 0))}
    kept = "\n".join(text for n, text in enumerate(lines) if n not in drop)
    return re.sub(r"\n{4,}", "\n\n\n", kept).strip("\n")


def import_lines(statement: ast.Import | ast.ImportFrom) -> list[tuple[str, str]]:
    """The names bound by an import, each with a statement which binds it alone."""
    found = []
    for alias in statement.names:
        spelt = alias.name + (f" as {alias.asname}" if alias.asname else "")
        line = f"import {spelt}"
        if isinstance(statement, ast.ImportFrom):
            line = f"from {'.' * statement.level}{statement.module or ''} {line}"
        found.append((alias.asname or alias.name.split(".")[0], line))
    return found


def sorted_imports(lines: Collection[str]) -> str:
    """Import statements of one name each, merged and sorted as ruff wants them."""
    plain: dict[int, list[str]] = {}
    grouped: dict[int, dict[str, set[str]]] = {}
    for line in lines:
        words = line.split()
        section = _section(words[1])
        if words[0] == "import":
            plain.setdefault(section, []).append(line)
        else:
            names = grouped.setdefault(section, {}).setdefault(words[1], set())
            names.add(line.partition(" import ")[2])
    blocks = []
    for section in sorted({*plain, *grouped}):
        froms = sorted(grouped.get(section, {}).items())
        block = sorted(plain.get(section, []))
        block += [line for pair in froms for line in _from_imports(*pair)]
        blocks.append("\n".join(block))
    return "\n\n".join(blocks)


def _from_imports(module: str, names: set[str]) -> list[str]:
    """One statement for plain names, and one for each name that gets another.

    A name that is handed on, `f as f`, need not be imported once more.
    """
    renamed = {name for name in names if " as " in name}
    names = names - {name.partition(" as ")[0] for name in renamed if _same(name)}
    statements = [{name} for name in renamed] + [names - renamed] * (names != renamed)
    statements.sort(key=lambda some: min(map(_by_type, some)))
    return [_from_import(module, some) for some in statements]


def _same(name: str) -> bool:
    before, _, after = name.partition(" as ")
    return before == after


def _from_import(module: str, names: set[str]) -> str:
    ordered = sorted(names, key=_by_type)
    line = f"from {module} import {', '.join(ordered)}"
    if len(line) <= 88:
        return line
    return f"from {module} import (\n" + "".join(f"    {n},\n" for n in ordered) + ")"


def _by_type(name: str) -> tuple[int, str]:
    """Constants, then classes, then the rest: the order of isort."""
    first = name.split()[0]
    if first.isupper() and len(first) > 1:
        return (0, name.lower())
    return (1 if first[:1].isupper() else 2, name.lower())


def _section(module: str) -> int:
    top = module.split(".")[0]
    if top == "__future__":
        return 0
    if top in sys.stdlib_module_names:
        return 1
    return 3 if top in {"minijax", "minijax_book"} else 2


class _Generators(ast.NodeTransformer):
    """Comprehensions as generators, whose variables are their own in every Python.

    From Python 3.12 on the symbol table counts those of other comprehensions among
    the names of the scope around them.
    """

    def visit_ListComp(self, node: ast.ListComp | ast.SetComp) -> ast.AST:
        """Keep element and loops."""
        self.generic_visit(node)
        return ast.GeneratorExp(node.elt, node.generators)

    visit_SetComp = visit_ListComp

    def visit_DictComp(self, node: ast.DictComp) -> ast.AST:
        """Keep key, value and loops."""
        self.generic_visit(node)
        pair = ast.Tuple([node.key, node.value], ast.Load())
        return ast.GeneratorExp(pair, node.generators)


def _symbols(code: str) -> symtable.SymbolTable:
    if sys.version_info < (3, 12):
        return symtable.symtable(code, "cell", "exec")
    tree = ast.fix_missing_locations(_Generators().visit(ast.parse(code)))
    return symtable.symtable(ast.unparse(tree), "cell", "exec")


def _tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for child in table.get_children():
        yield from _tables(child)


def _hints(node: ast.AST) -> Iterator[ast.expr]:
    """The annotations of a statement: of a variable, or of arguments and result."""
    found = [getattr(node, "annotation", None), getattr(node, "returns", None)]
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        args = node.args
        every = *args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg
        found += [arg.annotation for arg in every if arg]
    yield from filter(None, found)


def _names_of_hint(hint: ast.expr) -> Iterator[str]:
    for node in ast.walk(hint):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                yield from _names_of_hint(ast.parse(node.value, mode="eval").body)
            except SyntaxError:
                continue
