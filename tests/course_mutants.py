"""Wrong versions of what a reader of the course writes, made from ours.

Each is one slip: two arguments swapped, a term dropped, a number off by one, a
condition turned round, a step or a filter left out, two results swapped, a `with` block
that is not entered.

python -m tests.course_mutants 4 --count 20    which of them the checks notice
"""

import argparse
import ast
import copy
import random
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from book.course.checks import KEPT, Runner, Verdict, check, expected_results, runner
from book.course.stage import Stage, stage
from book.course.stubs import FUNCTION, name_of
from book.tools.source import PACKAGE, floor

OPPOSITE = {
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Lt: ast.GtE, ast.Gt: ast.LtE,
    ast.LtE: ast.Gt, ast.GtE: ast.Lt,
}  # fmt: skip


CODE = FUNCTION | ast.Lambda


class Mutant(NamedTuple):
    """A wrong version of a module: the definition, the slip, and the whole text."""

    path: str
    name: str
    slip: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}: {self.name}, {self.slip}"


def swap_arguments(node: ast.AST) -> str:
    """Swap the first two arguments of a call."""
    if not isinstance(node, ast.Call) or len(node.args) < 2:
        return ""
    first, second = node.args[:2]
    if isinstance(second, ast.Starred) or ast.dump(first) == ast.dump(second):
        return ""
    node.args[:2] = second, first
    return f"arguments of {ast.unparse(node.func)} swapped"


def drop_term(node: ast.AST) -> str:
    """Keep the first half of a sum."""
    if not isinstance(node, ast.Call) or ast.unparse(node.func) not in SUMS:
        return ""
    if len(node.args) != 2:
        return ""
    return _becomes(node, node.args[0], "a term dropped")


SUMS = "add lax.add add_any lax.add_any add_or_none".split()


def drop_half(node: ast.AST) -> str:
    """Keep the left side of a sum or difference."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add | ast.Sub):
        return ""
    return _becomes(node, node.left, f"right side of {ast.unparse(node)} dropped")


def off_by_one(node: ast.AST) -> str:
    """Add one to a number."""
    if not isinstance(node, ast.Constant) or type(node.value) is not int:
        return ""
    node.value += 1
    return f"{node.value} for {node.value - 1}"


def turn_condition(node: ast.AST) -> str:
    """Turn a comparison round."""
    if not isinstance(node, ast.Compare) or type(node.ops[0]) not in OPPOSITE:
        return ""
    before = ast.unparse(node)
    node.ops[0] = OPPOSITE[type(node.ops[0])]()
    return f"{ast.unparse(node)} for {before}"


def drop_filter(node: ast.AST) -> str:
    """Leave the condition of a comprehension out."""
    if not isinstance(node, ast.comprehension) or not node.ifs:
        return ""
    node.ifs = []
    return "a filter left out"


def swap_results(node: ast.AST) -> str:
    """Swap what a function returns as a pair."""
    value = node.value if isinstance(node, ast.Return) else None
    if not isinstance(value, ast.Tuple | ast.List) or len(value.elts) != 2:
        return ""
    value.elts.reverse()
    return "results swapped"


def drop_list(node: ast.AST) -> str:
    """Return a result by itself that belongs in a list."""
    value = node.value if isinstance(node, ast.Return) else None
    if not isinstance(value, ast.List) or len(value.elts) != 1:
        return ""
    node.value = value.elts[0]
    return "a result that is not in a list"


def exchange_branches(node: ast.AST) -> str:
    """Take the other value of a conditional expression."""
    if not isinstance(node, ast.IfExp):
        return ""
    node.body, node.orelse = node.orelse, node.body
    return f"the other value where {ast.unparse(node.test)}"


def exchange_and_or(node: ast.AST) -> str:
    """Ask for both conditions where one is enough, or for one of both."""
    if not isinstance(node, ast.BoolOp):
        return ""
    node.op = ast.And() if isinstance(node.op, ast.Or) else ast.Or()
    return f"{ast.unparse(node)}, and for or"


def drop_step(node: ast.AST) -> str:
    """Leave out a statement that calls something, or does not enter a `with` block."""
    body = getattr(node, "body", None)
    if not isinstance(body, list) or isinstance(node, ast.Module | ast.ClassDef):
        return ""
    for at, inner in enumerate(body):
        if isinstance(inner, ast.With) and inner.items[0].optional_vars is None:
            body[at : at + 1] = inner.body
            return f"not under {ast.unparse(inner.items[0])}"
        if isinstance(inner, ast.Expr) and isinstance(inner.value, ast.Call):
            body[at] = ast.copy_location(ast.Pass(), inner)
            return f"without {ast.unparse(inner)}"
    return ""


SLIPS: list[Callable[[ast.AST], str]] = [
    swap_arguments,
    drop_term,
    drop_half,
    drop_list,
    off_by_one,
    turn_condition,
    drop_filter,
    swap_results,
    drop_step,
    exchange_branches,
    exchange_and_or,
]


def _becomes(node: ast.AST, other: ast.AST, slip: str) -> str:
    """Let a node of a tree be another, in its place."""
    node.__class__, node.__dict__ = other.__class__, other.__dict__
    return slip


def of_module(path: str, text: str) -> Iterator[Mutant]:
    """All wrong versions of a module."""
    tree = ast.parse(text)
    for at, name in _definitions(tree):
        inside = {n for f in ast.walk(_node(tree, at)) if isinstance(f, CODE)
                  for n in ast.walk(f)}  # fmt: skip
        for place, node in enumerate(ast.walk(_node(tree, at))):
            for slip in SLIPS if node in inside else ():
                if slip(copy.deepcopy(node)):  # it can be made here
                    wrong = copy.deepcopy(tree)
                    found = slip([*ast.walk(_node(wrong, at))][place])
                    made = ast.unparse(ast.fix_missing_locations(wrong))
                    yield Mutant(path, name, found, made + "\n")


def _definitions(tree: ast.Module) -> Iterator[tuple[tuple[int, ...], str]]:
    for n, node in enumerate(tree.body):
        if isinstance(node, ast.ClassDef):
            for m, entry in enumerate(node.body):
                if isinstance(entry, FUNCTION):
                    yield (n, m), f"{node.name}.{entry.name}"
        elif not isinstance(node, ast.Import | ast.ImportFrom):
            yield (n,), name_of(node)


def _node(tree: ast.Module, at: tuple[int, ...]) -> ast.AST:
    node: ast.AST = tree
    for place in at:
        node = node.body[place]  # type: ignore[attr-defined]
    return node


def mutants(at: Stage) -> list[Mutant]:
    """Wrong versions of a page's definitions, each definition in its turn."""
    by_name: dict[str, list[Mutant]] = defaultdict(list)
    draw = random.Random(str(at.page))
    for path in at.paths:
        for mutant in of_module(path, at.reference[path]):
            if mutant.name.partition(".")[0] not in at.work.folded:
                by_name[mutant.name].append(mutant)
    groups = [draw.sample(group, len(group)) for group in by_name.values()]
    draw.shuffle(groups)
    rounds = range(max(map(len, groups), default=0))
    return [group[n] for n in rounds for group in groups if n < len(group)]


def verdict_on(mutant: Mutant, at: Stage, runner: Runner) -> Verdict:
    """What the check says of our package with a wrong version in it."""
    expected_results(at, at.chapter, runner)  # writes our package
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / PACKAGE
        shutil.copytree(KEPT / at.name / PACKAGE, place)
        (place / mutant.path).write_text(mutant.text, encoding="utf-8")
        return check(at, Path(folder), runner)


def is_named(mutant: Mutant, verdict: Verdict) -> bool:
    """Whether a verdict names the definition that is wrong."""
    return mutant.name in str(verdict)


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("pages", type=floor, nargs="+")
    parser.add_argument("--count", type=int, default=10)
    options = parser.parse_args()
    with runner() as found:
        for page in options.pages:
            at, noticed, named = stage(page), 0, 0
            chosen = mutants(at)[: options.count]
            for mutant in chosen:
                verdict = verdict_on(mutant, at, found)
                noticed += not verdict.passed
                named += not verdict.passed and is_named(mutant, verdict)
                if verdict.passed:
                    print(f"  not noticed: {mutant}")
                elif not is_named(mutant, verdict):
                    print(f"  not named: {mutant}\n{verdict}\n")
            count = len(chosen)
            print(f"{page}: {noticed} of {count} noticed, {named} named", flush=True)


if __name__ == "__main__":
    main()
