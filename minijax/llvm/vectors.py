"""Vectors in LLVM's text: lanes, masks, loads, stores and folds."""

# Made from chapters/18_llvm_ground.md by `make chapter`;
# edit the chapter, not this file.

import functools
import itertools
from collections.abc import Callable
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from minijax.arrays.dtypes import short_dtype_name
from minijax.kernels.ir import (
    Affine,
    Guard,
    Parameter,
    child_steps,
    compute_dtype,
    fold_ops,
    is_scan,
)
from minijax.llvm.instructions import (
    HALF_CONVERSIONS,
    FunctionBuilder,
    half_conversion_function,
    instantiate_template,
    intrinsic_suffix,
    llvm_constant,
    llvm_memory_type,
    llvm_type,
    pointer_type,
    splat,
    type_bytes,
    vector_constant,
    vector_type,
)

# Lanes: where the elements of a vector are, and masks for those that count.


class IndexOffset(NamedTuple):
    """An index that is a number ahead of another one."""

    name: str
    number: int


class ElementEmitter(FunctionBuilder):
    """The text of a function that reads and writes elements of parameters.

    Attributes:
      kernel: the `Kernel`.
      indices: what the index along each axis is called, or an int, or `IndexOffset`.
      axis: the axis along which vectors lie, inside of their loop.
      lanes: how many numbers a vector holds; 0 outside of such a loop.
      live: how many of them stand for an index below the size of the axis.
      end: that size, in a loop each of whose vectors has a mask.
      scratch_arrays: memory that belongs to the function: from keys to names and types.
      reserved: from the same keys to how many numbers there is memory for.
      strips: from axes that are done in strips to where this one begins, how many
        indices it has, and how many of them are done.
      ranges: from axes to the first and the last index, in a part of a loop.
    """

    def __init__(self, kernel):
        super().__init__()
        self.kernel, self.scratch_arrays, self.reserved = kernel, {}, {}
        self.indices, self.axis, self.lanes, self.live = {}, None, 0, 0
        self.strips, self.end, self.ranges = {}, None, {}

    def extent(self, axis):
        """Return how many indices a loop along an axis goes through here."""
        return self.strips[axis][1] if axis in self.strips else self.kernel.sizes[axis]

    def move(self, axis, index, strip=0):
        """Say that the index along an axis is this one, or so many of a strip."""
        if strip:
            self.strips[axis] = index, strip, 0
        elif axis in self.strips:
            start, size, _ = self.strips[axis]
            self.strips[axis] = start, size, index
            index = self.sum(start, index)
        self.indices[axis] = index

    @contextmanager
    def within_strips(self):
        """Let indices be counted from the beginnings of strips for a while."""
        before = self.indices
        self.indices = before | {axis: x[2] for axis, x in self.strips.items()}
        yield
        self.indices = before

    def along(self, place):
        """Return the stride from one lane to the next."""
        return place.strides[self.axis] if self.lanes else 0

    def living(self):
        """Return the mask of the lanes that count, or None if all do."""
        index = self.indices[self.axis] if self.end is not None else 0
        if isinstance(index, str):
            text, depth = f"sub i64 {self.end}, {index}", self.depths[index]
            return self.first(
                self.cached_instructions(text, depth, text, "trunc i64 {} to i32")
            )
        live = self.live if self.end is None else min(self.end - index, self.lanes)
        return None if live == self.lanes else self.first(str(live))

    def is_remainder(self):
        """Return whether this is the last vector, not full, behind a loop of others."""
        short = self.end is None and self.live != self.lanes
        return short and self.extent(self.axis) > self.lanes

    def first(self, count):
        """Write the mask of the first lanes, so many; return its name."""
        limit, depth = self.splat("i32", count, self.lanes), self.depths.get(count, 0)
        text = (
            f"icmp ult <{self.lanes} x i32> {step_vector('i32', self.lanes)}, {limit}"
        )
        return self.cached_instructions(text, depth, text)

    def masked(self, *masks):
        """Return what all masks let through, those that are None left out."""
        return self.all_lanes(masks, self.lanes)

    def all_lanes(self, bools, lanes=0):
        """Return whether all bools are true, those that are None left out, or None."""
        found, kind = None, vector_type("i1", lanes)
        for each in filter(None, bools):
            found = self.emit(f"and {kind} {found}, {each}", "m") if found else each
        return found

    def split(self, place, computed=()):
        """Return the part of a place that is known now, and terms that are not.

        A term is an index and its factor; those known first come first. There may be
        `computed` terms besides, names or literals of numbers and their factors.
        """
        start, terms = place.offset, []
        for name, stride in computed:
            if name.startswith("%"):
                terms.append((name, stride))
            else:
                start += int(name) * stride
        for axis in place.axes:
            index, stride = self.indices[axis], place.strides[axis]
            name, ahead = index if isinstance(index, IndexOffset) else (index, 0)
            start += stride * (name if isinstance(name, int) else ahead)
            if not isinstance(name, int):
                terms.append((name, stride))
        return start, sorted(terms, key=lambda term: self.depths[term[0]])

    def term(self, index, stride):
        """Write a product; return its name, and the depth where it is known."""
        depth, text = self.depths[index], f"mul i64 {index}, {stride}"
        if stride == 1:
            return index, depth
        return self.cached_instructions(text, depth, text), depth

    def number(self, place):
        """Write an `Affine`, of the first lane; return its name, or its literal."""
        start, terms = self.split(place)
        total = str(start)
        for term, depth in [self.term(*term) for term in terms]:
            text = f"add i64 {term}, {total}"
            total = (
                term if total == "0" else self.cached_instructions(text, depth, text)
            )
        return total

    def address(self, parameter, place, computed=()):
        """Write the address of an element, that of the first lane; return its name."""
        start, terms = self.split(place, computed)
        kind = llvm_memory_type(parameter.dtype)
        pointer = f"%{parameter.name}"
        before = 0
        for term, depth in [self.term(*term) for term in terms]:
            text = f"getelementptr {kind}, {kind}* {pointer}, i64 {term}"
            pointer, before = self.cached_instructions(text, depth, text), depth
        text = f"getelementptr {kind}, {kind}* {pointer}, i64 {start}"
        return self.cached_instructions(text, before, text) if start else pointer

    def sum(self, index, number):
        """Write the sum of two indices, ints or names."""
        if isinstance(index, int) and isinstance(number, int):
            return index + number
        return self.emit(f"add i64 {index}, {number}", "a")

    def ahead(self, index, number):
        """Return an index that is a number ahead of another one."""
        return index + number if isinstance(index, int) else IndexOffset(index, number)

    def scratch(self, key, kind, size):
        """Return the address of memory for so many numbers that the function owns."""
        name, _ = self.scratch_arrays.get(key) or (self.name("s"), "")
        if size > self.reserved.get(key, 0):
            self.reserved[key] = size
            self.scratch_arrays[key], self.depths[name] = (name, kind), 0
        return name

    def scratch_pointer(self):
        """Return the lines that get what the function owns, and that give it back."""
        begin, end, room = [], [], ON_STACK
        for key, (name, kind) in self.scratch_arrays.items():
            size = self.reserved[key] * type_bytes(kind)
            if size <= room:
                room -= size
                begin += emit_alloca(name, kind, size)
            else:
                begin += on_heap(name, kind, size)
                end.append(f"  call void @free(i8* {name}.got)")
        if end:
            self.needed["malloc"] = "declare i8* @malloc(i64)"
            self.needed["free"] = "declare void @free(i8*)"
        return begin, end

    def vectors(self, axis, lanes, write, masked=False, edges=()):
        """Write a loop of full vectors along an axis, and one that is not full.

        Where there are edges, the loop is written in parts, between which a guard
        opens or closes.

        Args:
          axis: the axis.
          lanes: how many numbers a vector holds.
          write: a function that writes iterations; it gets the first index, the step,
            and how many iterations there are.
          masked: whether the one that is not full is in the loop as well, in
            which each vector has a mask.
          edges: indices at which a guard opens or closes.
        """
        size = self.extent(axis)
        parts = split_at_edges(size, lanes, edges)
        if masked and size % lanes and not edges:
            self.end, parts = size, [(0, lanes, size // lanes + 1)]
        self.axis, self.lanes = axis, lanes
        for first, live, count in parts:
            self.live = live
            if edges:
                self.ranges[axis] = first, first + lanes * (count - 1) + live - 1
            write(first, lanes, count)
        self.ranges.pop(axis, None)
        self.axis, self.lanes, self.live, self.end = None, 0, 0, None

    def at_least(self, number, least):
        """Write the greater one of a number and an int."""
        if not least:
            return number
        above = self.emit(f"icmp ugt i64 {number}, {least}", "b")
        return self.emit(f"select i1 {above}, i64 {number}, i64 {least}", "b")

    def begins_by(self, index):
        """Write whether a thread begins by an index, or None in a loop without edges:
        one number alone is its end there, and only the last thread comes so far."""
        return self.emit(f"icmp ule i64 %lo, {index}", "b") if self.ranges else None

    def bounds(self, place):
        """Return the least and the greatest number of a place in this part."""
        least = most = place.offset
        for axis in place.axes:
            ends = self.ranges.get(axis, (0, self.kernel.sizes[axis] - 1))
            found = sorted([place.strides[axis] * end for end in ends])
            least, most = least + found[0], most + found[1]
        return least, most

    def open_guards(self, guards):
        """Return the guards that may say outside in this part of a loop, or None if
        one of them always does."""
        if not self.ranges:
            return guards
        ends = [(self.bounds(place), limit) for place, limit in guards]
        if any(most < 0 or least >= limit for (least, most), limit in ends):
            return None
        pairs = zip(guards, ends)
        return [g for g, ((low, high), limit) in pairs if low < 0 or high >= limit]

    def is_settled(self, node):
        """Return what a comparison of indices is in this part of a loop: "true",
        "false", or None where it changes."""
        guards = guards_of(node, self.kernel.sizes) if self.ranges else ()
        found = self.open_guards(guards) if guards else guards
        return "false" if found is None else "true" if guards and not found else None

    def inside(self, guards):
        """Write guards; return a bool and a mask, None for what does not occur."""
        scalar = mask = None
        for place, limit in guards:
            number, stride = self.number(place), self.along(place)
            if stride:
                mask = self.masked(mask, self._mask(number, stride, limit))
            else:
                fits = self.emit(f"icmp ult i64 {number}, {limit}", "g")
                scalar = self.all_lanes([scalar, fits])
        return scalar, mask

    def _mask(self, number, stride, limit):
        """Write in which lanes a number is at least 0 and below a limit."""
        kind = vector_type("i64", self.lanes)
        ahead = step_vector("i64", self.lanes, stride)
        first = self.splat("i64", number, self.lanes)
        numbers = self.emit(f"add {kind} {first}, {ahead}")
        limits = splat("i64", str(limit), self.lanes)
        return self.emit(f"icmp ult {kind} {numbers}, {limits}", "m")


ON_STACK = 2**13  # bytes of a function's own memory


def emit_alloca(name, kind, size):
    """Return the lines that get memory on the stack."""
    array = f"[{size // type_bytes(kind)} x {kind}]"
    return [
        f"  {name}.all = alloca {array}, align 64",
        f"  {name} = getelementptr {array}, {array}* {name}.all, i64 0, i64 0",
    ]


def on_heap(name, kind, size):
    """Return the lines that get memory from the system; if it has none, the stack's."""
    return [
        f"  {name}.got = call i8* @malloc(i64 {size + 63})",
        f"  {name}.none = icmp eq i8* {name}.got, null",
        f"  {name}.size = select i1 {name}.none, i64 {size + 63}, i64 0",
        f"  {name}.stack = alloca i8, i64 {name}.size",
        f"  {name}.all = select i1 {name}.none, i8* {name}.stack, i8* {name}.got",
        f"  {name}.where = ptrtoint i8* {name}.all to i64",
        f"  {name}.back = sub i64 0, {name}.where",
        f"  {name}.skip = and i64 {name}.back, 63",
        f"  {name}.begin = getelementptr i8, i8* {name}.all, i64 {name}.skip",
        f"  {name} = bitcast i8* {name}.begin to {kind}*",
    ]


def split_extent(size, length):
    """Return the parts of a size: where they begin, their length, how many there are.

    They have one length, but for the last one, which is what is left.
    """
    whole, rest = divmod(size, length)
    parts = (0, length, whole), (size - rest, rest, 1)
    return [part for part in parts if part[1] and part[2]]


def step_vector(kind, lanes, stride=1):
    """Return the constant 0, 1, 2, ... in lanes, times a stride."""
    return vector_constant(kind, range(0, lanes * stride, stride))


# Of a loop that is split where a guard changes: vectors, and steps in all parts.
MIN_VECTORS, MAX_SPLIT_STEPS = 8, 512


def split_at_edges(size, lanes, edges):
    """Return the parts of a loop of vectors, as `split_extent` does, so that no edge is
    inside of one with more than one vector."""
    whole = size - size % lanes
    cuts = {end for edge in edges for end in (edge // lanes, -(-edge // lanes))}
    cuts = sorted({0, whole, *[min(lanes * cut, whole) for cut in cuts]})
    parts = [(a, lanes, (b - a) // lanes) for a, b in itertools.pairwise(cuts)]
    return parts + [(whole, size - whole, 1)] * (size > whole)


def guards_of(step, sizes):
    """Return the guards of a load, or a comparison of indices as one; else ()."""
    op = getattr(step, "op", "")
    if op == "load":
        return step.detail.guards
    if op not in COMPARED or step.args[0].dtype.kind not in "iu":
        return ()
    first, second = (affine_number(arg, sizes) for arg in step.args)
    if first is None or second is None:
        return ()
    less, equal = COMPARED[op]
    if less:
        first, second = second, first
    strides = [a - b for a, b in zip(first.strides, second.strides)]
    place = Affine(first.offset - second.offset - (not equal), tuple(strides))
    return (Guard(place, 2**62),)


# From comparisons to whether the first number is the smaller one, and may be equal.
COMPARED = {"lt": (1, 0), "le": (1, 1), "gt": (0, 0), "ge": (0, 1)}


def affine_number(node, sizes):
    """Return what a node is as an `Affine` of the indices; None if it is none."""
    still = (0,) * len(sizes)
    if node.op == "constant":
        return Affine(int(node.detail), still)
    if node.op == "index":
        return Affine(0, tuple(int(axis == node.detail) for axis in range(len(sizes))))
    args = [affine_number(arg, sizes) for arg in node.args] if node.op in AFFINE else []
    if not args or None in args:
        return None
    found = AFFINE[node.op](*args)
    info = np.iinfo(node.dtype) if node.dtype.kind in "iu" else None
    if found is None or info is None:
        return None
    least, most = found.bounds(sizes)
    return found if info.min <= least and most <= info.max else None


def _sum(a, b, sign=1):
    strides = [x + sign * y for x, y in zip(a.strides, b.strides)]
    return Affine(a.offset + sign * b.offset, tuple(strides))


def _product(a, b):
    if any(a.strides) and any(b.strides):
        return None
    a, factor = (b, a.offset) if any(b.strides) else (a, b.offset)
    return Affine(a.offset * factor, tuple(factor * x for x in a.strides))


# Operations on such numbers, as long as they fit into their dtype.
AFFINE: dict[str, Callable[..., "Affine | None"]] = {
    "add": _sum,
    "sub": lambda a, b: _sum(a, b, -1),
    "mul": _product,
    "convert": lambda a: a,
}


def guard_edges(f, loop):
    """Return the indices of a loop of vectors at which a guard opens or closes.

    There are none if the loop is short, or would have too long a text, or adds up in
    blocks, which have to stay as they are.
    """
    axis, size = loop.axis, f.extent(loop.axis)
    if loop.blocked or axis in f.strips or size < MIN_VECTORS * loop.count:
        return ()
    found, steps = set(), [*loop.body]
    for step in steps:
        steps += child_steps(step)
        for place, limit in guards_of(step, f.kernel.sizes):
            if place.axes == (axis,):
                stride = place.strides[axis]
                ends = -place.offset, limit - place.offset
                ends = ends if stride > 0 else [end - 1 for end in ends]
                found.update([-(-end // stride) for end in ends])
    found = sorted(edge for edge in found if 0 < edge < size)
    text = len(split_at_edges(size, loop.count, found)) * len(steps)
    return found if text <= MAX_SPLIT_STEPS else ()


# Vectors from memory and into it: in a row, backwards, spread out, behind masks.


def emit_load(f, parameter, place, guards, other, terms=(), args=()):
    """Write a load; return the name of a scalar, or of a vector if it varies.

    Args:
      f: the text of the kernel.
      parameter, place, guards, other, terms: as in a `Load`.
      args: the nodes of the terms' numbers.
    """
    varies = any(f.along(p) for p in [place, *[guard.place for guard in guards]])
    lanes = f.lanes if varies or any(map(f.lanes_of, args)) else 0
    kind = llvm_type(parameter.dtype)
    other = splat(kind, llvm_constant(other), lanes)
    guards = f.open_guards(guards)
    if parameter.size == 0 or guards is None:
        return other
    scalar, mask = emit_limits_hold(f, args, terms, *f.inside(guards))
    numbers, ahead = emit_indirect_terms(f, args, terms)
    if scalar and not mask and is_whole_row(f, parameter, place, ahead):
        start = address_if(f, parameter, scalar, f.address(parameter, place, numbers))
        x = read_row(f, llvm_memory_type(parameter.dtype), start, lanes)
        chosen = f.splat("i1", scalar, lanes)
    elif f.along(place) or ahead:
        chosen = f.masked(mask, scalar and f.splat("i1", scalar, lanes))
        x = emit_vector_load(
            f, parameter, place, f.masked(chosen, f.living()), numbers, ahead
        )
    else:
        x = read_one(f, parameter, f.address(parameter, place, numbers), scalar, mask)
        chosen = f.masked(mask, scalar and f.splat("i1", scalar, lanes))
        x = f.splat(llvm_memory_type(parameter.dtype), x, lanes)
    x = emit_widen(f, parameter.dtype, x, lanes)
    return f.select(chosen, x, other, kind, lanes) if chosen else x


def is_whole_row(f, parameter, place, ahead):
    """Return whether a full vector of neighbours is read, and the parameter has one."""
    row = f.along(place) == 1 and not ahead and parameter.size >= f.lanes
    return row and not f.living()


def emit_limits_hold(f, numbers, terms, scalar=None, mask=None):
    """Write whether computed numbers keep the limits of their terms.

    Args:
      f: the text of the kernel.
      numbers: nodes.
      terms: tuple of `IndirectTerm`.
      scalar, mask: what there is to say besides, or None.

    Returns:
      A bool and a mask, None for what does not occur.
    """
    for number, term in zip(numbers, terms):
        lanes = f.lanes_of(number)
        limit = splat("i64", str(term.limit), lanes)
        kind, name = vector_type("i64", lanes), f.names[number]
        fits = f.emit(f"icmp ult {kind} {name}, {limit}", "g")
        if lanes:
            mask = f.masked(mask, fits)
        else:
            scalar = f.all_lanes([scalar, fits])
    return scalar, mask


def emit_indirect_terms(f, numbers, terms):
    """Return the computed terms of all lanes, and the name of those of each, or None.

    The first are pairs of a name and a factor.
    """
    pairs = [(number, term.stride) for number, term in zip(numbers, terms)]
    alike = [(f.names[x], stride) for x, stride in pairs if not f.lanes_of(x)]
    kind, total = vector_type("i64", f.lanes), None
    for number, stride in [pair for pair in pairs if f.lanes_of(pair[0])]:
        factor = splat("i64", str(stride), f.lanes)
        x = f.emit(f"mul {kind} {f.names[number]}, {factor}")
        total = f.emit(f"add {kind} {total}, {x}") if total else x
    return alike, total


def emit_vector_load(f, parameter, place, mask, numbers=(), ahead=None):
    """Write the load of an element for each lane that `mask` lets through.

    Args:
      f: the text of the kernel.
      parameter: what is read.
      place: an `Affine`.
      mask: a mask, or None.
      numbers: computed terms of the place, as for `split`.
      ahead: the name of numbers, one for each lane, which are added to the place.
    """
    kind, stride = llvm_memory_type(parameter.dtype), f.along(place)
    if ahead:
        start = f.address(parameter, place, numbers)
        return emit_gather(f, kind, start, parameter, stride, mask, ahead)
    if stride == 1:
        return read_early(f, kind, f.address(parameter, place, numbers), mask)
    if stride == -1:
        first = place._replace(offset=place.offset - f.live + 1)
        mask = mask and emit_vector_reverse(f, "i1", mask)
        start = f.address(parameter, first, numbers)
        return emit_vector_reverse(f, kind, read_row(f, kind, start, f.lanes, mask))
    varies = mask if mask != f.living() else None
    start = f.address(parameter, place, numbers)
    if varies or not 1 < stride <= 4:
        return emit_gather(f, kind, start, parameter, stride, varies)
    return read_comb(f, kind, start, stride)


def read_early(f, kind, address, mask):
    """Write the load of neighbours in a parameter where it is known which, and once."""
    depth = max(f.depths.get(name, 0) for name in (address, mask))
    key = "row", address, mask, f.lanes
    return f.written(key, depth, lambda: read_row(f, kind, address, f.lanes, mask))


def read_one(f, parameter, address, scalar, mask):
    """Write the load of one element; of the first, where no lane asks for one."""
    kind = llvm_memory_type(parameter.dtype)
    scalar = f.all_lanes([scalar, mask and f.any_lane(mask, f.lanes)])
    return f.load(kind, address_if(f, parameter, scalar, address))


def address_if(f, parameter, condition, address):
    """Write the choice of an address, or of that of the first element of all."""
    if not condition:
        return address
    kind = pointer_type(llvm_memory_type(parameter.dtype))
    return f.select(condition, address, f"%{parameter.name}", kind)


def emit_gather(f, kind, start, parameter, stride, mask, ahead=None):
    """Write the load of elements one by one; a masked lane takes the first of all."""
    x = "undef"
    for lane in range(f.live):
        here = lane_address(f, kind, start, stride, ahead, lane)
        bit = mask and f.extract_element("i1", mask, f.lanes, lane)
        element = f.load(kind, address_if(f, parameter, bit, here))
        x = f.insert_element(kind, x, f.lanes, lane, element)
    return x


def lane_address(f, kind, start, stride, ahead, lane):
    """Write the address of the element of a lane."""
    here = f.at(kind, start, stride * lane)
    return (
        f.at(kind, here, f.extract_element("i64", ahead, f.lanes, lane))
        if ahead
        else here
    )


def read_comb(f, kind, start, stride):
    """Write the load of all elements between some, of which those in between go."""
    lanes, live, wide = f.lanes, f.live, f.lanes * stride
    f.lanes, f.live = wide, (live - 1) * stride + 1
    x = read_row(f, kind, start, wide, f.living())
    f.lanes, f.live = lanes, live
    return f.shuffle(kind, x, "undef", range(0, wide, stride), wide)


def read_row(f, kind, address, lanes, mask=None):
    """Write the load of neighbours, or of a number for no lanes."""
    if not mask and is_read_in_parts(kind, lanes):
        return read_odd_row(f, kind, address, lanes)
    if not mask:
        return f.load(kind, address, lanes)
    pointer = f.cast(kind, address, vector_type(kind, lanes))
    return emit_masked_load(f, kind, pointer, lanes, mask)


def is_read_in_parts(kind, lanes):
    """Return whether a row is longer than a short vector, and no whole long one."""
    long = kind in ("float", "double", "i32", "i64") and type_bytes(kind) * lanes > 16
    return long and bool(lanes & (lanes - 1))


def read_odd_row(f, kind, address, lanes):
    """Write the load of neighbours as that of a whole vector, which is cut off."""
    whole = 1 << lanes.bit_length()
    pointer = f.cast(kind, address, vector_type(kind, whole))
    mask = vector_constant("i1", [int(lane < lanes) for lane in range(whole)])
    x = emit_masked_load(f, kind, pointer, whole, mask)
    return f.shuffle(kind, x, "undef", range(lanes), whole)


def emit_masked_load(f, kind, pointer, lanes, mask):
    """Write the load of those neighbours that a mask lets through."""
    vector, name = vector_type(kind, lanes), intrinsic_suffix(kind, lanes)
    bools, other = (f"<{lanes} x i1>", mask), (vector, "zeroinitializer")
    where = (f"{vector}*", pointer), ("i32", type_bytes(kind))
    return f.call(vector, f"llvm.masked.load.{name}.p0{name}", *where, bools, other)


def emit_row(f, kind, address, x, lanes, mask=None):
    """Write the store of neighbours, or of a number for no lanes."""
    if not mask:
        return f.store(kind, x, address, lanes)
    if f.live == 1:
        return emit_first(f, kind, address, x)
    pointer = f.cast(kind, address, vector_type(kind, lanes))
    return emit_masked_store(f, kind, pointer, x, lanes, mask)


def emit_masked_store(f, kind, pointer, x, lanes, mask):
    """Write the store of those neighbours that a mask lets through."""
    vector, name = vector_type(kind, lanes), intrinsic_suffix(kind, lanes)
    where = (f"{vector}*", pointer), ("i32", type_bytes(kind))
    some = (vector, x), *where, (f"<{lanes} x i1>", mask)
    return f.call("void", f"llvm.masked.store.{name}.p0{name}", *some)


def emit_first(f, kind, address, x):
    """Write the store of the number in the first lane.

    A mask of this lane alone will not do: on processors with AVX-512, LLVM 22.1 then
    stores the number as it was before it was narrowed, over what lies behind it.
    """
    f.store(kind, f.extract_element(kind, x, f.lanes, 0), address)


def emit_vector_reverse(f, kind, x):
    """Write a vector with the lanes that count in the opposite order."""
    order = [*range(f.live - 1, -1, -1), *[f.lanes] * (f.lanes - f.live)]
    return f.shuffle(kind, x, "zeroinitializer", order, f.lanes)


def emit_store(f, parameter, place, x):
    """Write the store of a scalar, or of a vector along which the place moves."""
    kind, stride = llvm_memory_type(parameter.dtype), f.along(place)
    x = emit_narrow(f, parameter.dtype, x, f.lanes)
    if not f.lanes or stride == 1:
        emit_row(f, kind, f.address(parameter, place), x, f.lanes, f.living())
    elif stride == -1:
        first = f.address(parameter, place._replace(offset=place.offset - f.live + 1))
        emit_row(f, kind, first, emit_vector_reverse(f, kind, x), f.lanes, f.living())
    else:
        start = f.address(parameter, place)
        for lane in range(f.live):
            element = f.extract_element(kind, x, f.lanes, lane)
            f.store(kind, element, lane_address(f, kind, start, stride, None, lane))


def emit_update(f, store):
    """Write a store at computed places; what is outside of a limit is dropped."""
    parameter, place, node, update = store
    if f.lanes and (f.along(place) != 1 or any(map(f.lanes_of, update.at))):
        return emit_each(f, store)
    inside, _ = emit_limits_hold(f, update.at, update.terms)
    numbers, _ = emit_indirect_terms(f, update.at, update.terms)

    def write():
        address = f.address(parameter, place, numbers)
        emit_entry(f, store, address, f.operand(node, f.lanes), f.lanes)

    if parameter.size:
        emit_if(f, inside, write)


def emit_each(f, store):
    """Write a store at computed places, one lane after the other."""
    parameter, place, node, update = store
    kind, number = llvm_memory_type(parameter.dtype), llvm_type(node.dtype)
    scalar, mask = emit_limits_hold(f, update.at, update.terms)
    numbers, ahead = emit_indirect_terms(f, update.at, update.terms)
    start, x = f.address(parameter, place, numbers), f.operand(node, f.lanes)
    mask = mask and f.masked(mask, scalar and f.splat("i1", scalar, f.lanes))

    def write(lane):
        here = lane_address(f, kind, start, f.along(place), ahead, lane)
        emit_entry(f, store, here, f.extract_element(number, x, f.lanes, lane), 0)

    for lane in range(f.live if parameter.size else 0):
        inside = f.extract_element("i1", mask, f.lanes, lane) if mask else scalar
        emit_if(f, inside, functools.partial(write, lane))


def emit_if(f, condition, write):
    """Write what is done under a condition, or always if it is None."""
    return f.if_then(condition, write) if condition else write()


def emit_entry(f, store, address, x, lanes):
    """Write how a number, or neighbours, enter what is at an address."""
    dtype, how = store.parameter.dtype, store.update.how
    kind, wide = llvm_memory_type(dtype), compute_dtype(dtype)
    mask = f.living() if lanes else None
    if how != "set":
        old = emit_widen(f, dtype, read_row(f, kind, address, lanes, mask), lanes)
        x = f.operation(how, [old, x], wide, wide, lanes)
    emit_row(f, kind, address, emit_narrow(f, dtype, x, lanes), lanes, mask)


def emit_widen(f, dtype, x, lanes):
    """Write what makes numbers of elements in memory; return their name."""
    if dtype.kind == "b":
        kind = vector_type("i8", lanes)
        return f.emit(f"icmp ne {kind} {x}, {splat('i8', '0', lanes)}")
    if dtype == compute_dtype(dtype):
        return x
    return _half(f, f"from_{short_dtype_name(dtype)}", x, lanes)


def emit_narrow(f, dtype, x, lanes):
    """Write what makes elements in memory of numbers; return their name."""
    if dtype.kind == "b":
        return f.emit(
            f"zext {vector_type('i1', lanes)} {x} to {vector_type('i8', lanes)}"
        )
    if dtype == compute_dtype(dtype):
        return x
    return _half(f, f"to_{short_dtype_name(dtype)}", x, lanes)


def _half(f, name, x, lanes):
    """Write one of the conversions of narrow floats, or the call of its function."""
    if f.halves and name in HALF_CONVERSIONS:
        return f.instructions(instantiate_template(HALF_CONVERSIONS[name], lanes), [x])
    old, new = ("i16", "float") if name.startswith("from") else ("float", "i16")
    label, text = half_conversion_function(name, lanes)
    result = f.call(vector_type(new, lanes), label, (vector_type(old, lanes), x))
    f.needed[label] = text
    return result


def emit_scratch_store(f, key, dtype, place, size, x, lanes):
    """Write the store of a scalar or of neighbours into memory of the function."""
    kind, address = _own(f, key, dtype, place, size + lanes)
    f.store(kind, emit_narrow(f, dtype, x, lanes), address, lanes)


def emit_scratch_load(f, key, dtype, place, size, lanes):
    """Write the load of a scalar or of neighbours from memory of the function."""
    kind, address = _own(f, key, dtype, place, size + lanes)
    return emit_widen(f, dtype, f.load(kind, address, lanes), lanes)


def _own(f, key, dtype, place, size):
    kind = llvm_memory_type(dtype)
    start = f.scratch(key, kind, size)
    return kind, f.address(Parameter(start.removeprefix("%"), dtype, size), place)


# Folds of vectors: many running values at once, and how they become one.

BOOL, PLACE_DTYPE = np.dtype(bool), np.dtype(np.int64)


def fold_value_types(fold, lanes):
    """Return the types of the running values of a fold: for extremes, places too."""
    kinds = [llvm_type(fold.args[0].dtype), "i64"][: 1 + places_too(fold)]
    return [vector_type(kind, lanes) for kind in kinds]


def places_too(fold):
    """Return whether a fold finds a place."""
    return fold.detail.how.startswith("arg")


def fold_init_values(fold, lanes):
    """Return the running values of a fold at the start."""
    [arg] = fold.args
    start = llvm_constant(fold_ops[fold.detail.how].start(arg.dtype))
    values = [splat(llvm_type(arg.dtype), start, lanes), splat("i64", "0", lanes)]
    return values[: 1 + places_too(fold)]


def emit_index(f, axis):
    """Write the index along an axis, one for each lane if vectors lie along it."""
    index = f.indices[axis]
    index = str(f.sum(*index) if isinstance(index, IndexOffset) else index)
    if not f.lanes or axis != f.axis:
        return index
    ahead = f"add <{f.lanes} x i64> {{}}, {step_vector('i64', f.lanes)}"
    return f.emit(ahead.format(f.splat("i64", index, f.lanes)), "i")


def emit_combination(f, fold):
    """Write how one more number, or one for each lane, enters a fold."""
    [arg], lanes, old = fold.args, f.open[fold], f.running[fold]
    new = [f.operand(arg, lanes)]
    if places_too(fold):
        [axis] = fold.detail.axes
        place = emit_index(f, axis)
        new.append(place if axis == f.axis else f.splat("i64", place, lanes))
    result = emit_fold_combination(f, fold, old, new, lanes)
    mask = f.living() if fold.detail.axes.count(f.axis) else None
    if not mask:
        return result
    values = zip(fold_value_types(fold, 0), result, old)
    return [f.select(mask, x, before, kind, lanes) for kind, x, before in values]


def emit_fold_combination(f, fold, old, new, lanes, ties=False):
    """Write the combination of the values of a fold with others."""
    dtype, how = fold.args[0].dtype, fold.detail.how
    if not places_too(fold):
        return [f.operation(how, [*old, *new], dtype, dtype, lanes, "contract ")]
    wins = emit_wins(f, how, dtype, old, new, lanes, ties)
    return [
        f.operation("select", [wins, *pair], kind, kind, lanes)
        for kind, *pair in zip((dtype, PLACE_DTYPE), new, old)
    ]


def emit_horizontal_fold(f, fold, values, lanes):
    """Write the fold of the lanes: one half with the other, down to a single one.

    The last one of an odd number waits for the next time.
    """
    kinds = fold_value_types(fold, 0)

    def parts(lanes, order):
        pairs = zip(kinds, values)
        return [f.shuffle(kind, x, "undef", order, lanes) for kind, x in pairs]

    while lanes > 1:
        half, odd = divmod(lanes, 2)
        old, new = (parts(lanes, range(start, start + half)) for start in (0, half))
        found = emit_fold_combination(f, fold, old, new, half, ties=True)
        if odd:
            last = parts(lanes, [lanes - 1])
            found = [
                emit_insert_lane(f, *three, half) for three in zip(kinds, found, last)
            ]
        values, lanes = found, half + odd
    return [f.extract_element(*pair, 1, 0) for pair in zip(kinds, values)]


def packable_folds(folds, ends):
    """Return lists of folds whose lanes can be folded together, or that are alone.

    Args:
      folds: those whose lanes are folded.
      ends: from folds to their running values and the lanes of these.
    """
    groups = {}
    for each in folds:
        lanes, dtype = ends[each][1], each.args[0].dtype
        few = lanes < 8 and lanes & (lanes - 1)  # three lanes are faster by themselves
        own = each if few or places_too(each) else None
        groups.setdefault((each.detail.how, dtype, lanes, own), []).append(each)
    return groups.values()


def emit_horizontal_folds(f, folds, ends):
    """Write the fold of the lanes of alike folds; return the names of the results."""
    values, lanes = ends[folds[0]]
    if len(folds) == 1:
        return emit_horizontal_fold(f, folds[0], values, lanes)[-1:]
    return fold_side_by_side(f, folds[0], [ends[each][0][0] for each in folds], lanes)


def fold_side_by_side(f, fold, vectors, lanes):
    """Write the fold of the lanes of several vectors; return the names of the results.

    What is left of two vectors, half of the lanes of each, fits in one. The last lane
    of an odd number waits for the next time, as in `emit_horizontal_fold`.

    Args:
      fold: how it is done; `vectors` are its, or those of folds like it.
      lanes: of a vector.
    """
    width = length = lanes
    kind, count = llvm_type(fold.args[0].dtype), len(vectors)
    shuffle = functools.partial(f.shuffle, kind)
    while length > 1:
        half, left = length // 2, length - length // 2
        starts = range(0, width * min(2, len(vectors)), length)
        last = [half * 2] * (left - half)
        low = [start + lane for start in starts for lane in (*range(half), *last)]
        high = [start + half + lane for start in starts for lane in range(left)]
        pairs = itertools.zip_longest(vectors[::2], vectors[1::2], fillvalue="undef")
        halves = [[shuffle(*x, order, width) for order in (low, high)] for x in pairs]
        width, length = len(low), left
        vectors = [
            emit_fold_combination(f, fold, x[:1], x[1:], width)[0] for x in halves
        ]
        if last:
            order = [lane + width * (lane % left < half) for lane in range(width)]
            pairs = zip([x for x, _ in halves], vectors)
            vectors = [shuffle(*x, order, width) for x in pairs]
    each = [(x, lane) for x in vectors for lane in range(width)]
    return [f.extract_element(kind, x, width, lane) for x, lane in each[:count]]


def emit_insert_lane(f, kind, x, last, lanes):
    """Write a vector with one more lane."""
    longer = f.shuffle(kind, x, "undef", [*range(lanes), 0], lanes)
    element = f.extract_element(kind, last, 1, 0)
    return f.insert_element(kind, longer, lanes + 1, lanes, element)


def emit_wins(f, how, dtype, old, new, lanes, ties):
    """Write whether the new one of two candidates is better; NaN is best of all.

    Of equals the old one stays; with `ties`, the one whose place comes first.
    """

    def write(op, x, y, dtype=BOOL):
        return f.operation(op, [x, y], dtype, BOOL, lanes)

    (best, place), (rival, other) = old, new
    wins = write("gt" if how == "argmax" else "lt", rival, best, dtype)
    before = write("lt", other, place, PLACE_DTYPE) if ties else None
    if ties:
        equal = write("eq", rival, best, dtype)
        wins = write("or", wins, write("and", equal, before))
    if dtype.kind != "f":
        return wins
    known = write("eq", best, best, dtype)
    known = write("or", known, before) if ties else known
    return write("or", wins, write("and", write("ne", rival, rival, dtype), known))


def accumulators(f, folds):
    """Return the names of the running values of some folds."""
    return [name for each in folds for name in f.running[each]]


def set_accumulators(f, folds, names):
    """Say how the running values of some folds are called from now on."""
    names = iter(names)
    for each in folds:
        f.running[each] = [next(names) for _ in f.running[each]]


def with_fresh_accumulators(f, folds, write):
    """Write something that begins folds anew; its values enter those before.

    Those that run go on.
    """
    folds = [each for each in folds if not is_scan(each)]
    before = {each: f.running[each] for each in folds}
    f.running |= {each: fold_init_values(each, f.open[each]) for each in folds}
    write()
    for each in folds:
        values = before[each], f.running[each]
        f.running[each] = emit_fold_combination(f, each, *values, f.open[each])
