"""Sorts as steps of a program.

The words of the keys are made by kernels; the step orders them, row by row, and takes
the operands along.
"""

# Made from chapters/29_sorting_ground.md by `make chapter`;
# edit the chapter, not this file.

import math
from collections import Counter
from typing import NamedTuple

import numpy as np

from minijax.arrays.avals import ShapedArray
from minijax.jitting.costs import FLOPS
from minijax.kernels.backends import array_of
from minijax.kernels.building import NoKernel
from minijax.kernels.parts import sha256
from minijax.kernels.program_steps import StepKind, cost_of_moving, step_kinds
from minijax.kernels.views import Buffer, permuted, row_major
from minijax.llvm.compiler import make_known
from minijax.sorting.radix import padded, sort_address, workspace


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
        return 4 * padded(n) + workspace(n, size)

    def __str__(self):
        words, operands, results = (" ".join(map(str, part)) for part in self)
        return f"{results} = sort {operands} by {words}"


def add_sort(lowering, axis, words, operands):
    """Add a `Sort` along an axis; return the views of its results."""
    shape = words[0].shape
    if not 2 <= shape[axis] < 2**31 or 0 in shape:
        raise NoKernel("there is nothing to sort, or too much")
    order = [*(k for k in range(len(shape)) if k != axis), axis]
    rows = [in_rows(lowering, permuted(x, order)) for x in (*words, *operands)]
    words, operands = rows[: len(words)], rows[len(words) :]
    results = [lowering.allocate(ShapedArray(x.shape, x.dtype)) for x in operands]
    lowering.steps.append(Sort(tuple(words), tuple(operands), tuple(results)))
    return [permuted(x, [order.index(k) for k in range(len(shape))]) for x in results]


def in_rows(lowering, x):
    """Return an array whose rows lie one after the other: a copy, if need be."""
    if isinstance(x.source, Buffer) and x.strides == row_major(x.shape):
        return x
    return lowering.copy(x)


def sorted_by_numpy(program, step):
    """Return a function of the memory that does a `Sort`, as NumPy does it."""

    def run(memory):
        words = [array_of(view, memory) for view in reversed(step.words)]
        places = np.lexsort(words, axis=-1)
        for source, result in zip(step.operands, step.results):
            moved = np.take_along_axis(array_of(source, memory), places, -1)
            array_of(result, memory)[...] = moved

    return run


def write_sort(f, step):
    """Write a loop over the rows: order the places, and take the operands there."""
    rows, n = step.sizes
    space = f.offset("%arena", f.program.locations.workspaces[id(step)])
    places = f.emit(f"bitcast i8* {space} to i32*")
    rest = f.offset(space, 4 * padded(n))
    starts = {view: start_of(f, view) for part in step for view in part}
    size = f"i64 {n}"

    def row(index, _):
        at = {x: row_of(f, x, start, index, n) for x, start in starts.items()}
        f.loop(n, [], lambda i, _: write_place(f, places, i))
        for word in reversed(step.words):
            args = f"{size}, i64 {padded(n)}, {at[word]}, i32* {places}, i8* {rest}"
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


def row_of(f, view, start, index, n):
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
    make_known(known, sort_address(name, size, target))
    kinds = ", ".join(arg.split()[0] for arg in args.split(", "))
    f.declare(f"declare void @{known}({kinds})")
    f.line(f"call void @{known}({args})")


def cost_of_sort(step):
    """Count a step for each digit of each word, and the bytes."""
    digits = sum(math.prod(x.shape) * x.dtype.itemsize for x in step.words)
    return Counter({FLOPS: digits}) + cost_of_moving(step)


step_kinds[Sort] = StepKind(sorted_by_numpy, cost_of_sort, write_sort)
