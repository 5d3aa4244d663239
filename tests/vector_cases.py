"""Kernels to try with vectors: sizes around the lanes, and targets that are forced.

python -m tests.vector_cases --seed 7 --count 200 --target avx2

Machine code runs in the process of this command, so that a crash of it ends no test.
"""

import itertools
import sys
from importlib import import_module

import numpy as np

from minijax.fusion.fusion_pass import fuse
from minijax.kernels.builder import scan_node
from minijax.kernels.checker import check_kernel
from minijax.kernels.ir import Affine, Guard, IndirectTerm, Parameter, Store, Update
from minijax.kernels.loop_nests import (
    Kernel,
    constant_node,
    fold_node,
    index_node,
    interpret,
    load_node,
    op_node,
)
from minijax.llvm import codegen as kernel_text
from minijax.llvm.codegen import module_ir
from minijax.llvm.targets import (
    TargetLibrary,
    forced_target,
    host_target,
    kernel_function,
)
from minijax.passes.pipeline import simplify
from minijax.vectorization import row_schedules as marks
from tests import kernel_cases
from tests.array_cases import dtype_of
from tests.commands import options_of, reported

for _name in ("row_schedules", "schedules"):
    import_module(f"minijax.vectorization.{_name}")  # ways to change a nest

F32 = np.dtype("float32")


class LongChance(kernel_cases.Chance):
    """Draws kernels with axes around the lengths of vectors."""

    def sizes(self):
        """Sizes of up to three axes."""
        sizes = [self.one([1, 2, 3, 7, 16]) for _ in range(self.rng.integers(1, 4))]
        place = self.rng.integers(len(sizes))
        sizes[place] = self.one([15, 16, 17, 31, 33, 64, 65, 100, 128, 129, 131, 257])
        return tuple(sizes)

    def node(self, nodes, sizes):
        """A node; long products of floats depend on their order, and become sums."""
        node = super().node(nodes, sizes)
        if node.op != "fold" or node.detail.how != "mul":
            return node
        return fold_node("add", node.detail.axes, *node.args)


class RowChance(LongChance):
    """Draws kernels that end in rows of narrow numbers, one beside the other."""

    def sizes(self):
        """Sizes of two or three axes; one is some vectors long, or one more or less."""
        sizes = [self.one([1, 2, 3, 5]) for _ in range(self.one([1, 2, 2]))]
        size = self.one([8, 16, 32, 64]) * self.one([1, 2, 3]) + self.one([-1, 0, 1, 1])
        sizes.insert(self.rng.integers(len(sizes) + 1), size)
        return tuple(sizes)

    def ending(self, nodes):
        """Some node that varies, in a narrow dtype."""
        long = [x for x in nodes if x.level] or nodes
        dtype = np.dtype(self.one(["float32", "float32", "int8", "uint16", "int32"]))
        return [op_node("convert", self.one(long), dtype=dtype)]

    def stored(self, dtype):
        """Floats become halves in memory."""
        halves = [dtype_of(name) for name in ("float16", "bfloat16")]
        return self.one(halves) if dtype == F32 else dtype

    def place(self, sizes, size_of=None):
        """Results lie close together, in rows of the longest axis."""
        if size_of is None:
            return super().place(sizes)
        strides, size = [0] * len(sizes), 1
        longest = max(range(len(sizes)), key=sizes.__getitem__)
        for axis in [longest, *self.rng.permutation(len(sizes))]:
            if not strides[axis]:
                strides[axis], size = size * self.one([1, 1, -1]), size * sizes[axis]
        least, _ = Affine(0, tuple(strides)).bounds(sizes)
        return Affine(-least, tuple(strides)), size


class SweepChance(kernel_cases.Chance):
    """Draws kernels of floats that are swept more than once, for several stores."""

    def sizes(self):
        """Sizes of two or three axes."""
        return tuple(self.one([2, 3, 5, 8, 17, 33]) for _ in range(self.one([2, 3])))

    def kernel(self, number):
        """A kernel that the checker accepts."""
        sizes, dtype = self.sizes(), np.dtype(self.one(["float32", "float64"]))
        nodes, parameters, stores = [], [], []
        for which in range(self.one([1, 2])):
            place, size = self.place(sizes)
            parameters.append(Parameter(f"x{which}", dtype, size))
            nodes.append(load_node(parameters[-1], place))
        for _ in range(self.rng.integers(2, 8)):
            nodes.append(self.node(nodes, sizes))
        often = self.one(nodes)
        for which in range(self.rng.integers(2, 6)):
            node = self.one([often, self.one(nodes)])
            place, size = self.filled(node.level, sizes)
            parameters.append(Parameter(f"out{which}", dtype, size))
            stores.append(Store(parameters[-1], place, node))
        name = f"sweeps{number}"
        return check_kernel(Kernel(name, sizes, (*parameters,), (*nodes,), (*stores,)))

    def filled(self, level, sizes):
        """A place in an array that is filled, and the size of the array."""
        strides, size = [0] * len(sizes), 1
        for axis in self.rng.permutation(len(sizes)):
            if axis in level or self.rng.random() < 0.3:
                strides[axis], size = size, size * sizes[axis]
        return Affine(0, tuple(strides)), size

    def node(self, nodes, sizes):
        """A node that uses others; its numbers grow slowly, and so do errors."""
        arg, chance = self.one(nodes), self.rng.random()
        if chance < 0.3 and arg.level:
            how = self.one(["add", "max", "min"])
            return fold_node(how, (self.one([*range(arg.level[-1], len(sizes))]),), arg)
        if chance < 0.6:
            return op_node(self.one(["tanh", "atan"]), arg)
        return op_node(self.one(["add", "sub", "max"]), arg, self.one(nodes))


class LongPlaces(kernel_cases.PlacesChance, LongChance):
    """Draws kernels with computed places and running folds along such axes."""

    def node(self, nodes, sizes):
        """A node; products of many floats become sums here, too."""
        node = super().node(nodes, sizes)
        if node.op != "running" or node.detail.how != "mul":
            return node
        return scan_node("add", *node.detail.axes, *node.args)


CHANCES = (
    kernel_cases.Chance, LongChance, RowChance, SweepChance, LongPlaces
)  # fmt: skip


class FusedRecorder(kernel_cases.Recorder):
    """Keeps what the fused kernels of a program have met."""

    def lower(self, closed):
        """The program, fused."""
        return fuse(super().lower(simplify(closed)))


def row_program(rows, columns, dtype, along=1):
    """Softmax of rows, or of columns: the exponentials are kept for the last sweep."""
    x, out = (Parameter(name, dtype, rows * columns) for name in ("x", "out"))
    places = Affine(0, (columns, 1)), Affine(0, (1, rows))
    a = load_node(x, places[1 - along])
    m = fold_node("max", (1,), a)
    e = op_node("exp", d := op_node("sub", a, m))
    r = op_node("div", e, s := fold_node("add", (1,), e))
    stores = (Store(out, places[1 - along], r),)
    return Kernel("softmax", (rows, columns), (x, out), (a, m, d, e, s, r), stores)


def shares(batch, rows, columns, dtype):
    """Softmax of rows less the largest share of all: rows kept at two levels."""
    size = batch * rows * columns
    x, out = Parameter("x", dtype, size), Parameter("out", dtype, size)
    place = Affine(0, (rows * columns, columns, 1))
    a = load_node(x, place)
    e = op_node("exp", a)
    share = op_node("div", e, total := fold_node("add", (2,), e))
    most = fold_node("max", (1, 2), share)
    r = op_node("sub", most, share)
    nodes, stores = (a, e, total, share, most, r), (Store(out, place, r),)
    return Kernel("shares", (batch, rows, columns), (x, out), nodes, stores)


def copies(count, columns, rows, dtype, stride):
    """Exponentials of a matrix, kept by column, and recalled for copies of it."""
    x = Parameter("x", dtype, columns * rows)
    out, most = (
        Parameter("out", dtype, count * x.size),
        Parameter("out1", dtype, columns),
    )
    e = op_node("exp", a := load_node(x, Affine(0, (0, 1, columns))))
    m = fold_node("max", (2,), e)
    strides = (1, columns) if stride == 1 else (rows, 1)
    place, column = Affine(0, (x.size, *strides)), Affine(0, (0, 1, 0))
    stores = (Store(most, column, m), Store(out, place, e))
    sizes = count, columns, rows
    return Kernel("copies", sizes, (x, most, out), (a, e, m), stores)


def parts(rows, columns, dtype, along=1):
    """Sums of rows, or columns, as parts of a whole: the sums are kept, some twice."""
    x, out = Parameter("x", dtype, rows * columns), Parameter("out", dtype, rows)
    a = load_node(x, (Affine(0, (1, rows)), Affine(0, (columns, 1)))[along])
    s = fold_node("add", (1,), a)
    two = op_node("add", s, s)
    whole = fold_node("add", (0,), op_node("mul", two, two))
    most = fold_node("max", (0,), s)
    part = op_node("div", op_node("mul", s, two), whole)
    r = op_node("sub", part, most)
    nodes = (a, s, two, whole.args[0], whole, most, part.args[0], part, r)
    stores = (Store(out, Affine(0, (1, 0)), r),)
    return Kernel("parts", (rows, columns), (x, out), nodes, stores)


def ends(count, rows, columns, dtype):
    """Much to do with the sums of rows: shares of their squares, and of the largest."""
    x, y = (
        Parameter("x", dtype, count * rows * columns),
        Parameter("y", dtype, count * rows),
    )
    outs = [Parameter(f"out{n}", dtype, y.size) for n in range(2)]
    row = Affine(0, (rows, 1, 0))
    a = load_node(x, Affine(0, (rows * columns, columns, 1)))
    s, b = fold_node("add", (2,), a), load_node(y, row)
    e = op_node("exp", t := op_node("min", s, b))
    most, squares = fold_node("max", (1,), e), op_node("mul", e, e)
    share = op_node("div", squares, total := fold_node("add", (1,), squares))
    r = op_node("sub", share, most)
    nodes = (a, s, b, t, e, most, squares, total, share, r)
    stores = (Store(outs[0], row, r), Store(outs[1], row, t))
    return Kernel("ends", (count, rows, columns), (x, y, *outs), nodes, stores)


def column_folds(rows, columns, how, dtype):
    """A fold over rows, and another that shares its loop; a number for each column."""
    x, y = Parameter("x", dtype, rows * columns), Parameter("y", dtype, columns)
    a, b = load_node(x, Affine(0, (1, columns))), load_node(y, Affine(0, (1, 0)))
    c = op_node("max", a, b)
    first, second = fold_node(how, (1,), a), fold_node("add", (1,), c)
    outs = [Parameter("out", first.dtype, columns), Parameter("out1", dtype, columns)]
    d = op_node("add", second, b)
    column = Affine(0, (1, 0))
    stores = (Store(outs[0], column, first), Store(outs[1], column, d))
    nodes = (a, b, c, first, second, d)
    return Kernel(f"{how}s", (columns, rows), (x, y, *outs), nodes, stores)


def turned(rows, columns, dtype, count=2):
    """Matrices and their transposes added."""
    sizes = (count, columns, rows)
    x, y, out = (Parameter(n, dtype, rows * columns * count) for n in ("x", "y", "out"))
    place = Affine(0, (rows * columns, rows, 1))
    a, b = load_node(x, Affine(0, (rows * columns, 1, columns))), load_node(y, place)
    c = op_node("or" if dtype.kind == "b" else "add", a, b)
    return Kernel("turned", sizes, (x, y, out), (a, b, c), (Store(out, place, c),))


def extreme(size, how, dtype):
    """The place of the best number of a row; memory below has equals and NaN."""
    x, out = Parameter("x", dtype, 3 * size), Parameter("out", np.dtype("int64"), 3)
    a = load_node(x, Affine(0, (size, 1)))
    m = fold_node(how, (1,), a)
    stores = (Store(out, Affine(0, (1, 0)), m),)
    return Kernel(how, (3, size), (x, out), (a, m), stores)


def padded(size, before, after, step):
    """A row with zeros at both ends, and read in steps."""
    x, out = (
        Parameter("x", F32, size * abs(step)),
        Parameter("out", F32, size + before + after),
    )
    start = (size - 1) * -step if step < 0 else 0
    place = Affine(start - before * step, (step,))
    a = load_node(x, place, (Guard(Affine(-before, (1,)), size),), 7)
    stores = (Store(out, Affine(0, (1,)), a),)
    return Kernel("padded", (size + before + after,), (x, out), (a,), stores)


def function_row(size, op, dtype):
    """An elementary function of a row."""
    x, out = Parameter("x", dtype, size), Parameter("out", dtype, size)
    a = load_node(x, Affine(0, (1,)))
    b = op_node("abs", a)
    c = op_node(op, b)
    return Kernel(op, (size,), (x, out), (a, b, c), (Store(out, Affine(0, (1,)), c),))


def taken(rows, columns, dtype):
    """Rows of a table at computed places, and its numbers one by one; 7 outside."""
    table, n = (
        Parameter("table", dtype, 6 * columns),
        Parameter("n", np.dtype("int32"), rows),
    )
    outs = [Parameter(name, dtype, rows * columns) for name in ("out", "out1")]
    v = op_node("convert", load_node(n, Affine(0, (1, 0))), dtype=np.dtype("int64"))
    a = load_node(table, Affine(0, (0, 1)), (), 7, [(v, IndirectTerm(columns, 6))])
    j = index_node(1)
    w = op_node("add", v, j)
    term = IndirectTerm(-1, 6 * columns)
    b = load_node(table, Affine(table.size - 1, (0, 0)), (), 7, [(w, term)])
    places = Affine(0, (columns, 1)), Affine(0, (columns, 1))
    stores = tuple(map(Store, outs, places, (a, b)))
    nodes = (v.args[0], v, a, j, w, b)
    return Kernel("taken", (rows, columns), (table, n, *outs), nodes, stores)


def spread(rows, columns, dtype, how, step=1, distinct=False):
    """Rows that enter those of a table at computed places; or backwards, each once."""
    n, x = (
        Parameter("n", np.dtype("int32"), rows),
        Parameter("x", dtype, rows * columns),
    )
    out = Parameter("out", dtype, 6 * columns * step if not distinct else x.size)
    v = op_node("convert", load_node(n, Affine(0, (1, 0))), dtype=np.dtype("int64"))
    at, terms, place = (v,), (IndirectTerm(columns * step, 6),), Affine(0, (0, step))
    nodes = [v.args[0], v]
    if distinct:
        last = [constant_node(size - 1, np.dtype("int64")) for size in (rows, columns)]
        at = tuple(op_node("sub", end, index_node(k)) for k, end in enumerate(last))
        terms = (IndirectTerm(columns, rows), IndirectTerm(1, columns - 1))
        place = Affine(0, (0, 0))
        nodes = [*last, *[node.args[1] for node in at], *at]
    y = op_node("add", a := load_node(x, Affine(0, (columns, 1))), a)
    update = Update(how, at, terms, (0, 1), distinct)
    nodes += [a, y]
    stores = (Store(out, place, y, update),)
    return Kernel("spread", (rows, columns), (n, x, out), (*nodes,), stores)


def totals(rows, columns, how, dtype, along=1, step=1):
    """Running folds of rows, or columns, forward or backwards, and what is left."""
    count = rows * columns
    x, y = Parameter("x", dtype, count), Parameter("y", dtype, count)
    out, ends = Parameter("out", dtype, count), Parameter("out1", dtype, rows)
    strides = (columns, step) if along else (1, rows * step)
    start = 0 if step > 0 else (columns - 1) * (1 if along else rows)
    place = Affine(start, strides)
    a, b = load_node(x, place), load_node(y, place)
    m = scan_node(how, 1, op_node("max", a, b))
    t = op_node("sub", m, s := fold_node("max", (1,), m))
    stores = (Store(out, place, t), Store(ends, Affine(0, (1, 0)), s))
    nodes = (a, b, m.args[0], m, s, t)
    return Kernel("totals", (rows, columns), (x, y, out, ends), nodes, stores)


def at_computed_places():
    """Kernels that gather, scatter, and run."""
    numbers = [dtype_of(n) for n in ("float32", "float64", "int8", "bfloat16")]
    for dtype in numbers:
        for shape in [(3, 5), (20, 40), (40, 19)]:
            yield taken(*shape, dtype)
            yield spread(*shape, dtype, "set")
            yield spread(*shape, dtype, "add")
            yield spread(*shape, dtype, "max", step=3)
            yield spread(*shape, dtype, "add", distinct=True)
    for dtype in numbers[:3]:
        for shape in [(3, 5), (33, 40), (300, 5)]:
            yield totals(*shape, "add", dtype)
            yield totals(*shape, "min", dtype, along=0)
            yield totals(*shape, "max", dtype, step=-1)
            yield totals(*shape, "add", dtype, along=0, step=-1)


def made_by_hand():
    """Kernels of the kinds for which there is a way of its own."""
    numbers = [np.dtype(n) for n in ("float32", "float64", "int32", "int8", "uint16")]
    for dtype in numbers[:2]:
        for rows, columns in [(1, 5), (3, 100), (40, 33), (17, 257)]:
            yield row_program(rows, columns, dtype)
            yield row_program(rows, columns, dtype, along=0)
        for sizes in [(2, 9, 5), (3, 20, 33), (1, 3, 100)]:
            yield shares(*sizes, dtype)
        for sizes in [(2, 3, 2), (3, 20, 5), (2, 5, 40), (2, 33, 33)]:
            yield copies(*sizes, dtype, 1)
            yield copies(*sizes, dtype, sizes[2])
        for sizes in [(1, 3, 2), (2, 17, 9), (3, 40, 33), (1, 100, 50)]:
            yield ends(*sizes, dtype)
        for sizes in [(3, 2), (5, 40), (40, 5), (33, 100)]:
            yield parts(*sizes, dtype)
            yield parts(*sizes, dtype, along=0)
        for op in ("exp", "sin", "log", "tanh"):
            yield function_row(75, op, dtype)
    for dtype in numbers:
        for shape in [(16, 16), (33, 70), (100, 19), (5, 40)]:
            yield turned(*shape, dtype)
        for how in ("add", "max", "min"):
            for shape in [(3, 10), (1001, 300), (67, 4099), (5, 8001)]:
                yield column_folds(*shape, how, dtype)
        yield column_folds(50, 37, "argmin", dtype)
        for size in (1, 2, 5, 17, 100, 333):
            yield extreme(size, "argmax", dtype)
            yield extreme(size, "argmin", dtype)
    yield from at_computed_places()
    for shape in [(16, 16), (33, 70)]:
        yield turned(*shape, np.dtype(bool))
    for size in (1, 15, 16, 40, 100):
        for step in (1, -1, 2, 3, -2, 7):
            yield padded(size, 2, 3, step)


def of_kernels_made_by_hand(first=0, every=1):
    """Triples as for `differences`; whole numbers near 0, and NaN among floats."""
    met, rng = [], np.random.default_rng(19)
    chosen = itertools.islice(made_by_hand(), first, None, every)
    for kernel in map(check_kernel, chosen):
        memory = {}
        for parameter in kernel.parameters:
            numbers = rng.integers(-9, 9, parameter.size).astype(parameter.dtype)
            if parameter.dtype.kind == "f" and kernel.name.startswith("arg"):
                numbers[rng.random(parameter.size) < 0.01] = np.nan
            memory[parameter.name] = numbers
        before = [memory[parameter.name].copy() for parameter in kernel.parameters]
        interpret(kernel, memory)
        after = [memory[parameter.name] for parameter in kernel.parameters]
        pair = [[data.view(np.uint8) for data in datas] for datas in (before, after)]
        met.append((kernel, *pair))
    return met


def target_of(name):
    """The target of a name; this computer for an empty one."""
    return forced_target(name) if name else host_target()


def vector_library(target):
    """A function from kernels to a library for a target."""

    def library(kernels):
        functions = [kernel_function(k, label, target) for label, k in kernels.items()]
        return TargetLibrary(module_ir(functions), target)

    return library


def main():
    """Compare kernels; 1 if something differs."""
    options = options_of(
        __doc__,
        seed=0,
        count=100,
        programs=False,
        made=False,
        fused=False,
        every=1,
        first=0,
        target="",
        together=100,
        blocks=False,
        masks=False,
    )
    if options.masks:
        marks.MASK_THRESHOLD = 0  # any body may have masks
    if options.blocks:
        kernel_text.PAIRWISE_BLOCK = 4  # turns of the shortest loop that has them
    if options.programs:
        recorder = FusedRecorder if options.fused else kernel_cases.Recorder
        wrong, met = kernel_cases.of_programs(options.every, recorder)
    elif options.made:
        wrong, met = [], of_kernels_made_by_hand(options.first, options.every)
    else:
        wrong, met = [], []
        for chance in CHANCES:
            seed, count = options.seed, options.count
            met += kernel_cases.of_random_kernels(seed, count, chance)
    library = vector_library(target_of(options.target))
    least = 1 if options.fused else 1e-30
    wrong += kernel_cases.differences(met, library, options.together, least)
    return reported(f"{len(met)} kernels", wrong)


if __name__ == "__main__":
    sys.exit(main())
