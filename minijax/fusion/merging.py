"""Loop fusion: one kernel of several, by indices of one nest as numbers of another."""

# Made from chapters/19_fusion_ground.md by `make chapter`;
# edit the chapter, not this file.

import functools
import itertools
import math

import numpy as np

from minijax.arrays.dtypes import short_dtype_name
from minijax.kernels.builder import (
    NodeBuilder,
    collapse_axes,
    compose_place,
    fresh_parameter_name,
    identity_map,
    number_at,
    rewritten,
    store_at,
)
from minijax.kernels.ir import (
    Affine,
    Guard,
    IndirectTerm,
    Parameter,
    Store,
    compute_dtype,
    once_per_kernel,
    stores_are_affine,
)
from minijax.kernels.loop_nests import Kernel, backward_slice, load_node
from minijax.kernels.lowering import Launch

# Where an element was made: the indices of one loop nest as numbers of another.


def extent_product(sizes, axes):
    """Return how many indices there are along some axes."""
    return math.prod([sizes[axis] for axis in axes])


def _wheels(stored, limits):
    """Return pairs of a value of a place and its axis, the highest first."""
    moving = [axis for axis in stored.axes if limits[axis] > 1]
    return sorted([(abs(stored.strides[axis]), axis) for axis in moving], reverse=True)


def _digits(number, wheels):
    found = []
    for value, _ in wheels:
        digit, number = divmod(number, value)
        found.append(digit)
    return None if number else found


def delinearize(place, sizes, stored, limits):
    """Return the indices at which `stored` is the number that `place` is.

    They are the digits of the number if the strides of `stored` are taken for the
    values of the places. Those of the first element and of its neighbours along each
    axis tell how the digits change along the axes.

    Args:
      place: an `Affine` along axes of `sizes`.
      stored: an `Affine` along axes of `limits`, no number twice.

    Returns:
      An `Affine` along the axes of `place` for each axis of `stored`, None for axes
      along which it does not move; or None if there are no such indices.
    """
    wheels, least = _wheels(stored, limits), stored.bounds(limits)[0]
    first = _digits(place.offset - least, wheels)
    steps = [(0,) * len(wheels)] * len(sizes)
    for axis in place.axes:
        following = _digits(place.offset - least + place.strides[axis], wheels)
        if first is None or following is None:
            return None
        steps[axis] = [b - a for a, b in zip(first, following)]
    return None if first is None else _along(first, steps, wheels, stored, limits)


def _along(first, steps, wheels, stored, limits):
    found = [None] * len(limits)
    for number, (_, axis) in enumerate(wheels):
        at = Affine(first[number], tuple(step[number] for step in steps))
        if stored.strides[axis] < 0:  # it is walked backwards
            at = Affine(limits[axis] - 1 - at.offset, tuple(-n for n in at.strides))
        found[axis] = at
    return found


def delinearize_bounds(found, sizes, limits):
    """Return whether digits leave their limits, and what can be done about it.

    Returns:
      None if they stay inside; else a pair of an axis and the size of the inner one of
      the two axes into which it should be split, or False if that is no help.
    """
    for at, limit in zip(found, limits):
        if at is not None:
            least, most = at.bounds(sizes)
            if least < 0 or most >= limit:
                return _cut(at, sizes, limit)
    return None


def _cut(at, sizes, limit):
    for axis in at.axes:
        inner, rest = divmod(limit, abs(at.strides[axis]))
        if not rest and 1 < inner < sizes[axis] and not sizes[axis] % inner:
            return axis, inner
    return False


@functools.lru_cache(2**12)
def delinearize_in_bounds(place, sizes, stored, limits):
    """Return the `delinearize` if they stay inside of their limits.

    Returns:
      A pair: what `delinearize` returns, or None; and what `delinearize_bounds` says.
    """
    if place == stored and sizes == limits:
        units = identity_map(len(sizes))
        if all(place.strides):
            return units, None
        return [at if n else None for at, n in zip(units, place.strides)], None
    found = delinearize(place, sizes, stored, limits)
    cut = None if found is None else delinearize_bounds(found, sizes, limits)
    return (found if cut is None else None), cut


def delinearize_guarded(place, guards, sizes, stored, limits):
    """Return the indices at which `stored` is where a guarded load reads, or None."""
    rank = len(sizes)
    if guards:
        place, sizes = _unguarded(place, guards, sizes)
    found, _ = delinearize_in_bounds(place, sizes, stored, limits)
    if found and guards:
        axes = (*identity_map(rank), *[guard.place for guard in guards])
        found = [at and compose_place(at, axes, rank) for at in found]
    return found


def _unguarded(place, guards, sizes):
    """Return a place along axes behind which there is one for each guard's number."""
    factors = []
    for (offset, strides), _ in guards:
        ratios = [a // b for a, b in zip(place.strides, strides) if b]
        factor = min(ratios, key=abs, default=0)
        left = [a - factor * b for a, b in zip(place.strides, strides)]
        place = Affine(place.offset - factor * offset, tuple(left))
        factors.append(factor)
    limits = [guard.limit for guard in guards]
    return Affine(place.offset, (*place.strides, *factors)), (*sizes, *limits)


def split_loop_axis(axis, inner, sizes):
    """Return the index along each of some axes, along those with two for one, and the
    sizes of these."""
    sizes = (*sizes[:axis], sizes[axis] // inner, inner, *sizes[axis + 1 :])
    maps = [*identity_map(len(sizes))]
    outer, last = maps.pop(axis), maps[axis]
    both = [inner * a + b for a, b in zip(outer.strides, last.strides)]
    maps[axis] = Affine(0, tuple(both))
    return tuple(maps), sizes


# Loop fusion: one kernel of several; what is made in it need not be loaded.


def is_bitcastable(made, read):
    """Return whether what is stored as one dtype can be read as another."""
    if made == read:
        return True
    plain = all(compute_dtype(d) == d and d.kind != "b" for d in (made, read))
    return plain and made.itemsize == read.itemsize


def memory_round_trip(k, x, made, read):
    """Return what a number becomes when it is stored as one dtype, read as another."""
    if made.dtype != compute_dtype(made.dtype):
        return _roundings[short_dtype_name(made.dtype)](k, x)
    return x if made.dtype == read.dtype else k.bitcast(x, read.dtype)


def _as_bfloat16(k, x):
    """Return a float with 16 bits less, rounded to even."""
    pattern = k.bitcast(x, np.dtype(np.uint32))
    odd = k.apply("and", k.shift_right(pattern, 16), 1)
    above = k.add(k.add(pattern, odd), 2**15 - 1)
    rounded = k.bitcast(k.apply("and", above, 2**32 - 2**16), x.dtype)
    return k.select(k.ne(x, x), x, rounded)


_roundings = {"bf16": _as_bfloat16, "f16": lambda k, x: k.as_float16(x)}


FREE_OPS = {"load", "constant"}  # nodes that are no operations


class FusedKernelBuilder(NodeBuilder):
    """A kernel that grows: of one launch, or of several in the same loops.

    Args:
      sizes: of the loops.
      recomputed: from buffers of other launches whose elements are made here, and not
        loaded, to the `FusedKernelBuilder` of the launch.

    Attributes:
      sources: from the nodes of loads to their buffers.
      made: from buffers to lists of `Store`.
      names: pairs of a node that a launch stored and the name of its kernel, in order.
      ops: the number of scalar operations and of folds.
      folded: from nodes to the axes that are folded on the way to them, if any are.
      fold_axes: all of these axes.
      known: what has been written, so that equal nodes are one; nothing of a launch
        that was read only.
      parameters: from pairs of a buffer and a dtype to parameters.
      instances: what was made at other indices than its own.
    """

    def __init__(self, sizes, recomputed=None):
        self.sizes, self.recomputed = sizes, recomputed or {}
        self.nodes, self.ops = [], 0
        self.sources, self.made, self.names, self.folded = {}, {}, {}, {}
        self.fold_axes = frozenset()
        self.known, self.parameters, self.instances = {}, {}, {}

    def __str__(self):
        return str(fused_launch(self, self.made).kernel)

    def write(self, node):
        """Put a node behind the others, and return it; equal ones are one."""
        op, detail = node.op, node.detail
        if op == "constant":
            detail = detail.tobytes()
        elif op == "load":
            outside = detail.guards or detail.terms
            detail = (*detail[:3], outside and detail.fill.tobytes(), detail.terms)
        key = (op, node.dtype, detail, node.args)
        if key not in self.known:
            self.known[key] = node
            self.nodes.append(node)
            self.ops += op not in FREE_OPS
            if op == "fold" or self.folded:
                self.note_folds(node)
        return self.known[key]

    def note_folds(self, node):
        """Note which axes are folded on the way to a node."""
        axes = [self.folded[arg] for arg in node.args if arg in self.folded]
        axes += [node.detail.axes] if node.op == "fold" else []
        if axes:
            self.folded[node] = frozenset().union(*axes)
            self.fold_axes = self.fold_axes.union(*axes)

    def take(self, other, maps=None):
        """Write all of another kernel at these indices, by default its own."""
        new, rank = copies(self, other, other.nodes, maps), len(self.sizes)
        for buffer, stores in other.made.items():
            moved = [store_at(store, new, maps, rank) for store in stores]
            self.made.setdefault(buffer, []).extend(moved)
        return self


def _open(k, guards):
    """Return the guards that do not always hold; None if one never does."""
    found = []
    for place, limit in dict.fromkeys(guards):
        least, most = place.bounds(k.sizes)
        if most < 0 or least >= limit:
            return None
        if least < 0 or most >= limit:
            found.append(Guard(place, limit))
    return tuple(found)


def _guarded(k, x, guards, other):
    """Return the node that is another number where a guard says outside."""
    inside = None
    for place, limit in guards:
        least, most = place.bounds(k.sizes)
        tests = [k.ge(number_at(k, place), 0)] if least < 0 else []
        tests += [k.lt(number_at(k, place), limit)] if most >= limit else []
        for test in tests:
            inside = test if inside is None else k.apply("and", inside, test)
    return x if inside is None else k.select(inside, x, other.item())


def _within_limits(k, x, terms, other):
    """Return the node that is another number where a computed one is over its limit."""
    for number, term in terms:
        inside = k.apply("and", k.ge(number, 0), k.lt(number, term.limit))
        x = k.select(inside, x, other.item())
    return x


def parameter_for_buffer(parameters, buffer, like, written=False):
    """Return the parameter of a buffer, from a table or new there."""
    key = buffer, like.dtype
    if key not in parameters:
        name = fresh_parameter_name(parameters.values(), written)
        parameters[key] = Parameter(name, like.dtype, like.size)
    return parameters[key]


def copies(k, other, nodes, maps, guards=(), computed=()):
    """Write nodes of another kernel at these indices; return them by its own.

    Args:
      k: the `FusedKernelBuilder` in which they are written.
      other, nodes: from which one, and which of its nodes.
      maps: the index along each of its axes; None if both have the same loops.
      guards: where the nodes are of interest.
      computed: pairs of a node and an `IndirectTerm`: numbers that the indices depend
        on, as on axes behind those of the kernel.
    """

    def found(node, args):
        if node.op == "load":
            return element(
                k, other.sources[node], node, args, (maps, guards, computed)
            )
        if node.op == "index" and computed:
            at, terms = without_computed(maps[node.detail], computed)
            parts = [k.mul(number, term.stride) for number, term in terms]
            return functools.reduce(k.add, parts, number_at(k, at))

    new = rewritten(k, nodes, maps, len(k.sizes) + len(computed), found)
    names = [(new[node], name) for node, name in other.names if node in new]
    k.names.update(dict.fromkeys(names))
    return new


def without_computed(place, computed):
    """Return what a place is along a kernel's axes, and its computed terms, as pairs of
    a node and an `IndirectTerm`."""
    rank = len(place.strides) - len(computed)
    pairs = zip(computed, place.strides[rank:])
    terms = [(x, IndirectTerm(stride, of.limit)) for (x, of), stride in pairs if stride]
    return Affine(place.offset, place.strides[:rank]), terms


def element(k, buffer, node, args, at):
    """Return the node of an element: of what is made here, or of a load.

    Args:
      k: a `FusedKernelBuilder`.
      buffer: from which the element is loaded.
      node: its load in another kernel.
      args: what the computed numbers of its place have become.
      at: `maps`, `guards` and `computed`, as for `copies`.
    """
    (maps, guards, computed), rank = at, len(k.sizes)
    like, place, own, other, terms = node.detail
    terms = [*zip(args, terms)]
    if maps is not None:
        place = compose_place(place, maps, rank + len(computed))
        own = [(compose_place(at, maps, rank), limit) for at, limit in own]
    if computed:
        place, more = without_computed(place, computed)
        terms = [*terms, *more]
    if own or guards:
        guards = _open(k, [*own, *guards])
        if guards is None:
            return k.constant(other, compute_dtype(like.dtype))
    maker = k if buffer in k.made else k.recomputed.get(buffer)
    for store in maker.made[buffer] if maker else ():
        if is_bitcastable(store.parameter.dtype, like.dtype):
            x = instance(k, maker, store, place, guards, (*terms,))
            if x is not None:
                x = memory_round_trip(k, x, store.parameter, like)
                x = _within_limits(k, x, terms, other) if terms else x
                return _guarded(k, x, own, other) if own else x
    parameter = parameter_for_buffer(k.parameters, buffer, like)
    found = k.write(load_node(parameter, place, guards, other, terms))
    k.sources[found] = buffer
    return found


def with_computed_axes(place, guards, sizes, computed):
    """Return the same with an axis more for each computed number: its stride in the
    place is the term's, its size the limit."""
    strides, limits = zip(*[term for _, term in computed])
    still = (0,) * len(limits)
    guards = [Guard(at._replace(strides=at.strides + still), n) for at, n in guards]
    place = Affine(place.offset, place.strides + strides)
    return place, tuple(guards), sizes + limits


def instance(k, maker, store, place, guards, computed=()):
    """Return the node that a kernel stores at a place, written for these indices.

    It is None where they cannot be told, and where a load behind a guard would have a
    computed place.
    """
    if maker is k and store.place == place and not guards:
        return store.node
    whole = place, guards, k.sizes
    if computed:
        whole = with_computed_axes(*whole, computed)
        if any(node.op == "load" and node.detail.guards for node in maker.nodes):
            return None
    found = delinearize_guarded(*whole, store.place, maker.sizes)
    if found is None:
        return None
    rank = len(whole[2])
    home = identity_map(rank) if maker is k else [Affine(0, (0,) * rank)] * len(found)
    maps = tuple([a or b for a, b in zip(found, home)])
    key = id(maker), store.node, maps, guards, computed
    if key not in k.instances:
        wanted = backward_slice([store.node])
        nodes = [node for node in maker.nodes if node in wanted]
        new = copies(k, maker, nodes, maps, guards, computed)
        k.instances[key] = new[store.node]
    return k.instances[key]


def fused_launch(part, wanted, recomputed=None):
    """Return the launch of a kernel that has grown.

    Args:
      part: the `FusedKernelBuilder`.
      wanted: the buffers that have to be stored.
      recomputed: as in a `FusedKernelBuilder`.
    """
    k = part
    if recomputed or not part.known:
        k = FusedKernelBuilder(part.sizes, recomputed).take(part)
    parameters, outs = {**k.parameters}, {}
    for buffer in [buffer for buffer in k.made if buffer in wanted]:
        for like, place, node, _ in k.made[buffer]:
            parameter = parameter_for_buffer(parameters, buffer, like, written=True)
            outs[Store(parameter, place, node)] = None
    kept = backward_slice([store.node for store in outs])
    nodes = tuple([node for node in k.nodes if node in kept])
    used = {node.detail.parameter for node in nodes if node.op == "load"}
    used.update([store.parameter for store in outs])
    buffers = {x: buffer for (buffer, _), x in parameters.items() if x in used}
    names = [*dict.fromkeys([name for node, name in k.names if node in kept])]
    name = "_".join(names[:4]) + "_etc" * (len(names) > 4)
    kernel = Kernel(name, k.sizes, (*buffers,), nodes, (*outs,))
    return Launch(collapse_axes(kernel), [*buffers.values()])


# Parts of a program: launches in the same loops, and what fusion asks of them.


def computed_axes(node):
    """Return the axes along which a node is computed: with those that it folds."""
    if node.op != "fold":
        return node.level
    return tuple({*node.args[0].level, *node.detail.axes})


class FusionGroup(FusedKernelBuilder):
    """One or more launches in the same loops, as one kernel that grows.

    Attributes:
      axis_orders: pairs of axes, the first of which has to be outside of the second: a
        fold keeps the first, and folds the second or goes on along it.
      unsplittable_axes: axes along which a place is sought, so that they must stay
        whole.
      elided_buffers: buffers that it makes and need not store.
    """

    axis_orders = unsplittable_axes = elided_buffers = frozenset()

    def take(self, other, maps=None):
        """Write all of another part at these indices, by default its own."""
        if other.folded:
            orders, solid = other.axis_orders, other.unsplittable_axes
            if maps is not None:
                axes = [at.axes for at in maps]
                pairs = [itertools.product(axes[a], axes[b]) for a, b in orders]
                orders = frozenset().union(*pairs)
                solid = frozenset().union(*[axes[axis] for axis in solid])
            self.axis_orders, self.unsplittable_axes = (
                self.axis_orders | orders,
                self.unsplittable_axes | solid,
            )
        if other.elided_buffers:
            self.elided_buffers |= other.elided_buffers
        return super().take(other, maps)

    def along(self, home, sizes):
        """Return the part in other loops, where its indices are those of `home`."""
        same = sizes == self.sizes and home == identity_map(len(sizes))
        return self if same else FusionGroup(sizes).take(self, home)

    @property
    def stores(self):
        """Pairs of a buffer and a `Store`, but for those that are gone."""
        made = [
            (x, stores)
            for x, stores in self.made.items()
            if x not in self.elided_buffers
        ]
        return [(buffer, x) for buffer, stores in made for x in stores]

    @property
    def loads(self):
        """Pairs of a buffer and a `Load`."""
        return [(buffer, node.detail) for node, buffer in self.sources.items()]

    def folding(self, buffers):
        """Return from buffers to the axes that are folded on the way to a store."""
        found = {}
        for buffer in buffers if self.folded else ():  # two stores of a complex number
            stores = self.made.get(buffer, ())
            axes = [self.folded[x.node] for x in stores if x.node in self.folded]
            if axes:
                found[buffer] = frozenset().union(*axes)
        return found

    @property
    def loops(self):
        """The loops along which at least one of the launches goes."""
        axes = [computed_axes(node) for node in self.nodes]
        return set().union(*axes, *[store.place.axes for _, store in self.stores])

    @property
    def gathered_buffers(self):
        """The buffers of which it loads elements at computed places."""
        return {buffer for buffer, read in self.loads if read.terms}

    def is_recomputable(self, few):
        """Return whether it makes one array, with few operations, and neither folds
        nor computes a place."""
        alone = self.ops <= few and len(self.stores) == 1 and not self.folded
        return alone and not self.gathered_buffers

    def behind(self):
        """Return from nodes the axes along which the part goes on with them."""
        found = {node: set() for node in self.nodes}
        for _, store in self.stores:
            found[store.node].update(store.place.axes)
        for node in reversed(self.nodes):
            for arg in node.args:
                found[arg].update(computed_axes(node), found[node])
        return found

    def cost(self, buffer, target, most=math.inf):
        """Return what an element of a buffer costs, from what the part loads.

        A load at a computed place is as dear as a function. What is found to cost more
        than `most` is not followed any further.
        """
        [store, *_], total, turns = self.made[buffer], 0, {}
        count = extent_product(self.sizes, store.place.axes)
        left, seen = [store.node], {store.node}
        while left and total <= most * count:
            node = left.pop()
            price = target.function_cost if node.op == "load" and node.args else 0
            price = price if node.op in FREE_OPS else target.price(node.op)
            if price:
                axes = computed_axes(node)
                if axes not in turns:
                    turns[axes] = extent_product(self.sizes, axes)
                total += price * turns[axes]
            left += [arg for arg in {*node.args} if arg not in seen]
            seen.update(node.args)
        return total / count


def fusion_group_of(launch):
    """Return a launch as a part; None if it has nothing to do, along an axis of size 0,
    or stores at a computed place."""
    kernel, buffers = launch
    like = fusion_group_of_kernel(kernel)
    if like is None:
        return None
    part, at = FusionGroup(kernel.sizes), dict(zip(kernel.parameters, buffers))
    part.nodes, part.names, part.ops = like.nodes, like.names, like.ops
    part.folded, part.fold_axes = like.folded, like.fold_axes
    part.axis_orders, part.unsplittable_axes = like.axis_orders, like.unsplittable_axes
    part.sources = {node: at[x] for node, x in like.sources.items()}
    for parameter, stores in like.made.items():
        part.made.setdefault(at[parameter], []).extend(stores)
    return part


@once_per_kernel
def fusion_group_of_kernel(kernel):
    """Return a kernel as a part whose parameters stand for buffers, or None."""
    if 0 in kernel.sizes or not stores_are_affine(kernel):
        return None
    part, nodes = FusionGroup(kernel.sizes), kernel.nodes
    part.nodes = nodes
    part.sources = {x: x.detail.parameter for x in nodes if x.op == "load"}
    part.ops = len([node for node in nodes if node.op not in FREE_OPS])
    for store in kernel.stores:
        part.made.setdefault(store.parameter, []).append(store)
        part.names[store.node, kernel.name] = None
    folds = [node for node in nodes if node.op == "fold"]
    if folds:
        [*map(part.note_folds, nodes)]
        behind = part.behind()
        after = [behind[x].difference(x.level).union(x.detail.axes) for x in folds]
        pairs = [itertools.product(x.level, axes) for x, axes in zip(folds, after)]
        part.axis_orders = frozenset().union(*pairs)
        sought = [x.detail.axes for x in folds if x.detail.how[:3] == "arg"]
        part.unsplittable_axes = frozenset().union(*sought)
    return part


class FusionCandidate:
    """Two parts in the same loops, which may become one.

    Attributes:
      producer, consumer: the parts.
      links: what the first one hands over to the second, a list of `Link`.
      folds: of what the first part folds and the second one reads, the axes that are
        folded, those of the place, and those along which the second part goes on.
      axis_orders: pairs of loops of which the first has to be outside of the second.
    """

    def __init__(self, first, second, links=()):
        self.producer, self.consumer, self.edges, self.folds = first, second, links, []
        self.axis_orders = first.axis_orders | second.axis_orders
        folding = first.folding(second.sources.values())
        if folding:
            behind = second.behind()
            for node, buffer in second.sources.items():
                if buffer in folding:
                    kept = first.made[buffer][0].place.axes
                    after = behind[node].difference(kept)
                    self.folds.append((folding[buffer], kept, after))
                    self.axis_orders = self.axis_orders.union(
                        itertools.product(kept, after)
                    )

    def cache_elements(self, target):
        """Return how many numbers as long as what is handed over stay near."""
        itemsizes = [link.store.parameter.dtype.itemsize for link in self.edges]
        return 8 * target.cache_elements // max([4, *itemsizes])

    def as_group(self, gone=()):
        """Return the part of both, which is the first one grown if that was written.

        It is None if the first one makes an element at a place that cannot be told.

        Args:
          gone: buffers that need not be stored any more.
        """
        first = self.producer
        apart = [x.buffer for x in self.edges if not x.is_identity]
        if apart or not first.known:
            first = FusionGroup(first.sizes).take(first)
        both = first.take(self.consumer)
        if not {*apart}.isdisjoint(both.sources.values()):
            return None
        both.axis_orders = self.axis_orders
        both.elided_buffers = both.elided_buffers.union(gone)
        return both


def fused_group(first, second):
    """Return the part of two that are in the same loops."""
    return FusionCandidate(first, second).as_group()
