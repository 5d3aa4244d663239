"""What goes round in a loop: the carry, the condition and the body, round by round."""

from .svg import Canvas, clip

WIDE, HIGH, GAP, LEFT, SIZE = 84, 30, 84, 92, 12
TEST, CARRY, BODY = 10, 78, 124  # heights of the three rows


def carry(values, answers, title="A loop, round by round"):
    """The carry of a `while` loop before each round, and what the condition says of it.

    Both are sequences of short texts with one entry for each time that the condition is
    asked: once more than the body runs.
    """
    canvas, pairs = Canvas(), list(zip(values, answers, strict=True))
    for name, y in (("condition", TEST), ("carry", CARRY), ("body", BODY)):
        canvas.text(LEFT - 12, y + HIGH / 2 + 4, name, SIZE, "muted", "end")
    for place, (value, answer) in enumerate(pairs):
        left, last = _left(place), place == len(pairs) - 1
        canvas.node(left, CARRY, WIDE, HIGH, value, "primal", SIZE, strong=last)
        canvas.node(left, TEST, WIDE, HIGH, answer, "neutral", SIZE)
        middle = left + WIDE / 2
        canvas.line(middle, CARRY, middle, TEST + HIGH + 6, "line", 1.5)
        canvas.head(middle, TEST + HIGH + 1, "up")
        if not last:
            _round(canvas, left, place)
    said = ", ".join(f"{value} ({answer})" for value, answer in pairs)
    said = f"The carry and what the condition says of it, round by round: {said}"
    return canvas.figure(_left(len(pairs)) - GAP + 12, BODY + HIGH + 12, title, said)


def _left(place):
    return LEFT + place * (WIDE + GAP)


def _round(canvas, left, number):
    """The way of one carry through the body to the next carry."""
    start, body, end = left + WIDE / 2, left + (WIDE + GAP) / 2, left + WIDE + GAP
    y = BODY + HIGH / 2
    canvas.line(start, CARRY + HIGH, start, y, "primal", 1.5)
    canvas.line(start, y, body - 6, y, "primal", 1.5)
    canvas.head(body - 1, y, "right", "primal")
    label = clip(f"round {number}", WIDE - 8, SIZE)
    canvas.node(body, BODY, WIDE, HIGH, label, "tangent", SIZE, strong=True)
    after = end + WIDE / 4
    canvas.line(body + WIDE, y, after, y, "primal", 1.5)
    canvas.line(after, y, after, CARRY + HIGH + 6, "primal", 1.5)
    canvas.head(after, CARRY + HIGH + 1, "up", "primal")
