"""An order as a picture: what lies above stands higher, lines lead upwards."""

from .svg import Canvas, check_role

STEP, ROW, WIDE, HIGH = 62, 42, 96, 26


def _heights(above):
    """The row of each element: the longest way up to it, from the bottom."""
    rows = dict.fromkeys(above, 0)
    for _ in above:
        for low, uppers in above.items():
            for high in uppers:
                rows[high] = max(rows.get(high, 0), rows[low] + 1)
    return rows


def _places(rows):
    """Centre of each element: rows from the top, elements of a row side by side."""
    top, levels = max(rows.values(), default=0), {}
    for name, row in rows.items():
        levels.setdefault(row, []).append(name)
    widest = max(map(len, levels.values()), default=1)
    middle = 10 + WIDE / 2 + (widest - 1) * STEP
    return {
        name: (
            middle + (2 * k - len(names) + 1) * STEP,
            10 + HIGH / 2 + (top - row) * ROW,
        )
        for row, names in levels.items()
        for k, name in enumerate(names)
    }


def lattice(above, roles=None, title="Lattice"):
    """A partial order: `above` maps each element to those directly above it.

    Elements whose name ends in a star are drawn dashed. `roles` maps elements to
    palette roles (default: neutral), for example to light up a join.
    """
    canvas, roles = Canvas(), dict(roles or {})
    places = _places(_heights(above))
    for low, uppers in above.items():
        for high in uppers:
            (x1, y1), (x2, y2) = places[low], places[high]
            canvas.line(x1, y1 - HIGH / 2, x2, y2 + HIGH / 2, "line", 1.5)
    for name, (x, y) in places.items():
        role = check_role(roles.get(name, "neutral"))
        box = (x - WIDE / 2, y - HIGH / 2, WIDE, HIGH)
        canvas.node(*box, str(name), role, 12, dash=str(name).endswith("*"))
    said = "; ".join(
        f"{low} below {' and '.join(up)}" for low, up in above.items() if up
    )
    right = max((x for x, _ in places.values()), default=60) + WIDE / 2 + 10
    low = max((y for _, y in places.values()), default=20) + HIGH / 2 + 10
    return canvas.figure(right, low, title, said or "nothing")
