"""Who is combined with whom: a column for each element, a row for each round."""

from .svg import Canvas

WIDE, HIGH, GAP, DOWN, LEFT, SIZE = 52, 24, 14, 30, 76, 12


def prefix_tree(pairs, title="Who is combined with whom"):
    """Stretches of a row of elements, each put together from two neighbours.

    `pairs` is a sequence of (left, right), two stretches (first, last) that are put
    together, in the order in which this is done. A stretch stands below its last
    element, one row below the lower of its two parts, so that all of a row could be
    made at the same time. What begins with element 0 is lit.
    """
    rows = _rows(pairs)
    canvas, count = Canvas(), 1 + max(last for _, last in rows)
    for left, right in pairs:
        made = left[0], right[1]
        for part in (left, right):
            start, end = _middle(part), _middle(made)
            top, bottom = _top(rows[part]) + HIGH, _top(rows[made])
            role = "tangent" if part[0] == 0 else "line"
            canvas.line(start, top, end, bottom, role, 1.4)
    for stretch, row in rows.items():
        role = "neutral" if stretch[0] else "tangent"
        left = _middle(stretch) - WIDE / 2
        canvas.node(left, _top(row), WIDE, HIGH, _name(stretch), role, SIZE)
    deepest = max(rows.values())
    for row in range(1, deepest + 1):
        canvas.text(LEFT - 14, _top(row) + 16, f"round {row}", SIZE, "muted", "end")
    width = LEFT + count * (WIDE + GAP)
    return canvas.figure(width, _top(deepest) + HIGH + 10, title, _said(pairs, rows))


def _rows(pairs):
    """From each stretch to its row: elements are in row 0."""
    rows = {}
    for left, right in pairs:
        if left[1] + 1 != right[0]:
            raise ValueError(f"{left} and {right} are no neighbours")
        for part in (left, right):
            if part not in rows and part[0] != part[1]:
                raise ValueError(f"{part} has not been put together yet")
        highest = max(rows.setdefault(part, 0) for part in (left, right))
        rows[left[0], right[1]] = highest + 1
    return rows


def _middle(stretch):
    return LEFT + stretch[1] * (WIDE + GAP) + WIDE / 2


def _top(row):
    return 8 + row * (HIGH + DOWN)


def _name(stretch):
    return "…".join(map(str, dict.fromkeys(stretch)))


def _said(pairs, rows):
    rounds = {}
    for left, right in pairs:
        row = rows[left[0], right[1]]
        rounds.setdefault(row, []).append(f"{_name(left)} with {_name(right)}")
    said = [f"round {row}: {', '.join(rounds[row])}" for row in sorted(rounds)]
    return "; ".join(said)
