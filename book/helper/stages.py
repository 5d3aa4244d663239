"""One program in its stages, with the lines of interest marked."""

from .svg import Canvas, soft, text_width

ROW, GAP, SIZE, HEAD = 18, 34, 12, 24


def stages(rows, marked, title="A program, stage by stage"):
    """Programs as boxes of text, from the first stage down to the last.

    `rows` is a sequence of rows; each is a sequence of (name, text), boxes that stand
    side by side. Arrows lead from the first box of a row to all boxes of the next.
    Lines that contain the string `marked` are lit; a box with none says so.
    """
    canvas, top, above, right = Canvas(), 10, None, 60
    for row in rows:
        x, foot = 10, top
        for name, text in row:
            lines = text.split("\n")
            wide = max(text_width(line, SIZE, True) for line in [name, *lines]) + 24
            high = HEAD + ROW * len(lines) + 6
            _box(canvas, (x, top, wide, high), name, lines, marked)
            if above:
                _arrow(canvas, above, (x + min(wide / 2, 60), top))
            x, foot = x + wide + 20, max(foot, top + high)
        first = HEAD + ROW * (1 + row[0][1].count("\n")) + 6
        right, above, top = max(right, x - 10), (70, top + first), foot + GAP
    said = "; ".join(_said(name, text, marked) for row in rows for name, text in row)
    return canvas.figure(right, top - GAP + 10, title, said or "no stages")


def _box(canvas, place, name, lines, marked):
    x, y, wide, high = place
    lit = any(marked in line for line in lines)
    role = "cotangent" if lit else "neutral"
    canvas.rect(x, y, wide, high, soft("neutral"), role, 4)
    canvas.text(x + 10, y + 17, name, SIZE, role, bold=True)
    for k, line in enumerate(lines):
        top = y + HEAD + ROW * k
        if marked in line:
            canvas.rect(x + 5, top, wide - 10, ROW, soft(role), None, 3)
        ink = role if marked in line else "ink"
        canvas.text(x + 10, top + 13, line, SIZE, ink, mono=True)


def _arrow(canvas, start, end):
    (x1, y1), (x2, y2) = start, end
    middle = y2 - GAP / 2
    path = f"M{x1:g} {y1:g}L{x1:g} {middle:g}L{x2:g} {middle:g}L{x2:g} {y2 - 6:g}"
    canvas.path(path, "neutral", 1.5)
    canvas.head(x2, y2, "down", "neutral")


def _said(name, text, marked):
    lines = [line.strip() for line in text.split("\n") if marked in line]
    return f"{name}: {', '.join(lines) or 'none'}"
