"""Loops as boxes inside each other."""

from .svg import Canvas, soft, text_width

ROW, STEP, EDGE, SIZE = 22, 14, 6, 12


def _ends(rows):
    """For each row the number of the row at which what lies inside it has ended."""
    depths = [depth for depth, _ in rows]
    later = [
        [k for k in range(i + 1, len(rows)) if depths[k] <= depths[i]]
        for i in range(len(rows))
    ]
    return [found[0] if found else len(rows) for found in later]


def _heights(rows, ends):
    """The top of each row, and the end; boxes that end above a row leave a gap."""
    tops, y = [], 10
    for k in range(len(rows) + 1):
        y += EDGE * sum(i + 1 < end == k for i, end in enumerate(ends))
        tops.append(y)
        y += ROW
    return tops


def nest(rows, title="Loop nest"):
    """A loop nest: the rows that lie deeper than a row are drawn in its box.

    `rows` is a sequence of (depth, text), depths counted from 0.
    """
    rows, canvas = [*rows], Canvas()
    wide = max([text_width(text, SIZE, True) + d * STEP for d, text in rows] + [90])
    deep, ends = max([depth for depth, _ in rows], default=0), _ends(rows)
    tops, right = _heights(rows, ends), 10 + wide + 20 + deep * EDGE
    for k, (depth, _) in enumerate(rows):
        if ends[k] > k + 1:
            x, y = 10 + depth * STEP, tops[k]
            closed = sum(end == ends[k] and i < k for i, end in enumerate(ends))
            bottom = tops[ends[k]] - EDGE * closed - EDGE / 2
            width = right - depth * EDGE - x
            canvas.rect(x, y, width, bottom - y, soft("device"), "device", 4)
    for k, (depth, text) in enumerate(rows):
        x, y, loop = 18 + depth * STEP, tops[k] + 15, ends[k] > k + 1
        ink = "device" if loop else "ink"
        canvas.text(x, y, text, SIZE, ink, mono=True, bold=loop)
    said = "; ".join(f"{'> ' * depth}{text}" for depth, text in rows)
    return canvas.figure(right + 10, tops[-1] + 8, title, said or "no loops")
