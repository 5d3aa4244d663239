"""The whole house in one picture: what becomes of one line of a function on its way."""

from typing import NamedTuple

from .svg import Canvas, clip

WIDTH, LEFT, STEP, TOP = 440, 44, 76, 40


class Storey(NamedTuple):
    """A part of the book: its name, what it does to a program, and the program there.

    `text` is empty while the part is still to come.
    """

    name: str
    says: str
    text: str = ""


def ride(start, storeys, title="One function rides through the house"):
    """The tower with its lift, from the ground (first) to the roof (last).

    `start` is the line that gets in at the bottom. Parts without a text are drawn in
    outline; the lift goes up to the last that has one.
    """
    built = [k for k, storey in enumerate(storeys) if storey.text]
    if not built:
        raise ValueError("no storey has a text: there is nothing to ride to")
    canvas, bottom = Canvas(), TOP + STEP * len(storeys)
    place = lambda k: bottom - STEP * (k + 1)  # noqa: E731
    canvas.text(LEFT, 24, "machine code, many devices", 13, "muted")
    car = place(built[-1]) + STEP / 2
    canvas.rect(13, TOP, 18, STEP * len(storeys), "neutral-soft", None, 4)
    canvas.line(22, car, 22, bottom + 18, "tangent", 2, stroke_dasharray="2 4")
    for k, storey in enumerate(storeys):
        _storey(canvas, storey, place(k), lit=k == built[-1])
        if storey.text:
            _car(canvas, place(k) + STEP / 2, lit=k == built[-1])
    canvas.head(22, bottom + 3, "up", "tangent")
    canvas.text(LEFT, bottom + 26, start, 14, mono=True)
    desc = "; ".join(f"{s.name}: {s.says}: {s.text or 'to come'}" for s in storeys)
    return canvas.figure(WIDTH, bottom + 42, title, f"{start}. {desc}.")


def _storey(canvas, storey, y, lit):
    """One part: a solid box with the program in it, or an outline."""
    role = "tangent" if lit else "primal"
    fill, edge = (f"{role}-soft", role) if storey.text else ("paper", "line")
    dash = {} if storey.text else {"stroke_dasharray": "4 3"}
    width = WIDTH - LEFT - 10
    canvas.rect(
        LEFT, y + 3, width, STEP - 6, fill, edge, 5, title=storey.name, **dash
    )  # fmt: skip
    ink = "ink" if storey.text else "muted"
    room = WIDTH - LEFT - 34
    canvas.text(LEFT + 12, y + 22, storey.name, 13, ink, bold=True)
    canvas.text(LEFT + 12, y + 41, clip(storey.says, room, 13), 13, ink)
    shown = clip(storey.text or "to come", room, 13, mono=True)
    canvas.text(LEFT + 12, y + 61, shown, 13, ink, mono=bool(storey.text))


def _car(canvas, y, lit):
    """The lift, with the function in it."""
    canvas.rect(14, y - 12, 16, 24, "tangent" if lit else "tangent-soft", "tangent", 4)
    canvas.text(22, y + 5, "ƒ", 14, "paper" if lit else "ink", "middle", bold=True)
