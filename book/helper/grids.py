"""The rule grid: primitives down, interpretations across."""

import importlib
import linecache
import re
import sys
from pathlib import Path

from .svg import Canvas, text_width
from .towers import role_of

CELL, PITCH, LINE, LONGEST = 14, 22, 20, 700


def _known(tables):
    """Primitives in the order in which the tables first mention them."""
    seen = {}
    for table in tables:
        for primitive in [*table, *getattr(table, "reasons", {})]:
            seen.setdefault(primitive)
    return list(seen)


def _rows(primitives):
    """Rows of the picture: a family's heading (str), or a primitive."""
    families = {}
    for primitive in primitives:
        family = getattr(primitive, "family", None)
        families.setdefault(family, []).append(primitive)
    rows = []
    for family, members in families.items():
        rows += [str(family)] if family is not None else []
        rows += members
    return rows


def _split(rows, blocks):
    """Cut the rows into so many columns; a family that is cut repeats its name."""
    size = -(-len(rows) // blocks)
    while len(columns := _cut(rows, size)) > blocks:
        size += 1
    return columns


def _cut(rows, size):
    """Cut the rows into columns of `size` rows."""
    columns, family = [[]], None
    for row in rows:
        room, heading = size - len(columns[-1]), isinstance(row, str)
        family = row if heading else family
        if room <= 0 or (heading and room == 1):
            columns.append([] if heading or family is None else [f"{family} …"])
        columns[-1].append(row)
    return columns


def _state(table, primitive):
    """'rule', the written reason, 'default', or None for a hole."""
    if primitive in table:
        return "rule"
    has_default = getattr(table, "default", None) is not None
    ordinary = "default" if has_default else None
    return getattr(table, "reasons", {}).get(primitive, ordinary)


def _cell(canvas, x, y, state, role, fresh, title):
    """One cell: a full square, a ring, a line for a reason, a dashed cross."""
    if state == "rule":
        shade = {} if fresh else {"fill_opacity": 0.5}
        canvas.rect(x, y, CELL, CELL, role, None, 3, **shade)
    elif state == "default":
        half = CELL / 2
        canvas.circle(x + half, y + half, half - 3, "paper", role, title=title)
    elif state is not None:
        canvas.rect(x, y, CELL, CELL, "paper", "neutral", 3, title=title)
        canvas.line(x + 4, y + CELL / 2, x + CELL - 4, y + CELL / 2, "neutral", 2)
    else:
        dash = {"stroke_dasharray": "2 2"}
        canvas.rect(x, y, CELL, CELL, "warn-soft", "warn", 3, title=title, **dash)
        low, high = 4, CELL - 4
        canvas.line(x + low, y + low, x + high, y + high, "warn", 1.5)
        canvas.line(x + high, y + low, x + low, y + high, "warn", 1.5)


def _header(canvas, tables, x, y, new):
    """Names of the tables, slanted over their columns."""
    for k, table in enumerate(tables):
        fresh = table.name == new
        color = role_of(table.name) if fresh else "muted"
        at = x + k * PITCH + CELL / 2 + 3
        canvas.text(at, y, table.name, 12, color, mono=True, bold=fresh, turn=-45)


def _column(canvas, rows, tables, x, y, names, new):
    """One block of the grid, its rows from `y` down."""
    for row in rows:
        if isinstance(row, str):
            canvas.text(x, y + 12, row, 12, "muted", bold=True)
        else:
            canvas.text(x + names - 8, y + 12, row.name, 13, anchor="end", mono=True)
            for k, table in enumerate(tables):
                state = _state(table, row)
                title = f"{row.name}, {table.name}: {state or 'no rule yet'}"
                at, fresh = x + names + k * PITCH, table.name == new
                _cell(canvas, at, y, state, role_of(table.name), fresh, title)
        y += LINE


def _legend(canvas, x, y, kinds):
    """What the kinds of cell mean, for those that occur."""
    meaning = (
        ("rule", "rule", "rule"),
        ("default", "default", "the table's default"),
        ("reason", "reason", "none, with a reason"),
        (None, "hole", "missing"),
    )
    for state, kind, words in meaning:
        if kind in kinds:
            _cell(canvas, x, y, state, "neutral", True, None)
            canvas.text(x + CELL + 6, y + 11.5, words, 12, "muted")
            x += CELL + 24 + text_width(words, 12)
    return x


def _tally(tables, primitives):
    """Counts per table: {name: (rules, defaults, reasons, holes)}."""
    counts = {}
    for table in tables:
        states = [_state(table, p) for p in primitives]
        rules, defaults = states.count("rule"), states.count("default")
        holes = states.count(None)
        reasons = len(states) - rules - defaults - holes
        counts[table.name] = (rules, defaults, reasons, holes)
    return counts


def _describe(counts):
    """The counts as sentences."""
    lines = []
    for name, (rules, defaults, reasons, holes) in counts.items():
        words = [f"{rules} rules"]
        words += [f"{defaults} by default"] if defaults else []
        words += [f"{reasons} written reasons"] if reasons else []
        words += [f"{holes} missing"] if holes else []
        lines.append(f"{name}: {', '.join(words)}")
    return "; ".join(lines) + "." if lines else "No tables yet."


HEADER = re.compile(r"# Made from chapters/(\d+)_\w+?(_ground|_upper|_rest)?\.md")
HEAD = 40  # lines: behind its docstring a module says who made it
ROOMS = {"_ground": -1, None: 0, "_upper": 1, "_rest": 2}


def _floor_of(file):
    """The floor that a module was made by, or None."""
    head = HEADER.search("".join(linecache.getlines(file)[:HEAD]))
    return (int(head[1]), ROOMS[head[2]]) if head else None


def _wake(floor):
    """Import the modules of all lower floors, so that their tables are full."""
    # Not `walk_packages`: it imports the packages of higher floors to look into them.
    root = Path(sys.modules["minijax"].__file__).parent
    for path in sorted(root.rglob("*.py")):
        if (_floor_of(str(path)) or floor) < floor:
            parts = path.relative_to(root.parent).with_suffix("").parts
            importlib.import_module(".".join(parts).removesuffix(".__init__"))


def _floors():
    """From primitives to the lowest floor with a module that knows them."""
    found = {}
    for name, module in [*sys.modules.items()]:
        file = getattr(module, "__file__", None)
        if name.split(".")[0] != "minijax" or not file:
            continue
        here = _floor_of(file)
        for value in vars(module).values() if here else ():
            if any(kind.__name__ == "Primitive" for kind in type(value).__mro__):
                found[value] = min(here, found.get(value, here))
    return found


def standing(primitives, floor):
    """Those of the primitives that lower floors have brought, and the notebook's own.

    Without it the pictures of a chapter would change when floors are built above, and
    what the notebook defines would be shown twice.
    """
    _wake((floor, 0))
    floors = _floors()
    return [p for p in primitives if floors.get(p, (0, 0)) < (floor, 0)]


def grid(tables, primitives=None, new=None, floor=None):
    """The rule grid of the book: what is known about each primitive.

    `tables` are mappings from primitive to rule, each with a `.name` and, where it
    declines a primitive on purpose, `.reasons` (primitive to text); where neither
    is there, a table's `.default` is a ring. Primitives have a `.name` and maybe a
    `.family`, by which rows are grouped. `new` names the table that the chapter has
    just added. `floor` is the number of the chapter, if primitives of
    floors above are to be left out. A hole (no rule, no reason) is drawn as a cross.
    """
    tables, canvas = list(tables), Canvas()
    if floor is not None:
        _wake((floor, 0))
    primitives = _known(tables) if primitives is None else list(primitives)
    if floor is not None:
        primitives = standing(primitives, floor)
    names = max([text_width(p.name, 13, mono=True) for p in primitives] + [40]) + 12
    block = names + PITCH * max(len(tables), 1) + 18
    heads = max([text_width(t.name, 12, mono=True) for t in tables] + [0]) * 0.71
    fits = max(1, int((LONGEST - heads) // block))
    rows = _rows(primitives)
    wanted = max(1, min(fits, -(-len(rows) // 12)))
    columns = _split(rows, wanted)
    top = heads + 22
    for k, column in enumerate(columns):
        x = 10 + k * block
        _header(canvas, tables, x + names, top - 6, new)
        _column(canvas, column, tables, x, top, names, new)
    bottom = top + max(len(c) for c in columns) * LINE
    counts = _tally(tables, primitives)
    totals = [sum(c[k] for c in counts.values()) for k in range(4)]
    found = zip(("rule", "default", "reason", "hole"), totals, strict=True)
    kinds = {kind for kind, total in found if total}
    right = _legend(canvas, 10, bottom + 12, kinds)
    width = max(10 + block * len(columns) + heads, right, 200)
    title = f"Rule grid: {len(primitives)} primitives, {len(tables)} tables"
    return canvas.figure(width, bottom + 36, title, _describe(counts))
