"""Memory over time: what is where, and from when until when."""

from .svg import Canvas, check_role, clip, soft, text_width

HIGH, TALL, GAP, SIZE = 170, 15, 7, 11


def lifetimes(bands, steps, title="Memory over time"):
    """Boxes in bands: the height of a box is its size, its width its time.

    `bands` is a sequence of (label, size, boxes) or (label, size, boxes, role), with
    boxes (label, start, end, offset, size): offset and sizes in bytes, times in steps;
    -1 is before the first of `steps` steps, and the box lasts until the end of `end`.
    """
    bands = [(*band, "device")[:4] for band in bands]
    canvas, left = Canvas(), _widest([band[0] for band in bands]) + 20
    wide = min(max(430 / (steps + 2), 12), 56)
    tops, unit = _tops([band[1] for band in bands])
    for (label, size, boxes, role), top in zip(bands, tops, strict=False):
        high = max(size * unit, TALL)
        name = clip(label, left - 14, 12)
        canvas.text(left - 8, top + high / 2 + 4, name, 12, "ink", "end")
        canvas.rect(left, top, wide * (steps + 2), high, "neutral-soft", "line", 2)
        for box in boxes:
            _draw(canvas, box, (left + wide, top), (wide, high / max(size, 1)), role)
    right, bottom = left + wide * (steps + 2), tops[-1] - GAP
    _axis(canvas, left + wide, bottom, wide, steps)
    said = "; ".join(_said(*band[:3]) for band in bands)
    return canvas.figure(right + 12, bottom + 24, title, said or "no memory")


def _widest(labels):
    return min(max([text_width(label, 12) for label in labels] + [20]), 130)


def _tops(sizes):
    """The top of each band, and the end; and the pixels for a byte."""
    unit = HIGH / max(sum(sizes), 1)
    tops = [10]
    for size in sizes:
        tops.append(tops[-1] + max(size * unit, TALL) + GAP)
    return tops, unit


def _draw(canvas, box, corner, scale, role):
    label, start, end, offset, size = box
    (x, y), (wide, unit) = corner, scale
    left, length = x + start * wide, (end - start) * wide
    top, high = y + offset * unit, max(size * unit, 2)
    tone = check_role(role)
    canvas.rect(left, top, length, high, soft(tone), tone, 2, title=label)
    if high >= SIZE + 2 and text_width(label, SIZE, True) < length - 4:
        middle = top + high / 2 + 4
        canvas.text(left + length / 2, middle, label, SIZE, "ink", "middle", True)


def _axis(canvas, x, y, wide, steps):
    every = max(1, -(-steps * 14 // max(int(steps * wide), 1)))
    for step in range(0, steps, every):
        middle = x + (step + 0.5) * wide
        canvas.text(middle, y + 15, str(step), SIZE, "muted", "middle")


def _said(label, size, boxes):
    lives = ", ".join(f"{b[0]} at {b[3]} from {b[1]} to {b[2]}" for b in boxes)
    return f"{label}, {size} bytes: {lives or 'empty'}"
