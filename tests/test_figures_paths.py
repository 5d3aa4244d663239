"""The picture of the stations that calls pass."""

from minijax_book import figures

STATIONS = ["flatten", "trace", "run"]
CALLS = [
    ("f(1)", {"flatten": "1 leaf", "trace": "2 equations", "run": "3"}),
    ("f(2)", {"flatten": "1 leaf", "run": "4"}),
]


def test_each_call_names_its_stations_in_their_order():
    figure = figures.path(STATIONS, CALLS)
    assert "f(1) passes flatten: 1 leaf, trace: 2 equations, run: 3" in figure.alt
    assert "f(2) passes flatten: 1 leaf, run: 4" in figure.alt


def test_calls_are_columns_and_stations_rows():
    nodes = figures.path(STATIONS, CALLS).nodes
    assert [node.label for node in nodes if "leaf" not in node.label] == [
        "2 equations",
        "3",
        "4",
    ]
    assert len({node.x for node in nodes}) == 2
    assert len({node.y for node in nodes}) == 3


def test_what_some_calls_leave_out_stands_out():
    text = figures.path(STATIONS, CALLS)._repr_svg_()
    same = figures.path(STATIONS, CALLS[:1])._repr_svg_()
    assert "warn" in text and "warn" not in same


def test_no_calls():
    assert "no calls" in figures.path(STATIONS, []).alt
