"""An axis, and the places that ranges take of it, numbered in the order of taking."""

from .svg import Canvas, soft, text_width

CELL, HIGH, GAP, MOST = 34, 28, 12, 16


def _row(canvas, size, y, places):
    """The cells of an axis; in those that are taken, which one comes first."""
    order = {place: number for number, place in enumerate(places)}
    role = "batch" if places.step < 0 else "primal"
    for place in range(size):
        x, taken = 10 + CELL * place, place in order
        fill, edge = (soft(role), role) if taken else (None, "line")
        canvas.rect(x, y, CELL - 2, HIGH - 2, fill, edge, 3)
        if taken:
            middle = x + CELL / 2 - 1
            canvas.text(middle, y + 17, str(order[place]), 11, "ink", "middle", True)


def ranges(size, rows, title="Places along an axis"):
    """A line of `size` places, and below it, for each range of `rows`, what it takes.

    `rows` maps names to ranges of places. The number in a cell tells when it is taken:
    0 is the first. Ranges that run backwards have another colour.
    """
    outside = any(not 0 <= place < size for row in rows.values() for place in row)
    if size > MOST or outside:
        raise ValueError(f"cannot draw ranges {[*rows.values()]} of {size} places")
    canvas, y, said, right = Canvas(), 24, [f"an axis of {size} places"], 0
    for place in range(size):
        middle = 9 + CELL * place + CELL / 2
        canvas.text(middle, 16, str(place), 10, "muted", "middle", True)
    for name, row in rows.items():
        label = f"{name}   {row}"
        _row(canvas, size, y, row)
        canvas.text(20 + CELL * size, y + 17, label, 12, "ink", mono=True)
        right = max(right, text_width(label, 12, True))
        said.append(f"{name} takes {', '.join(map(str, row)) or 'none'}")
        y += HIGH + GAP
    return canvas.figure(30 + CELL * size + right, y, title, "; ".join(said))
