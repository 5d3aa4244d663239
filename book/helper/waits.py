"""How long one waits for the same thing twice: two bars in each row."""

from .svg import Canvas, clip

LABEL, BAR, STEP, END = 92, 220, 34, 66


def clock(seconds):
    """Return seconds as a person says them: minutes from two minutes on."""
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.1f} min"


def waits(rows, names=("JAX", "minijax"), title="How long one waits"):
    """Pairs of bars on one scale; narrow enough for the screen of a telephone.

    Args:
      rows: a sequence of (label, seconds of the first, seconds of the second).
      names: what the two are called.
      title: of the figure.

    Returns:
      The figure.

    Raises:
      ValueError: there is a row whose seconds are less than 0.
    """
    if any(min(row[1:]) < 0 for row in rows):
        raise ValueError("seconds are not less than 0")
    canvas, bottom = Canvas(), 30 + STEP * len(rows)
    longest = max((max(row[1:]) for row in rows), default=0) or 1
    for x, name, role in ((LABEL, names[0], "neutral"), (210, names[1], "primal")):
        canvas.rect(x, 8, 12, 10, role, r=2)
        canvas.text(x + 18, 17, name, 12, "ink")
    for k, (label, *pair) in enumerate(rows):
        y = 32 + STEP * k
        canvas.text(LABEL - 8, y + 15, clip(label, LABEL - 10, 13), 13, "ink", "end")
        for place, seconds, role in zip((y, y + 14), pair, ("neutral", "primal")):
            width = max(BAR * seconds / longest, 1)
            canvas.rect(LABEL, place, width, 11, role, r=2)
            canvas.text(LABEL + width + 6, place + 10, clock(seconds), 12, "ink")
    said = "; ".join(
        f"{label}: {names[0]} {clock(one)}, {names[1]} {clock(two)}"
        for label, one, two in rows
    )
    return canvas.figure(LABEL + BAR + END, bottom + 8, title, said or "no rows")
