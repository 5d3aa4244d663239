"""What the pages have besides their text: formulas, descriptions, no labels."""

import importlib.util

import pytest
from docutils import nodes

from book.helper import figures
from book.tools.source import ROOT

PATH = ROOT / "book" / "web" / "web_pages.py"
SPEC = importlib.util.spec_from_file_location("web_pages", PATH)
web = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(web)


def document(*children):
    """A document of Sphinx with these nodes in it."""
    root = nodes.container()
    root.extend(children)
    return root


def test_a_formula_is_mathml():
    assert web.formula(r"\frac{1}{2}", displayed=False).startswith("<math")
    assert 'display="block"' in web.formula("e^x", displayed=True)


def test_a_formula_that_cannot_be_set_is_named():
    with pytest.raises(ValueError, match="notacommand"):
        web.formula(r"\notacommand{x}", displayed=False)


def test_labels_of_figures_are_not_indexed():
    svg = figures.lift(1).svg
    root = document(nodes.raw("", svg, format="html"), nodes.raw("", "<b>x</b>"))
    web.hide_labels(None, root)
    assert [type(node) for node in root.children] == [web.Drawing, nodes.raw]
    assert root.children[0]["svg"] == svg and root.children[0].astext() == ""


def test_description_is_question_and_first_paragraph():
    paragraphs = [nodes.paragraph(text=t) for t in ("Why?", "short", "long " * 50)]
    said = web.description(document(*paragraphs))
    assert said.startswith("Why? long long") and said.endswith("long…")
    assert len(said) <= web.LIMIT and web.description(document()) == ""


def test_links_are_previewed_with_the_card():
    class App:
        class config:
            project, html_baseurl = "minijax", "https://OWNER.github.io/minijax/"

    context = {"title": "6 · vmap"}
    web.describe(App, "chapters/06_vmap", "page.html", context, None)
    tags = context["metatags"]
    assert 'property="og:title" content="6 · vmap"' in tags
    assert "https://OWNER.github.io/minijax/_static/card.png" in tags
    assert (ROOT / "book" / web.CARD).exists()
