"""Radix sort in machine code, and sorts as steps of a program.

The words of the keys are made by kernels; the step orders them, row by row, and takes
the operands along.

Reference: D. Knuth, *The Art of Computer Programming*, volume 3, section 5.2.5.
"""

# Made from chapters/29_sorting_ground.md by `make chapter`;
# edit the chapter, not this file.

import math
from collections import Counter
from typing import NamedTuple

import numpy as np

from minijax.arrays.array import ShapedArray
from minijax.jitting.stages import FLOPS
from minijax.kernels.builder import (
    Buffer,
    UnsupportedKernel,
    row_major_strides,
    transpose_view,
)
from minijax.kernels.ir import sha256
from minijax.kernels.lowering import StepKind, array_from_view, copy_cost, step_kinds
from minijax.llvm.compiler import add_symbol
from minijax.llvm.instructions import FunctionBuilder
from minijax.llvm.targets import TargetLibrary
from minijax.rematerialization.caching import memoize

# Radix sort in machine code: a stable order of unsigned words, digit by digit.

BOXES, COUNTS_BYTES = 256, 1024
MAX_COUNTING_SORT_WORDS = 24  # so many words are sorted by counting smaller ones


def write_box(f, word, x):
    """Write the number of a word's box: the digit at ``%shift``."""
    digit = f.emit(f"lshr {word} {x}, %shift")
    return f.index(word, f.emit(f"and {word} {digit}, {BOXES - 1}"))


def write_next(f, box):
    """Write the counting up of a box; return what its counter was."""
    count = f.read("i32", "%counts", box)
    f.put("i32", f.emit(f"add i32 {count}, 1"), "%counts", box)
    return f.index("i32", count)


def write_moves(f, word):
    """Write the walk that puts each word, and its old place, into its box."""

    def move(i):
        key, place = f.read(word, "%keys", i), f.read("i32", "%places", i)
        new = write_next(f, write_box(f, word, key))
        f.put(word, key, "%new_keys", new)
        f.put("i32", place, "%new_places", new)

    f.each("%n", move)


class SortText(FunctionBuilder):
    """The text of a function on arrays of integers, in the making."""

    def read(self, kind, base, index):
        """Write the load of an element."""
        return self.load(kind, self.at(kind, base, index))

    def put(self, kind, x, base, index):
        """Write the store of an element."""
        self.store(kind, x, self.at(kind, base, index))

    def index(self, kind, x):
        """Write an unsigned integer as a place."""
        return x if kind == "i64" else self.emit(f"zext {kind} {x} to i64")

    def each(self, size, body):
        """Write a loop; `body` is a function of the index."""
        self.loop(size, [], lambda i, _: body(i) or [])


def bits_of(kind):
    """Return how many bits LLVM's type of an integer has."""
    return int(kind[1:])


def write_counts(f, word):
    """Write how many words go into each box."""
    f.each(BOXES, lambda box: f.put("i32", 0, "%counts", box))

    def count(i):
        write_next(f, write_box(f, word, f.read(word, "%keys", i)))

    f.each("%n", count)


def write_starts(f):
    """Write where each box starts, in place of how many words go into it."""

    def start(box, total):
        count = f.read("i32", "%counts", box)
        f.put("i32", total[0], "%counts", box)
        return [f.emit(f"add i32 {total[0]}, {count}")]

    f.loop(BOXES, [("i32", "0")], start)


def sort_module_text(f, result, name, params, value=""):
    """Return the text of a function, whose body has been written."""
    head = f"define {result} @{name}({params}) nounwind noinline {{"
    return "\n".join([head, "entry:", *f.lines, f"  ret {result} {value}", "}"])


def pass_text(word):
    """Return the text of a pass; its result says whether anything has moved."""
    f = SortText()
    write_counts(f, word)
    box = write_box(f, word, f.read(word, "%keys", 0))
    most = f.index("i32", f.read("i32", "%counts", box))
    differ = f.emit(f"icmp ne i64 {most}, %n")
    f.if_then(differ, lambda: [write_starts(f), write_moves(f, word)])
    params = f"i64 %n, {word} %shift, {word}* %keys, i32* %places, {word}* %new_keys, "
    params += "i32* %new_places, i32* %counts"
    return sort_module_text(f, "i1", "sort_pass", params, differ)


def write_passes(f, word, now, later, counts):
    """Write all passes of a word; the places end in ``%places``."""
    for shift in range(0, bits_of(word), 8):
        pairs = list(zip((f"{word}*", "i32*"), now, later))
        args = f"i64 %n, {word} {shift}, {word}* {now[0]}, i32* {now[1]}, "
        args += f"{word}* {later[0]}, i32* {later[1]}, i32* {counts}"
        moved = f.name()
        f.line(f"{moved} = call i1 @sort_pass({args})")
        choice = f"select i1 {moved}"
        now = [f.emit(f"{choice}, {kind} {b}, {kind} {a}") for kind, a, b in pairs]
        later = [f.emit(f"{choice}, {kind} {a}, {kind} {b}") for kind, a, b in pairs]
    elsewhere = f.emit(f"icmp ne i32* {now[1]}, %places")
    f.if_then(elsewhere, lambda: write_copy(f, now[1]))


def write_copy(f, places):
    """Write the copy of places to ``%places``."""
    f.each("%n", lambda i: f.put("i32", f.read("i32", places, i), "%places", i))


def write_few(f, word, keys, new_places):
    """Write the sort of few words: each goes behind those that are in front of it."""

    def rank(i):
        key = f.read(word, keys, i)

        def count(j, total):
            other = f.read(word, keys, j)
            less = f.emit(f"icmp ult {word} {other}, {key}")
            equal = f.emit(f"icmp eq {word} {other}, {key}")
            before = f.emit(f"and i1 {equal}, {f.emit(f'icmp ult i64 {j}, {i}')}")
            front = f.emit(f"zext i1 {f.emit(f'or i1 {less}, {before}')} to i64")
            return [f.emit(f"add i64 {total[0]}, {front}")]

        [place] = f.loop("%n", [("i64", "0")], count)
        f.put("i32", f.read("i32", "%places", i), new_places, place)

    f.each("%n", rank)
    write_copy(f, new_places)


def order_text(word):
    """Return the text of a function that rearranges places by the words there."""
    f, size = SortText(), bits_of(word) // 8
    counts = f.emit("bitcast i8* %space to i32*")
    start = f.emit(f"getelementptr i8, i8* %space, i64 {COUNTS_BYTES}")
    keys = f.emit(f"bitcast i8* {start} to {word}*")
    new_keys = f.emit(f"getelementptr {word}, {word}* {keys}, i64 %padded")
    end = f.emit(f"getelementptr {word}, {word}* {new_keys}, i64 %padded")
    new_places = f.emit(f"bitcast {word}* {end} to i32*")

    def gather(i):
        place = f.index("i32", f.read("i32", "%places", i))
        f.put(word, f.read(word, "%words", place), keys, i)

    f.each("%n", gather)
    few = f.emit(f"icmp ule i64 %n, {MAX_COUNTING_SORT_WORDS}")
    many = f.emit(f"xor i1 {few}, true")
    f.if_then(few, lambda: write_few(f, word, keys, new_places))
    now, later = (keys, "%places"), (new_keys, new_places)
    f.if_then(many, lambda: write_passes(f, word, now, later, counts))
    params = f"i64 %n, i64 %padded, {word}* %words, i32* %places, i8* %space"
    return sort_module_text(f, "void", f"sort_places_{size}", params)


def take_text(word):
    """Return the text of a function that moves elements to where places say."""
    f = SortText()

    def take(i):
        place = f.index("i32", f.read("i32", "%places", i))
        f.put(word, f.read(word, "%from", place), "%to", i)

    f.each("%n", take)
    params = f"i64 %n, {word}* %from, i32* %places, {word}* %to"
    return sort_module_text(f, "void", f"sort_take_{bits_of(word) // 8}", params)


def sort_workspace_bytes(n, size):
    """Return how many bytes `order_text` needs for n words of so many bytes."""
    return COUNTS_BYTES + pad_to_alignment(n) * (2 * size + 4)


def pad_to_alignment(n):
    """Return n, or a little more, so that what lies behind n words is aligned."""
    return -(-n // 64) * 64


@memoize
def sort_library(size, target):
    """Return the machine code for elements of some bytes; it stays for good."""
    word = f"i{8 * size}"
    texts = [take_text(word)]
    if size <= 8:
        texts += [pass_text(word), order_text(word)]
    return TargetLibrary("\n\n".join(texts), target)


def sort_address(name, size, target):
    """Return the address of a function: ``sort_places`` or ``sort_take``."""
    engine = sort_library(size, target).engine
    return engine.get_function_address(f"{name}_{size}")


# Sorts as steps of a program.


class Sort(NamedTuple):
    """A step: sort rows of words, and take rows of other arrays along.

    Attributes:
      words: views of unsigned integers, the most important first.
      operands, results: views of the arrays that are taken along, and of where to.
    """

    words: tuple
    operands: tuple
    results: tuple

    @property
    def programs(self):
        """The programs within the step: none."""
        return ()

    @property
    def reads(self):
        """The buffers that the step reads."""
        return [view.source for view in (*self.words, *self.operands)]

    @property
    def writes(self):
        """The buffers that the step writes to."""
        return [view.source for view in self.results]

    @property
    def sizes(self):
        """The number of rows, and the length of a row."""
        *rows, n = self.words[0].shape
        return math.prod(rows), n

    @property
    def workspace(self):
        """How many bytes of memory it needs besides."""
        n, size = self.sizes[1], max(x.dtype.itemsize for x in self.words)
        return 4 * pad_to_alignment(n) + sort_workspace_bytes(n, size)

    def __str__(self):
        words, operands, results = (" ".join(map(str, part)) for part in self)
        return f"{results} = sort {operands} by {words}"


def add_sort(lowering, axis, words, operands):
    """Add a `Sort` along an axis; return the views of its results."""
    shape = words[0].shape
    if not 2 <= shape[axis] < 2**31 or 0 in shape:
        raise UnsupportedKernel("there is nothing to sort, or too much")
    order = [*(k for k in range(len(shape)) if k != axis), axis]
    rows = [in_rows(lowering, transpose_view(x, order)) for x in (*words, *operands)]
    words, operands = rows[: len(words)], rows[len(words) :]
    results = [lowering.allocate(ShapedArray(x.shape, x.dtype)) for x in operands]
    lowering.steps.append(Sort(tuple(words), tuple(operands), tuple(results)))
    return [
        transpose_view(x, [order.index(k) for k in range(len(shape))]) for x in results
    ]


def in_rows(lowering, x):
    """Return an array whose rows lie one after the other: a copy, if need be."""
    if isinstance(x.source, Buffer) and x.strides == row_major_strides(x.shape):
        return x
    return lowering.copy(x)


def sorted_by_numpy(program, step):
    """Return a function of the memory that does a `Sort`, as NumPy does it."""

    def run(memory):
        words = [array_from_view(view, memory) for view in reversed(step.words)]
        places = np.lexsort(words, axis=-1)
        for source, result in zip(step.operands, step.results):
            moved = np.take_along_axis(array_from_view(source, memory), places, -1)
            array_from_view(result, memory)[...] = moved

    return run


def write_sort(f, step):
    """Write a loop over the rows: order the places, and take the operands there."""
    rows, n = step.sizes
    space = f.offset("%arena", f.program.locations.workspaces[id(step)])
    places = f.emit(f"bitcast i8* {space} to i32*")
    rest = f.offset(space, 4 * pad_to_alignment(n))
    starts = {view: start_of(f, view) for part in step for view in part}
    size = f"i64 {n}"

    def row(index, _):
        at = {x: sort_row_of(f, x, start, index, n) for x, start in starts.items()}
        f.loop(n, [], lambda i, _: write_place(f, places, i))
        for word in reversed(step.words):
            room = f"{size}, i64 {pad_to_alignment(n)}"
            args = f"{room}, {at[word]}, i32* {places}, i8* {rest}"
            write_known(f, "sort_places", word, args)
        for x, result in zip(step.operands, step.results):
            args = f"{size}, {at[x]}, i32* {places}, {at[result]}"
            write_known(f, "sort_take", x, args)
        return []

    f.loop(rows, [], row)


def kind_of_element(view):
    """Return LLVM's type of the elements of an array, as bits that are moved."""
    return f"i{8 * view.dtype.itemsize}"


def start_of(f, view):
    """Write the address of an array's first element."""
    distance = view.offset * view.dtype.itemsize
    address = f.offset(f.address(view.source), distance)
    kind = kind_of_element(view)
    return f.emit(f"bitcast i8* {address} to {kind}*", "p")


def sort_row_of(f, view, start, index, n):
    """Write the address of a row, as an argument."""
    kind, distance = kind_of_element(view), f.emit(f"mul i64 {index}, {n}")
    address = f.emit(f"getelementptr {kind}, {kind}* {start}, i64 {distance}", "p")
    return f"{kind}* {address}"


def write_place(f, places, index):
    """Write the store of a place's own number."""
    address = f.emit(f"getelementptr i32, i32* {places}, i64 {index}", "p")
    f.line(f"store i32 {f.emit(f'trunc i64 {index} to i32')}, i32* {address}")
    return []


def write_known(f, name, view, args):
    """Write a call of one of the functions that are in no program."""
    size, target = view.dtype.itemsize, f.program.target
    which = sha256(target.key.encode()).hexdigest()[:8]
    known = f"{name}_{size}_{which}"
    add_symbol(known, sort_address(name, size, target))
    kinds = ", ".join(arg.split()[0] for arg in args.split(", "))
    f.declare(f"declare void @{known}({kinds})")
    f.line(f"call void @{known}({args})")


def cost_of_sort(step):
    """Count a step for each digit of each word, and the bytes."""
    digits = sum(math.prod(x.shape) * x.dtype.itemsize for x in step.words)
    return Counter({FLOPS: digits}) + copy_cost(step)


step_kinds[Sort] = StepKind(sorted_by_numpy, cost_of_sort, write_sort)
