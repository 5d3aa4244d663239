"""Arrays as what they are: an abstract value and a buffer, in bytes to scale."""

import numpy as np

from .svg import Canvas, clip, soft, text_width

BYTE, HIGH, GAP, EDGE, SIZE, MOST = 12, 26, 12, 12, 12, 12


def arrays(named, title="Arrays: an abstract value, and a buffer drawn to scale"):
    """Draw arrays one below another, each number as wide as the bytes that it takes.

    `named` maps names to arrays, which have an `aval` and can be read by NumPy. Of long
    arrays the first numbers are drawn. A weak type has the colour of tangents.
    """
    canvas = Canvas()
    names = max([text_width(name, SIZE) for name in named] or [0])
    types = max([text_width(str(a.aval), SIZE, True) for a in named.values()] or [0])
    right = 60
    for row, (name, array) in enumerate(named.items()):
        top, left = EDGE + row * (HIGH + GAP), EDGE + names + 12
        middle = top + HIGH / 2 + 4
        canvas.text(left - 12, middle, name, SIZE, "muted", "end")
        role = "tangent" if array.aval.weak_type else "primal"
        canvas.node(left, top, types + 16, HIGH, str(array.aval), role, SIZE)
        start = left + types + 32
        canvas.line(left + types + 16, top + HIGH / 2, start, top + HIGH / 2, "line", 1)
        right = max(right, _buffer(canvas, start, top, array))
    bottom = EDGE + len(named) * (HIGH + GAP) - GAP + EDGE
    return canvas.figure(right + EDGE, max(bottom, 2 * EDGE), title, _said(named))


def _buffer(canvas, x, top, array):
    wide = _bytes(array) * BYTE
    for number in np.asarray(array).ravel()[:MOST]:
        canvas.rect(x, top, wide, HIGH, soft("neutral"), "line", 0)
        text = clip(str(number).removesuffix(".0"), wide - 4, SIZE - 2, True)
        if text != "…":
            place = x + wide / 2, top + HIGH / 2 + 4
            canvas.text(*place, text, SIZE - 2, "ink", "middle", mono=True)
        x += wide
    return x


def _bytes(array):
    return array.aval.dtype.itemsize


def _said(named):
    sizes = {name: _bytes(array) * array.aval.size for name, array in named.items()}
    told = [f"{name} is {named[name].aval} and {sizes[name]} bytes" for name in named]
    return "; ".join(told) or "no arrays"
