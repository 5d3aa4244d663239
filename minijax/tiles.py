# Made from chapters/19b_matmul.md by `make chapter`;
# edit the chapter, not this file.
"""Tiles: the part of a matrix product that stays in registers.

Reference: K. Goto and R. van de Geijn, *Anatomy of high-performance matrix
multiplication* (ACM Transactions on Mathematical Software, 2008).
"""

import itertools
from typing import NamedTuple

from minijax.dtypes import short_name
from minijax.llvm_kernels import pointer_to
from minijax.llvm_text import LLVMFunction, type_of, write_loop
from minijax.vector_kernels import FunctionText


class MatrixText(LLVMFunction):
    """The text of a function on numbers of one dtype, in the making.

    Attributes:
      dtype: of the numbers.
      kind: LLVM's type of them.
    """

    def __init__(self, dtype):
        super().__init__()
        self.dtype, self.kind = dtype, type_of(dtype)

    @property
    def pointer(self):
        """The type of addresses."""
        return pointer_to(self.kind)

    def vector(self, lanes):
        """Return the type of some numbers at once; that of a number for one."""
        return f"<{lanes} x {self.kind}>" if lanes > 1 else self.kind

    def i64(self, op, x, y):
        """Write an operation on sizes or places."""
        return self.emit(f"{op} i64 {x}, {y}", "n")

    def choose(self, which, x, y, kind="i64"):
        """Write the choice of one of two values."""
        return self.emit(f"select i1 {which}, {kind} {x}, {kind} {y}")

    def at(self, base, *places):
        """Write the address that is so many numbers behind another one."""
        for place in places:
            base = f"{self.pointer} {base}, i64 {place}"
            base = self.emit(f"getelementptr {self.kind}, {base}", "p")
        return base

    def load(self, address, lanes=1):
        """Write the load of numbers that lie one after the other."""
        return self.emit(f"load {self.vector(lanes)}, {self._place(address, lanes)}")

    def store(self, x, address, lanes=1):
        """Write the store of numbers, one after the other."""
        self.line(f"store {self.vector(lanes)} {x}, {self._place(address, lanes)}")

    def _place(self, address, lanes):
        kind = pointer_to(self.vector(lanes))
        if lanes > 1:
            address = self.emit(f"bitcast {self.pointer} {address} to {kind}", "p")
        return f"{kind} {address}, align {self.dtype.itemsize}"

    def shuffle(self, x, y, order, lanes):
        """Write the vector of numbers of two vectors, by their places."""
        vector, places = self.vector(lanes), ", ".join(f"i32 {k}" for k in order)
        mask = f"<{len(order)} x i32> <{places}>"
        return self.emit(f"shufflevector {vector} {x}, {vector} {y}, {mask}")

    def spread(self, x, lanes):
        """Write the vector whose numbers are all the same."""
        vector = self.vector(lanes)
        first = self.emit(f"insertelement {vector} undef, {self.kind} {x}, i32 0")
        return self.shuffle(first, "undef", [0] * lanes, lanes)

    def multiply_add(self, x, y, z, lanes):
        """Write ``x * y + z``: one instruction, where the processor has it."""
        vector = self.vector(lanes)
        if self.kind.startswith("i"):
            return self.emit(f"add {vector} {self.emit(f'mul {vector} {x}, {y}')}, {z}")
        bits, result = f"f{8 * self.dtype.itemsize}", self.name()
        suffix = f"v{lanes}{bits}" if lanes > 1 else bits
        name = f"{vector} @llvm.fmuladd.{suffix}"
        self.declared.add(f"declare {name}({vector}, {vector}, {vector})")
        args = f"{vector} {x}, {vector} {y}, {vector} {z}"
        self.line(f"{result} = call {name}({args})")
        return result

    def function(self, name, params, linkage="internal "):
        """Return the `FunctionText` of what has been written."""
        head = f"define {linkage}void @{name}({params}) nounwind noinline {{"
        text = "\n".join([head, "entry:", *self.lines, "  ret void", "}"])
        return FunctionText(text, {line: line for line in sorted(self.declared)})


class Tile(NamedTuple):
    """A part of a matrix: so many rows, with so many vectors of numbers in each."""

    rows: int
    vectors: int
    lanes: int

    @property
    def columns(self):
        """Numbers in a row."""
        return self.vectors * self.lanes

    @property
    def places(self):
        """The row and the number in it of each vector."""
        return [*itertools.product(range(self.rows), range(self.vectors))]


def write_sums(f, tile, first):
    """Write the loop over the terms of the sums; return the names of the sums.

    Args:
      f: the `MatrixText`, of a function with the parameters of `operands`.
      tile: a `Tile`.
      first: the names of the vectors that the sums start from.
    """
    steps = [f.i64("mul", "%a_row", row) for row in range(tile.rows)]

    def body(_, values):
        a, b, *sums = values
        y = [f.load(f.at(b, v * tile.lanes), tile.lanes) for v in range(tile.vectors)]
        x = [f.spread(f.load(f.at(a, step)), tile.lanes) for step in steps]
        sums = [
            f.multiply_add(x[row], y[number], total, tile.lanes)
            for (row, number), total in zip(tile.places, sums)
        ]
        return [f.at(a, "%a_column"), f.at(b, "%b_row"), *sums]

    kinds = [(f.vector(tile.lanes), x) for x in first]
    carried = [(f.pointer, "%a"), (f.pointer, "%b"), *kinds]
    return write_loop(f, "%k", carried, body)[2:]


def write_tile(f, tile, finish=None):
    """Write a tile of a product: rows of the left times columns of the right.

    Where ``%more`` is true, they are added to what is there.

    Args:
      f: the `MatrixText`, of a function with the parameters of `operands`.
      tile: a `Tile`.
      finish: what becomes of a vector of sums before it is stored: a function of f,
        the vector's row and its number in the row, and its name.
    """
    rows = [f.at("%c", f.i64("mul", "%c_row", row)) for row in range(tile.rows)]
    addresses = [f.at(rows[row], number * tile.lanes) for row, number in tile.places]
    sums = write_sums(f, tile, write_first_sums(f, tile, addresses))
    for (row, number), x, address in zip(tile.places, sums, addresses):
        x = finish(f, row, number, x) if finish else x
        f.store(x, address, tile.lanes)


def write_first_sums(f, tile, addresses):
    """Write what the sums start from: zeros, or what is there; return their names."""
    f.line("br i1 %more, label %old, label %new")
    f.start("old")
    old = [f.load(address, tile.lanes) for address in addresses]
    f.line("br label %begin")
    f.start("new")
    f.line("br label %begin")
    f.start("begin")
    kind = f.vector(tile.lanes)
    return [f.emit(f"phi {kind} [ {x}, %old ], [ zeroinitializer, %new ]") for x in old]


def operands(f):
    """Return the parameters of a function that computes a tile."""
    p = f.pointer
    return (
        f"i64 %k, {p} %a, i64 %a_row, i64 %a_column, {p} %b, i64 %b_row, "
        f"{p} %c, i64 %c_row, i1 %more"
    )


def tile_function(dtype, tile, finish=None):
    """Return the `FunctionText` of a tile."""
    f = MatrixText(dtype)
    write_tile(f, tile, finish)
    return f.function(name_of(dtype, tile), operands(f))


def name_of(dtype, tile):
    """Return the name of the function for a tile."""
    return f"tile_{short_name(dtype)}_{tile.rows}_{tile.vectors}"


def tile_of(dtype, target):
    """Return the `Tile` that fills the registers of a target, but for a few."""
    lanes = target.lanes(dtype)
    if target.vector_bytes == 64:
        return Tile(12, 2, lanes)
    x86 = target.triple.startswith(("x86_64", "amd64"))  # 16 registers, elsewhere 32
    return Tile(4 if x86 else 8, 3 if lanes > 2 else 2, lanes)
