"""The whole book on one page, from a small site: its order, anchors and links."""

import re

import pytest

from book.tools import printable
from book.tools.source import BookError

CONTENTS = """format: jb-book
root: index
parts:
- caption: "Up & down"
  chapters:
  - file: chapters/02_two
  - file: chapters/01_one
"""
CONTENTS = CONTENTS.replace('"', "")
INDEX = """<html><body><nav><a href="x.html">out</a></nav><article class="bd-article">
<section id="top"><h1>Begin<a class="headerlink" href="#top">#</a></h1>
<div class="front-buttons docutils"><p>buttons</p></div>
<a href="chapters/02_two.html#same">two</a> <a href="chapters/02_two.html">all</a>
<a href="chapters/01_one.ipynb">notebook</a> <a href="https://x.org/a#b">far</a>
</section></article><footer>foot</footer></body></html>"""
ONE = """<article class="bd-article"><section id="same"><h1>1 · <em>One</em></h1>
<h2>Below</h2><p>See <a href="#same">here</a>, <a href="../index.html">begin</a>,
<a href="02_two.html#not-there">two</a>.</p>
<svg aria-labelledby="t d"><title id="t">T</title><desc id="d">D</desc>
<style>@media (prefers-color-scheme:dark){.mjf{fill:#000}}</style>
<clipPath id="c"/><g clip-path="url(#c)"/></svg>
<svg aria-labelledby="t d"><title id="t">T</title><desc id="d">D</desc></svg>
<img src="../_images/a.png" alt="a"/><script>run()</script></section></article>"""
FOLD = """<details class="admonition hide above-input">
<summary>
<p class="collapsed admonition-title">{0}</p>
<p class="expanded admonition-title">{0}</p>
</summary><div><pre><span></span><span class="n">x</span> <span class="o">=</span>
<span class="mi">1</span> id="same" &lt;</pre></div></details>"""
TWO = f"""<article class="bd-article"><section id="same"><h1>2 · Two</h1>
{FOLD.format("Solution of exercise 1")}{FOLD.format("The plumbing")}
</section></article>"""


@pytest.fixture
def site(tmp_path):
    for folder in ("chapters", "_images", "_static"):
        (tmp_path / folder).mkdir()
    pages = {"index": INDEX, "chapters/01_one": ONE, "chapters/02_two": TWO}
    for name, text in pages.items():
        (tmp_path / f"{name}.html").write_text(text, encoding="utf-8")
    (tmp_path / "_images" / "a.png").write_bytes(b"png")
    sheet = 'html[data-theme="dark"] .a {\n  color: red;\n}\n.a { color: blue }\n'
    (tmp_path / "_static" / "book.css").write_text(sheet, encoding="utf-8")
    return tmp_path


@pytest.fixture
def bound(site):
    return printable.bind(site, CONTENTS, "solutions", "https://me.io/book/")


def test_pages_stand_in_the_order_of_the_contents(bound):
    found = re.findall(r'<article class="bd-article" id="([^"]*)"', bound)
    assert found == ["index", "chapters-02_two", "chapters-01_one"]
    assert bound.index("<h1>Up &amp; down</h1>") < bound.index('id="chapters-02_two"')
    assert re.findall(r"<li>.*?>([^<]*)</a>", bound) == ["2 · Two", "1 · One"]
    assert "<h2>1 · <em>One</em></h2>\n<h3>Below</h3>" in bound


def test_anchors_are_unique_and_links_resolve(bound):
    anchors = re.findall(r'<[^>]* id="([^"]*)"', bound)
    assert len(anchors) == len({*anchors})
    leads = re.findall(r'(?:href="|url\()#([^")]*)', bound)
    leads += " ".join(re.findall(r'aria-labelledby="([^"]*)"', bound)).split()
    assert len(leads) == 12 and {*leads} <= {*anchors}
    assert '<a href="#chapters-02_two--same">two</a>' in bound
    assert '<a href="#chapters-01_one--same">here</a>' in bound
    assert '<a href="#chapters-02_two">two</a>' in bound  # no such section: its page


def test_links_to_other_places(bound):
    assert '<a href="https://x.org/a#b">far</a>' in bound
    assert '<a href="https://me.io/book/chapters/01_one.ipynb">' in bound
    assert '<img src="data:image/png;base64,cG5n" alt="a"/>' in bound


def test_what_a_screen_needs_is_left_out(bound):
    for text in "<script headerlink buttons prefers-color nav><a foot red".split():
        assert text not in bound
    assert ".a { color: blue }" in bound and "@page" in bound


def test_code_keeps_its_text(bound):
    assert (
        '<pre>x <span class="o">=</span>\n<span class="mi">1</span> id="same"' in bound
    )


def test_closed_cells_are_opened_as_the_reader_likes(site, bound):
    hide = '<details class="admonition hide above-input'
    assert f'{hide} solution"><summary>Solution of exercise 1</summary>' in bound
    assert f'{hide}"><summary>The plumbing</summary>' in bound
    for folds in printable.FOLDS:
        text = printable.bind(site, CONTENTS, folds)
        assert re.findall(r'id="folds-(\w+)" checked', text) == [folds]


def test_a_browser_that_prints_nothing_is_told(tmp_path):
    pdf = tmp_path / "printable.pdf"
    pdf.write_text("of yesterday")
    with pytest.raises(BookError, match="true has not printed printable.pdf"):
        printable.print_pdf("<p>x</p>", pdf, "true")
