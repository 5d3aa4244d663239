"""A matrix product cut into blocks, panels and a tile."""

from typing import NamedTuple

from .svg import Canvas, soft

CELL, GAP, EDGE = 14, 22, 12
ROLES = {"a": "tangent", "b": "cotangent", "c": "primal"}


class Span(NamedTuple):
    """A part of an axis: where it begins, and its size."""

    start: int
    size: int


def _around(place, size, most, within):
    """The `Span` of at most so many, counted from that of `within`, with a place."""
    start = within.start + (place - within.start) // most * most
    return Span(start, min(most, within.start + within.size - start, size - start))


def _spans(size, most, unit, place):
    """The whole axis, the block and the panel of a place; a unit of None is all."""
    whole = Span(0, size)
    block = _around(place, size, most, whole)
    return whole, block, _around(place, size, unit, block) if unit else block


def _rect(canvas, corner, rows, columns, fill, stroke, **extra):
    x, y = corner[0] + columns.start * CELL, corner[1] + rows.start * CELL
    canvas.rect(x, y, columns.size * CELL, rows.size * CELL, fill, stroke, 2, **extra)


def _matrix(canvas, name, corner, rows, columns, most):
    """Draw a matrix with its blocks, one of them in colour, and in it the panel."""
    role = ROLES[name]
    _rect(canvas, corner, rows[0], columns[0], "paper", "line")
    for start in range(0, rows[0].size, most[0]):
        for left in range(0, columns[0].size, most[1]):
            row = Span(start, min(most[0], rows[0].size - start))
            column = Span(left, min(most[1], columns[0].size - left))
            _rect(canvas, corner, row, column, "paper", "line", stroke_dasharray="3 3")
    _rect(canvas, corner, rows[1], columns[1], soft(role), role)
    _rect(canvas, corner, rows[2], columns[2], role, role)
    canvas.text(corner[0], corner[1] - 6, name, 13, "ink", mono=True, bold=True)


def _term(canvas, corner, rows, columns):
    """Draw the numbers of one term as a light bar."""
    x, y = corner[0] + columns.start * CELL, corner[1] + rows.start * CELL
    wide, high = columns.size * CELL, rows.size * CELL
    canvas.rect(x + 4, y + 4, wide - 8, high - 8, "paper", None, 2)


def _legend(canvas, x, y):
    kinds = [("paper", "line", "matrix, cut into blocks"), (None, None, "a block")]
    kinds += [("", None, "a panel; of c a tile"), ("term", None, "one term")]
    for row, (fill, stroke, text) in enumerate(kinds):
        top = y + 22 * row
        if stroke:
            extra = {"stroke_dasharray": "3 3"}
            canvas.rect(x, top, 18, 12, fill, stroke, 2, **extra)
        else:
            tone = soft("neutral") if fill is None else "neutral"
            canvas.rect(x, top, 18, 12, tone, "neutral", 2)
        if fill == "term":
            canvas.rect(x + 4, top + 4, 10, 4, "paper", None, 2)
        canvas.text(x + 26, top + 11, text, 12)


def tiling(sizes, tile, block, at, title="Blocks, panels and a tile"):
    """The product of a and b, c, cut into blocks, panels and tiles.

    `sizes` are the rows of a, the columns of b and the terms of a sum; `block` the same
    of a block at most; `tile` the rows and columns of a tile; `at` is a row, a column
    and a term, whose block, panels and tile are drawn.
    """
    (m, n, k), (high, wide) = sizes, tile
    rows = _spans(m, block[0], high, at[0])
    columns = _spans(n, block[1], wide, at[1])
    terms = _spans(k, block[2], None, at[2])
    canvas, x, y = Canvas(), EDGE + k * CELL + GAP, EDGE + 14 + k * CELL + GAP
    x = max(x, EDGE + 190)
    a, b, c = (x - GAP - k * CELL, y), (x, y - GAP - k * CELL), (x, y)
    _matrix(canvas, "a", a, rows, terms, (block[0], block[2]))
    _matrix(canvas, "b", b, terms, columns, (block[2], block[1]))
    _matrix(canvas, "c", c, rows, columns, block[:2])
    _term(canvas, a, rows[2], Span(at[2], 1))
    _term(canvas, b, Span(at[2], 1), columns[2])
    _legend(canvas, EDGE, EDGE + 12)
    said = (
        f"a, {m} × {k}, in blocks of {block[0]} × {block[2]} and panels of {high} "
        f"rows; b, {k} × {n}, in blocks of {block[2]} × {block[1]} and panels of "
        f"{wide} columns; c, {m} × {n}, in tiles of {high} × {wide}. One panel of a "
        f"and one of b make the tile at row {rows[2].start} and column "
        f"{columns[2].start}, which is drawn"
    )
    return canvas.figure(x + n * CELL + EDGE, y + m * CELL + EDGE, title, said)
