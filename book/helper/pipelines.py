"""The way from a jaxpr to an executable, with today's part lit."""

from typing import NamedTuple

from .svg import Canvas, Extent, clip, soft

WIDE, HIGH, GAP, LINE = 148, 50, 24, 38
PER_LINE, MARGIN = 4, 10


class Part(NamedTuple):
    """A part of the pipeline: its name, what it is, and whether it acts on the others.

    What acts is drawn round, what it makes is drawn square.
    """

    name: str
    says: str
    acts: bool = False


PARTS = (
    Part("jaxpr", "equations on arrays"),
    Part("passes", "fewer equations", True),
    Part("program", "kernels and other steps"),
    Part("fusion", "fewer, larger kernels", True),
    Part("memory plan", "where each array lies"),
    Part("nest + schedule", "how the loops run"),
    Part("LLVM text", "instructions with names"),
    Part("executable", "one function to call"),
)


def pipeline(lit=(), says=None, parts=PARTS):
    """The stages that a program goes through, in lines that are read like text.

    `lit` is the name of today's part, or several of them. `says` replaces what stands
    below the first of these, and `parts` the stages (a sequence of `Part`).
    """
    lit = [lit] if isinstance(lit, str) else [*lit]
    names = [part.name for part in parts]
    unknown = [name for name in lit if name not in names]
    if unknown:
        raise ValueError(f"no part is called {unknown[0]!r}: {', '.join(names)}")
    first = lit[0] if says and lit else None
    parts = [part._replace(says=says) if part.name == first else part for part in parts]
    canvas = Canvas()
    for number, part in enumerate(parts):
        _draw(canvas, _corner(number), part, part.name in lit)
        if number:
            _arrow(canvas, _corner(number - 1), _corner(number))
    columns, lines = min(len(parts), PER_LINE), -(-len(parts) // PER_LINE)
    width = 2 * MARGIN + max(columns, 1) * (WIDE + GAP) - GAP
    height = 2 * MARGIN + max(lines, 1) * (HIGH + LINE) - LINE
    return canvas.figure(width, height, "From jaxpr to executable", _said(parts, lit))


def _corner(number):
    line, column = divmod(number, PER_LINE)
    return MARGIN + column * (WIDE + GAP), MARGIN + line * (HIGH + LINE)


def _draw(canvas, corner, part, lit):
    (x, y), role = corner, "tangent" if lit else "neutral"
    edge = HIGH / 2 if part.acts else 4
    title = f"{part.name}: {part.says}"
    canvas.rect(
        x, y, WIDE, HIGH, soft(role), role, edge, stroke_width=1 + lit, title=title
    )
    canvas.nodes.append(Extent(x, y, WIDE, HIGH, part.name))
    middle, inside = x + WIDE / 2, WIDE - edge
    _centred(canvas, middle, y + 21, part.name, inside, 13, "ink", lit)
    _centred(canvas, middle, y + 38, part.says, inside, 11, "muted", False)


def _centred(canvas, x, y, text, room, size, ink, bold):
    canvas.text(x, y, clip(text, room, size, bold=bold), size, ink, "middle", bold=bold)


def _arrow(canvas, start, end):
    (x1, y1), (x2, y2) = start, end
    if y1 == y2:
        canvas.line(x1 + WIDE, y1 + HIGH / 2, x2 - 7, y2 + HIGH / 2, "neutral")
        canvas.head(x2, y2 + HIGH / 2, "right", "neutral")
        return
    middle = y2 - LINE / 2
    x1, x2 = x1 + WIDE / 2, x2 + WIDE / 2
    way = f"M{x1:g} {y1 + HIGH:g}L{x1:g} {middle:g}L{x2:g} {middle:g}L{x2:g} {y2 - 7:g}"
    canvas.path(way, "neutral")
    canvas.head(x2, y2, "down", "neutral")


def _said(parts, lit):
    order = " → ".join(part.name for part in parts) or "no parts"
    today = "; ".join(f"{part.name}, {part.says}" for part in parts if part.name in lit)
    return f"{order}. Today: {today}" if today else order
