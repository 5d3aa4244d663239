# Made from chapters/25_calls.md by `make chapter`;
# edit the chapter, not this file.
"""A small language for machine code: functions of 64-bit words, written as Python.

A function in it may use names, integers, arithmetic, comparisons, ``if``, ``while``,
``return``, memory (``word[address]``, ``half[address]``), and calls. It runs as Python,
byte by byte the same, and `llvm_text` makes machine code of it.
"""

import ast
import ctypes
import linecache
from collections import deque
from functools import lru_cache


class Memory:
    """The memory of the process as numbers of one width, by address."""

    def __init__(self, kind):
        self.kind, self.bits = kind, 8 * ctypes.sizeof(kind)

    def __getitem__(self, address):
        return self.kind.from_address(address).value

    def __setitem__(self, address, value):
        self.kind.from_address(address).value = value


word, half, byte = map(Memory, (ctypes.c_int64, ctypes.c_uint32, ctypes.c_uint8))


def call(address, *args):
    """Return what the function of C at an address returns for some words."""
    words = [ctypes.c_int64] * (1 + len(args))
    return ctypes.PYFUNCTYPE(*words)(address)(*args)


def room(count):
    """Return the address of some words that last until the function returns."""
    words = (ctypes.c_int64 * count)()
    _rooms.append(words)
    return ctypes.addressof(words)


_rooms: deque = deque(maxlen=256)


def as_float32(bits):
    """Return the bits of a float of 32 bits, for those of one of 64 bits."""
    wide = ctypes.c_double.from_buffer(ctypes.c_int64(bits))
    return ctypes.c_uint32.from_buffer(ctypes.c_float(wide.value)).value


OPERATORS = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.BitAnd: "and",
    ast.BitOr: "or", ast.LShift: "shl", ast.RShift: "ashr",
}  # fmt: skip
COMPARISONS = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "slt", ast.LtE: "sle", ast.Gt: "sgt",
    ast.GtE: "sge",
}  # fmt: skip
MEMORIES = {"word": word, "half": half, "byte": byte}


def llvm_text(*functions):
    """Return the text of an LLVM module with some functions, which may call each other.

    The last one can be called from outside.
    """
    inner = [Writer(function).text("internal") for function in functions[:-1]]
    return "\n".join([*inner, Writer(functions[-1]).text("")])


@lru_cache(maxsize=8)
def parsed(lines):
    """Return the functions of a text by the numbers of their first lines."""
    nodes = ast.walk(ast.parse("".join(lines)))
    return {node.lineno: node for node in nodes if isinstance(node, ast.FunctionDef)}


def tree_of(function):
    """Return the syntax tree of a function.

    Raises:
      OSError: if its text is not there.
    """
    code = function.__code__
    lines = linecache.getlines(code.co_filename, function.__globals__)
    if not lines:
        raise OSError(f"The text of {function} is not there.")
    return parsed(tuple(lines))[code.co_firstlineno]


class Writer:
    """Writes one function as LLVM.

    Args:
      function: a function of Python that keeps to the language.
    """

    def __init__(self, function):
        self.tree = tree_of(function)
        self.integers = function.__globals__
        self.lines, self.count = [], 0
        self.parameters = [arg.arg for arg in self.tree.args.args]
        stores = [n for n in ast.walk(self.tree) if isinstance(n, ast.Name)]
        found = {n.id for n in stores if isinstance(n.ctx, ast.Store)}
        self.variables = sorted(found | {*self.parameters})

    def text(self, linkage):
        """Return the function."""
        for name in self.variables:
            self.lines.append(f"  %{name} = alloca i64")
        for name in self.parameters:
            self.lines.append(f"  store i64 %in.{name}, i64* %{name}")
        self.block(self.tree.body)
        parameters = ", ".join(f"i64 %in.{name}" for name in self.parameters)
        head = f"define {linkage} i64 @{self.tree.name}({parameters}) nounwind {{"
        return "\n".join([head, "entry:", *self.lines, "  ret i64 0", "}", ""])

    def let(self, instruction):
        """Write an instruction and return the name of its result."""
        self.count += 1
        self.lines.append(f"  %.{self.count} = {instruction}")
        return f"%.{self.count}"

    def label(self, hint):
        """Return a new label."""
        self.count += 1
        return f"{hint}.{self.count}"

    def start(self, label):
        """End the block, by going on with another, and begin that one."""
        self.lines += [f"  br label %{label}", f"{label}:"]

    def block(self, statements):
        """Write statements, one after the other."""
        for statement in statements:
            getattr(self, type(statement).__name__)(statement)

    def Expr(self, node):
        if not isinstance(node.value, ast.Constant):  # a docstring
            self.value(node.value)

    def Return(self, node):
        self.lines.append(f"  ret i64 {self.value(node.value)}")
        self.lines.append(f"{self.label('behind')}:")

    def Assign(self, node):
        self.store(node.targets[0], self.value(node.value))

    def AugAssign(self, node):
        self.store(node.target, self.value(ast.BinOp(node.target, node.op, node.value)))

    def If(self, node):
        yes, no, end = map(self.label, ("then", "else", "end"))
        self.choose(node.test, yes, no)
        self.lines.append(f"{yes}:")
        self.block(node.body)
        self.lines += [f"  br label %{end}", f"{no}:"]
        self.block(node.orelse)
        self.start(end)

    def While(self, node):
        test, body, end = map(self.label, ("test", "body", "end"))
        self.start(test)
        self.choose(node.test, body, end)
        self.lines.append(f"{body}:")
        self.block(node.body)
        self.lines += [f"  br label %{test}", f"{end}:"]

    def choose(self, test, yes, no):
        """Go to one of two blocks; ``and`` and ``or`` do only what is needed."""
        if isinstance(test, ast.BoolOp):
            *first, last = test.values
            for part in first:
                more = self.label("more")
                both = isinstance(test.op, ast.And)
                self.choose(part, more if both else yes, no if both else more)
                self.lines.append(f"{more}:")
            return self.choose(last, yes, no)
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return self.choose(test.operand, no, yes)
        self.lines.append(f"  br i1 {self.truth(test)}, label %{yes}, label %{no}")

    def truth(self, test):
        """Return the name of a bit."""
        if isinstance(test, ast.Compare):
            sides = self.value(test.left), self.value(test.comparators[0])
            relation = COMPARISONS[type(test.ops[0])]
            return self.let(f"icmp {relation} i64 {sides[0]}, {sides[1]}")
        return self.let(f"icmp ne i64 {self.value(test)}, 0")

    def value(self, node):
        """Return the name of a word, or its digits."""
        return getattr(self, "value_of_" + type(node).__name__)(node)

    def value_of_Constant(self, node):
        return str(node.value)

    def value_of_Name(self, node):
        if node.id not in self.variables:
            return str(self.integers[node.id])
        return self.let(f"load i64, i64* %{node.id}")

    def value_of_BinOp(self, node):
        left, right = self.value(node.left), self.value(node.right)
        return self.let(f"{OPERATORS[type(node.op)]} i64 {left}, {right}")

    def value_of_UnaryOp(self, node):
        return self.let(f"sub i64 0, {self.value(node.operand)}")

    def value_of_Compare(self, node):
        return self.let(f"zext i1 {self.truth(node)} to i64")

    def value_of_Subscript(self, node):
        pointer, bits = self.pointer(node)
        found = self.let(f"load i{bits}, i{bits}* {pointer}")
        return found if bits == 64 else self.let(f"zext i{bits} {found} to i64")

    def value_of_Call(self, node):
        args, name = [self.value(arg) for arg in node.args], node.func.id
        if name == "room":
            place = self.let(f"alloca i64, i64 {args[0]}")
            return self.let(f"ptrtoint i64* {place} to i64")
        if name == "as_float32":
            return self.narrowed(args[0])
        if name == "call":
            kinds = ", ".join(["i64"] * (len(args) - 1))
            name = self.let(f"inttoptr i64 {args.pop(0)} to i64 ({kinds})*")
        else:
            name = f"@{name}"
        return self.let(f"call i64 {name}({', '.join(f'i64 {arg}' for arg in args)})")

    def narrowed(self, bits):
        wide = self.let(f"bitcast i64 {bits} to double")
        narrow = self.let(f"fptrunc double {wide} to float")
        bits = self.let(f"bitcast float {narrow} to i32")
        return self.let(f"zext i32 {bits} to i64")

    def pointer(self, node):
        """Return a typed pointer to the memory that is meant, and its bits."""
        bits = MEMORIES[node.value.id].bits
        address = self.value(node.slice)
        return self.let(f"inttoptr i64 {address} to i{bits}*"), bits

    def store(self, target, value):
        """Write a word to a variable or to memory."""
        if isinstance(target, ast.Name):
            self.lines.append(f"  store i64 {value}, i64* %{target.id}")
            return
        pointer, bits = self.pointer(target)
        if bits < 64:
            value = self.let(f"trunc i64 {value} to i{bits}")
        self.lines.append(f"  store i{bits} {value}, i{bits}* {pointer}")
