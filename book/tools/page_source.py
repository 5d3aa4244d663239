"""A Sphinx extension: pages show less of a cell than its notebook holds.

Notebooks are read as `book.tools.page` shows them, modules are captions of their code,
a fold is announced by its title, and a name in code leads to its definition. Where a
definition grows, its first version leads to the next ones, and these lead back.
"""

import functools
import json
from contextlib import suppress
from html import escape
from typing import Any

from docutils import nodes
from myst_nb.sphinx_ import HideCodeCellNode
from sphinx.application import Sphinx
from sphinx.search.en import SearchEnglish

from book.tools import links, page
from book.tools.amendments import Change
from book.tools.source import CHAPTERS, read_chapter

LINK = '<a class="headerlink" href="#{}" title="Link to this cell">#</a>'
ASIDE = "Aside."  # the first word of a quote that belongs into the margin


def edit_source(app: Sphinx, docname: str, content: list[str]) -> None:
    """Edit the text of a notebook before it is parsed."""
    folder, _, name = docname.rpartition("/")
    text = CHAPTERS / f"{name}.md"
    if folder == CHAPTERS.name and text.exists():
        book = json.loads(content[0])
        page.edit(book["cells"], read_chapter(text), changes)
        content[0] = json.dumps(book, ensure_ascii=False)


def changes() -> dict[str, list[Change]]:
    """What the amendments of all pages change, by the paths of modules."""
    modules = links.index().package.modules
    return {path: module.changes for path, module in modules.items()}


def add_captions(app: Sphinx, tree: nodes.document) -> None:
    """Say above exported code which module it is in."""
    for source in tree.findall(_is_source):
        path = source.parent.get("cell_metadata", {}).get(page.EXPORTED_TO)
        if path:
            source.insert(0, nodes.paragraph(path, path, classes=["exported-to"]))


def add_growth(app: Sphinx, tree: nodes.document) -> None:
    """Lead from the caption of a definition to its last version and to the next."""
    here, index = app.env.docname, links.index()
    chapters = {f"{CHAPTERS.name}/{each.name}": each for each in index.chapters}
    for source in tree.findall(_is_source):
        metadata = source.parent.get("cell_metadata", {})
        if page.EXPORTED_TO not in metadata:
            continue
        cell = chapters[here].cells[metadata[page.NUMBER] - 1]
        for says, place in links.growth(cell, index):
            way = address(app.builder, here, place)
            link = nodes.reference("", says, refuri=way, internal=True)
            source[0] += [nodes.Text(" · "), link]


def add_margin(app: Sphinx, tree: nodes.document) -> None:
    """Put asides into the margin, beside the paragraph that they follow in the text."""
    for quote in list(tree.findall(nodes.block_quote)):
        first = quote[0] if quote.children else None
        word = first[0] if isinstance(first, nodes.paragraph) else None
        if not isinstance(word, nodes.emphasis) or word.astext() != ASIDE:
            continue
        first.remove(word)
        if isinstance(first[0], nodes.Text):
            first[0] = nodes.Text(first[0].lstrip())
        place = quote.parent.index(quote)
        quote.parent.remove(quote)
        beside = place and isinstance(quote.parent[place - 1], nodes.paragraph)
        aside = nodes.container("", *quote.children, classes=["margin", "aside"])
        quote.parent.insert(place - bool(beside), aside)


def add_picture_captions(app: Sphinx, tree: nodes.document) -> None:
    """Tell the caption of a picture: a paragraph in italics that follows it."""
    for cell in tree.findall(nodes.container):
        after = cell.next_node(nodes.paragraph, descend=False, siblings=True)
        if cell.get("nb_element") != "cell_code" or after is None or len(after) != 1:
            continue
        follows = cell.parent.index(after) == cell.parent.index(cell) + 1
        if follows and isinstance(after[0], nodes.emphasis):
            after["classes"].append("picture-caption")


def add_numbers(app: Sphinx, tree: nodes.document) -> None:
    """Give each cell an address, and a class by which a script finds it."""
    for cell in list(tree.findall(nodes.container)):
        number = cell.get("cell_metadata", {}).get(page.NUMBER)
        if number is not None and cell.get("nb_element") == "cell_code":
            name = f"cell-{number}"
            cell["classes"].append(name)
            cell["ids"].append(name)
            link = LINK.format(name)
            cell += nodes.raw("", link, format="html")


class LinkedCode(nodes.literal_block):
    """The code of a cell, with anchors and links."""


def add_links(app: Sphinx, tree: nodes.document) -> None:
    """Find the definitions to which the code of a chapter leads."""
    folder, _, name = app.env.docname.rpartition("/")
    text = CHAPTERS / f"{name}.md"
    if folder != CHAPTERS.name or not text.exists():
        return
    index = links.index()
    chapter = next(each for each in index.chapters if each.name == name)
    scopes = {cell.index: (cell, scope) for cell, scope in index.scopes(chapter)}
    for source in list(tree.findall(_is_source)):
        number = source.parent.get("cell_metadata", {}).get(page.NUMBER)
        old = next(source.findall(nodes.literal_block), None)
        if number in scopes and old is not None:
            cell, scope = scopes[number]
            new = LinkedCode(old.rawsource, old.rawsource, **old.attributes)
            new["ids"] = [*old["ids"], *links.anchors(cell, index)]
            new["marks"] = source.parent["cell_metadata"].get(page.MARKS, [])
            found = links.in_code(old.rawsource, scope, index)
            new["links"] = [x for x in found if x.target.anchor not in new["ids"]]
            old.replace_self(new)


def write_code(translator: Any, node: LinkedCode) -> None:
    """Write code as ever, then put the links into it."""
    here, builder = translator.builder.current_docname, translator.builder
    with suppress(nodes.SkipNode):
        translator.visit_literal_block(node)
    way = functools.partial(address, builder, here)
    linked = links.into_html(translator.body[-1], node["links"], way)
    translator.body[-1] = links.with_marks(linked, node["marks"])
    raise nodes.SkipNode


def address(builder: Any, here: str, place: links.Target) -> str:
    """The way from one page to a place."""
    way = builder.get_relative_uri(here, place.page)
    return f"{way}#{place.anchor}" if place.anchor else way


def _is_source(node: nodes.Node) -> bool:
    inside = isinstance(node, nodes.container)
    return inside and node.get("nb_element") == "cell_code_source"


def open_fold(translator: Any, node: HideCodeCellNode) -> None:
    """Begin a fold whose name, for those who hear the page, is what it shows."""
    classes = " ".join(node["classes"])
    translator.body.append(f'<details class="admonition hide {classes}">\n<summary>\n')
    for state, prompt in (("collapsed", "show"), ("expanded", "hide")):
        title = escape(node[f"prompt_{prompt}"])
        line = f'<p class="{state} admonition-title">{title}</p>\n'
        translator.body.append(line)
    translator.body.append("</summary>\n")


def close_fold(translator: Any, node: HideCodeCellNode) -> None:
    """End a fold."""
    translator.body.append("</details>\n")


PREDICT = '<details class="predict"><summary><b>Predict'
TABLE = '<div class="pst-scrollable-table-container"'


def mend_body(
    app: Sphinx, name: str, template: str, context: dict[str, Any], tree: Any
) -> None:
    """Make a page fit for readers by keyboard and by ear.

    Links stand between the works that are cited, so they have not the role of a list; a
    wide table, which scrolls by itself, can be scrolled by keys.
    """
    works = 'class="citation-list"'
    body = context.get("body", "").replace(f'role="list" {works}', works)
    body = body.replace("<details><summary><b>Predict", PREDICT)
    context["body"] = body.replace(f"{TABLE}>", f'{TABLE} tabindex="0">')


class English(SearchEnglish):
    """The words of a page, brought to their stems: of each word once."""

    stem = functools.cache(SearchEnglish.stem)


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the extension."""
    app.setup_extension("myst_nb")
    app.add_search_language(English)
    app.add_node(HideCodeCellNode, override=True, html=(open_fold, close_fold))
    app.add_node(LinkedCode, html=(write_code, None))
    app.connect("source-read", edit_source)
    app.connect("doctree-read", add_links)
    app.connect("doctree-read", add_captions)
    app.connect("doctree-read", add_growth)
    app.connect("doctree-read", add_margin)
    app.connect("doctree-read", add_picture_captions)
    app.connect("doctree-read", add_numbers)
    app.connect("html-page-context", mend_body)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
