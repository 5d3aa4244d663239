"""What a page shows of a cell, and what stays in the notebook alone."""

from types import SimpleNamespace

import pytest
from docutils import nodes
from docutils.utils import new_document

from book.tools import page, page_source
from book.tools.source import chapter_paths, read_chapters
from tests.laws.drafts import draft

INSTALL = "try:\n    import a\nexcept ImportError:\n    %pip install a"


def shown(folder, text):
    """What a page shows of one cell."""
    return page.shown(draft(folder, 2, text).cells[0])


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ('"""One.\n\nMore.\n"""\nx = 1', '"""One."""\nx = 1'),
        ('"""One of\ntwo."""\nx = 1', '"""One of …"""\nx = 1'),
        ('"""\nOne.\n"""\nx = 1', '"""One."""\nx = 1'),
        ('r"""One.\n\nMore."""\nx = 1', 'r"""One."""\nx = 1'),
        ('def f():\n    """Do.\n\n    More.\n    """\n', 'def f():\n    """Do."""'),
        ("import a\nfrom b import (\n    c,\n    d,\n)\n\nx = c", "x = c"),
        ("x = 1\n\n\nimport a\n\n\ny = 2", "x = 1\n\n\ny = 2"),
        ("def f():\n    import a", "def f():\n    import a"),
        ("%precision 4\nimport a\nx = a", "%precision 4\nx = a"),
        ("def f(:", "def f(:"),
        ('text = """One.\n\nMore."""', 'text = """One.\n\nMore."""'),
    ],
)
def test_lines_shown(tmp_path, code, expected):
    assert shown(tmp_path, code) == expected
    assert shown(tmp_path, f"#| export m\n{code}") == expected


def test_the_notebook_of_a_page_says_where_code_goes(tmp_path):
    doc = '#| export m\n"""Doc."""\nimport a'
    cells = [INSTALL, "#| export m\nx = 1", doc, "import b"]
    chapter = draft(tmp_path, 2, *cells, "import b\n\n1 + 1")
    made = [
        {"cell_type": "code", "metadata": {}, "outputs": [], "source": cell.text}
        for cell in chapter.cells
    ]
    made[3]["outputs"] = ["something"]
    page.edit([{"cell_type": "markdown"}, *made], chapter)
    assert made[1]["source"] == "x = 1"
    where = {page.EXPORTED_TO: "minijax/floor2/m.py", page.NUMBER: 2}
    assert made[1]["metadata"] == where
    assert made[4]["source"] == "1 + 1"
    tags = [cell["metadata"].get("tags", []) for cell in made]
    assert tags == [["remove-cell"], [], ["remove-cell"], ["remove-input"], []]


def test_the_prologue_shows_its_imports(tmp_path):
    chapter = draft(tmp_path, 0, INSTALL, "import a\n\na.b()")
    made = [
        {"cell_type": "code", "metadata": {}, "outputs": [], "source": cell.text}
        for cell in chapter.cells
    ]
    page.edit(made, chapter)
    assert made[1]["source"] == "import a\n\na.b()"


def test_what_is_installed_is_out_of_sight():
    for chapter in read_chapters():
        assert not page.is_seen(chapter, chapter.cells[0])


def test_a_page_is_read_without_imports():
    [path] = [p for p in chapter_paths() if p.stem == "01_interception"]
    content = [path.with_suffix(".ipynb").read_text(encoding="utf-8")]
    page_source.edit_source(None, f"chapters/{path.stem}", content)
    assert "%pip install" in content[0]  # there, but tagged
    assert "#| export" not in content[0]
    other = ["text"]
    page_source.edit_source(None, "book/grid", other)
    assert other == ["text"]


def test_code_says_above_it_where_it_goes():
    metadata = {page.EXPORTED_TO: "minijax/core.py"}
    tree = new_document("page")
    for entry in (metadata, {}):
        cell = nodes.container(cell_metadata=entry)
        cell += nodes.container(nb_element="cell_code_source")
        tree += cell
    page_source.add_captions(None, tree)
    exported, example = tree.children
    assert exported.astext() == "minijax/core.py"
    assert not example.astext()


def test_a_fold_is_named_by_its_title():
    translator = SimpleNamespace(body=[])
    # Sphinx and a data base come with it: seconds, for the process that runs this.
    from myst_nb.sphinx_ import HideCodeCellNode

    node = HideCodeCellNode(prompt_show="1 < 2", prompt_hide="1 < 2")
    page_source.open_fold(translator, node)
    page_source.close_fold(translator, node)
    text = "".join(translator.body)
    assert "aria-label" not in text
    assert text.count("1 &lt; 2") == 2


def test_a_wide_table_can_be_scrolled_by_keys():
    context = {"body": '<div class="pst-scrollable-table-container"><table>'}
    page_source.mend_body(None, "book/switches", "page.html", context, None)
    assert ' tabindex="0"><table>' in context["body"]


def test_cited_works_are_no_list():
    context = {"body": '<div role="list" class="citation-list">'}
    page_source.mend_body(None, "book/bibliography", "page.html", context, None)
    assert context["body"] == '<div class="citation-list">'
