"""Times beside a rival's: a dot for each row, on a scale of powers of ten."""

from math import log10

from .svg import Canvas, clip

LEFT, WIDTH, STEP = 300, 340, 22


def ratios(rows, rival="JAX", title="Times beside each other"):
    """Ratios of times on a logarithmic scale; left of the line at 1 is faster.

    `rows` is a sequence of (label, ratio, limit): a dot at the ratio, and a stroke at
    the limit that it has to keep. A dot beyond its limit is drawn in another colour.
    """
    values = [value for _, *pair in rows for value in pair] + [1.0]
    if min(values) <= 0:
        raise ValueError("ratios of times are greater than 0")
    low, high = log10(min(values)) - 0.1, log10(max(values)) + 0.1
    place = lambda v: LEFT + WIDTH * (log10(v) - low) / (high - low)  # noqa: E731
    canvas, bottom = Canvas(), 30 + STEP * len(rows)
    for power in range(-4, 4):
        for value in (10.0**power, 2 * 10.0**power, 5 * 10.0**power):
            if low <= log10(value) <= high:
                role = "neutral" if value == 1 else "line"
                canvas.line(place(value), 24, place(value), bottom, role, 1)
                canvas.text(place(value), 16, f"{value:g}", 11, "muted", "middle")
    for k, (label, value, limit) in enumerate(rows):
        y, kept = 36 + STEP * k, value <= limit
        canvas.text(LEFT - 10, y + 4, clip(label, LEFT - 20, 12), 12, "ink", "end")
        canvas.line(place(limit), y - 7, place(limit), y + 7, "tangent", 2)
        canvas.circle(place(value), y, 5, "primal" if kept else "cotangent")
    said = "; ".join(f"{label}: {value:.2g} of {rival}'s" for label, value, _ in rows)
    return canvas.figure(LEFT + WIDTH + 20, bottom + 10, title, said or "no rows")
