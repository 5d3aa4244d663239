"""One memory and the arrays that are read from it: each element with its place."""

import numpy as np

from .svg import Canvas, soft, text_width

CELL, HIGH, GAP, MOST = 34, 34, 26, 12


def _offset(base, view):
    """How many bytes the first element of a view lies behind that of its memory."""
    start = view.__array_interface__["data"][0]
    return start - base.__array_interface__["data"][0]


def _cell(canvas, x, y, value, place, role):
    """One element, and below its value where it lies."""
    canvas.rect(x, y, CELL - 2, HIGH - 2, soft(role), role, 3)
    middle = x + CELL / 2 - 1
    canvas.text(middle, y + 14, f"{value:.3g}", 11, "ink", "middle", True)
    canvas.text(middle, y + 27, str(place), 9, "muted", "middle", True)


def _draw(canvas, label, rows, x, y, role):
    """An array as rows of `(value, place)`, under a label; its width and height."""
    for line, text in enumerate(label):
        canvas.text(x, y + 10 + 15 * line, text, 11 if line else 12, "ink", mono=True)
    top = y + 15 * len(label) + 2
    for i, row in enumerate(rows):
        for j, (value, place) in enumerate(row):
            _cell(canvas, x + j * CELL, top + i * HIGH, value, place, role)
    wide = max(CELL * max(map(len, rows), default=0), *_widths(label))
    return wide, top - y + HIGH * len(rows)


def _widths(label):
    return [text_width(text, 12, True) for text in label]


def _rows(view, start):
    """The elements of a vector or matrix, each with its place in bytes."""
    rank = view.ndim
    shape, steps = (1, *view.shape)[-2:], (0, *view.strides)[-2:]
    if rank not in (1, 2) or max(shape) > MOST:
        raise ValueError(f"cannot draw strides of shape {view.shape}")
    values = view.reshape(shape).tolist()
    return [
        [
            (values[i][j], start + i * steps[0] + j * steps[1])
            for j in range(shape[1])
        ]
        for i in range(shape[0])
    ]  # fmt: skip


def strides(memory, views, title="Strides"):
    """A memory as a line of cells, and arrays that share it, with shape and strides.

    `memory` is a NumPy array in one piece, and `views` maps names to views of it, with
    one axis or two. The small number in a cell is its place in memory, in bytes.
    """
    flat = np.ravel(memory)
    if not np.shares_memory(flat, memory) and flat.size:
        raise ValueError("the memory of `strides` is an array in one piece")
    canvas, x, y, high = Canvas(), 10, 8, 0
    label = [f"memory, {flat.itemsize} bytes each"]
    wide, tall = _draw(canvas, label, _rows(flat, 0), x, y, "neutral")
    right, y, said = x + wide, y + tall + GAP, [f"memory of {flat.size} numbers"]
    for name, view in views.items():
        label = [name, f"shape   {view.shape}", f"strides {view.strides}"]
        rows = _rows(view, _offset(flat, view))
        guess = max(CELL * len(rows[0]), *_widths(label))
        if x > 10 and x + guess > 640:
            x, y, high = 10, y + high + GAP, 0
        wide, tall = _draw(canvas, label, rows, x, y, "primal")
        right, high = max(right, x + wide), max(high, tall)
        x += wide + GAP
        said.append(f"{name} of shape {view.shape} with strides {view.strides}")
    return canvas.figure(right + 10, y + high + 8, title, "; ".join(said))
