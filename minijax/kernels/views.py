"""Strided views: offsets and strides of arrays; loop nests with axes collapsed."""

# Made from chapters/17_kernels_rest.md by `make chapter`;
# edit the chapter, not this file.

import dataclasses
from typing import NamedTuple

import numpy as np

from minijax.arrays.dtypes import short_name
from minijax.kernels.kernel import Kernel, Node, apply, constant, fold, index, load
from minijax.kernels.parts import Affine, Fold, Guard, union
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
    strides = {place.strides for place in places(kernel)}
    whole, sizes, kept = _axes_of_nodes(kernel), [*kernel.sizes], []
    for axis in reversed([axis for axis, size in enumerate(sizes) if size != 1]):
        if kept and _walked_as_one(axis, kept[0], sizes, strides, whole):
            sizes[kept[0]] *= sizes[axis]
        else:
            kept.insert(0, axis)
    return kernel if len(kept) == len(sizes) else with_axes(kernel, kept, sizes)


def _walked_as_one(outer, inner, sizes, strides, whole):
    apart = any((outer in axes) != (inner in axes) for axes in whole)
    return not apart and all(s[outer] == s[inner] * sizes[inner] for s in strides)


def _axes_of_nodes(kernel):
    """Return the axes of indices, of folds and of updates."""
    nodes = [node for node in kernel.nodes if node.op in ("index", "fold", "running")]
    numbers = [(x.detail,) if x.op == "index" else x.detail.axes for x in nodes]
    return {*numbers, *[store.update.axes for store in kernel.stores if store.update]}


def places(kernel):
    """Return all `Affine` of a kernel: of loads, guards and stores."""
    loads = [node.detail for node in kernel.nodes if node.op == "load"]
    guards = [guard for detail in loads for guard in detail.guards]
    return [found.place for found in [*loads, *guards, *kernel.stores]]


def with_axes(kernel, kept, sizes):
    """Return a kernel with some of its axes, of new sizes; the others do not move."""
    new, number = {}, {axis: n for n, axis in enumerate(kept)}

    def renumbered(axes):
        return tuple([number[axis] for axis in axes if axis in number])

    still = {
        place: Affine(place.offset, tuple([place.strides[axis] for axis in kept]))
        for place in places(kernel)
    }
    for node in kernel.nodes:
        new[node] = _moved(node, [new[arg] for arg in node.args], renumbered, still)
    nodes = dict.fromkeys(new.values())
    stores = []
    for store in [x.with_nodes(new) for x in kernel.stores]:
        update = store.update
        update = update and update._replace(axes=renumbered(update.axes))
        stores.append(store._replace(place=still[store.place], update=update))
    sizes = tuple([sizes[axis] for axis in kept])
    return Kernel(kernel.name, sizes, kernel.parameters, (*nodes,), (*stores,))


def running(how, axis, arg):
    """Return the node of a running fold: at each index, of all up to this one."""
    level = union([arg.level, (axis,)])
    return Node("running", (arg,), arg.dtype, level, Fold(how, (axis,)))


def _moved(node, args, renumbered, still):
    if node.op == "constant":
        return node
    if node.op == "index":
        axes = renumbered([node.detail])
        return index(*axes) if axes else constant(0, node.dtype)
    if node.op == "load":
        parameter, place, guards, other, terms = node.detail
        guards = [Guard(still[guard.place], guard.limit) for guard in guards]
        return load(parameter, still[place], guards, other, [*zip(args, terms)])
    if node.op in ("fold", "running"):
        how, axes = node.detail
        axes = renumbered(axes)
        if not axes:
            return constant(0, node.dtype) if how.startswith("arg") else args[0]
        if node.op == "running":
            return running(how, *axes, *args)
        return fold(how, axes, *args)
    return of_args(node, args)


def of_args(node, args):
    """Return the node of the same operation on other nodes."""
    return apply(node.op, *args, dtype=node.dtype if node.op in recastings else None)
