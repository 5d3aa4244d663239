"""Windows of an operand at start indices, and the result of a gather of them."""

import numpy as np

from .svg import Canvas, soft, text_width

CELL, HIGH, GAP, MOST = 34, 28, 34, 8
ROLES = "primal", "tangent", "cotangent", "batch"


def _role(number):
    """The colour of a window."""
    return ROLES[number % len(ROLES)]


def _starts(start_indices, mapped, shape, sizes):
    """The corner of each window, one number for each axis of the operand."""
    corners = np.zeros((len(start_indices), len(shape)), int)
    corners[:, list(mapped)] = start_indices
    if (corners < 0).any() or (corners + sizes > shape).any():
        raise ValueError("each window of `windows` lies within the operand")
    return corners.tolist()


def _cell(canvas, x, y, value, role=None):
    """One element, in the colour of its window if it lies in one."""
    fill = soft(role) if role else "paper"
    canvas.rect(x, y, CELL - 2, HIGH - 2, fill, role or "line", 3)
    canvas.text(x + CELL / 2 - 1, y + 17, f"{value:.3g}", 11, "ink", "middle", True)


def _block(canvas, values, x, y, role=None):
    """A matrix of cells; the corner below and right of it."""
    for i, row in enumerate(values):
        for j, value in enumerate(row):
            _cell(canvas, x + j * CELL, y + i * HIGH, value, role)
    return x + CELL * len(values[0]), y + HIGH * len(values)


def _title(canvas, x, y, lines):
    """Lines of text above a block; how wide they are."""
    for number, text in enumerate(lines):
        canvas.text(x, y + 14 * number, text, 11, "ink", mono=True)
    return max(text_width(text, 11, True) for text in lines)


def _frames(canvas, corners, sizes, x, y):
    """An outline around each window, each a little inside the one before."""
    for number, (row, column) in enumerate(corners):
        inset = 3 * number - 3
        canvas.rect(
            x + column * CELL + inset, y + row * HIGH + inset,
            sizes[1] * CELL - 2 - 2 * inset, sizes[0] * HIGH - 2 - 2 * inset,
            None, _role(number), 4, stroke_width=2.5,
        )  # fmt: skip


def windows(
    operand, start_indices, dimension_numbers, slice_sizes, title="A gather"
):  # fmt: skip
    """An operand with its windows, their start indices, and the result of the gather.

    `operand` is a matrix. `start_indices` has a row for each window. The other two
    arguments are parameters of the equation. All windows lie within the operand, and
    none of its axes is walked together with one of the indices.
    """
    operand, start_indices = np.asarray(operand), np.asarray(start_indices)
    if operand.ndim != 2 or max(operand.shape) > MOST or start_indices.ndim != 2:
        raise ValueError(f"cannot draw windows of shape {operand.shape}")
    inside, dropped, mapped, *_ = dimension_numbers
    corners = _starts(start_indices, mapped, operand.shape, slice_sizes)
    canvas, top = Canvas(), 52
    named = [f"operand {operand.shape}", f"slice_sizes {tuple(slice_sizes)}"]
    wide = _title(canvas, 10, 16, named)
    right, below = _block(canvas, operand.tolist(), 10, top)
    _frames(canvas, corners, slice_sizes, 10, top)
    left = max(right, 10 + wide) + GAP
    named = [f"start indices {start_indices.shape}", f"start_index_map {tuple(mapped)}"]
    wide = _title(canvas, left, 16, named)
    right = left
    for number, index in enumerate(start_indices.tolist()):
        place = top + number * HIGH
        right, end = _block(canvas, [index], left, place, _role(number))
        below = max(below, end)
    left = max(right, left + wide) + GAP
    return _result(canvas, operand, corners, dimension_numbers, slice_sizes, left,
                   top, below, title)  # fmt: skip


def _result(canvas, operand, corners, numbers, sizes, left, top, below, title):
    """Draw a block for each window, and close the picture."""
    inside, dropped, *_ = numbers
    shape = [size for axis, size in enumerate(sizes) if axis not in dropped]
    for axis in range(len(shape) + 1):
        if axis not in inside:
            shape.insert(axis, len(corners))
    named = [f"result {tuple(shape)}", f"offset_dims {tuple(inside)}"]
    named[1] += f", collapsed {tuple(dropped)}"
    right, place = left + _title(canvas, left, 16, named), top
    said = [f"An operand of shape {operand.shape}"]
    for number, (row, column) in enumerate(corners):
        box = operand[row : row + sizes[0], column : column + sizes[1]]
        values = np.squeeze(box, tuple(dropped))
        _, end = _block(canvas, np.atleast_2d(values).tolist(), left, place,
                        _role(number))  # fmt: skip
        right = max(right, left + CELL * np.atleast_2d(values).shape[1])
        said.append(f"the window at {(row, column)} is {values.tolist()}")
        place = end + (6 if values.ndim == 2 else 0)
    said.append(f"the result has shape {tuple(shape)}")
    return canvas.figure(right + 10, max(place, below) + 10, title, "; ".join(said))
