"""Arrays as coloured cells, for pictures of broadcasting and batching."""

from typing import Any, NamedTuple

from .svg import Canvas, check_role, soft, text_width


class Block(NamedTuple):
    """An array (or a shape) to draw as cells.

    `axes` names the axes, and `stretch` is a shape of the same rank to which axes of
    length 1 are stretched: the copies are drawn dashed.
    """

    array: Any
    name: str = ""
    axes: tuple = ()
    role: str = "primal"
    stretch: tuple | None = None


CELL, MOST = 28, 8


def _shape_of(array):
    if isinstance(array, tuple) and all(isinstance(n, int) for n in array):
        return array
    if hasattr(array, "shape"):
        return tuple(array.shape)
    return (len(array), *_shape_of(array[0])) if isinstance(array, list) else ()


def _value_at(array, index):
    """Text of one element, '' where only a shape is known or it does not fit."""
    if isinstance(array, tuple):
        return ""
    for k in index if isinstance(array, list) else ():
        array = array[k]
    if hasattr(array, "shape"):
        array = array[index].item() if index else array.item()
    text = str(int(array)) if isinstance(array, bool) else f"{array:.3g}"
    return text if text_width(text, 11, True) <= CELL - 2 else ""


def _panel(canvas, block, x, y, lead, rows, cols, shape):
    """One plane of cells, its top left corner at (x, y)."""
    rank = len(shape)
    for i in range(min(rows, MOST)):
        for j in range(min(cols, MOST)):
            index = (*lead, i, j)[-rank:] if rank else ()
            ghost = any(k >= n for k, n in zip(index, shape, strict=True))
            more = (i == MOST - 1 and rows > MOST) or (j == MOST - 1 and cols > MOST)
            dash = {"stroke_dasharray": "3 3"} if ghost else {}
            fill = "paper" if ghost else soft(block.role)
            at = (x + j * CELL, y + i * CELL)
            canvas.rect(*at, CELL - 2, CELL - 2, fill, block.role, 3, **dash)
            real = tuple(min(k, n - 1) for k, n in zip(index, shape, strict=True))
            text = "…" if more else _value_at(block.array, real)
            ink = "muted" if ghost else "ink"
            middle = (at[0] + CELL / 2 - 1, at[1] + CELL / 2 + 3)
            canvas.text(*middle, text, 11, ink, "middle", True)


def _draw_block(canvas, block, x, y):
    """Draw an array as cells (rank 0 to 3); its width and height."""
    shape = _shape_of(block.array)
    full = tuple(block.stretch or shape)
    if len(full) != len(shape) or len(shape) > 3:
        raise ValueError(f"cannot draw shape {shape} stretched to {full} as cells")
    rows, cols = ((1, 1) + full)[-2:]
    planes = full[0] if len(full) == 3 else 1
    wide = CELL * min(cols, MOST)
    names = ("",) * (3 - len(full)) + (tuple(block.axes) + ("",) * 3)[: len(full)]
    left = x + (16 if names[1] else 0)
    for plane in range(min(planes, 4)):
        at = left + plane * (wide + 14)
        lead = (plane,) if len(full) == 3 else ()
        _panel(canvas, block, at, y + 34, lead, rows, cols, shape)
    tall = CELL * min(rows, MOST)
    right = left + min(planes, 4) * (wide + 14) - 14
    label = f"{block.name} ({', '.join(map(str, shape))}{',' * (len(shape) == 1)})"
    canvas.text(x, y + 10, label.strip(), 12, "ink", mono=True)
    if names[2]:
        canvas.text(left, y + 27, f"{names[2]} →", 11, "muted", mono=True)
    if names[1]:
        canvas.text(x, y + 48, names[1], 11, "muted", mono=True)
        canvas.text(x, y + 61, "↓", 11, "muted", mono=True)
    if planes > 1 and names[0]:
        canvas.text(right, y + 27, f"{names[0]} →", 11, "muted", "end", True)
    return max(right - x, text_width(label.strip(), 12, True)), tall + 36


def blocks(*items, title="Arrays as cells"):
    """Arrays as coloured cells in a row, with operators between them.

    Items are strings (operators), arrays, shapes (tuples of int), or `Block`s, which
    add a name, names of axes, a role and stretched axes. The row breaks before 640 px.
    """
    canvas, x, y, high, wide, said = Canvas(), 10, 8, 0, 0, []
    for item in items:
        if isinstance(item, str):
            canvas.text(x + 2, y + 53, item, 17, "muted", mono=True)
            x, said = x + text_width(item, 17, True) + 12, [*said, item]
            continue
        block = item if isinstance(item, Block) else Block(item)
        shape = _shape_of(block.array)
        guess = CELL * min(([1, *(block.stretch or shape)])[-1], MOST)
        if x > 10 and x + guess > 640:
            x, y, high = 10, y + high + 12, 0
        check_role(block.role)
        width, tall = _draw_block(canvas, block, x, y)
        x, high = x + width + 14, max(high, tall)
        wide = max(wide, x)
        said.append(f"{block.name or 'array'} of shape {shape}")
    return canvas.figure(max(wide, 120), y + high + 8, title, " ".join(said))
