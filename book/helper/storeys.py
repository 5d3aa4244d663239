"""A friendly call over the strict operations that it comes down to."""

from .svg import Canvas, text_width

HIGH, GAP, EDGE, SIZE = 30, 10, 12, 12


def storeys(call, given, operations, title="A call and what it comes down to"):
    """A call upstairs, and downstairs the operations that it binds, in their order.

    `given` are the operands of the call, and `operations` is a sequence of `(name,
    operands, results)`. Values have a `dtype` and a `shape`; the picture shows both.
    """
    canvas, rows = Canvas(), [(call, _types(given), "")]
    rows += [(name, _types(ins), _types(outs)) for name, ins, outs in operations]
    box, left, right = (
        max(text_width(r[k], SIZE, True) for r in rows) for k in range(3)
    )
    start = EDGE + left + 12
    end = start + box + 24
    for k, (text, ins, outs) in enumerate(rows):
        top = EDGE + k * (HIGH + GAP) + (k > 0) * 2 * GAP
        middle = top + HIGH / 2 + 4
        canvas.text(start - 12, middle, ins, SIZE, "ink", "end", mono=True)
        role = "primal" if k else "device"
        canvas.node(start, top, box + 24, HIGH, text, role, SIZE, title=text)
        canvas.text(end + 12, middle, outs, SIZE, "ink", mono=True)
    width, floor = end + 12 + right + EDGE, EDGE + HIGH + 1.5 * GAP
    canvas.line(EDGE, floor, width - EDGE, floor, "line", 1.5)
    bottom = EDGE + len(rows) * (HIGH + GAP) + GAP + EDGE
    return canvas.figure(width, bottom, title, _said(rows))


def _types(values):
    return ", ".join(f"{v.dtype}[{','.join(map(str, v.shape))}]" for v in values)


def _said(rows):
    (call, given, _), *rest = rows
    below = "; ".join(f"{name} of {ins} gives {outs}" for name, ins, outs in rest)
    return f"{call} of {given} comes down to: {below or 'nothing'}"
