"""The figure helper: the same picture each time, readable, accessible, no overlaps."""

import itertools
import re
import subprocess
import sys
import textwrap
import xml.etree.ElementTree as ElementTree
from collections import namedtuple
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from minijax_book import figures, layout, render, rides, svg
from minijax_book.ratios import ratios
from minijax_book.waits import waits

ROOT = Path(__file__).resolve().parents[1]
NASTY = "a<b & \"c\" 'd' </title>]]>"


class Primitive:
    def __init__(self, name, family=None):
        self.name = name
        if family:
            self.family = family


class RuleTable(dict):
    def __init__(self, name, rules=(), reasons=(), default=None):
        super().__init__(dict.fromkeys(rules, "rule"))
        self.name, self.reasons, self.default = name, dict(reasons), default


class EvalTrace:
    parent = None


class JVPTrace:
    def __init__(self, parent):
        self.parent = parent


class VmapTrace(JVPTrace):
    pass


class Var:
    def __init__(self, aval="f32[3]"):
        self.aval = aval


class DropVar(Var):
    pass


class Literal:
    def __init__(self, val):
        self.val = val


def eqn(name, inputs, outputs, **params):
    return SimpleNamespace(
        primitive=Primitive(name), invars=inputs, outvars=outputs, params=params
    )


def program(invars, eqns, outvars, constvars=()):
    return SimpleNamespace(
        invars=invars, eqns=eqns, outvars=outvars, constvars=list(constvars)
    )


def diamond():
    w, x, y, p, q, r, s = (Var() for _ in range(7))
    eqns = [
        eqn("mul", [w, x], [p]),
        eqn("tanh", [p], [q]),
        eqn("sub", [q, y], [r]),
        eqn("mul", [r, r], [s], axes=(0,), note=NASTY),
    ]
    return program([w, x, y], eqns, [s, q, x])


def ladder(count):
    """A long program in which each equation reads earlier values near and far."""
    values, eqns = [Var() for _ in range(5)], []
    for k in range(count):
        out = Var()
        picked = [values[(k * 7) % len(values)], values[-1 - k % 3]]
        eqns.append(eqn(("add", "dot_general", "mul")[k % 3], picked, [out]))
        values.append(out)
    return program(values[:5], eqns, values[-2:])


def rules(count, families=3):
    primitives = [Primitive(f"op_{k}", f"family {k % families}") for k in range(count)]
    names = ["impl", "shape", "jvp", "vmap", "transpose"]
    tables = [
        RuleTable(
            name,
            [p for i, p in enumerate(primitives) if (i + k) % 5],
            {p: NASTY for i, p in enumerate(primitives) if (i + k) % 10 == 0},
        )
        for k, name in enumerate(names)
    ]
    return tables, primitives


Pair = namedtuple("Pair", "left right")
PARAMS = {"w": np.zeros((8, 3), "float32"), "b": [1.0, None, Pair(2, {"k": ()})]}


def drawings():
    """Every kind of drawing, small, ordinary and large, by name."""
    jvp = JVPTrace(EvalTrace())
    tables, primitives = rules(60)
    x, y = np.arange(3.0)[:, None], np.arange(4.0)[None]
    yield from (
        (f"lift {k}", figures.lift(k)) for k in (1, 2, 3, 6, 7, 10, 12, 17, 28, 36)
    )
    ridden = [rides.Storey("I", "watched", NASTY * 9), rides.Storey("II", "to come")]
    yield "ride", rides.ride("loss(w, x, y)", ridden)
    yield "lift nasty", figures.lift(3, says=f"{NASTY} " * 20)
    yield "grid empty", figures.grid([])
    yield "grid one", figures.grid([RuleTable("impl", [Primitive("add")])], new="impl")
    defaults = RuleTable("cost", primitives[:3], {primitives[4]: NASTY}, "plain")
    yield "grid default", figures.grid([defaults, *tables], primitives[:9], new="cost")
    yield "grid large", figures.grid(tables, primitives, new="jvp")
    yield "stack one", figures.stack(EvalTrace())
    yield "stack", figures.stack(VmapTrace(jvp), current=jvp, note=f"{NASTY} " * 9)
    yield "jaxpr empty", figures.jaxpr(program([], [], []))
    yield "jaxpr identity", figures.jaxpr(program([v := Var()], [], [v, Literal(1.0)]))
    yield "jaxpr", figures.jaxpr(diamond())
    yield "jaxpr large", figures.jaxpr(ladder(150))
    yield "tree leaf", figures.tree(3.0)
    yield "tree", figures.tree(PARAMS)
    yield "tree nasty", figures.tree({NASTY: NASTY * 9})
    yield "tree large", figures.tree([{"w": k, "b": (k, k)} for k in range(60)])
    yield "bars empty", figures.bars({})
    yield "bars", figures.bars({"add": 0, NASTY * 3: 123456, "m": 0.333}, "calls")
    yield "bars titled", figures.bars({"add": 2}, "calls", NASTY * 9)
    yield "ratios empty", ratios([])
    yield "waits empty", waits([])
    yield "waits", waits([("tinygp", 225.0, 38.5), (NASTY * 3, 4.1, 0.0)])
    yield "ratios", ratios([("call", 0.04, 0.15), (NASTY * 3, 1.3, 1.0)])
    yield "line empty", figures.number_line({})
    points = {"2": 2.0, "2.00001": 2.00001, "2.0002": 2.0002, "5": 5.0}
    yield "line", figures.number_line(points, 0, 5)
    yield "stretch", figures.stretch(lambda x: x**3, [1.99999, 2.0, 2.00001], 2e-4)
    yield "lattice empty", figures.lattice({})
    order = {
        "bottom": ["left", "right*"],
        "left": ["top"],
        "right*": ["top"],
        "top": [],
    }
    yield "lattice", figures.lattice(order, {"top": "warn"})
    yield "exchange empty", figures.exchange([], ["h"], [], ["c"])
    numbers = [f"{k / 7:.4f}" for k in range(8)]
    yield "exchange", figures.exchange(numbers[1:], numbers, numbers[1:], numbers)
    yield "exchange nasty", figures.exchange([NASTY], [NASTY] * 2, [NASTY], ["1"] * 2)
    yield "path empty", figures.path([], [])
    yield "path", figures.path(["a", NASTY], [(NASTY, {"a": "1", NASTY: NASTY})] * 2)
    yield "pipeline empty", figures.pipeline(parts=())
    yield "pipeline", figures.pipeline()
    yield "pipeline lit", figures.pipeline("fusion")
    yield "pipeline nasty", figures.pipeline(["fusion", "LLVM text"], says=NASTY * 9)
    yield "nest empty", figures.nest([])
    yield "nest", figures.nest([(0, "for i < 4:"), (1, NASTY), (1, "for j:"), (2, "x")])
    yield "nest deep", figures.nest([(k, f"for i{k} < 9:") for k in range(9)])
    yield "blocks empty", figures.blocks()
    wide = figures.Block(x, "x", ("i", "j"), stretch=(3, 4))
    yield (
        "blocks",
        figures.blocks(wide, "+", figures.Block(y, "y", ("i", "j"), "batch")),
    )
    yield "blocks large", figures.blocks((5, 20, 30), "→", (), np.float32(1.5), (40,))
    memory = np.arange(6, dtype=np.float32).reshape(2, 3)
    views = {"x": memory, "turned": memory.T, NASTY: memory[:, ::-1], "row": memory[1]}
    yield "butterfly", figures.butterfly([3, 1, 4, 1, 5, 9, 2, 6])
    yield "butterfly of one", figures.butterfly([NASTY])
    yield "sectors empty", figures.sectors({})
    yield "sectors", figures.sectors({"near": range(32), NASTY: range(0, 900, 30)})
    yield "strides empty", figures.strides(np.zeros(0), {})
    yield "strides", figures.strides(memory, views)
    rows, boxes = ((1,), (0,), (0,)), ((1, 2), (), (0, 1))
    yield "windows of rows", figures.windows(memory, [[1], [0]], rows, (1, 3))
    yield "windows", figures.windows(memory, [[0, 1], [1, 0]], boxes, (1, 2), NASTY)
    yield "ranges empty", figures.ranges(0, {})
    yield "ranges", figures.ranges(5, {NASTY: range(5)[::-2], "none": range(5)[3:1]})


DRAWINGS = dict(drawings())
everywhere = pytest.mark.parametrize("name", DRAWINGS)


@everywhere
def test_is_well_formed_and_accessible(name):
    figure = DRAWINGS[name]
    root = ElementTree.fromstring(figure.svg)
    space = "{http://www.w3.org/2000/svg}"
    title, desc = root.find(f"{space}title"), root.find(f"{space}desc")
    assert root.get("role") == "img"
    assert root.get("aria-labelledby") == f"{title.get('id')} {desc.get('id')}"
    assert title.text == figure.title and desc.text == figure.desc
    assert figure.title.strip() and figure.desc.strip()
    bundle = figure._repr_mimebundle_()
    assert bundle == {"image/svg+xml": figure._repr_svg_(), "text/plain": figure.alt}


@everywhere
def test_every_colour_is_readable_without_styles(name):
    """A viewer that strips styles must still show ink on paper."""
    for element in ElementTree.fromstring(DRAWINGS[name].svg).iter():
        for token in (element.get("class") or "").split():
            if token[:2] in ("f-", "s-"):
                key = "fill" if token[0] == "f" else "stroke"
                assert element.get(key) == svg.PALETTE[token[2:]][0]


def test_same_picture_same_text():
    again = dict(drawings())
    assert {n: f.svg for n, f in again.items()} == {
        n: f.svg for n, f in DRAWINGS.items()
    }


def crossing(a, b, slack=0.01):
    wide = min(a.x + a.width, b.x + b.width) - max(a.x, b.x)
    tall = min(a.y + a.height, b.y + b.height) - max(a.y, b.y)
    return wide > slack and tall > slack


@everywhere
def test_boxes_do_not_overlap(name):
    for a, b in itertools.combinations(DRAWINGS[name].nodes, 2):
        assert not crossing(a, b), (a, b)


@everywhere
def test_text_stays_inside_the_figure(name):
    figure = DRAWINGS[name]
    for text in figure.texts:
        assert text.x >= 0 and text.x + text.width <= figure.width + 1, text
        assert text.y >= 0 and text.y + text.height <= figure.height, text


@everywhere
def test_text_fits_its_box(name):
    for text, box in itertools.product(DRAWINGS[name].texts, DRAWINGS[name].nodes):
        middle = svg.Extent(text.x + text.width / 2, text.y + 4, 1, 1, "")
        if crossing(middle, box):
            assert text.x >= box.x and text.x + text.width <= box.x + box.width, text
            assert text.y >= box.y and text.y + text.height <= box.y + box.height, text


@everywhere
def test_texts_do_not_overlap(name):
    for a, b in itertools.combinations(DRAWINGS[name].texts, 2):
        assert not crossing(a, b), (a, b)


@pytest.mark.parametrize("floor", range(1, 42))
def test_the_lift_stays_small(floor):
    figure = figures.lift(floor)
    assert figure.height <= 520 and figure.width <= 480


def test_the_lift_counts_floors_from_the_ground():
    assert "Arrays and dtypes (I): " in figures.lift(2).alt
    assert "NumPy (I): " in figures.lift(3).alt
    assert "Many machines (VI): " in figures.lift(37).alt


def test_the_lift_refuses_floors_that_are_not_there():
    with pytest.raises(ValueError, match="no floor 43"):
        figures.lift(43)
    with pytest.raises(ValueError, match="no floor 0"):
        figures.lift(0)


def test_grid_counts_rules_reasons_and_holes():
    add, sort = Primitive("add"), Primitive("sort")
    tables = [RuleTable("impl", [add, sort]), RuleTable("jvp", [add], {sort: "why"})]
    assert "impl: 2 rules; jvp: 1 rules, 1 written reasons." in figures.grid(tables).alt
    assert "1 missing" in figures.grid([RuleTable("jvp", [add])], [add, sort]).alt
    assert "sort, jvp: why" in figures.grid(tables).svg
    table = RuleTable("print", [add], default=print)
    assert "print: 1 rules, 1 by default." in figures.grid([table], [add, sort]).alt


def test_grid_shows_every_primitive_once():
    tables, primitives = rules(60)
    shown = [t.label for t in figures.grid(tables, primitives).texts]
    assert sorted(n for n in shown if n.startswith("op_")) == sorted(
        p.name for p in primitives
    )


def test_stack_follows_parents():
    trace = VmapTrace(JVPTrace(EvalTrace()))
    figure = figures.stack(trace)
    assert [n.label for n in figure.nodes] == [
        "bind",
        "VmapTrace",
        "JVPTrace",
        "EvalTrace",
    ]
    tops = [n.y for n in figure.nodes]
    assert tops == sorted(tops)


def test_stack_refuses_a_ring():
    ring = JVPTrace(None)
    ring.parent = ring
    with pytest.raises(ValueError, match="comes back"):
        figures.stack(ring)


def test_roles_are_checked():
    with pytest.raises(ValueError, match="choose one of primal"):
        figures.stack(EvalTrace(), roles={"EvalTrace": "pink"})


def test_fall_is_a_list_first():
    trace = JVPTrace(EvalTrace())
    events = [("bind", NASTY), (trace, "x * y"), ("EvalTrace", 6.0)]
    widget = figures.fall(events)
    body = re.sub(r"<(style|script)>.*?</\1>", "", widget.html, flags=re.S)
    root = ElementTree.fromstring(body.replace(" hidden>", ">"))
    items = [" ".join(li.itertext()).split(maxsplit=1) for li in root.iter("li")]
    assert items == [["bind", NASTY], ["JVPTrace", "x * y"], ["EvalTrace", "6.0"]]
    assert widget._repr_mimebundle_()["text/html"] == figures.fall(events).html
    assert "2. JVPTrace: x * y" in widget.alt
    assert "</script>" not in widget.html.split("<script>")[0]


def test_fall_of_nothing():
    assert figures.fall([]).alt == "bind, step by step (0 steps)"


def test_jaxpr_names_and_literals():
    a, b, c = Var(), Var(), Var("f32[]")
    eqns = [eqn("sub", [Literal(1.0), a], [b]), eqn("split", [b], [c, DropVar()])]
    closed = SimpleNamespace(jaxpr=program([a], eqns, [c]), consts=[])
    figure = figures.jaxpr(closed)
    assert "b = sub 1.0 a; c _ = split b. Outputs: c." in figure.alt
    assert "sub 1.0 ·" in [t.label for t in figure.texts]
    named = figures.jaxpr(closed, names=lambda v: "xyz"[(a, b, c).index(v)])
    assert "y = sub 1.0 x" in named.alt


def test_jaxpr_shows_inner_programs_briefly():
    x, inner = Var(), diamond()
    cond = eqn("cond", [x], [Var()], branches=(inner, inner), fun=len, jaxpr=inner)
    texts = [t.label for t in figures.jaxpr(program([x], [cond], [])).texts]
    assert "branches={…}×2 jaxpr={…}" in texts


def test_jaxpr_roles_by_dictionary_and_by_function():
    graph = diamond()
    by_key = figures.jaxpr(graph, roles={graph.invars[0]: "tangent"}).svg
    by_call = figures.jaxpr(
        graph, roles=lambda v: "tangent" if v is graph.invars[0] else None
    ).svg
    assert by_key == by_call and "tangent" in by_key


def test_variable_names_go_on_after_z():
    from minijax_book.graphs import letters

    assert [letters(k) for k in (0, 25, 26, 27, 701, 702)] == [
        "a", "z", "aa", "ab", "zz", "aaa",
    ]  # fmt: skip


def test_layout_keeps_order_and_distance():
    assert layout.spread([0, 0, 0], [10, 10]) == [-10, 0, 10]
    assert layout.spread([5, 100], [10]) == [5, 100]
    assert layout.ranks(4, [(0, 1), (1, 3), (0, 3), (2, 3)]) == [0, 1, 0, 2]


def test_tree_outline():
    said = figures.tree(PARAMS).alt
    assert "Tree with 3 leaves" in said
    assert "dict('b': list(0: 1.0, 1: None, 2: Pair(.left: 2" in said
    assert "'w': float32[8,3])" in said


def test_tree_takes_a_function_for_children():
    kids = {"root": ("Root", [("left", "a"), ("right", "b")])}
    assert "Root(left: 'a', right: 'b')" in figures.tree("root", kids.get).alt


def test_bars_refuse_negative_amounts():
    with pytest.raises(ValueError, match="0 or more"):
        figures.bars({"x": -1})


def test_ratios():
    figure = ratios([("call", 0.04, 0.15), ("sum", 1.3, 1.0)])
    assert "call: 0.04 of JAX's; sum: 1.3 of JAX's" in figure.alt
    with pytest.raises(ValueError, match="greater than 0"):
        ratios([("call", 0, 1)])


def test_waits():
    figure = waits([("tinygp", 225.0, 38.5), ("jmp", 4.1, 1.7)])
    assert "tinygp: JAX 3.8 min, minijax 38 s; jmp: JAX 4 s, minijax 2 s" in figure.alt
    assert figure.width < 390
    with pytest.raises(ValueError, match="not less than 0"):
        waits([("jmp", -1.0, 1.0)])


def test_blocks_refuse_what_cannot_be_drawn():
    with pytest.raises(ValueError, match="cannot draw shape"):
        figures.blocks(figures.Block((3,), stretch=(3, 4)))
    with pytest.raises(ValueError, match="cannot draw shape"):
        figures.blocks((2, 2, 2, 2))


def test_blocks_print_values_where_they_fit():
    labels = [t.label for t in figures.blocks([[1, 2.5], [True, 1e9]]).texts]
    assert {"1", "2.5"} <= set(labels) and "1e+09" not in labels
    labels = [t.label for t in figures.blocks([[999, 1003], [-12, 123456]]).texts]
    assert {"999", "1003", "-12"} <= set(labels) and "123456" not in labels
    assert figures.blocks([]).alt.endswith("array of shape (0,)")


def test_a_butterfly_ends_with_the_sum_everywhere():
    figure = figures.butterfly([3, 1, 4, 1])
    assert "after d = 2: 7, 2, 7, 2; after d = 1: 9, 9, 9, 9" in figure.alt
    with pytest.raises(ValueError, match="power of two"):
        figures.butterfly([1, 2, 3])


def test_sectors_are_counted():
    figure = figures.sectors({"near": range(32), "far": range(0, 256, 8)})
    assert "near: 4 sectors, 100% of them used" in figure.alt
    assert "far: 32 sectors, 12% of them used" in figure.alt
    with pytest.raises(ValueError, match="a request has places"):
        figures.sectors({"none": []})


def test_strides_show_where_elements_lie():
    memory = np.arange(6, dtype=np.float32).reshape(2, 3)
    still = np.broadcast_to(memory[0], (2, 3))
    figure = figures.strides(memory, {"back": memory[1, ::-1], "still": still})
    assert "back of shape (3,) with strides (-4,)" in figure.alt
    assert "still of shape (2, 3) with strides (0, 4)" in figure.alt
    places = [t.label for t in figure.texts if t.label.isdigit()]
    line = ["0", "0", "1", "4", "2", "8", "3", "12", "4", "16", "5", "20"]
    back, row = ["5", "20", "4", "16", "3", "12"], ["0", "0", "1", "4", "2", "8"]
    assert places == line + back + row + row


def test_strides_refuse_what_cannot_be_drawn():
    memory = np.zeros((4, 4, 4))
    with pytest.raises(ValueError, match="cannot draw strides of shape"):
        figures.strides(memory[0], {"x": memory})
    with pytest.raises(ValueError, match="in one piece"):
        figures.strides(memory[:, 0], {})


def test_ranges_number_places_in_the_order_of_taking():
    figure = figures.ranges(4, {"back": range(4)[::-2], "none": range(4)[2:1]})
    assert "back takes 3, 1; none takes none" in figure.alt
    cells = [t.label for t in figure.texts if t.label.isdigit()]
    assert cells == ["0", "1", "2", "3", "1", "0"]


def test_ranges_refuse_places_outside():
    for size, row in ((3, range(4)), (3, range(-1, 2)), (99, range(2))):
        with pytest.raises(ValueError, match="cannot draw ranges"):
            figures.ranges(size, {"x": row})


def test_table_aligns_numbers_and_escapes():
    made = figures.table([["a<b", 12], ["c", 3456]], ["what", "calls"], "Calls")
    assert made.alt.splitlines()[1:] == [
        "what  calls",
        "a<b      12",
        "c     3\u202f456",
    ]
    assert "a&lt;b" in made.html and "text-align:right" in made.html
    ElementTree.fromstring(made.html)
    assert figures.table([]).alt == ""


def luminance(color):
    channels = [int(color[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [
        c / 12.92 if c <= 0.04 else ((c + 0.055) / 1.055) ** 2.4 for c in channels
    ]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(a, b):
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("tone", [0, 1], ids=["light", "dark"])
def test_palette_contrast(tone):
    shade = {token: tones[tone] for token, tones in svg.PALETTE.items()}
    for role in svg.ROLES:
        assert contrast(shade["ink"], shade[svg.soft(role)]) >= 7
        assert contrast(shade[role], shade[svg.soft(role)]) >= 4.5
        assert contrast(shade[role], shade["paper"]) >= 4.5
        assert contrast(shade["muted"], shade[svg.soft(role)]) >= 4.5
    assert contrast(shade["muted"], shade["paper"]) >= 4.5


def test_plot_style_gives_the_palette():
    matplotlib = pytest.importorskip("matplotlib")
    with matplotlib.rc_context():
        colors = figures.plot_style()
        assert colors["tangent"] == svg.PALETTE["tangent"][0]
        assert matplotlib.rcParams["svg.hashsalt"] == "minijax"


def test_page_style_is_up_to_date():
    css = ROOT / "book" / "_static" / "figures.css"
    assert css.read_text(encoding="utf-8") == render.page_css()


def test_only_our_figures_are_put_into_the_page():
    pytest.importorskip("docutils")
    plot = SimpleNamespace(mime_type="image/svg+xml", string="<svg></svg>")
    assert render.InlineFigures.handle_mime(None, plot, False) is None
    ours = SimpleNamespace(mime_type="image/svg+xml", string=figures.lift(1).svg)
    (node,) = render.InlineFigures.handle_mime(None, ours, False)
    assert node["format"] == "html" and ours.string in node.astext()


def test_the_helper_never_imports_the_package():
    for path in (ROOT / "book" / "helper").glob("*.py"):
        source = path.read_text(encoding="utf-8")
        assert not re.search(r"^\s*(import|from)\s+minijax\b", source, flags=re.M)


def test_windows_outside_are_not_drawn():
    numbers = (1,), (0,), (0,)
    for index in (2, -1):
        with pytest.raises(ValueError, match="within the operand"):
            figures.windows(np.zeros((2, 3)), [[index]], numbers, (1, 3))
    with pytest.raises(ValueError, match="cannot draw windows"):
        figures.windows(np.zeros(3), [[0]], numbers, (1,))


def test_windows_say_what_a_gather_finds():
    square = np.arange(9.0).reshape(3, 3)
    found = figures.windows(square, [[2], [0]], ((1,), (0,), (0,)), (1, 3))
    assert "the window at (2, 0) is [6.0, 7.0, 8.0]" in found.desc
    assert "result has shape (2, 3)" in found.desc


def test_waking_lower_floors_imports_no_higher_ones():
    """In Colab the notebook of a low floor has put its own functions into the package,
    which modules of higher floors cannot be imported with."""
    program = textwrap.dedent("""
        import sys

        import minijax
        from minijax_book import grids

        before = {*sys.modules}
        grids._wake((2, 0))
        for name in {*sys.modules} - before:
            file = getattr(sys.modules[name], "__file__", None) or ""
            floor = grids._floor_of(file) if name.startswith("minijax.") else None
            if floor and floor > (2, 0):
                print(name, floor)
    """)
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert found.stdout == ""
