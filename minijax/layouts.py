# Made from chapters/16_kernels.md by `make chapter`;
# edit the chapter, not this file.
"""Where the elements of an array are found: layouts of slots of memory."""

import dataclasses
from typing import NamedTuple

import numpy as np

from minijax.dtypes import short_name


@dataclasses.dataclass(eq=False, slots=True)
class Slot:
    """Memory of a program, for `size` numbers of one dtype."""

    name: str
    dtype: np.dtype
    size: int

    def __str__(self):
        return f"{self.name}:{short_name(self.dtype)}[{self.size}]"


class Layout(NamedTuple):
    """An array: its element for indices (i, j, ...) is at offset + strides * indices.

    Attributes:
      source: a `Slot`, or a NumPy scalar that all elements are equal to.
      dtype: of the elements.
      shape: tuple of sizes.
      offset: place of the first element, in elements.
      strides: one for each axis, in elements; 0 along axes of size 1, and along those
        of size 0 never, if there is a slot: whoever stores into it sees the axis.
    """

    source: object
    dtype: np.dtype
    shape: tuple
    offset: int
    strides: tuple

    def replace(self, shape, strides, offset=None):
        """Return another view of the same elements."""
        strides = [_stride(*pair) for pair in zip(shape, strides)]
        offset = self.offset if offset is None else offset
        return self._replace(shape=tuple(shape), strides=tuple(strides), offset=offset)

    def __str__(self):
        source = self.source.name if isinstance(self.source, Slot) else self.source
        shape = ",".join(map(str, self.shape))
        return f"{source}:{short_name(self.dtype)}[{shape}]"


def _stride(size, step):
    return 0 if size == 1 else step or int(size == 0)


def row_major(shape):
    """Return the strides of an array whose rows lie one after the other."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(0 if size == 1 else step)
        step *= max(size, 1)
    return tuple(strides[::-1])


def whole(source, dtype, shape):
    """Return the layout of an array that fills its source, row by row."""
    return Layout(source, dtype, tuple(shape), 0, row_major(shape))


def everywhere(scalar, shape=()):
    """Return the layout of an array whose elements are all one number."""
    return Layout(scalar, scalar.dtype, tuple(shape), 0, (0,) * len(shape))


def permuted(layout, axes):
    """Return the view with its axes in another order."""
    shape = [layout.shape[axis] for axis in axes]
    return layout.replace(shape, [layout.strides[axis] for axis in axes])


def stretched(layout, shape, dimensions):
    """Return the view whose axes `dimensions` are those of the layout."""
    strides = dict(zip(dimensions, layout.strides))
    return layout.replace(shape, [strides.get(axis, 0) for axis in range(len(shape))])


def sliced(layout, starts, shape, steps):
    """Return the view of a box: where it starts, its shape, its steps."""
    offset = layout.offset + sum(a * b for a, b in zip(starts, layout.strides))
    return layout.replace(shape, [a * b for a, b in zip(steps, layout.strides)], offset)


def reversed_along(layout, axes):
    """Return the view that walks some axes backwards."""
    signs = [-1 if axis in axes else 1 for axis in range(len(layout.shape))]
    ends = [size - 1 if sign < 0 else 0 for size, sign in zip(layout.shape, signs)]
    return sliced(layout, ends, layout.shape, signs)


def reshaped(layout, shape):
    """Return the view of another shape, or None if no strides reach its elements."""
    if 0 in shape:
        return layout.replace(shape, row_major(shape))
    if not any(layout.strides):
        return layout.replace(shape, (0,) * len(shape))
    runs, strides = _runs(layout), []
    for size in reversed(shape):
        length, step = runs[-1] if runs else (1, 0)
        if size > 1 and length % size:
            return None
        strides.append(step)
        if size > 1:
            runs[-1:] = [(length // size, step * size)] if length > size else []
    return layout.replace(shape, strides[::-1])


def _runs(layout):
    """Return (size, stride) of the axes, neighbours walked as one taken together."""
    runs = []
    for size, step in zip(layout.shape, layout.strides):
        if runs and runs[-1][1] == step * size:
            size *= runs.pop()[0]
        if size != 1:
            runs.append((size, step))
    return runs
