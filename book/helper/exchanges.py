"""Two loops that exchange rows: what the first hands in, the second is handed."""

from .svg import Canvas, clip

WIDE, HIGH, GAP, LEFT, SIZE = 92, 30, 62, 92, 11
HEIGHTS = {"xs": 10, "first loop": 66, "rows": 122, "second loop": 178}


def exchange(xs, states, rows, cotangents, title="Two loops, and the rows between"):
    """Steps side by side: the first loop runs to the right, the second to the left.

    All arguments are sequences of short texts: `xs` has one for each step of the first
    loop, `rows` one for what this step hands to the second loop; `states` and
    `cotangents` are the carries, one more than the steps, both from left to right.
    """
    canvas, count = Canvas(), len(rows)
    for name, y in HEIGHTS.items():
        canvas.text(LEFT - 12, y + HIGH / 2 + 4, name, 12, "muted", "end")
    for step, (x, row) in enumerate(zip(xs, rows, strict=True)):
        left = _left(step)
        for upper, lower in (("xs", "first loop"), ("first loop", "rows")):
            _down(canvas, left, upper, lower)
        _down(canvas, left, "rows", "second loop")
        _node(canvas, left, "xs", x, "neutral")
        _node(canvas, left, "first loop", f"step {step}", "primal", True)
        _node(canvas, left, "rows", row, "device")
        later = f"step {count - 1 - step}"
        _node(canvas, left, "second loop", later, "cotangent", True)
    pairs = list(zip(states, cotangents, strict=True))
    for place, (state, cotangent) in enumerate(pairs):
        _across(canvas, place, "first loop", state, "primal", "right")
        _across(canvas, place, "second loop", cotangent, "cotangent", "left")
    back = [cotangent for _, cotangent in reversed(pairs)]
    said = (
        f"The first loop takes {_list(xs)}, carries {_list(s for s, _ in pairs)} and "
        f"hands in the rows {_list(rows)}; the second takes these rows from the last "
        f"to the first and carries {_list(back)}"
    )
    bottom = HEIGHTS["second loop"] + HIGH + 12
    return canvas.figure(_left(count) + 10, bottom, title, said)


def _left(step):
    return LEFT + GAP + step * (WIDE + GAP)


def _list(texts):
    return ", ".join(texts) or "nothing"


def _node(canvas, left, row, label, role, strong=False):
    canvas.node(left, HEIGHTS[row], WIDE, HIGH, label, role, 12, strong=strong)


def _down(canvas, left, upper, lower):
    middle, end = left + WIDE / 2, HEIGHTS[lower]
    canvas.line(middle, HEIGHTS[upper] + HIGH, middle, end - 6, "line", 1.5)
    canvas.head(middle, end - 1, "down")


def _across(canvas, place, row, label, role, way):
    left, right = _left(place) - GAP + 3, _left(place) - 3
    y = HEIGHTS[row] + HIGH / 2
    canvas.line(left, y, right, y, role, 1.5)
    canvas.head(right if way == "right" else left, y, way, role)
    label = clip(label, GAP - 8, SIZE, True)
    canvas.text((left + right) / 2, y - 6, label, SIZE, "ink", "middle", True)
