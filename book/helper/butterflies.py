"""Shuffles: how lanes that differ in one bit exchange values until all have the sum."""

from .svg import Canvas

WIDE, HIGH, GAP, DOWN, LEFT = 44, 24, 12, 34, 64


def butterfly(numbers, title="A sum by shuffles"):
    """Lanes side by side, and below each step what they have then.

    `numbers` are what the lanes have at first; how many there are is a power of two.
    In each step a lane adds the number of the lane whose place differs in one bit, the
    highest one first.
    """
    row, count = [*numbers], len(numbers)
    if not count or count & (count - 1):
        raise ValueError(f"{count} lanes; give a power of two")
    canvas, y, said = Canvas(), 22, [f"{count} lanes have {_list(row)}"]
    for lane in range(count):
        canvas.text(_left(lane) + WIDE / 2, 12, f"{lane}", 11, "muted", "middle")
    canvas.text(LEFT - 14, 12, "lane", 11, "muted", "end")
    _row(canvas, y, row, "primal")
    distance = count // 2
    while distance:
        before = y + HIGH
        y = before + DOWN
        for lane in range(count):
            for other in (lane, lane ^ distance):
                color = "line" if other == lane else "cotangent"
                ends = _left(other) + WIDE / 2, _left(lane) + WIDE / 2
                canvas.line(ends[0], before, ends[1], y, color, 1.2)
        row = [row[lane] + row[lane ^ distance] for lane in range(count)]
        canvas.text(LEFT - 14, y + 16, f"d = {distance}", 12, "ink", "end", True)
        _row(canvas, y, row, "primal" if distance > 1 else "device")
        said.append(f"after d = {distance}: {_list(row)}")
        distance //= 2
    return canvas.figure(_left(count), y + HIGH + 8, title, "; ".join(said))


def _left(lane):
    return LEFT + lane * (WIDE + GAP)


def _row(canvas, y, row, role):
    for lane, number in enumerate(row):
        canvas.node(_left(lane), y, WIDE, HIGH, f"{number}", role, 12)


def _list(row):
    return ", ".join(map(str, row))
