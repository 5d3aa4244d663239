"""Keys of a cache side by side, and which calls met which of them."""

from .svg import Canvas, clip, text_width

HIGH, GAP, EDGE, WIDEST = 26, 6, 12, 250


def _columns(parts, rows):
    """Width of each column: of its widest text or of its heading."""
    widths = {}
    for part in parts:
        texts = [part, *(row.get(part, "") for _, row in rows)]
        widths[part] = min(max(text_width(t, 12, True) for t in texts) + 18, WIDEST)
    return widths


def keys(rows, title="Keys"):
    """Keys as rows of blocks, one column for each of their parts.

    `rows` is a sequence of `(name, parts)`, where `parts` maps headings to texts. What
    differs from the row above is drawn in the colour of warnings.
    """
    rows = [(str(name), {k: str(v) for k, v in parts.items()}) for name, parts in rows]
    parts = list(dict.fromkeys(part for _, row in rows for part in row))
    widths, canvas = _columns(parts, rows), Canvas()
    names = max([text_width(name, 12, True) for name, _ in rows] or [0]) + 12
    y, before = EDGE + 22, None
    for name, row in rows:
        canvas.text(EDGE, y + HIGH / 2 + 4, name, 12, "ink", mono=True)
        x = EDGE + names
        for part in parts:
            if before is None:
                canvas.text(
                    x + widths[part] / 2, EDGE + 10, part, 11, "muted", "middle"
                )
            changed = before is not None and row.get(part) != before.get(part)
            role = "warn" if changed else "primal"
            if part in row:
                box = (x, y, widths[part], HIGH)
                canvas.node(*box, row[part], role, 12, title=row[part])
            x += widths[part] + GAP
        y, before = y + HIGH + GAP, row
    right = EDGE + names + sum(widths.values()) + GAP * (len(parts) - 1) + EDGE
    said = "; ".join(f"{name}: {', '.join(row.values())}" for name, row in rows)
    return canvas.figure(max(right, 60), y - GAP + EDGE, title, said or "no keys")


def visits(calls, title="Calls and keys"):
    """Which call met which key: a row for each key, a column for each call.

    `calls` is the sequence of the keys of the calls, as texts. The first visit of a
    key is a strong square, later ones are pale.
    """
    calls = [clip(str(key), WIDEST, 12, True) for key in calls]
    rows, canvas = list(dict.fromkeys(calls)), Canvas()
    left = EDGE + max([text_width(row, 12, True) for row in rows] or [0]) + 12
    step = 22
    for number, row in enumerate(rows):
        y = EDGE + number * step
        canvas.text(EDGE, y + 13, row, 12, "ink", mono=True)
        canvas.line(left, y + 9, left + step * len(calls) - 4, y + 9, "line", 1)
    seen = set()
    for column, key in enumerate(calls):
        x, y = left + column * step, EDGE + rows.index(key) * step
        fill = "device-soft" if key in seen else "warn"
        stroke = "device" if key in seen else "warn"
        canvas.rect(x, y, 18, 18, fill, stroke, 3)
        seen.add(key)
    width, height = left + step * len(calls) + EDGE, EDGE * 2 + step * len(rows)
    said = ", ".join(
        f"{row}: {calls.count(row)} calls, first call {calls.index(row) + 1}"
        for row in rows
    )
    return canvas.figure(max(width, 60), max(height, 30), title, said or "no calls")
