"""Writing kernels, and rewriting them: views, the builder, unroll and jam.

And which loops may be unrolled so, or be vectors with masks, and what goes with the
kind of a loop.

Reference: F. Allen and J. Cocke, *A catalogue of optimizing transformations* (1972).
"""

# Made from chapters/17_kernels_rest.md by `make chapter`;
# edit the chapter, not this file.

import dataclasses
import functools
import math
from typing import NamedTuple

import numpy as np

from minijax._registry import Registry
from minijax.arrays.dtypes import WIDE_DTYPES, dtype_kind, short_dtype_name
from minijax.arrays.numerics import (
    complex_divide_parts,
    complex_dtype_of,
    complex_square_parts,
    real_dtype_of,
)
from minijax.kernels.ir import (
    Affine,
    Fold,
    FoldCombine,
    FoldInit,
    Guard,
    IndirectTerm,
    Loop,
    Parameter,
    Store,
    Update,
    child_steps,
    compute_dtype,
    is_scan,
    loop_kinds,
    scalar_ops,
    stores_are_disjoint,
    union_of_levels,
)
from minijax.kernels.loop_nests import (
    Kernel,
    Node,
    constant_node,
    fold_node,
    index_node,
    load_node,
    op_node,
)

# Unroll and jam: the iterations of a loop side by side, in the loops inside of it.

# From types of steps with others inside to functions that repeat them for iterations
# of a loop, side by side (below).
unroll_and_jam_rules: dict = Registry()


def loop_complaint(loop):
    """Return why the indices of a loop may not be done as its kind says, or None.

    It looks at the loop and its steps, and not at the loops around it.
    """
    wide, running = loop.lanes or loop.together, any(map(is_scan, loop.folds))
    counts = "{}" in loop_kinds.get(loop.kind, "")
    fits = loop.count > 0 if counts else loop.count == 0
    depends = bool((loop.parallel or loop.together or loop.strip) and loop.folds)
    complaints = {
        "there is no loop of its kind": loop.kind not in loop_kinds,
        "its kind and its count do not go together": not fits,
        "a fold is there twice": len({*loop.folds}) < len(loop.folds),
        "its iterations depend on others": depends,
        "a fold that runs along it has no lanes": loop.lanes > 0 and running,
        "two lanes may meet": wide and may_meet(loop),
        "its folds would begin anew in each strip": loop.strip
        and any(getattr(step, "folds", ()) for step in loop.body),
        "its strips are no loops": loop.strip and not all(_in_strips(loop)),
        "not all steps can be done side by side": loop.together
        and not all(map(has_jammed_loop, steps_inside(loop))),
        "a mask is not enough for its steps": loop.kind == "masked"
        and not is_maskable(loop),
    }
    return next((text for text, wrong in complaints.items() if wrong), None)


def steps_inside(step):
    """Yield the steps that a step holds, at any depth."""
    for inner in child_steps(step):
        yield inner
        yield from steps_inside(inner)


def may_meet(loop):
    """Return whether two indices of a loop may store to one computed place."""
    stores = [step for step in steps_inside(loop) if isinstance(step, Store)]
    meet = [step for step in stores if step.update and not step.update.distinct]
    own = [step for step in meet if step in loop.body]
    return len(own) < len(meet) or not all(
        stores_are_disjoint(step, loop.axis) for step in own
    )


def _in_strips(loop):
    """Yield of each step of a loop whether it is done again for each strip."""
    for step in loop.body:
        along = getattr(step, "axis", None) == loop.axis
        yield along and not getattr(step, "strip", 0)


def check_loop_annotations(walk, loop):
    """Check that the steps of a loop, and the loops around it, suit its kind."""
    wide = loop.kind == "team" and any(outer.lanes for outer in walk.loops)
    walk.require(not wide, loop, "a lane of a vector has no team")
    whole = not (loop.parallel and walk.loops)
    walk.require(whole, loop, "only an outermost loop is done by many")
    complaint = loop_complaint(loop)
    walk.require(complaint is None, loop, complaint)


def has_jammed_loop(step):
    """Return whether iterations of a step are written side by side."""
    return type(step) in unroll_and_jam_rules or isinstance(
        step, Node | Store | FoldInit | FoldCombine
    )


def is_maskable(loop):
    """Return whether a mask for each vector is all that the body of a loop needs.

    Its body loads one element or neighbours, stores neighbours, and folds nothing.
    """
    return all(_fits_mask(step, loop.axis) for step in loop.body)


def _fits_mask(step, axis):
    if isinstance(step, Store):
        return not step.update and step.place.strides[axis] == 1
    if isinstance(step, Node) and step.op == "load":
        return not step.args and step.detail.place.strides[axis] in (0, 1)
    return isinstance(step, Node)


# Strided views: offsets and strides of arrays.


@dataclasses.dataclass(eq=False, slots=True)
class Buffer:
    """Memory of a program, for `size` numbers of one dtype.

    A buffer is equal to itself only; a kernel knows it as one of its `Parameter`.
    """

    name: str
    dtype: np.dtype
    size: int

    def __str__(self):
        return f"{self.name}:{short_dtype_name(self.dtype)}[{self.size}]"


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
        return f"{source}:{short_dtype_name(self.dtype)}[{shape}]"


def _stride(size, step):
    return 0 if size == 1 else step or int(size == 0)


def row_major_strides(shape):
    """Return the strides of an array whose rows lie one after the other."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(0 if size == 1 else step)
        step *= max(size, 1)
    return tuple(strides[::-1])


def contiguous_view(source, dtype, shape):
    """Return the view of an array that fills its source, row by row."""
    return View(source, dtype, tuple(shape), 0, row_major_strides(shape))


def broadcast_scalar_view(scalar, shape=()):
    """Return the view of an array whose elements are all one number."""
    return View(scalar, scalar.dtype, tuple(shape), 0, (0,) * len(shape))


def transpose_view(view, axes):
    """Return the view with its axes in another order."""
    shape = [view.shape[axis] for axis in axes]
    return view.replace(shape, [view.strides[axis] for axis in axes])


def broadcast_view(view, shape, dimensions):
    """Return a view whose axes `dimensions` are those of the given one."""
    strides = dict(zip(dimensions, view.strides))
    return view.replace(shape, [strides.get(axis, 0) for axis in range(len(shape))])


def slice_view(view, starts, shape, steps):
    """Return the view of a box: where it starts, its shape, its steps."""
    offset = view.offset + sum(a * b for a, b in zip(starts, view.strides))
    return view.replace(shape, [a * b for a, b in zip(steps, view.strides)], offset)


def reverse_view(view, axes):
    """Return the view that walks some axes backwards."""
    signs = [-1 if axis in axes else 1 for axis in range(len(view.shape))]
    ends = [size - 1 if sign < 0 else 0 for size, sign in zip(view.shape, signs)]
    return slice_view(view, ends, view.shape, signs)


def reshape_view(view, shape):
    """Return the view of another shape, or None if no strides reach its elements."""
    if 0 in shape:
        return view.replace(shape, row_major_strides(shape))
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


# Writing kernels: from views of arrays to loads, operations and stores.


class UnsupportedKernel(Exception):
    """There is no kernel for these dtypes."""


class ComplexNode(NamedTuple):
    """A complex number in a kernel: two nodes."""

    real: Node
    imag: Node

    @property
    def dtype(self):
        """Of the complex number."""
        return complex_dtype_of(self.real.dtype)


# Dtypes in which kernels do not compute, and numbers of their size, as which they are
# moved: those of what is no number, and numbers of a byte and less.
carriers: dict = Registry()
carriers.update(dict.fromkeys(WIDE_DTYPES, np.dtype(np.uint8)))


def carried(view):
    """Return the view of an array as numbers that kernels can move.

    Raises:
      UnsupportedKernel: for keys of a generator whose words are no number together.
    """
    dtype = carriers.get(view.dtype, view.dtype)
    if not isinstance(dtype, np.dtype):
        raise UnsupportedKernel(f"arrays of {dtype}")
    return view if dtype is view.dtype else view._replace(dtype=dtype)


class NodeBuilder:
    """Writes nodes, one after the other.

    ``k.exp(x)`` adds the node of a scalar operation: `x` is a node, a `ComplexNode` for
    a complex number, or a number, which takes the dtype of the node beside it.
    """

    def __init__(self):
        self.nodes = []

    def __getattr__(self, op):
        if op not in scalar_ops and op not in complex_rules:
            raise AttributeError(f"There is no scalar operation {op!r}.")
        return functools.partial(self.apply, op)

    def write(self, node):
        """Put a node behind the others, and return it."""
        self.nodes.append(node)
        return node

    def apply(self, op, *args):
        """Add the node of a scalar operation."""
        kinds = {*map(type, args)}
        if not kinds <= {Node, ComplexNode}:
            args = self.nodes_of(args)
        if ComplexNode not in kinds:
            return self.write(op_node(op, *args))
        if op not in complex_rules:
            raise UnsupportedKernel(f"{op} of complex numbers")
        return complex_rules[op](self, *args)

    def nodes_of(self, args):
        """Return operands, and nodes for the numbers among them."""
        like = [arg for arg in args if isinstance(arg, Node | ComplexNode)][-1]
        return [
            x if isinstance(x, Node | ComplexNode) else self.number(x, like)
            for x in args
        ]

    def number(self, value, like):
        """Add the node of a number that is like another one."""
        return self.constant(value, like.dtype)

    def constant(self, value, dtype):
        """Add the node of a number of a dtype."""
        if dtype.kind == "c":
            parts = value.real, value.imag
            return ComplexNode(
                *[self.constant(part, real_dtype_of(dtype)) for part in parts]
            )
        return self.write(constant_node(value, dtype))

    def convert(self, x, dtype):
        """Add the node of a number in another dtype, if it is another."""
        if dtype.kind == "c":
            part = real_dtype_of(dtype)
            pair = x if isinstance(x, ComplexNode) else (x, self.constant(0, part))
            return ComplexNode(*[self.convert(each, part) for each in pair])
        x = x.real if isinstance(x, ComplexNode) else x
        same = x.dtype == compute_dtype(dtype)
        return x if same else self.write(op_node("convert", x, dtype=dtype))

    def square(self, x):
        """Add the node of the square of a number."""
        if isinstance(x, ComplexNode):
            return ComplexNode(*complex_square_parts(self, *x))
        return self.mul(x, x)

    def bitcast(self, x, dtype):
        """Add the node of the same bits, read as another dtype."""
        return self.write(op_node("bitcast", x, dtype=dtype))


# Rewriting kernels: their nodes written again, at numbers in place of their indices.


@functools.cache
def identity_map(rank):
    """Return the index along each of some axes, as a tuple of `Affine`."""
    return tuple(
        Affine(0, tuple(int(k == axis) for k in range(rank))) for axis in range(rank)
    )


@functools.lru_cache(2**12)
def compose_place(place, maps, rank):
    """Return a place along other axes.

    Args:
      place: an `Affine`.
      maps: for each of its axes, the `Affine` along the other ones; None if the axes
        are the same.
      rank: how many other axes there are.
    """
    if maps is None or (maps == identity_map(rank) and len(place.strides) == rank):
        return place
    offset, strides = place.offset, [0] * rank
    for stride, at in zip(place.strides, maps):
        if stride:
            offset += stride * at.offset
            for axis, step in enumerate(at.strides):
                strides[axis] += stride * step
    return Affine(offset, tuple(strides))


def number_at(k, place):
    """Return the node of an affine number of the indices."""
    total = None
    for axis in place.axes:
        term, stride = k.write(index_node(axis)), place.strides[axis]
        term = term if stride == 1 else k.mul(term, stride)
        total = term if total is None else k.add(total, term)
    if total is None:
        return k.constant(place.offset, np.dtype(np.int64))
    return k.add(total, place.offset) if place.offset else total


def at_indices(k, node, args, maps=None, rank=0):
    """Write a node at other indices, and return it.

    Args:
      k: a `NodeBuilder`.
      node, args: the node, and what its arguments have become.
      maps, rank: as for `compose_place`.
    """
    op, detail = node.op, node.detail
    if op == "constant" or (op == "index" and maps is None):
        return k.write(node)
    if op == "index":
        return number_at(k, maps[detail])
    if op == "load":
        parameter, place, guards, other, terms = detail
        place = compose_place(place, maps, rank)
        guards = [Guard(compose_place(at, maps, rank), limit) for at, limit in guards]
        return k.write(load_node(parameter, place, guards, other, [*zip(args, terms)]))
    if op not in ("fold", "running"):
        level = union_of_levels([arg.level for arg in args])
        return k.write(Node(op, args, node.dtype, level))
    axes = axes_at(detail.axes, maps)
    if not axes:
        return k.constant(0, node.dtype) if detail.how[:3] == "arg" else args[0]
    if op == "fold":
        return k.write(fold_node(detail.how, axes, *args))
    return k.write(scan_node(detail.how, *axes, *args))


def axes_at(axes, maps):
    """Return the axes along which the indices of others move."""
    return axes if maps is None else union_of_levels([maps[axis].axes for axis in axes])


def scan_node(how, axis, arg):
    """Return the node of a running fold: at each index, of all up to this one."""
    level = union_of_levels([arg.level, (axis,)])
    return Node("running", (arg,), arg.dtype, level, Fold(how, (axis,)))


def rewritten(k, nodes, maps=None, rank=0, instead=None, new=()):
    """Write nodes again, and return from the old ones to the new.

    Args:
      k: the `NodeBuilder` in which they are written.
      nodes: each after those that it is computed from.
      maps, rank: the indices at which they are written, as for `compose_place`.
      instead: a function of a node and of its new arguments, which returns the node
        that stands in its place, or None. An argument is None if it is not among the
        nodes.
      new: pairs of an old and a new node that are there already.
    """
    new = dict(new)
    for node in nodes:
        args = tuple([new.get(arg) for arg in node.args])
        found = instead and instead(node, args)
        new[node] = found or at_indices(k, node, args, maps, rank)
    return new


def store_at(store, new, maps=None, rank=0):
    """Return a store of new nodes, at other indices."""
    parameter, place, node, update = store.with_nodes(new)
    update = update and update._replace(axes=axes_at(update.axes, maps))
    return Store(parameter, compose_place(place, maps, rank), node, update)


def collapse_axes(kernel):
    """Return a kernel that computes the same with as few axes as possible.

    Axes of size 1 vanish. Two neighbours become one axis where every place moves along
    them as along one, and no node needs their indices.
    """
    strides = {place.strides for place in affine_places(kernel)}
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


def affine_places(kernel):
    """Return all `Affine` of a kernel: of loads, guards and stores."""
    loads = [node.detail for node in kernel.nodes if node.op == "load"]
    guards = [guard for detail in loads for guard in detail.guards]
    return [found.place for found in [*loads, *guards, *kernel.stores]]


def with_axes(kernel, kept, sizes):
    """Return a kernel with some of its axes, of new sizes; the others do not move."""
    k, rank = NodeBuilder(), len(kept)
    at = dict(zip(kept, identity_map(rank)))
    still = Affine(0, (0,) * rank)
    maps = tuple([at.get(axis, still) for axis in range(len(kernel.sizes))])
    new = rewritten(k, kernel.nodes, maps, rank)
    stores = [store_at(store, new, maps, rank) for store in kernel.stores]
    sizes = tuple([sizes[axis] for axis in kept])
    return Kernel(kernel.name, sizes, kernel.parameters, (*k.nodes,), (*stores,))


class KernelBuilder(NodeBuilder):
    """Writes a kernel.

    Args:
      name: of the kernel.
      sizes: of its axes.
    """

    def __init__(self, name, sizes):
        super().__init__()
        self.name, self.sizes = name, tuple(sizes)
        self.loads, self.stores, self.parameters = {}, [], {}

    def index(self, axis):
        """Add the node of the index along an axis."""
        return self.write(index_node(axis))

    def load(self, view, guards=(), other=0, terms=()):
        """Add the node of an array's element; its axes are the kernel's first ones.

        Args:
          view: of the array.
          guards, other: as in a `Load`.
          terms: computed parts of the place: a node of int64, the stride, the limit.
        """
        if not isinstance(view.source, Buffer):
            if terms:
                raise UnsupportedKernel("computed places of an array without memory")
            return self.constant(view.source, view.dtype)
        view = carried(view)
        if dtype_kind(view.dtype) == "c":
            terms = _terms_of_parts(terms)
            pairs = zip(real_and_imag_views(view), (other.real, other.imag))
            return ComplexNode(*[self.load(x, guards, y, terms) for x, y in pairs])
        parameter, place = self.place(view)
        node = load_node(parameter, place, guards, other, _computed_terms(terms))
        key = node.detail, node.args
        if key not in self.loads:
            self.loads[key] = self.write(node)
        return self.loads[key]

    def store(self, view, x):
        """Say that the elements of an array are these."""
        view = carried(view)
        if dtype_kind(view.dtype) == "c":
            for part, node in zip(real_and_imag_views(view), x):
                self.store(part, node)
        else:
            parameter, place = self.place(view, written=True)
            self.stores.append(Store(parameter, place, x))

    def update(self, view, x, how, terms, distinct=False):
        """Say that numbers enter elements of an array, for all indices of the kernel.

        Args:
          view: of the array, along the axes of the kernel.
          x: the node, or pair, that enters.
          how, distinct: as in an `Update`.
          terms: as for `load_node`.
        """
        view = carried(view)
        if dtype_kind(view.dtype) == "c":
            if how not in ("set", "add"):
                raise UnsupportedKernel(f"{how} of complex numbers")
            for part, node in zip(real_and_imag_views(view), x):
                self.update(part, node, how, _terms_of_parts(terms), distinct)
        else:
            parameter, place = self.place(view, written=True)
            at, terms = zip(*_computed_terms(terms))
            update = Update(how, at, terms, (*range(len(self.sizes)),), distinct)
            self.stores.append(Store(parameter, place, x, update))

    def place(self, view, written=False):
        """Return the parameter, and the place in it, of an array's element."""
        key = buffer, dtype = view.source, view.dtype
        if key not in self.parameters:
            name = fresh_parameter_name(self.parameters.values(), written)
            size = buffer.size * buffer.dtype.itemsize // dtype.itemsize
            self.parameters[key] = Parameter(name, dtype, size)
        still = (0,) * (len(self.sizes) - len(view.shape))
        return self.parameters[key], Affine(view.offset, (*view.strides, *still))

    def fold(self, how, axes, x):
        """Add the node of what remains when axes are folded away."""
        if not axes:
            return x
        if not isinstance(x, ComplexNode):
            return self.write(fold_node(how, axes, x))
        if how != "add":
            raise UnsupportedKernel(f"{how} of complex numbers")
        return ComplexNode(*[self.fold(how, axes, part) for part in x])

    def running(self, how, axis, x):
        """Add the node of a running fold along an axis, the last one that it has."""
        if not isinstance(x, ComplexNode):
            return self.write(scan_node(how, axis, x))
        if how != "add":
            raise UnsupportedKernel(f"{how} of complex numbers")
        return ComplexNode(*[self.running(how, axis, part) for part in x])

    def kernel(self):
        """Return the `Kernel`, with as few axes as possible, and its buffers."""
        parameters, nodes = (*self.parameters.values(),), (*self.nodes,)
        kernel = Kernel(self.name, self.sizes, parameters, nodes, (*self.stores,))
        return collapse_axes(kernel), [buffer for buffer, _ in self.parameters]


def _computed_terms(terms):
    return [(node, IndirectTerm(stride, limit)) for node, stride, limit in terms]


def _terms_of_parts(terms):
    """Return the terms of complex numbers as those of their parts."""
    return [(node, 2 * stride, limit) for node, stride, limit in terms]


def fresh_parameter_name(parameters, written):
    """Return a name that no parameter has yet: x, y, z, x3, ...; out, out1, ..."""
    if written:
        count = sum([parameter.name[:3] == "out" for parameter in parameters])
        return f"out{count or ''}"
    return "xyz"[len(parameters)] if len(parameters) < 3 else f"x{len(parameters)}"


def real_and_imag_views(view):
    """Return the views of the real and the imaginary parts of complex numbers."""
    if not isinstance(view.source, Buffer):
        scalars = view.source.real, view.source.imag
        return [broadcast_scalar_view(scalar, view.shape) for scalar in scalars]
    places = [view.offset * 2, view.offset * 2 + 1]
    strides = tuple(2 * stride for stride in view.strides)
    half = view._replace(dtype=real_dtype_of(view.dtype), strides=strides)
    return [half._replace(offset=place) for place in places]


def _of_parts(k, op, pairs):
    return [k.apply(op, *parts) for parts in zip(*pairs)]


def _each_part(op):
    return lambda k, *pairs: ComplexNode(*_of_parts(k, op, pairs))


def _compared(op, both):
    return lambda k, *pairs: k.apply(both, *_of_parts(k, op, pairs))


def _complex_mul(k, x, y):
    real = k.sub(k.mul(x.real, y.real), k.mul(x.imag, y.imag))
    return ComplexNode(real, k.add(k.mul(x.real, y.imag), k.mul(x.imag, y.real)))


def _complex_select(k, which, yes, no):
    return ComplexNode(*[k.select(which, *parts) for parts in zip(yes, no)])


# What operations do to complex numbers: functions of the builder and of pairs.
complex_rules = {
    "add": _each_part("add"),
    "sub": _each_part("sub"),
    "neg": _each_part("neg"),
    "mul": _complex_mul,
    "div": lambda k, x, y: ComplexNode(*complex_divide_parts(k, *x, *y)),
    "conj": lambda k, x: ComplexNode(x.real, k.neg(x.imag)),
    "abs": lambda k, x: k.hypot(*x),
    "select": _complex_select,
    "eq": _compared("eq", "and"),
    "ne": _compared("ne", "or"),
}


class UnrolledIteration:
    """An iteration of a loop: its index is a number ahead of another one's.

    Attributes:
      axis, ahead: of the loop, and the number.
      rank: how many axes the kernel has.
      maps: the indices of the iteration, as for `compose_place`.
      copies: from nodes that vary over the axis to theirs of this iteration.
    """

    def __init__(self, axis, ahead, rank):
        self.axis, self.ahead, self.rank, self.copies = axis, ahead, rank, {}
        units = identity_map(rank)
        moved = units[axis]._replace(offset=ahead)
        self.maps = (*units[:axis], moved, *units[axis + 1 :])

    def node(self, node):
        """Return what a node is in this iteration."""
        if not self.ahead or self.axis not in node.level:
            return node
        if node not in self.copies:
            self.copies[node] = self.copy(node)
        return self.copies[node]

    def copy(self, node):
        """Return the copy of a node."""
        if node.op == "index":
            return op_node("add", node, constant_node(self.ahead, node.dtype))
        args = tuple(map(self.node, node.args))
        return at_indices(self, node, args, self.maps, self.rank)

    def write(self, node):
        """Return a node; it becomes a step of the loop, and is in no list."""
        return node

    def place(self, place):
        """Return where an element is in this iteration."""
        return compose_place(place, self.maps, self.rank)

    def steps(self, step):
        """Return the steps of this iteration in the place of one that is no loop."""
        if isinstance(step, Node):
            copy = self.node(step)
            return [*copy.args, copy] if step in copy.args else [copy]
        if isinstance(step, Store):
            nodes = {node: self.node(node) for node in step.args}
            return [store_at(step, nodes, self.maps, self.rank)]
        return [step._replace(fold=self.node(step.fold))]


def unroll_and_jam(steps, iterations):
    """Return steps that do each step for all iterations before the next step."""
    rules = [unroll_and_jam_rules.get(type(step), _each) for step in steps]
    made = [rule(step, iterations) for rule, step in zip(rules, steps)]
    return [step for some in made for step in some]


def _each(step, iterations):
    return dict.fromkeys(new for each in iterations for new in each.steps(step))


def _loop(loop, iterations):
    folds = dict.fromkeys(each.node(fold) for fold in loop.folds for each in iterations)
    body = unroll_and_jam(loop.body, iterations)
    return [loop._replace(body=body, folds=tuple(folds))]


unroll_and_jam_rules[Loop] = _loop


# What counts as one operation, and how many of them the others are.
WORK = {"flops": 1, "transcendentals": 16, "": 0}


def element_work(kernel):
    """Return about how many operations an element takes; infinity if one is folded."""
    ops = [node.op for node in kernel.nodes]
    if "fold" in ops or "running" in ops:
        return float("inf")
    return sum(WORK[scalar_ops[op].cost] for op in ops if op in scalar_ops)


def joining_kernel(out, axis, parts):
    """Return the `KernelBuilder` that loads each element from the part that has it.

    Args:
      out: the view of the result, row by row.
      axis: along which the parts lie one behind the other.
      parts: list of views.
    """
    inner = math.prod(out.shape[axis + 1 :])
    flat = [(*x.shape[:axis], x.shape[axis] * inner) for x in (out, *parts)]
    flat = [*map(reshape_view, (out, *parts), flat)]
    out, *parts = (out, *parts) if None in flat else flat
    k, start, loads = KernelBuilder("concatenate", out.shape), 0, []
    along = tuple([int(place == axis) for place in range(len(out.shape))])
    for part in parts:
        guard = Guard(Affine(-start, along), part.shape[axis])
        starts = [-start * step for step in along]
        shifted = slice_view(part, starts, out.shape, [1] * len(along))
        loads.append((start, k.load(shifted, [guard])))
        start += part.shape[axis]
    (_, x), *others = loads
    for start, then in others:
        x = k.select(k.lt(k.index(axis), start), x, then)
    k.store(out, x)
    return k


def padding_kernel(x, value, shape, lows):
    """Return a `KernelBuilder`, and the node of an element, or of the padding value.

    Args:
      x: the view of what is padded.
      value: the padding value, a scalar.
      shape: of the result.
      lows: how many values come before the elements, along each axis.
    """
    shifted = slice_view(x, [-low for low in lows], shape, [1] * len(shape))
    guards = [
        Guard(Affine(-low, tuple(int(k == axis) for k in range(len(shape)))), size)
        for axis, (low, size) in enumerate(zip(lows, x.shape))
        if low or size != shape[axis]
    ]
    k = KernelBuilder("pad", shape)
    return k, k.load(shifted, guards, value)


def padded_views(x, out, config):
    """Return the views of the elements that stay, and of their places in the result."""
    steps = [gap + 1 for _, _, gap in config]
    first = [max(0, -(low // step)) for (low, *_), step in zip(config, steps)]
    ends = [
        min(size, -((low - length) // step))
        for size, length, (low, *_), step in zip(x.shape, out.shape, config, steps)
    ]
    counts = [max(0, end - start) for start, end in zip(first, ends)]
    starts = [low + n * step for n, (low, *_), step in zip(first, config, steps)]
    elements = slice_view(x, first, counts, [1] * len(counts))
    return elements, slice_view(out, starts, counts, steps)
