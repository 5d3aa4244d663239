"""The chain of traces as lanes: operations go down, results come up."""

from .svg import Canvas, check_role, soft, text_width
from .towers import role_of

BAND, GAP, TOP, SMALL, ROOM = 30, 34, 10, 12, 7


def lanes(names, events, roles=None, title="Operations go down, results come up"):
    """Draw what passes between a function and the traces that hear of it.

    Args:
      names: of the lanes, from top to bottom: the function, then the traces, each of
        which is the parent of the one above it.
      events: what happens, in order: a lane's number (1 for the first trace) with a
        text is an operation that arrives there from the lane above; the number with a
        minus sign is a result that leaves the lane for the one above.
      roles: from names to roles of the palette, where the name alone does not tell.
    """
    canvas, left = Canvas(), max(text_width(n, 13, mono=True) for n in names) + 26
    places, right = _places(events, left + 12)
    place = lambda k: TOP + k * (BAND + GAP)  # noqa: E731
    for k, name in enumerate(names):
        role = check_role((roles or {}).get(name, role_of(name) if k else "neutral"))
        canvas.rect(4, place(k), right - 4, BAND, soft(role), role, 5)
        canvas.text(14, place(k) + 20, name, 13, "ink", mono=True, bold=True)
    for (lane, text), x in zip(events, places, strict=True):
        upper, lower = place(abs(lane) - 1) + BAND, place(abs(lane))
        _arrow(canvas, x, upper, lower, down=lane > 0)
        canvas.text(x + ROOM, (upper + lower) / 2 + 4, text, SMALL, "ink", mono=True)
    said = "; ".join(
        f"{text} {'goes down to' if lane > 0 else 'comes up from'} {names[abs(lane)]}"
        for lane, text in events
    )
    return canvas.figure(right + 6, place(len(names) - 1) + BAND + 8, title, said)


def _places(events, x):
    """Where each event is drawn, and where all ends; straight on is one line."""
    places, before, end = [], 0, x
    for lane, text in events:
        same_way = before and (lane > 0) == (before > 0)
        straight = same_way and abs(lane) != abs(before)
        if not straight:
            x = end + 10
        places.append(x)
        end = max(end, x + ROOM + text_width(text, SMALL, mono=True))
        before = lane
    return places, end + 10


def _arrow(canvas, x, upper, lower, down):
    """An arrow across the gap between two lanes."""
    role = "primal" if down else "tangent"
    canvas.line(x, upper + 2, x, lower - 2, role, 2)
    canvas.head(x, lower if down else upper, "down" if down else "up", role)
