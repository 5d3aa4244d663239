"""The steps of a program, and the memory between them."""

from .svg import Canvas, clip, soft, text_width

ROW, COLUMN, SIZE = 26, 34, 12


def schedule(schedule, title="Schedule"):
    """A row for each step, and a column for each slot of memory.

    A step that writes a slot has a full dot in its column, one that reads it a ring;
    the line between them is the time for which the numbers are in memory.
    """
    steps, canvas = [*schedule.steps], Canvas()
    slots = _slots(schedule, steps)
    names = [_name(step) for step in steps]
    wide = min(max([text_width(n, SIZE, True) for n in names] + [60]), 250) + 20
    for number, name in enumerate(names):
        label = clip(name, wide - 8, SIZE, True)
        canvas.node(10, 34 + ROW * number, wide, ROW - 6, label, "device", SIZE)
    for place, slot in enumerate(slots):
        x = 10 + wide + COLUMN * (place + 0.8)
        _column(canvas, x, slot, steps, _role(slot, schedule), schedule)
    right = 10 + wide + COLUMN * (len(slots) + 0.4)
    said = "; ".join(map(_said, names, steps))
    return canvas.figure(right + 10, 64 + ROW * len(steps), title, said or "no steps")


def _slots(schedule, steps):
    found = [*schedule.inputs, *[slot for slot, _ in schedule.constants]]
    for step in steps:
        found += [*step.reads, *step.writes]
    return [*dict.fromkeys([*found, *schedule.outputs])]


def _name(step):
    """What a step does: the name of its kernel, or of its primitive."""
    if hasattr(step, "kernel"):
        return step.kernel.name
    return str(step.eqn.primitive) if hasattr(step, "eqn") else type(step).__name__


def _role(slot, schedule):
    if slot in schedule.outputs:
        return "tangent"
    return "primal" if slot in schedule.inputs else "neutral"


def _column(canvas, x, slot, steps, role, schedule):
    """A slot: its name, its life, and the steps that use it."""
    used = [k for k, step in enumerate(steps) if slot in (*step.reads, *step.writes)]
    middle = 34 + (ROW - 6) / 2
    top = 24 if slot in schedule.inputs else middle + ROW * min(used, default=0)
    low = middle + ROW * max(used, default=0)
    if slot in schedule.outputs:
        low = 34 + ROW * len(steps) + 6
    canvas.text(x, 16, slot.name, SIZE, "ink", "middle", True)
    canvas.line(x, top, x, low, role, 2)
    for k in used:
        y, full = middle + ROW * k, slot in steps[k].writes
        canvas.circle(x, y, 5, role if full else soft(role), role)


def _said(name, step):
    reads, writes = (
        " ".join(slot.name for slot in slots) for slots in (step.reads, step.writes)
    )
    return f"{name}: {reads or 'nothing'} → {writes}"
