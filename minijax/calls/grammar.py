"""Which syntax of Python has a meaning in functions of words: a table of all of it."""

# Made from chapters/26_calls.md by `make chapter`;
# edit the chapter, not this file.

import ast
import linecache
from contextlib import suppress
from functools import lru_cache

OPERATORS: dict = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.BitAnd: "and",
    ast.BitOr: "or", ast.LShift: "shl", ast.RShift: "ashr",
}  # fmt: skip
COMPARISONS: dict = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "slt", ast.LtE: "sle", ast.Gt: "sgt",
    ast.GtE: "sge",
}  # fmt: skip


MEANT: dict = {
    ast.FunctionDef: "name args body", ast.arguments: "args", ast.arg: "arg",
    ast.Expr: "value", ast.Return: "value", ast.Assign: "targets value",
    ast.AugAssign: "target op value", ast.If: "test body orelse",
    ast.While: "test body", ast.BoolOp: "op values", ast.UnaryOp: "op operand",
    ast.BinOp: "left op right", ast.Compare: "left ops comparators",
    ast.Call: "func args", ast.Subscript: "value slice ctx",
    ast.Attribute: "value attr ctx", ast.Name: "id ctx", ast.Constant: "value",
    **dict.fromkeys([ast.And, ast.Or, ast.Not, ast.USub, ast.Load, ast.Store], ""),
}  # fmt: skip


def not_meant(node):
    """Return what a node has that the language does not mean, or None."""
    meant = dict.fromkeys(OPERATORS | COMPARISONS, "") | MEANT
    if type(node) not in meant:
        return type(node).__name__
    fields = {name for name, part in ast.iter_fields(node) if part not in (None, [])}
    further = fields.difference(meant[type(node)].split())
    if any(len(getattr(node, name, "1")) > 1 for name in ("targets", "ops")):
        further |= {"more than one"}
    if further:
        return f"{type(node).__name__} with {min(further)}"
    signs = [part for part in ast.iter_child_nodes(node) if not hasattr(part, "lineno")]
    return next(filter(None, map(not_meant, signs)), None)


@lru_cache(maxsize=8)
def parsed(lines):
    """Return the functions of a text by the numbers of their first lines."""
    nodes = ast.walk(syntax_tree("".join(lines)))
    found = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    return {(*node.decorator_list, node)[0].lineno: node for node in found}


def syntax_tree(text, tries=20):
    """Return the tree of a text; try again if another thread has made one meanwhile.

    Python 3.11 counts the depth of trees for all threads together, and raises
    `SystemError` (https://github.com/python/cpython/issues/106905).
    """
    for _ in range(tries):
        with suppress(SystemError):
            return ast.parse(text)
    return ast.parse(text)


def tree_of(function):
    """Return the syntax tree of a function.

    Raises:
      OSError: if its text is not there.
    """
    code = function.__code__
    lines = linecache.getlines(code.co_filename, function.__globals__)
    found = parsed(tuple(lines)).get(code.co_firstlineno) if lines else None
    if found is None or found.name != code.co_name:
        raise OSError(f"The text of {function} is not there.")
    return found


def returns(statements):
    """Return whether all ways through some statements lead to a ``return``."""
    last = statements[-1] if statements else None
    both = isinstance(last, ast.If) and returns(last.body) and returns(last.orelse)
    return both or isinstance(last, ast.Return)
