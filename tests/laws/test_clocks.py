"""No cell asserts what a clock said.

A machine that does something else in between would make the book fail where nothing is
wrong. What a page claims about time it hands to `clock.expect`, which says where it is
otherwise; and no page is stored with that sentence.
"""

import ast

import nbformat
import pytest

from book.tools import notebook
from book.tools.source import chapter_paths, read_chapter
from book.tools.syntax import without_magics
from minijax_book import clock

CLOCKS = {"perf_counter", "perf_counter_ns", "process_time", "timeit"}
CLOCKS |= {"microseconds", "monotonic", "time_ns"}
FILLS = {"append", "extend", "update", "setdefault"}
ORDER = ast.Lt | ast.LtE | ast.Gt | ast.GtE


class Timed(ast.NodeVisitor):
    """Reads a page from top to bottom and keeps the names that depend on a clock."""

    def __init__(self):
        """Start with the clocks themselves."""
        self.names, self.found = set(CLOCKS), []

    def depends(self, node):
        """Whether a clock is read, or the result of one, somewhere in a node."""
        return any(
            isinstance(n, ast.Name) and n.id in self.names
            or isinstance(n, ast.Attribute) and n.attr in CLOCKS
            for n in ast.walk(node)
        )  # fmt: skip

    def bind(self, target, timed):
        """Note what a name holds from here on; a part of it only ever adds."""
        if isinstance(target, ast.Tuple | ast.List):
            for each in target.elts:
                self.bind(each, timed)
        elif isinstance(target, ast.Name) and not timed:
            self.names.discard(target.id)
        elif timed:
            names = [n for n in ast.walk(target) if isinstance(n, ast.Name)]
            self.names |= {names[0].id} if names else set()

    def visit_FunctionDef(self, node):
        """A function that reads a clock is one; what it binds inside stays inside."""
        parts = [*ast.walk(node)]
        inside = {part.arg for part in parts if isinstance(part, ast.arg)}
        stored = [part for part in parts if isinstance(part, ast.Name)]
        inside |= {name.id for name in stored if isinstance(name.ctx, ast.Store)}
        outer, self.names = self.names, self.names - inside
        self.generic_visit(node)
        timed = any(map(self.depends, node.body))
        self.names = outer
        self.bind(ast.Name(node.name), timed)

    def visit_Assign(self, node):
        """An assignment hands on, and may end, a dependence."""
        self.generic_visit(node)
        for target in node.targets:
            self.bind(target, self.depends(node.value))

    def visit_For(self, node):
        """The items of what depends on a clock depend on it."""
        self.bind(node.target, self.depends(node.iter))
        self.generic_visit(node)

    def visit_comprehension(self, node):
        """As in a loop."""
        self.bind(node.target, self.depends(node.iter))
        self.generic_visit(node)

    def visit_Call(self, node):
        """What is put into a list or a dictionary makes it depend as well."""
        self.generic_visit(node)
        fills = isinstance(node.func, ast.Attribute) and node.func.attr in FILLS
        if fills and any(map(self.depends, node.args)):
            self.bind(node.func.value, True)

    def visit_Assert(self, node):
        """The fault: an order that the clock decides."""
        for each in ast.walk(node.test):
            orders = isinstance(each, ast.Compare) and [
                op for op in each.ops if isinstance(op, ORDER)
            ]
            if orders and self.depends(each):
                self.found.append(ast.unparse(node))


def claims(texts):
    """The assertions about time in the cells of a page."""
    reader = Timed()
    for text in texts:
        reader.visit(ast.parse(text))
    return list(dict.fromkeys(reader.found))


each = pytest.mark.parametrize("path", chapter_paths(), ids=lambda path: path.stem)


@each
def test_no_cell_asserts_what_a_clock_said(path):
    texts = [without_magics(cell.text) for cell in read_chapter(path).cells]
    assert claims(texts) == []


@each
def test_what_may_be_said_is_not_compared(path):
    for cell in read_chapter(path).cells:
        assert "clock.expect(" not in cell.text or "nbval-ignore-output" in cell.tags


@each
def test_no_stored_output_says_that_it_is_otherwise(path):
    assert clock.OTHERWISE not in path.with_suffix(".ipynb").read_text("utf-8")


def test_an_assertion_about_time_is_seen_through_names_and_functions():
    measure = (
        "def taken(f):\n    begin = perf_counter()\n    return perf_counter() - begin"
    )
    rows = "rows = []\nfor f in fs:\n    quick = taken(f)\n    rows.append(quick)"
    assert claims([measure, rows, "assert rows[0] < 3"]) == ["assert rows[0] < 3"]
    assert claims([measure, rows, "rows = [1]\nassert rows[0] < 3"]) == []
    assert claims(["x = clock.microseconds(f)\nassert x == 3"]) == []


def timed_page(said, *sources):
    """A notebook of cells that time something, with what they printed in some run."""
    book = nbformat.v4.new_notebook()
    for source in sources:
        output = nbformat.v4.new_output("stream", text=said)
        name = source.encode().hex()[:64]
        cell = nbformat.v4.new_code_cell(source, id=name, outputs=[output])
        cell.metadata["tags"] = [notebook.CLOCKED]
        book.cells.append(cell)
    return book


def test_cells_that_print_the_same_measurement_are_of_one_run(tmp_path):
    first, apart = "start = clock()", "other = clock()\nprint(other)"
    stored = timed_page("then", first, apart, "print(start)", "print(other, 1)")
    nbformat.write(stored, tmp_path / "page.ipynb")
    book = timed_page("now", first, apart, "print(start)", "show(start + 1)")
    notebook.keep_clocked(book, tmp_path / "page.ipynb")
    said = [cell.outputs[0].text for cell in book.cells]
    assert said == ["now", "then", "now", "now"]
    assert notebook.clocked_groups(book) == [{1}, {0, 2, 3}]
