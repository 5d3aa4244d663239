"""Give a definition of the package its next version while a notebook runs.

A cell that begins with `%%amend forward_mode/jvp JVPTrace.pack` holds the next version
of a definition which an earlier page has made. The package that is built from all pages
has it already; the one that a page runs on does not, so the cell brings it: methods and
attributes are set on their class, a function gets its new code wherever it is held.
"""

import ast
import copy
import gc
import hashlib
import importlib
import inspect
import linecache
import os
import re
import sys
import types
from typing import NamedTuple

MARK = re.compile(r"(?P<module>[\w/]+) (?P<names>[\w.]+(?:, [\w.]+)*)")
STAMP = re.compile(r"^#(?: Amended in|  ) .*\((\w{8})\)\.$", re.MULTILINE)
USED = "MINIJAX_AMENDMENTS_USED"  # a file that gets the names of versions that ran


class Piece(NamedTuple):
    """Top-level statements of a cell, with the comments above them.

    `name` is the dotted name that they amend, or None for what is new beside it.
    """

    name: str | None
    text: str
    node: ast.stmt


def version(code):
    """Eight letters that tell this version of a definition from all others."""
    return hashlib.sha256(code.strip().encode()).hexdigest()[:8]


def bound(node):
    """The name that a definition or a plain assignment binds, or None."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return node.name
    targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
    alone = len(targets) == 1 and isinstance(targets[0], ast.Name)
    return targets[0].id if alone else None


def span(node, lines):
    """The lines of a statement, from its comments and decorators on: `(first, end)`."""
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
    while first > 1 and lines[first - 2].lstrip().startswith("#"):
        first -= 1
    return first - 1, node.end_lineno


def pieces(code, names):
    """The definitions in a cell that amends `names`, imports apart.

    Args:
      code: the text of the cell without its first line.
      names: dotted names, of which the cell defines the last parts.

    Raises:
      ValueError: a name that the cell does not define, or not once.
    """
    lines, last = code.split("\n"), {name.rpartition(".")[2]: name for name in names}
    found = []
    for node in ast.parse(code).body:
        if not isinstance(node, ast.Import | ast.ImportFrom):
            first, end = span(node, lines)
            text = "\n".join(lines[first:end])
            found.append(Piece(last.get(bound(node)), text, node))
    for name in names:
        if (count := sum(piece.name == name for piece in found)) != 1:
            raise ValueError(f"the cell defines {name} {count} times, not once")
    return found


def amend(line, code):
    """Bring the definitions of a cell into the package, unless it has them already.

    Args:
      line: the module's path in the package and the names, `forward_mode/jvp f, C.m`.
      code: the text of the cell.
    """
    match = MARK.fullmatch(line.strip())
    if not match:
        raise ValueError(f"cannot read {line!r}; write MODULE NAME")
    dotted = "minijax." + match["module"].replace("/", ".").removesuffix(".__init__")
    names = match["names"].split(", ")
    if (space := _own(names[0])) is None:
        module = importlib.import_module(dotted)
        if version(code) in STAMP.findall(inspect.getsource(module)):
            for name in names if os.environ.get(USED) else ():
                note(name)  # who has run it already is not seen here
            return
        space = module.__dict__
    file = f"<{dotted.replace('.', '/')}.py, amended {version(code)}>"
    linecache.cache[file] = len(code), None, code.splitlines(True), file
    for node in ast.parse(code).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            exec(compile(ast.Module([node], []), file, "exec"), space)
    for piece in pieces(code, names):
        _bring(piece, space, file)
    _forget()


def _forget():
    """Let what is traced or compiled be so again: it may hold the version before."""
    public = importlib.import_module("minijax._public").PUBLIC
    home = sys.modules.get(public.get("minijax", {}).get("clear_caches", ""))
    if home is not None:  # if nobody has imported it, nothing is kept
        home.clear_caches()


def _own(name):
    """The names of the notebook, if it has made this definition itself; else None."""
    space = sys.modules["__main__"].__dict__
    made = getattr(space.get(name.partition(".")[0]), "__module__", None)
    return space if made == "__main__" else None


def _bring(piece, space, file):
    owner, _, name = (piece.name or "").rpartition(".")
    node = _noted(piece) if piece.name and os.environ.get(USED) else piece.node
    if owner:
        _set(space[owner], name, _attribute(node, name, owner, space, file))
        return
    there, old = name in space, space.get(name)
    exec(compile(ast.Module([node], []), file, "exec"), space)
    if there and _grown(old, space[name]):
        space[name] = old
    elif there:
        _replace(name, old, space[name])


def _attribute(node, name, owner, space, file):
    """What a statement in the body of the class `owner` binds."""
    source = ast.parse(f"class {owner}:\n    pass")
    source.body[0].body = [node]
    made = {}
    exec(compile(source, file, "exec"), space, made)
    value = made[owner].__dict__[name]
    for function in _functions(value):
        for free, cell in zip(
            function.__code__.co_freevars, function.__closure__ or (), strict=True
        ):
            if free == "__class__":  # `super()` begins there
                cell.cell_contents = space[owner]
    return value


def _functions(value):
    """The plain functions in an attribute: itself, or those of a property."""
    inner = (getattr(value, key, None) for key in ("fget", "fset", "__func__", "func"))
    return [f for f in (value, *inner) if isinstance(f, types.FunctionType)]


def _set(owner, name, value):
    if not _grown(owner.__dict__.get(name), value):
        setattr(owner, name, value)
        getattr(value, "__set_name__", lambda *_: None)(owner, name)


def _grown(old, new):
    """Give a function the code of its next version, wherever it is held.

    Copies under other names have the same code, and get the new one too.

    Returns:
      Whether that can be done: both are functions in the same decorators.
    """
    before, after = _chain(old), _chain(new)
    if [*map(_kind, before[:-1])] != [*map(_kind, after[:-1])]:
        return False
    old, new = before[-1], after[-1]
    if not (type(old) is type(new) is types.FunctionType):
        return False
    if len(old.__code__.co_freevars) != len(new.__code__.co_freevars):
        return False
    for function in gc.get_referrers(old.__code__):
        if isinstance(function, types.FunctionType) and function is not new:
            function.__code__ = new.__code__
            function.__defaults__ = new.__defaults__
            function.__kwdefaults__ = new.__kwdefaults__
            function.__annotations__ = new.__annotations__
            function.__doc__ = new.__doc__
    for wrapper in before:
        getattr(wrapper, "cache_clear", lambda: None)()
    return True


def _chain(value):
    """A value, and what its decorators are around, outermost first."""
    found = [value]
    while (inner := getattr(found[-1], "__wrapped__", None)) is not None:
        found.append(inner)
    return found


def _kind(wrapper):
    """What a decorator has made: its code, or its type if that is not Python's."""
    return getattr(wrapper, "__code__", type(wrapper))


def _replace(name, old, new):
    """Put a value in the place of another where modules have it under its name."""
    for place, module in [*sys.modules.items()]:
        inside = place.partition(".")[0] in ("minijax", "__main__")
        if inside and module.__dict__.get(name) is old:
            module.__dict__[name] = new


def _noted(piece):
    """The statement, whose functions note in the file `USED` that they ran."""
    note = f"__import__({__name__!r}, fromlist=['note']).note({piece.name!r})"
    statement = copy.deepcopy(piece.node)
    if isinstance(statement, ast.FunctionDef):
        at = ast.get_docstring(statement) is not None
        call = ast.copy_location(ast.parse(note).body[0], statement.body[at - 1])
        statement.body.insert(at, call)
    return ast.fix_missing_locations(statement)


def note(name, noted=set()):  # noqa: B006 one for the process
    """Note that a version which a page has brought was run."""
    if name not in noted:
        noted.add(name)
        with open(os.environ[USED], "a", encoding="utf-8") as file:
            file.write(f"{name}\n")
