# Made from chapters/26_calls.md by `make chapter`;
# edit the chapter, not this file.
"""A small language for machine code: functions of 64-bit words, written as Python.

A function in it may use names, integers, arithmetic, comparisons, ``if``, ``while``,
``return``, memory (``word[address]``, ``half[address]``), places in tables
(``Record.around``), and calls. It runs as Python, byte by byte the same, and
`llvm_text` makes machine code of it.
"""

import ast
import ctypes
import linecache
from collections import deque
from contextlib import suppress
from functools import lru_cache

from minijax.llvm.compiler import Library, give_back
from minijax.llvm.writing import LLVMFunction


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


def address_of_function(function):
    """Return the address of a function of C, given as `ctypes` has it."""
    return ctypes.cast(function, ctypes.c_void_p).value


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
# Functions that are instructions in machine code, with the operands x, y and z.
BUILT_IN = {
    "room": "place = alloca i64, i64 {x}; ptrtoint i64* {place} to i64",
    "as_float32": "wide = bitcast i64 {x} to double; "
    "narrow = fptrunc double {wide} to float; "
    "bits = bitcast float {narrow} to i32; zext i32 {bits} to i64",
}


@lru_cache(maxsize=8)
def parsed(lines):
    """Return the functions of a text by the numbers of their first lines."""
    nodes = ast.walk(syntax_tree("".join(lines)))
    return {node.lineno: node for node in nodes if isinstance(node, ast.FunctionDef)}


def syntax_tree(text, tries=20):
    """Return the tree of a text; try again if another thread has made one meanwhile.

    Python 3.11 counts the depth of trees for all threads together, and raises
    `SystemError` (https://github.com/python/cpython/issues/106905).
    """
    for _ in range(tries):
        with suppress(SystemError):
            return ast.parse(text)
    return ast.parse(text)


def tree_of(function):
    """Return the syntax tree of a function.

    Raises:
      OSError: if its text is not there.
    """
    code = function.__code__
    lines = linecache.getlines(code.co_filename, function.__globals__)
    found = parsed(tuple(lines)).get(code.co_firstlineno) if lines else None
    if found is None or found.name != code.co_name:
        raise OSError(f"The text of {function} is not there.")
    return found


class Writer:
    """Writes one function of words as LLVM.

    Args:
      function: a function of Python that keeps to the language.
      linkage: "internal ", or "" if it can be called from outside.

    Attributes:
      called: list of the functions that it calls.
    """

    def __init__(self, function, linkage=""):
        self.tree, self.linkage = tree_of(function), linkage
        self.names, self.called = function.__globals__, []
        self.f = LLVMFunction()
        self.parameters = [arg.arg for arg in self.tree.args.args]
        stored = [n for n in ast.walk(self.tree) if isinstance(n, ast.Name)]
        self.variables = {n.id for n in stored if isinstance(n.ctx, ast.Store)}

    def text(self):
        """Return the function."""
        for name in sorted(self.variables):
            self.f.line(f"%{name} = alloca i64")
        for name in self.parameters:
            if name in self.variables:
                self.f.line(f"store i64 %in.{name}, i64* %{name}")
        self.write(self.tree.body)
        self.f.line("ret i64 0")
        parameters = ", ".join(f"i64 %in.{name}" for name in self.parameters)
        how = "alwaysinline nounwind" if self.linkage else "nounwind"
        head = f"define {self.linkage}i64 @{self.tree.name}({parameters}) {how} {{"
        return "\n".join([head, "entry:", *self.f.lines, "}", ""])

    def write(self, statements):
        """Write statements, one after the other."""
        for statement in statements:
            getattr(self, type(statement).__name__)(statement)

    def labels(self, *hints):
        """Return new labels."""
        return [self.f.name(hint)[1:] for hint in hints]

    def go_on(self, label):
        """End the block, by going on with another, and begin that one."""
        self.f.line(f"br label %{label}")
        self.f.start(label)

    def Expr(self, node):
        if not isinstance(node.value, ast.Constant):  # a docstring
            self.value(node.value)

    def Return(self, node):
        self.f.line(f"ret i64 {self.value(node.value)}")
        self.f.start(*self.labels("behind"))

    def Assign(self, node):
        self.store(node.targets[0], self.value(node.value))

    def AugAssign(self, node):
        self.store(node.target, self.value(ast.BinOp(node.target, node.op, node.value)))

    def If(self, node):
        yes, no, end = self.labels("then", "else", "end")
        self.choose(node.test, yes, no)
        self.f.start(yes)
        self.write(node.body)
        self.f.line(f"br label %{end}")
        self.f.start(no)
        self.write(node.orelse)
        self.go_on(end)

    def While(self, node):
        test, body, end = self.labels("test", "body", "end")
        self.go_on(test)
        self.choose(node.test, body, end)
        self.f.start(body)
        self.write(node.body)
        self.f.line(f"br label %{test}")
        self.f.start(end)

    def choose(self, test, yes, no):
        """Go to one of two blocks; ``and`` and ``or`` do only what is needed."""
        if isinstance(test, ast.BoolOp):
            *first, last = test.values
            for part in first:
                [more] = self.labels("more")
                both = isinstance(test.op, ast.And)
                self.choose(part, more if both else yes, no if both else more)
                self.f.start(more)
            return self.choose(last, yes, no)
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return self.choose(test.operand, no, yes)
        self.f.line(f"br i1 {self.truth(test)}, label %{yes}, label %{no}")

    def truth(self, test):
        """Return the name of a bit."""
        if isinstance(test, ast.Compare):
            sides = self.value(test.left), self.value(test.comparators[0])
            relation = COMPARISONS[type(test.ops[0])]
            return self.f.emit(f"icmp {relation} i64 {sides[0]}, {sides[1]}")
        return self.f.emit(f"icmp ne i64 {self.value(test)}, 0")

    def value(self, node):
        """Return the name of a word, or its digits."""
        return getattr(self, "value_of_" + type(node).__name__)(node)

    def value_of_Constant(self, node):
        return str(node.value)

    def value_of_Name(self, node):
        if node.id in self.variables:
            return self.f.emit(f"load i64, i64* %{node.id}")
        if node.id in self.parameters:
            return f"%in.{node.id}"
        return str(self.names[node.id])

    def value_of_Attribute(self, node):
        return str(getattr(self.names[node.value.id], node.attr))

    def value_of_BinOp(self, node):
        left, right = self.value(node.left), self.value(node.right)
        return self.f.emit(f"{OPERATORS[type(node.op)]} i64 {left}, {right}")

    def value_of_UnaryOp(self, node):
        return self.f.emit(f"sub i64 0, {self.value(node.operand)}")

    def value_of_Compare(self, node):
        return self.f.emit(f"zext i1 {self.truth(node)} to i64")

    def value_of_Subscript(self, node):
        pointer, bits = self.pointer(node)
        found = self.f.emit(f"load i{bits}, i{bits}* {pointer}")
        return found if bits == 64 else self.f.emit(f"zext i{bits} {found} to i64")

    def value_of_Call(self, node):
        args, name = [self.value(arg) for arg in node.args], node.func.id
        if name in BUILT_IN:
            return self.f.instructions(BUILT_IN[name], args)
        if name == "call":
            kinds = ", ".join(["i64"] * (len(args) - 1))
            callee = self.f.emit(f"inttoptr i64 {args.pop(0)} to i64 ({kinds})*")
        else:
            self.called.append(self.names[name])
            callee = f"@{name}"
        words = ", ".join(f"i64 {arg}" for arg in args)
        return self.f.emit(f"call i64 {callee}({words})")

    def pointer(self, node):
        """Return a typed pointer to the memory that is meant, and its bits."""
        bits = self.names[node.value.id].bits
        address = self.value(node.slice)
        return self.f.emit(f"inttoptr i64 {address} to i{bits}*"), bits

    def store(self, target, value):
        """Write a word to a variable or to memory."""
        if isinstance(target, ast.Name):
            return self.f.line(f"store i64 {value}, i64* %{target.id}")
        pointer, bits = self.pointer(target)
        if bits < 64:
            value = self.f.emit(f"trunc i64 {value} to i{bits}")
        return self.f.line(f"store i{bits} {value}, i{bits}* {pointer}")


def llvm_text(*functions):
    """Return the text of an LLVM module with some functions, and all that they call.

    What is not among the given ones cannot be called from outside, and is inlined.
    """
    texts, wanted = {}, [*functions]
    for function in wanted:  # it grows
        if function not in texts:
            writer = Writer(function, "" if function in functions else "internal ")
            texts[function] = writer.text()
            wanted += writer.called
    return "\n".join(texts.values())


class WordsLibrary(Library):
    """Machine code of functions of words, made with two of LLVM's passes.

    It takes a quarter of the time, and the code runs on each processor of the family.
    """

    def prepared(self, binding):
        """Return the module after the passes, and the machine it is meant for."""
        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        machine = binding.Target.from_default_triple().create_target_machine(opt=1)
        module = binding.parse_assembly(self.text)
        module.triple, module.data_layout = machine.triple, str(machine.target_data)
        module.verify()
        options = binding.create_pipeline_tuning_options(speed_level=1)
        passes = binding.create_new_module_pass_manager()
        for name in ("always_inliner", "sroa"):  # llvmlite 0.44 does not have them
            getattr(passes, f"add_{name}_pass", list)()
        passes.run(module, binding.create_pass_builder(machine, options))
        give_back(binding, passes)
        return module, machine

    def recipe(self, binding):
        """Return what the code depends on besides the text."""
        return f"{binding.get_default_triple()} inlined"

    def place(self, name):
        """Return the address of a function."""
        return self.engine.get_function_address(name)
