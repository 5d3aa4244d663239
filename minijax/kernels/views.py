# Made from chapters/17_kernels_rest.md by `make chapter`;
# edit the chapter, not this file.
"""Strided views: offsets and strides of arrays; loop nests with axes collapsed."""

import dataclasses
from typing import NamedTuple

import numpy as np

from minijax.arrays.dtypes import short_name
from minijax.kernels.kernel import (
    Affine,
    Guard,
    Kernel,
    apply,
    constant,
    fold,
    index,
    load,
    running,
)
from minijax.kernels.scalar_ops import recastings


@dataclasses.dataclass(eq=False, slots=True)
class Buffer:
    """Memory of a program, for `size` numbers of one dtype.

    A buffer is equal to itself only; a kernel knows it as one of its `Parameter`.
    """

    name: str
    dtype: np.dtype
    size: int

    def __str__(self):
        return f"{self.name}:{short_name(self.dtype)}[{self.size}]"


class View(NamedTuple):
    """An array: its element for indices (i, j, ...) is at offset + strides * indices.

    Attributes:
      source: a `Buffer`, or a NumPy scalar that all elements are equal to.
      dtype: of the elements.
      shape: tuple of sizes.
      offset: place of the first element, in elements.
      strides: one for each axis, in elements; 0 along axes of size 1, and along those
        of size 0 never, if there is a buffer: a store into it sees the axis.
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
        source = self.source.name if isinstance(self.source, Buffer) else self.source
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
    """Return the view of an array that fills its source, row by row."""
    return View(source, dtype, tuple(shape), 0, row_major(shape))


def everywhere(scalar, shape=()):
    """Return the view of an array whose elements are all one number."""
    return View(scalar, scalar.dtype, tuple(shape), 0, (0,) * len(shape))


def permuted(view, axes):
    """Return the view with its axes in another order."""
    shape = [view.shape[axis] for axis in axes]
    return view.replace(shape, [view.strides[axis] for axis in axes])


def stretched(view, shape, dimensions):
    """Return a view whose axes `dimensions` are those of the given one."""
    strides = dict(zip(dimensions, view.strides))
    return view.replace(shape, [strides.get(axis, 0) for axis in range(len(shape))])


def sliced(view, starts, shape, steps):
    """Return the view of a box: where it starts, its shape, its steps."""
    offset = view.offset + sum(a * b for a, b in zip(starts, view.strides))
    return view.replace(shape, [a * b for a, b in zip(steps, view.strides)], offset)


def reversed_along(view, axes):
    """Return the view that walks some axes backwards."""
    signs = [-1 if axis in axes else 1 for axis in range(len(view.shape))]
    ends = [size - 1 if sign < 0 else 0 for size, sign in zip(view.shape, signs)]
    return sliced(view, ends, view.shape, signs)


def reshaped(view, shape):
    """Return the view of another shape, or None if no strides reach its elements."""
    if 0 in shape:
        return view.replace(shape, row_major(shape))
    if not any(view.strides):
        return view.replace(shape, (0,) * len(shape))
    runs, strides = _runs(view), []
    for size in reversed(shape):
        length, step = runs[-1] if runs else (1, 0)
        if size > 1 and length % size:
            return None
        strides.append(step)
        if size > 1:
            runs[-1:] = [(length // size, step * size)] if length > size else []
    return view.replace(shape, strides[::-1])


def _runs(view):
    """Return (size, stride) of the axes, neighbours walked as one taken together."""
    runs = []
    for size, step in zip(view.shape, view.strides):
        if runs and runs[-1][1] == step * size:
            size *= runs.pop()[0]
        if size != 1:
            runs.append((size, step))
    return runs


def collapse(kernel):
    """Return a kernel that computes the same with as few axes as possible.

    Axes of size 1 vanish. Two neighbours become one axis where every place moves along
    them as along one, and no node needs their indices.
    """
    for axis in reversed(range(len(kernel.sizes))):
        if kernel.sizes[axis] == 1:
            kernel = without_axis(kernel, axis, kernel.sizes)
        elif axis + 1 < len(kernel.sizes) and _walked_as_one(kernel, axis):
            sizes = list(kernel.sizes)
            sizes[axis + 1] *= sizes[axis]
            kernel = without_axis(kernel, axis, sizes)
    return kernel


def _walked_as_one(kernel, axis):
    size = kernel.sizes[axis + 1]
    pair = {axis, axis + 1}
    for node in kernel.nodes:
        if node.op == "index" and node.detail in pair:
            return False
        folds = node.op in ("fold", "running")
        if folds and len(pair.intersection(node.detail.axes)) == 1:
            return False
    done = [store.update.axes for store in kernel.stores if store.update]
    if any(len(pair.intersection(axes)) == 1 for axes in done):
        return False
    strides = [place.strides for place in places(kernel)]
    return all(s[axis] == s[axis + 1] * size for s in strides)


def places(kernel):
    """Return all `Affine` of a kernel: of loads, guards and stores."""
    loads = [node.detail for node in kernel.nodes if node.op == "load"]
    guards = [guard for detail in loads for guard in detail.guards]
    return [found.place for found in [*loads, *guards, *kernel.stores]]


def without_axis(kernel, axis, sizes):
    """Return a kernel in which one axis does not move; its number goes to no other."""
    new = {}

    def still(place):
        return Affine(place.offset, drop(place.strides))

    def drop(items):
        return (*items[:axis], *items[axis + 1 :])

    for node in kernel.nodes:
        new[node] = _moved(node, [new[arg] for arg in node.args], axis, still)
    nodes = dict.fromkeys(new.values())
    stores = []
    for store in [store.with_nodes(new) for store in kernel.stores]:
        update = store.update
        if update:
            update = update._replace(axes=_renumbered(update.axes, axis))
        stores.append(store._replace(place=still(store.place), update=update))
    sizes = drop(tuple(sizes))
    return Kernel(kernel.name, sizes, kernel.parameters, (*nodes,), (*stores,))


def _renumbered(axes, gone):
    """Return axes as they are called when one is gone."""
    return tuple([axis - (axis > gone) for axis in axes if axis != gone])


def _moved(node, args, axis, still):
    if node.op == "constant":
        return node
    if node.op == "index":
        place = node.detail - (node.detail > axis)
        return constant(0, node.dtype) if node.detail == axis else index(place)
    if node.op == "load":
        parameter, place, guards, other, terms = node.detail
        guards = [Guard(still(guard.place), guard.limit) for guard in guards]
        return load(parameter, still(place), guards, other, [*zip(args, terms)])
    if node.op in ("fold", "running"):
        how, axes = node.detail
        axes = _renumbered(axes, axis)
        if not axes:
            return constant(0, node.dtype) if how.startswith("arg") else args[0]
        if node.op == "running":
            return running(how, *axes, *args)
        return fold(how, axes, *args)
    return apply(node.op, *args, dtype=node.dtype if node.op in recastings else None)
