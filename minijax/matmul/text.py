# Made from chapters/23_matmul.md by `make chapter`;
# edit the chapter, not this file.
"""The text of functions on matrices: addresses, vectors, loops, conditions.

Reference: the LLVM Language Reference, https://llvm.org/docs/LangRef.html.
"""

from minijax.llvm.kernel_text import FunctionText
from minijax.llvm.types import pointer_to, type_of
from minijax.llvm.writing import LLVMFunction


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
            address = f"{self.pointer} {base}, i64 {place}"
            base = self.emit(f"getelementptr {self.kind}, {address}", "p")
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


def spread(f, x, lanes):
    """Write the vector whose numbers are all the same."""
    if lanes == 1:
        return x
    first = f.emit(f"insertelement {f.vector(lanes)} undef, {f.kind} {x}, i32 0")
    return shuffle(f, first, "undef", [0] * lanes, lanes)


def shuffle(f, x, y, order, lanes):
    """Write the vector of numbers of two vectors, by their places."""
    vector, places = f.vector(lanes), ", ".join(f"i32 {place}" for place in order)
    mask = f"<{len(order)} x i32> <{places}>"
    return f.emit(f"shufflevector {vector} {x}, {vector} {y}, {mask}")


def multiply_add(f, x, y, z, lanes):
    """Write ``x * y + z``: one instruction, where the processor has it."""
    vector = f.vector(lanes)
    if f.kind.startswith("i"):
        return f.emit(f"add {vector} {f.emit(f'mul {vector} {x}, {y}')}, {z}")
    bits, result = f"f{8 * f.dtype.itemsize}", f.name()
    name = f"@llvm.fmuladd.{f'v{lanes}' if lanes > 1 else ''}{bits}"
    f.declare(f"declare {vector} {name}({vector}, {vector}, {vector})")
    args = f"{vector} {x}, {vector} {y}, {vector} {z}"
    f.line(f"{result} = call {vector} {name}({args})")
    return result


def write_times(f, count, body):
    """Write a loop that may have no turns; `body` is a function of the index."""

    def turn(index, _):
        body(index)
        return []

    some = f.emit(f"icmp ne i64 {count}, 0")
    f.when(some, lambda: f.loop(count, [], turn))


def function_text(f, name, params, linkage="internal "):
    """Return the `FunctionText` of what has been written."""
    head = f"define {linkage}void @{name}({params}) nounwind noinline {{"
    text = "\n".join([head, "entry:", *f.lines, "  ret void", "}"])
    return FunctionText(text, f.needed)
