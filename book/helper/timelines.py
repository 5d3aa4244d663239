"""Who works when: a line for each worker, a box for each piece of work."""

from .svg import Canvas, check_role, clip, soft, text_width

WIDE, TALL, GAP, SIZE = 430, 26, 8, 11


def timeline(rows, ticks=5, title="Who works when"):
    """Boxes on lines: how long a box is says how long it takes.

    `rows` is a sequence of (label, boxes) with boxes (label, start, end) or (label,
    start, end, role), in any unit of time, from 0 on.
    """
    rows = [(label, [(*box, "primal")[:4] for box in boxes]) for label, boxes in rows]
    end = max([box[2] for _, boxes in rows for box in boxes], default=0) or 1
    canvas = Canvas()
    left = min(max([text_width(label, 12) for label, _ in rows] + [20]), 130) + 20
    for number, (label, boxes) in enumerate(rows):
        top = 10 + number * (TALL + GAP)
        canvas.text(left - 8, top + 17, clip(label, left - 14, 12), 12, "ink", "end")
        canvas.rect(left, top, WIDE, TALL, "neutral-soft", "line", 2)
        for box in boxes:
            _draw(canvas, box, left, top, WIDE / end)
    bottom = 10 + len(rows) * (TALL + GAP)
    for tick in range(ticks + 1):
        number, place = end * tick / ticks, left + WIDE * tick / ticks
        canvas.line(place, bottom - GAP, place, bottom - GAP + 4, "line", 1)
        canvas.text(place, bottom + 11, f"{number:g}", SIZE, "muted", "middle")
    said = "; ".join(f"{label}: {_said(boxes)}" for label, boxes in rows)
    return canvas.figure(left + WIDE + 20, bottom + 20, title, said or "nobody works")


def _draw(canvas, box, left, top, scale):
    label, start, end, role = box
    tone, x, length = check_role(role), left + start * scale, (end - start) * scale
    canvas.rect(x, top, length, TALL, soft(tone), tone, 2, title=label)
    if text_width(label, SIZE, True) < length - 4:
        canvas.text(x + length / 2, top + 17, label, SIZE, "ink", "middle", True)


def _said(boxes):
    texts = [f"{label} from {start:g} to {end:g}" for label, start, end, _ in boxes]
    return ", ".join(texts) or "nothing"
