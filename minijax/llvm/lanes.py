"""Lanes: where the elements of a vector are, and masks for those that count."""

# Made from chapters/18_llvm_ground.md by `make chapter`;
# edit the chapter, not this file.

from contextlib import contextmanager
from typing import NamedTuple

from minijax.llvm.types import listed, splat, type_in_memory, vector_type, width_of
from minijax.llvm.writing import LLVMFunction


class Ahead(NamedTuple):
    """An index that is a number ahead of another one."""

    name: str
    number: int


class Elements(LLVMFunction):
    """The text of a function that reads and writes elements of parameters.

    Attributes:
      kernel: the `Kernel`.
      indices: what the index along each axis is called, or an int, or `Ahead`.
      axis: the axis along which vectors lie, inside of their loop.
      lanes: how many numbers a vector holds; 0 outside of such a loop.
      live: how many of them stand for an index below the size of the axis.
      end: that size, in a loop each of whose vectors has a mask.
      owned: memory that belongs to the function: from keys to names and types.
      reserved: from the same keys to how many numbers there is memory for.
      strips: from axes that are done in strips to where this one begins, how many
        indices it has, and how many of them are done.
    """

    def __init__(self, kernel):
        super().__init__()
        self.kernel, self.owned, self.reserved = kernel, {}, {}
        self.indices, self.axis, self.lanes, self.live = {}, None, 0, 0
        self.strips, self.end = {}, None

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
            return self.first(self.once(text, depth, text, "trunc i64 {} to i32"))
        live = self.live if self.end is None else min(self.end - index, self.lanes)
        return None if live == self.lanes else self.first(str(live))

    def is_tail(self):
        """Return whether this is the last vector, not full, behind a loop of others."""
        short = self.end is None and self.live != self.lanes
        return short and self.extent(self.axis) > self.lanes

    def first(self, count):
        """Write the mask of the first lanes, so many; return its name."""
        limit, depth = self.wide("i32", count, self.lanes), self.depths.get(count, 0)
        text = f"icmp ult <{self.lanes} x i32> {steps('i32', self.lanes)}, {limit}"
        return self.once(text, depth, text)

    def masked(self, *masks):
        """Return what all masks let through, those that are None left out."""
        return self.all_of(masks, self.lanes)

    def all_of(self, bools, lanes=0):
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
            name, ahead = index if isinstance(index, Ahead) else (index, 0)
            start += stride * (name if isinstance(name, int) else ahead)
            if not isinstance(name, int):
                terms.append((name, stride))
        return start, sorted(terms, key=lambda term: self.depths[term[0]])

    def term(self, index, stride):
        """Write a product; return its name, and the depth where it is known."""
        depth, text = self.depths[index], f"mul i64 {index}, {stride}"
        if stride == 1:
            return index, depth
        return self.once(text, depth, text), depth

    def number(self, place):
        """Write an `Affine`, of the first lane; return its name, or its literal."""
        start, terms = self.split(place)
        total = str(start)
        for term, depth in [self.term(*term) for term in terms]:
            text = f"add i64 {term}, {total}"
            total = term if total == "0" else self.once(text, depth, text)
        return total

    def address(self, parameter, place, computed=()):
        """Write the address of an element, that of the first lane; return its name."""
        start, terms = self.split(place, computed)
        kind, pointer, before = type_in_memory(parameter.dtype), f"%{parameter.name}", 0
        for term, depth in [self.term(*term) for term in terms]:
            text = f"getelementptr {kind}, {kind}* {pointer}, i64 {term}"
            pointer, before = self.once(text, depth, text), depth
        text = f"getelementptr {kind}, {kind}* {pointer}, i64 {start}"
        return self.once(text, before, text) if start else pointer

    def sum(self, index, number):
        """Write the sum of two indices, ints or names."""
        if isinstance(index, int) and isinstance(number, int):
            return index + number
        return self.emit(f"add i64 {index}, {number}", "a")

    def ahead(self, index, number):
        """Return an index that is a number ahead of another one."""
        return index + number if isinstance(index, int) else Ahead(index, number)

    def scratch(self, key, kind, size):
        """Return the address of memory for so many numbers that the function owns."""
        name, _ = self.owned.get(key) or (self.name("s"), "")
        if size > self.reserved.get(key, 0):
            self.reserved[key] = size
            self.owned[key], self.depths[name] = (name, kind), 0
        return name

    def owned_memory(self):
        """Return the lines that get what the function owns, and that give it back."""
        begin, end, room = [], [], ON_STACK
        for key, (name, kind) in self.owned.items():
            size = self.reserved[key] * width_of(kind)
            if size <= room:
                room -= size
                begin += on_stack(name, kind, size)
            else:
                begin += on_heap(name, kind, size)
                end.append(f"  call void @free(i8* {name}.got)")
        if end:
            self.needed["malloc"] = "declare i8* @malloc(i64)"
            self.needed["free"] = "declare void @free(i8*)"
        return begin, end

    def vectors(self, axis, lanes, write, masked=False):
        """Write a loop of full vectors along an axis, and one that is not full.

        Args:
          axis: the axis.
          lanes: how many numbers a vector holds.
          write: a function that writes turns; it is given the first index, the step,
            and how many turns there are.
          masked: whether the one that is not full is a turn of the loop as well, in
            which each vector has a mask.
        """
        size = self.extent(axis)
        parts = parts_of(size, lanes)
        if masked and size % lanes:
            self.end, parts = size, [(0, lanes, size // lanes + 1)]
        self.axis, self.lanes = axis, lanes
        for first, live, count in parts:
            self.live = live
            write(first, lanes, count)
        self.axis, self.lanes, self.live, self.end = None, 0, 0, None

    def inside(self, guards):
        """Write guards; return a bool and a mask, None for what does not occur."""
        scalar = mask = None
        for place, limit in guards:
            number, stride = self.number(place), self.along(place)
            if stride:
                mask = self.masked(mask, self._mask(number, stride, limit))
            else:
                fits = self.emit(f"icmp ult i64 {number}, {limit}", "g")
                scalar = self.all_of([scalar, fits])
        return scalar, mask

    def _mask(self, number, stride, limit):
        """Write in which lanes a number is at least 0 and below a limit."""
        kind, ahead = vector_type("i64", self.lanes), steps("i64", self.lanes, stride)
        first = self.wide("i64", number, self.lanes)
        numbers = self.emit(f"add {kind} {first}, {ahead}")
        limits = splat("i64", str(limit), self.lanes)
        return self.emit(f"icmp ult {kind} {numbers}, {limits}", "m")


ON_STACK = 2**13  # bytes of a function's own memory


def on_stack(name, kind, size):
    """Return the lines that get memory on the stack."""
    array = f"[{size // width_of(kind)} x {kind}]"
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


def parts_of(size, length):
    """Return the parts of a size: where they begin, their length, how many there are.

    They have one length, but for the last one, which is what is left.
    """
    whole, rest = divmod(size, length)
    parts = (0, length, whole), (size - rest, rest, 1)
    return [part for part in parts if part[1] and part[2]]


def steps(kind, lanes, stride=1):
    """Return the constant 0, 1, 2, ... in lanes, times a stride."""
    return listed(kind, range(0, lanes * stride, stride))
