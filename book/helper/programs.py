"""The steps of a program, and the memory between them."""

from .svg import Canvas, clip, soft, text_width

ROW, COLUMN, SIZE = 26, 34, 12


def program(program, title="Program"):
    """A row for each step, and a column for each buffer.

    A step that writes a buffer has a full dot in its column, one that reads it a ring;
    the line between them is the time for which the numbers are in memory.
    """
    steps, canvas = [*program.steps], Canvas()
    buffers = _buffers(program, steps)
    names = [_name(step) for step in steps]
    wide = min(max([text_width(n, SIZE, True) for n in names] + [60]), 250) + 20
    for number, name in enumerate(names):
        label = clip(name, wide - 8, SIZE, True)
        canvas.node(10, 34 + ROW * number, wide, ROW - 6, label, "device", SIZE)
    for place, buffer in enumerate(buffers):
        x = 10 + wide + COLUMN * (place + 0.8)
        _column(canvas, x, buffer, steps, _role(buffer, program), program)
    right = 10 + wide + COLUMN * (len(buffers) + 0.4)
    said = "; ".join(map(_said, names, steps))
    return canvas.figure(right + 10, 64 + ROW * len(steps), title, said or "no steps")


def _buffers(program, steps):
    found = [*program.inputs, *[buffer for buffer, _ in program.constants]]
    for step in steps:
        found += [*step.reads, *step.writes]
    return [*dict.fromkeys([*found, *program.outputs])]


def _name(step):
    """What a step does: the name of its kernel, or of its primitive."""
    if hasattr(step, "kernel"):
        return step.kernel.name
    return str(step.eqn.primitive) if hasattr(step, "eqn") else type(step).__name__


def _role(buffer, program):
    if buffer in program.outputs:
        return "tangent"
    return "primal" if buffer in program.inputs else "neutral"


def _column(canvas, x, buffer, steps, role, program):
    """A buffer: its name, its life, and the steps that use it."""
    used = [k for k, step in enumerate(steps) if buffer in (*step.reads, *step.writes)]
    middle = 34 + (ROW - 6) / 2
    top = 24 if buffer in program.inputs else middle + ROW * min(used, default=0)
    low = middle + ROW * max(used, default=0)
    if buffer in program.outputs:
        low = 34 + ROW * len(steps) + 6
    canvas.text(x, 16, buffer.name, SIZE, "ink", "middle", True)
    canvas.line(x, top, x, low, role, 2)
    for k in used:
        y, full = middle + ROW * k, buffer in steps[k].writes
        canvas.circle(x, y, 5, role if full else soft(role), role)


def _said(name, step):
    reads, writes = (
        " ".join(buffer.name for buffer in used) for used in (step.reads, step.writes)
    )
    return f"{name}: {reads or 'nothing'} → {writes}"
