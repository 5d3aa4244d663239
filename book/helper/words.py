"""Memory as tables of words, with arrows for the addresses in it."""

from .svg import Canvas, clip, soft, text_width

ROW, GAP, SIZE = 22, 46, 12


def words(tables, roles=None, title="Words in memory"):
    """Pieces of memory as tables, one row for each word that is worth a name.

    `tables` is a sequence of (name, address, rows) with rows (label, value). A value
    that is the address of another table becomes an arrow; other integers are written
    out if they are small, and "an address" if not; strings are written as they are.
    `roles` maps names of tables to roles of the palette.
    """
    roles, canvas = dict(roles or {}), Canvas()
    names = {address: name for name, address, _ in tables}
    places = _places(tables, names)
    for name, _, rows in tables:
        _table(canvas, name, rows, places[name], names, roles.get(name, "neutral"))
    for name, _, rows in tables:
        for k, (_, value) in enumerate(rows):
            if isinstance(value, int) and value in names:
                _arrow(canvas, places[name], k, places[names[value]])
    said = "; ".join(f"{name}: {_said(rows, names)}" for name, _, rows in tables)
    right = max([x + wide for x, _, wide in places.values()], default=60)
    low = max(
        [places[name][1] + ROW * (len(rows) + 1) for name, _, rows in tables],
        default=20,
    )
    return canvas.figure(right + 10, low + 10, title, said or "nothing")


def _shown(value, names):
    if not isinstance(value, int):
        return str(value)
    if value in names:
        return "→ " + names[value]
    return str(value) if abs(value) < 2**20 else "an address"


def _said(rows, names):
    return ", ".join(f"{label} {_shown(value, names)}" for label, value in rows)


def _levels(tables, names):
    """The column of each table: right of those from which arrows lead to it."""
    level = {name: 0 for name, _, _ in tables}
    for _ in tables:
        for name, _, rows in tables:
            for _, value in rows:
                if isinstance(value, int) and names.get(value, name) != name:
                    level[names[value]] = max(level[names[value]], level[name] + 1)
    return level


def _places(tables, names):
    """Left, top and width of each table."""
    level, places, x = _levels(tables, names), {}, 10
    for column in range(max(level.values(), default=-1) + 1):
        inside = [table for table in tables if level[table[0]] == column]
        wide, y = max([_width(table, names) for table in inside], default=0), 10
        for name, _, rows in inside:
            places[name] = (x, y, wide)
            y += ROW * (len(rows) + 1) + 18
        x += wide + GAP
    return places


def _width(table, names):
    name, _, rows = table
    texts = [f"{label}  {_cell(value, names)}" for label, value in rows]
    return max([text_width(text, SIZE, True) for text in [name, *texts]]) + 22


def _cell(value, names):
    return "●" if isinstance(value, int) and value in names else _shown(value, names)


def _table(canvas, name, rows, place, names, role):
    x, y, wide = place
    canvas.rect(x, y, wide, ROW * (len(rows) + 1), soft(role), role, 4)
    canvas.text(x + 8, y + 15, clip(name, wide - 14, SIZE, True), SIZE, role, bold=True)
    for k, (label, value) in enumerate(rows):
        top = y + ROW * (k + 1)
        canvas.line(x, top, x + wide, top, "line", 1)
        canvas.text(x + 8, top + 15, label, SIZE, "ink", mono=True)
        if _cell(value, names) == "●":
            canvas.circle(x + wide - 12, top + ROW / 2, 4, role)
        else:
            text = _shown(value, names)
            canvas.text(x + wide - 8, top + 15, text, SIZE, "muted", "end", True)


def _arrow(canvas, start, row, end):
    """From a word to the top of the table that it points to."""
    x1, y1 = start[0] + start[2] - 12, start[1] + ROW * (row + 1.5)
    x2, y2 = end[0], end[1] + ROW / 2
    middle = x2 - GAP / 2
    path = f"M{x1:g} {y1:g}L{middle:g} {y1:g}L{middle:g} {y2:g}L{x2 - 6:g} {y2:g}"
    canvas.path(path, "neutral", 1.5)
    canvas.head(x2, y2, "right", "neutral")
