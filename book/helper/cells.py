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


CELL, MOST, PLANES = 28, 8, 4


def _shown(shape):
    """(planes, rows, columns) that are drawn of an array of this shape."""
    planes, rows, columns = ((1, 1, 1) + tuple(shape))[-3:]
    most = MOST if planes == 1 else MOST // 2
    return min(planes, PLANES), min(rows, most), min(columns, most)


def _shape_of(array):
    if isinstance(array, tuple) and all(isinstance(n, int) for n in array):
        return array
    if hasattr(array, "shape"):
        return tuple(array.shape)
    if not isinstance(array, list):
        return ()
    return (len(array), *_shape_of(array[0])) if array else (0,)


def _value_at(values, index):
    """Text and size of one element, '' where only a shape is known or none fits."""
    if isinstance(values, tuple):
        return "", 11
    for k in index:
        values = values[k]
    text = str(int(values)) if isinstance(values, int) else f"{values:.3g}"
    for size in (11, 10):
        if text_width(text, size, True) <= CELL - 2:
            return text, size
    return "", 11


def _panel(canvas, block, x, y, lead, shape, full):
    """One plane of cells, its top left corner at (x, y)."""
    rank, (_, rows, cols) = len(shape), _shown(full)
    values = block.array.tolist() if hasattr(block.array, "tolist") else block.array
    cut_rows, cut_cols = ((1, 1) + full)[-2] > rows, ((1, 1) + full)[-1] > cols
    for i in range(rows):
        for j in range(cols):
            index = (*lead, i, j)[-rank:] if rank else ()
            ghost = any(k >= n for k, n in zip(index, shape, strict=True))
            more = (cut_rows and i == rows - 1) or (cut_cols and j == cols - 1)
            dash = {"stroke_dasharray": "3 3"} if ghost else {}
            fill = "paper" if ghost else soft(block.role)
            at = (x + j * CELL, y + i * CELL)
            canvas.rect(*at, CELL - 2, CELL - 2, fill, block.role, 3, **dash)
            real = tuple(min(k, n - 1) for k, n in zip(index, shape, strict=True))
            text, size = ("…", 11) if more else _value_at(values, real)
            ink = "muted" if ghost else "ink"
            middle = (at[0] + CELL / 2 - 1, at[1] + CELL / 2 + 3)
            canvas.text(*middle, text, size, ink, "middle", True)


def _axis_names(axes, rank):
    """Names of (outer, row, column) axis; '' where there is none."""
    names = (tuple(axes) + ("",) * rank)[:rank]
    return (("", "", "") + names)[-3:]


def _draw_block(canvas, block, x, y):
    """Draw an array as cells (rank 0 to 3); its width and height."""
    shape = _shape_of(block.array)
    full = tuple(block.stretch or shape)
    if len(full) != len(shape) or len(shape) > 3:
        raise ValueError(f"cannot draw shape {shape} stretched to {full} as cells")
    planes, rows, cols = _shown(full)
    outer, down, along = _axis_names(block.axes, len(full))
    left, wide = x + (16 if down else 0), CELL * cols + 14
    for plane in range(planes):
        lead = (plane,) if len(full) == 3 else ()
        _panel(canvas, block, left + plane * wide, y + 34, lead, shape, full)
    right = left + planes * wide - 14
    if len(full) == 3 and full[0] > planes:
        canvas.text(right + 5, y + 53, "…", 17, "muted", mono=True)
        right += 18
    label = f"{block.name} {shape}".strip()
    canvas.text(x, y + 10, label, 12, "ink", mono=True)
    if along:
        canvas.text(left, y + 27, f"{along} →", 11, "muted", mono=True)
    if down:
        canvas.text(x, y + 48, down, 11, "muted", mono=True)
        canvas.text(x, y + 61, "↓", 11, "muted", mono=True)
    if outer:
        canvas.text(left + wide, y + 27, f"{outer} →", 11, "muted", mono=True)
    return max(right - x, text_width(label, 12, True)), CELL * rows + 36


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
        planes, _, cols = _shown(block.stretch or shape)
        guess = planes * (CELL * cols + 14)
        if x > 10 and x + guess > 640:
            x, y, high = 10, y + high + 12, 0
        check_role(block.role)
        width, tall = _draw_block(canvas, block, x, y)
        x, high = x + width + 14, max(high, tall)
        wide = max(wide, x)
        said.append(f"{block.name or 'array'} of shape {shape}")
    return canvas.figure(
        max(wide, 120), y + high + 8, title, " ".join(said) or "nothing"
    )
