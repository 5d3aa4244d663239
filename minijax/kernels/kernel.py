# Made from chapters/17_kernels.md by `make chapter`;
# edit the chapter, not this file.
"""The kernel IR: loop nests over scalar expressions, as data.

A kernel says what is computed for each index, and in which element of which
parameter it is found or left. It knows nothing of vectors, threads or addresses,
so that one kernel serves every machine.
"""

import dataclasses
import hashlib
import math
import re
from typing import NamedTuple

import numpy as np

from minijax.arrays.dtypes import short_name
from minijax.kernels.scalar_ops import in_registers, scalar_ops

AXES = [*"ijklmnopqrst", *[f"i{number}" for number in range(12, 64)]]


class Parameter(NamedTuple):
    """A parameter of a kernel: memory for `size` numbers of one dtype.

    Two are equal if name, dtype and size are, so kernels with one text are one kernel.
    """

    name: str
    dtype: np.dtype
    size: int

    def __str__(self):
        return f"{self.name}:{short_name(self.dtype)}[{self.size}]"


def _term(factor, letter):
    sign, size = "-" if factor < 0 else "+", abs(factor)
    star = "*" if letter and size != 1 else ""
    return f"{sign} {'' if letter and size == 1 else size}{star}{letter}"


class Affine(NamedTuple):
    """The number ``offset + strides[0] * i + strides[1] * j + ...``."""

    offset: int
    strides: tuple

    @property
    def axes(self):
        """The axes along which the number changes."""
        return tuple([axis for axis, stride in enumerate(self.strides) if stride])

    def at(self, indices):
        """Return the number for given indices, be they ints or arrays."""
        return sum((self.strides[k] * indices[k] for k in self.axes), self.offset)

    def bounds(self, sizes):
        """Return the least and the greatest number of all indices below `sizes`."""
        least = most = self.offset
        for stride, size in zip(self.strides, sizes):
            end = stride * (size - 1)
            least, most = least + min(end, 0), most + max(end, 0)
        return least, most

    def __str__(self):
        terms = [_term(self.strides[axis], AXES[axis]) for axis in self.axes]
        if self.offset or not terms:
            terms.append(_term(self.offset, ""))
        text = " ".join(terms)
        return f"-{text[2:]}" if text.startswith("- ") else text.removeprefix("+ ")


@dataclasses.dataclass(eq=False, slots=True)
class Node:
    """A scalar for each index: one line of a kernel.

    Attributes:
      op: "constant", "index", "load", "fold", "running", or the name of a scalar
        operation.
      args: the nodes that it is computed from.
      dtype: of the scalar.
      level: the axes along which it varies, a tuple.
      detail: a number for "constant", an axis for "index", a `Load` or a `Fold`.
    """

    op: str
    args: tuple
    dtype: np.dtype
    level: tuple
    detail: object = None


def constant(value, dtype):
    """Return the node of a number."""
    dtype = in_registers(dtype)
    return Node("constant", (), dtype, (), dtype.type(value))


def index(axis):
    """Return the node of the index along an axis."""
    return Node("index", (), np.dtype(np.int64), (axis,), axis)


def apply(op, *args, dtype=None):
    """Return the node of a scalar operation, by its name in a table.

    A name in `recastings` needs the dtype of the result besides the nodes `args`.
    """
    if dtype is None:
        dtype = scalar_ops[op].result or args[-1].dtype
    return Node(op, args, in_registers(dtype), union([arg.level for arg in args]))


def union(levels):
    """Return all axes of some levels, in order."""
    distinct = {*levels} - {()}
    if len(distinct) < 2:
        return distinct.pop() if distinct else ()
    return tuple(sorted(set().union(*distinct)))


class Guard(NamedTuple):
    """Inside where ``0 <= place < limit``."""

    place: Affine
    limit: int

    def __str__(self):
        return f"0 <= {self.place} < {self.limit}"


class Term(NamedTuple):
    """A computed part of a place: `stride` times a number, ``0 <= number < limit``."""

    stride: int
    limit: int


class Update(NamedTuple):
    """How a store finds computed places, and what it does there (a scatter).

    Attributes:
      how: "set", or how what is stored enters what is there, a name in `foldings`.
      at: nodes, the numbers of the `terms`; outside of a limit, nothing is stored.
      terms: tuple of `Term`.
      axes: those along which it is done, one index after the other, the last fastest.
      distinct: whether no two indices have one place, as the caller promises.
    """

    how: str
    at: tuple
    terms: tuple
    axes: tuple
    distinct: bool = False


def running(how, axis, arg):
    """Return the node of a running fold: at each index, of all up to this one."""
    level = union([arg.level, (axis,)])
    return Node("running", (arg,), arg.dtype, level, Fold(how, (axis,)))


class Load(NamedTuple):
    """An element of a parameter; `other` where a guard or a limit says outside.

    Each of the `terms` belongs to one of the node's arguments, which is its number.
    """

    parameter: Parameter
    place: Affine
    guards: tuple = ()
    other: object = 0
    terms: tuple = ()


def load(parameter, place, guards=(), other=0, computed=()):
    """Return the node of an element of a parameter.

    Args:
      parameter, place, guards, other: as in a `Load`.
      computed: pairs of a node of int64 and a `Term`, which are added to the place.
    """
    args, terms = zip(*computed) if computed else ((), ())
    level = place.axes
    if guards or args:
        levels = [*[guard.place.axes for guard in guards], *[x.level for x in args]]
        level = union([level, *levels])
    dtype = in_registers(parameter.dtype)
    detail = Load(parameter, place, tuple(guards), dtype.type(other), terms)
    return Node("load", args, dtype, level, detail)


class Fold(NamedTuple):
    """How to fold (a name in `foldings`), and along which axes."""

    how: str
    axes: tuple


def fold(how, axes, arg):
    """Return the node of what remains of another when `axes` are folded away."""
    level = tuple(axis for axis in arg.level if axis not in axes)
    dtype = np.dtype(np.int64) if how.startswith("arg") else arg.dtype
    return Node("fold", (arg,), dtype, level, Fold(how, tuple(axes)))


class Store(NamedTuple):
    """What becomes of the element at `place`, for all indices that it varies over."""

    parameter: Parameter
    place: Affine
    node: Node
    update: Update | None = None

    @property
    def axes(self):
        """The axes along which it is done."""
        return self.update.axes if self.update else self.place.axes

    @property
    def args(self):
        """The nodes that it needs."""
        return (self.node, *self.update.at) if self.update else (self.node,)

    def with_nodes(self, new):
        """Return the store with other nodes in the places of its own, by these."""
        update = self.update
        if update:
            update = update._replace(at=tuple([new[node] for node in update.at]))
        return self._replace(node=new[self.node], update=update)


@dataclasses.dataclass(eq=False, slots=True)
class Kernel:
    """A loop nest.

    Attributes:
      name: of the operation that it is made from.
      sizes: the size of each axis.
      parameters: what is read, then what is written.
      nodes: list of `Node`, each after those that it is computed from.
      stores: list of `Store`.
    """

    name: str
    sizes: tuple
    parameters: tuple
    nodes: tuple
    stores: tuple

    @property
    def label(self):
        """A name that no other text has: it ends with a hash."""
        name = re.sub(r"\W", "_", self.name, flags=re.ASCII)
        return f"{name}_{hashlib.sha256(str(self).encode()).hexdigest()[:6]}"

    def __str__(self):
        return print_kernel(self)


def print_kernel(kernel):
    """Return the text: a line for each node, with its dtype and its level."""
    names = names_of(kernel)
    head = f"{kernel.name}({', '.join(map(str, kernel.parameters))})"
    limits = [f"{AXES[axis]} < {size}" for axis, size in enumerate(kernel.sizes)]
    lines = [f"{head} for {', '.join(limits)}" if limits else head]
    for node, name in names.items():
        level = ",".join(AXES[axis] for axis in node.level)
        kind = f"{name}:{short_name(node.dtype)}[{level}]"
        lines.append(f"  {kind} = {right_hand_side(node, names)}")
    return "\n".join([*lines, *[f"  {item_text(s, names)}" for s in kernel.stores]])


def names_of(kernel):
    """Return names for the nodes of a kernel that are no constants."""
    computed = [node for node in kernel.nodes if node.op != "constant"]
    return {node: f"v{place}" for place, node in enumerate(computed)}


def item_text(item, names):
    """Return the name of a node, the number of a constant, or the line of a store."""
    if isinstance(item, Store):
        return _store_text(item, names)
    if item.op == "constant":
        return f"{item.detail.item()}:{short_name(item.dtype)}"
    return names.get(item, "?")


def right_hand_side(node, names):
    """Return what a node is, without its name."""
    args = " ".join(item_text(arg, names) for arg in node.args)
    if node.op == "index":
        return AXES[node.detail]
    if node.op == "load":
        return _load_text(node, names)
    if node.op in ("fold", "running"):
        over = "over" if node.op == "fold" else "along"
        axes = ",".join(AXES[axis] for axis in node.detail.axes)
        return f"{node.op} {node.detail.how} {over} {axes} of {args}"
    return f"{node.op} {args}"


def _load_text(node, names):
    parameter, place, guards, other, terms = node.detail
    numbers = [item_text(arg, names) for arg in node.args]
    limits = [*map(str, guards), *_limits(numbers, terms)]
    text = f"load {parameter.name}[{_sum(place, numbers, terms)}]"
    return f"{text} if {' and '.join(limits)} else {other.item()}" if limits else text


def _store_text(store, names):
    parameter, place, node, update = store
    if not update:
        return f"{parameter.name}[{place}] = {item_text(node, names)}"
    numbers = [item_text(x, names) for x in update.at]
    limits = _limits(numbers, update.terms)
    along = ",".join(AXES[axis] for axis in update.axes)
    words = [f"{parameter.name}[{_sum(place, numbers, update.terms)}] {update.how}="]
    words += [item_text(node, names), f"for {along}" if along else "once"]
    words += [f"if {' and '.join(limits)}"] * bool(limits)
    return " ".join([*words, *["distinct"] * update.distinct])


def _sum(place, numbers, terms):
    parts = [_term(term.stride, x) for x, term in zip(numbers, terms)]
    still = parts and str(place) == "0"
    return " ".join([*[str(place)] * (not still), *parts]).removeprefix("+ ")


def _limits(numbers, terms):
    return [f"0 <= {x} < {term.limit}" for x, term in zip(numbers, terms)]


def elements(kernel, axes):
    """Return how many indices there are along some axes."""
    return math.prod(kernel.sizes[axis] for axis in axes)


def traffic(kernel):
    """Return how many bytes a kernel reads, and how many it writes."""
    loads = [node for node in kernel.nodes if node.op == "load"]
    updates = [store for store in kernel.stores if store.update]
    read = {(x.detail.parameter, x.detail.place, x.args): _moving(x) for x in loads}
    read |= {store[:2]: store.axes for store in updates if store.update.how != "set"}
    written = {store[:2]: store.axes for store in kernel.stores}
    return tuple(
        sum(elements(kernel, axes) * key[0].dtype.itemsize for key, axes in at.items())
        for at in (read, written)
    )


def _moving(node):
    """Return the axes along which the place of a load moves."""
    return union([node.detail.place.axes, *[arg.level for arg in node.args]])


def operations(kernel):
    """Return how many flops and transcendental functions a kernel computes."""
    counts = {"flops": 0, "transcendentals": 0}
    for node in kernel.nodes:
        if node.op in ("fold", "running"):
            axes = {*node.args[0].level, *node.detail.axes}
            counts["flops"] += elements(kernel, axes)
        elif node.op in scalar_ops and scalar_ops[node.op].cost:
            counts[scalar_ops[node.op].cost] += elements(kernel, node.level)
    updates = [store for store in kernel.stores if store.update]
    added = [store.axes for store in updates if store.update.how != "set"]
    counts["flops"] += sum(elements(kernel, axes) for axes in added)
    return counts


def apart(store, axis):
    """Return whether indices along an axis surely store into different elements."""
    update, moves = store.update, bool(store.place.strides[axis])
    if not update or update.distinct:
        return True
    return moves and not any(axis in number.level for number in update.at)


def is_affine(kernel):
    """Return whether no place of a kernel is computed, and no fold of it runs."""
    loads = [node for node in kernel.nodes if node.op == "load" and node.args]
    runs = [node for node in kernel.nodes if node.op == "running"]
    return not (loads or runs or any(store.update for store in kernel.stores))


def needed(goals, ends=()):
    """Return the set of nodes and of all that they, but for `ends`, are made of."""
    found, open_ends = set(), [*goals]
    while open_ends:
        node = open_ends.pop()
        if node not in found:
            found.add(node)
            open_ends.extend(() if node in ends else node.args)
    return found
