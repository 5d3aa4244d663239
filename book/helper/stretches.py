"""A function as arrows: points on a line, and where it sends them on a second one."""

from .svg import Canvas, text_width

WIDE, HALF, UPPER, LOWER, APART = 460, 200, 62, 176, 130


def stretch(f, points, reach, title="How a function stretches"):
    """Two number lines of one scale, and an arrow from each point to its image.

    `points` are an odd count of numbers; the middle one and its image are in the middle
    of the two lines, which go `reach` to either side. Labels are spread, so that
    points may be close together.
    """
    points, canvas = sorted(points), Canvas()
    middle = points[len(points) // 2]
    for y, name in ((UPPER, "x"), (LOWER, "f(x)")):
        canvas.line(WIDE / 2 - HALF, y, WIDE / 2 + HALF, y, "neutral", 1.5)
        canvas.text(WIDE - 8, y - 8, name, 12, "muted", "end", mono=True)
    for k, x in enumerate(points):
        above = WIDE / 2 + HALF * (x - middle) / reach
        below = WIDE / 2 + HALF * (f(x) - f(middle)) / reach
        label = WIDE / 2 + APART * (k - len(points) // 2)
        canvas.line(label, UPPER - 34, above, UPPER, "primal", 1)
        canvas.line(above, UPPER, below, LOWER - 12, "tangent", 1.5)
        canvas.head(below, LOWER - 5, color="tangent")
        canvas.line(below, LOWER, label, LOWER + 22, "primal", 1)
        for place, y in ((above, UPPER), (below, LOWER)):
            canvas.circle(place, y, 4.5, "primal")
        _label(canvas, label, UPPER - 40, x)
        _label(canvas, label, LOWER + 36, f(x))
    said = "; ".join(f"{x:.8g} goes to {f(x):.8g}" for x in points)
    return canvas.figure(WIDE, LOWER + 48, title, said)


def _label(canvas, x, y, value):
    text = f"{value:.6g}" if value == round(value) else f"{value:.5f}"
    half = text_width(text, 13, bold=True) / 2 + 4
    x = min(max(x, half), WIDE - half)
    canvas.text(x, y, text, 13, "primal", "middle", bold=True, halo=True)
