"""What the pages have besides their text: a local extension of Sphinx.

Formulas are set when the book is built, as MathML, so that a page fetches nothing.
Figures keep out of the index of the search: labels are no sentences. The lift and the
grid of rules lead to the pages that they name. Each page has a
description for search engines and link previews.
"""

import functools
import html

from docutils import nodes
from math_core import LatexToMathML
from sphinx.util.math import get_node_equation_number

from book.tools import links, page_source

LONG, LIMIT = 60, 200  # a paragraph that says something; a description
LATEX = LatexToMathML()
CARD = "_static/card.png"  # made by `make card`
CARD_SAYS = "One line of a function on its way through the parts of the book"


class Drawing(nodes.General, nodes.Element):
    """A figure of the book: SVG which no index of words looks into."""


def hide_labels(app, doctree):
    """Put figures that are plain HTML into nodes of their own."""
    for node in list(doctree.findall(nodes.raw)):
        if 'class="mjf"' in node.rawsource or 'class="mjf"' in node.astext():
            node.replace_self(Drawing(svg=node.astext()))


def visit_drawing(translator, node):
    """Write the figure, with links to the pages of floors and names."""
    builder = translator.builder
    address = functools.partial(page_source.address, builder, builder.current_docname)
    svg = links.into_drawing(node["svg"], links.index(), address)
    translator.body.append(svg)
    raise nodes.SkipNode


def visit_formula(translator, node):
    """A formula in the text."""
    translator.body.append(formula(node.astext(), displayed=False))
    raise nodes.SkipNode


def visit_displayed(translator, node):
    """A formula on lines of its own, with its number."""
    translator.body.append(translator.starttag(node, "div", CLASS="math formula"))
    if node["number"]:
        number = get_node_equation_number(translator, node)
        translator.body.append(f'<span class="eqno">({number})</span>')
    translator.body.append(formula(node.astext(), displayed=True) + "</div>\n")
    raise nodes.SkipNode


def formula(latex, displayed):
    """The MathML of a formula; one that cannot be set is an error with its text."""
    try:
        return LATEX.convert_with_local_state(latex.strip(), displaystyle=displayed)
    except Exception as error:
        raise ValueError(f"cannot set the formula {latex!r}: {error}") from error


def describe(app, page, template, context, doctree):
    """Add what search engines and link previews show, and drop unused scripts."""
    for kind in ("script_files", "css_files"):
        context[kind] = [file for file in context.get(kind, ()) if not _unused(file)]
    title = context.get("title", app.config.project)
    said = description(doctree) if doctree else ""
    pairs = {"og:title": title, "og:type": "article", "og:site_name": "minijax"}
    pairs |= {"og:description": said} if said else {}
    home = app.config.html_baseurl
    pairs |= {"og:url": f"{home}{page}.html", "og:image": home + CARD}
    pairs |= {"og:image:alt": CARD_SAYS, "twitter:card": "summary_large_image"}
    tags = [f'<meta property="{k}" content="{_plain(v)}" />' for k, v in pairs.items()]
    if said:
        tags.append(f'<meta name="description" content="{_plain(said)}" />')
    context["metatags"] = context.get("metatags", "") + "\n".join(tags)


def description(doctree):
    """The question below the title and the first paragraph that says something."""
    texts = [" ".join(p.astext().split()) for p in doctree.findall(nodes.paragraph)]
    asked = [text for text in texts[:1] if text.endswith("?")]
    said = " ".join([*asked, *[text for text in texts if len(text) > LONG][:1]])
    return said if len(said) <= LIMIT else said[: LIMIT - 1].rpartition(" ")[0] + "…"


def _unused(file):
    """Whether a file belongs to the live kernels of Thebe, which the book has not."""
    about = f"{getattr(file, 'filename', file)} {getattr(file, 'attributes', {})}"
    return "thebe" in about.lower()


def _plain(text):
    return html.escape(str(text).replace("<br>", " "), quote=True)


def setup(app):
    """Register all of it."""
    app.add_node(Drawing, html=(visit_drawing, None))
    app.add_html_math_renderer("mathml", (visit_formula, None), (visit_displayed, None))
    app.connect("doctree-read", hide_labels)
    app.connect("html-page-context", describe, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
