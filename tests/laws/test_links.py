"""Names in code, floors in the lift and names in the grid lead to their definitions."""

import re

import pytest

from book.helper import figures
from book.tools import links
from book.tools.source import read_chapters
from tests.laws.drafts import INIT, draft


@pytest.fixture
def index(tmp_path):
    """Two floors: the first defines `f`, `add_p` and a table, the second uses them."""
    code = "#| export a -> minijax.lax\ndef f(x):\n    return x"
    exported = '#| export b\nadd_p = 1\nrules = RuleTable("jvp")'
    low = draft(tmp_path, 1, INIT, "#| export lax/__init__\n", code, exported)
    high = draft(tmp_path, 2, "from minijax import lax\ny = lax.f(lax.g(1))")
    return links.Index([low, high])


def found(index, code, page=-1):
    """The stretches of code which lead somewhere, with the anchors."""
    *_, (_, scope) = index.scopes(index.chapters[page])
    made = links.in_code(code, scope, index)
    return [(code[link.start : link.end], link.target.anchor) for link in made]


def test_attributes_of_modules_lead_to_their_definition(index):
    assert found(index, "é = lax.f(lax.f(2)) + f(1) + lax.g(3)") == [("f", "def-f")]


def test_a_page_leads_to_its_own_definitions(index):
    assert found(index, "f(rules)", page=0) == [("f", "def-f"), ("rules", "def-rules")]


@pytest.mark.parametrize(
    "code",
    [
        "def g(f):\n    return f",
        "[f for f in y]",
        "lambda f: f",
        "def g():\n    f = 1\n    return f",
        "f'{f}'",
        "broken(",
    ],
)
def test_a_name_that_a_function_binds_leads_nowhere(index, code):
    assert found(index, code, page=0) == []


def test_links_stand_inside_the_coloured_code():
    place = links.Target("p", "def-f", 'f: "x"')
    html = '<div><pre><span></span><span class="n">x</span>&lt;<span>f</span>(f)</pre>'
    made = links.into_html(
        html, [links.Link(2, 3, place)], lambda to: f"{to.page}.html"
    )
    way = '<a class="definition" href="p.html" title="f: &quot;x&quot;">f</a>'
    assert made == html.replace("<span>f</span>", f"<span>{way}</span>")


def test_the_lift_leads_to_all_floors_but_todays(index):
    svg = links.into_drawing(figures.lift(1).svg, index, lambda to: to.page)
    assert re.findall('<a href="([^"]+)" aria-label', svg) == ["chapters/02_floor2"]
    assert 'role="group"' in svg and 'role="img"' not in svg


def test_other_figures_stay_as_they_are(index):
    svg = figures.tree([1, 2]).svg
    assert links.into_drawing(svg, index, lambda to: to.page) == svg


def test_primitives_and_tables_have_places(index):
    assert index.primitives["add"].anchor == "def-add_p"
    assert index.tables["jvp"].anchor == "def-rules"


def test_the_book_has_a_place_for_each_rule_table():
    index = links.Index(read_chapters())
    assert {"impl", "jvp", "vmap", "transpose", "kernel"} <= index.tables.keys()
    assert {"1", "I", "III"} <= index.places.keys()
