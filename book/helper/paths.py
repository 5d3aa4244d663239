"""The stations that calls of one function pass on their way, side by side."""

from .svg import Canvas, clip, text_width

WIDE, HIGH, GAP, DOWN, EDGE = 190, 28, 26, 24, 12


def path(stations, calls, title="The path of a call"):
    """Calls as columns, from top to bottom through the stations that they pass.

    `stations` is the sequence of the names of all stations. `calls` is a sequence of
    `(name, texts)`, where `texts` maps the stations of this call to what happens
    there. A station that some of the calls leave out is drawn in the colour of
    warnings; a call that leaves it out has a longer arrow.
    """
    canvas, left = Canvas(), _room_for(stations)
    always = {s for s in stations if all(s in texts for _, texts in calls)}
    for row, station in enumerate(stations):
        middle = _top(row) + HIGH / 2 + 4
        canvas.text(left - 12, middle, station, 12, "muted", "end")
    for column, (name, texts) in enumerate(calls):
        x = left + column * (WIDE + GAP)
        heading = clip(name, WIDE, 12, True)
        canvas.text(x + WIDE / 2, EDGE + 12, heading, 12, "ink", "middle", mono=True)
        passed = [row for row, station in enumerate(stations) if station in texts]
        for upper, lower in zip(passed, passed[1:]):
            _arrow(canvas, x + WIDE / 2, upper, lower)
        for row in passed:
            text, role = texts[stations[row]], "primal"
            if stations[row] not in always:
                role = "warn"
            canvas.node(x, _top(row), WIDE, HIGH, text, role, 12, title=text)
    width = left + len(calls) * (WIDE + GAP) - GAP + EDGE
    bottom = _top(len(stations) - 1) + HIGH + EDGE
    return canvas.figure(max(width, 60), bottom, title, _said(stations, calls))


def _room_for(stations):
    return EDGE + max([text_width(name, 12) for name in stations] or [0]) + 12


def _top(row):
    return EDGE + 26 + row * (HIGH + DOWN)


def _arrow(canvas, x, upper, lower):
    start, end = _top(upper) + HIGH, _top(lower)
    canvas.line(x, start, x, end - 6, "line", 1.5)
    canvas.head(x, end - 1, "down")


def _said(stations, calls):
    told = [f"{name} passes {_list(stations, texts)}" for name, texts in calls]
    return "; ".join(told) or "no calls"


def _list(stations, texts):
    return ", ".join(f"{name}: {texts[name]}" for name in stations if name in texts)
