"""A small language for machine code: functions of 64-bit words, written as Python.

A function in it may use names, integers, arithmetic, comparisons, ``if``, ``while``,
``return``, memory (``i64[address]``, ``u32[address]``), places in tables
(``AbstractValue.around``), and calls. `llvm_text` makes machine code of it, or raises a
`SyntaxError`. It runs as Python as well and does the same, as long as all numbers fit
into 64 bits: those of machine code wrap around. Addresses are multiples of the width.

Nothing here is taken on trust: `check_layout` looks at objects of this process, and
raises `UnknownLayout` if it finds anything else.

References: the object structures of CPython, and ``ndarraytypes.h`` of NumPy.
"""

# Made from chapters/26_calls.md by `make chapter`;
# edit the chapter, not this file.

import ast
import ctypes
import linecache
import struct
import sys
import sysconfig
from collections import deque
from contextlib import suppress
from functools import lru_cache
from types import SimpleNamespace

import numpy as np

from minijax.arrays.array import ArrayImpl
from minijax.arrays.dtypes import SHORT_DTYPE_NAMES, Config
from minijax.arrays.interchange import AbstractValue
from minijax.jitting.api import JitFunction
from minijax.llvm.compiler import Library, dispose_passes
from minijax.llvm.instructions import FunctionBuilder


class TypedMemory:
    """The memory of the process as numbers of one width, by address."""

    def __init__(self, kind):
        self.kind, self.bits = kind, 8 * ctypes.sizeof(kind)

    def __getitem__(self, address):
        return self.kind.from_address(address).value

    def __setitem__(self, address, value):
        self.kind.from_address(address).value = value


i64, u32, u8 = map(TypedMemory, (ctypes.c_int64, ctypes.c_uint32, ctypes.c_uint8))


def call_pointer(address, *args):
    """Return what the function of C at an address returns for some words."""
    words = [ctypes.c_int64] * (1 + len(args))
    return ctypes.PYFUNCTYPE(*words)(address)(*args)


def function_pointer(function):
    """Return the address of a function of C, given as `ctypes` has it."""
    return ctypes.cast(function, ctypes.c_void_p).value


def alloca(count):
    """Return the address of some words that last until the function returns.

    What is in them before something is written is not to be relied on.
    """
    words = (ctypes.c_int64 * count)(*[-count] * count)  # so that nothing counts on 0
    _rooms.append(words)  # which keeps it, long enough for tests
    return ctypes.addressof(words)


_rooms: deque = deque(maxlen=256)


def f64_to_f32_bits(bits):
    """Return the bits of a float of 32 bits, for those of one of 64 bits."""
    wide = ctypes.c_double.from_buffer(ctypes.c_int64(bits))
    return ctypes.c_uint32.from_buffer(ctypes.c_float(wide.value)).value


# Which syntax of Python has a meaning in functions of words: a table of all of it.

OPERATORS: dict = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.BitAnd: "and",
    ast.BitOr: "or", ast.LShift: "shl", ast.RShift: "ashr",
}  # fmt: skip
ICMP_PREDICATES: dict = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "slt", ast.LtE: "sle", ast.Gt: "sgt",
    ast.GtE: "sge",
}  # fmt: skip

MEANT: dict = {
    ast.FunctionDef: "name args body", ast.arguments: "args", ast.arg: "arg",
    ast.Expr: "value", ast.Return: "value", ast.Assign: "targets value",
    ast.AugAssign: "target op value", ast.If: "test body orelse",
    ast.While: "test body", ast.BoolOp: "op values", ast.UnaryOp: "op operand",
    ast.BinOp: "left op right", ast.Compare: "left ops comparators",
    ast.Call: "func args", ast.Subscript: "value slice ctx",
    ast.Attribute: "value attr ctx", ast.Name: "id ctx", ast.Constant: "value",
    **dict.fromkeys([ast.And, ast.Or, ast.Not, ast.USub, ast.Load, ast.Store], ""),
}  # fmt: skip


def unsupported_syntax(node):
    """Return what a node has that the language does not mean, or None."""
    meant = dict.fromkeys(OPERATORS | ICMP_PREDICATES, "") | MEANT
    if type(node) not in meant:
        return type(node).__name__
    fields = {name for name, part in ast.iter_fields(node) if part not in (None, [])}
    further = fields.difference(meant[type(node)].split())
    if any(len(getattr(node, name, "1")) > 1 for name in ("targets", "ops")):
        further |= {"more than one"}
    if further:
        return f"{type(node).__name__} with {min(further)}"
    signs = [part for part in ast.iter_child_nodes(node) if not hasattr(part, "lineno")]
    return next(filter(None, map(unsupported_syntax, signs)), None)


@lru_cache(maxsize=8)
def functions_by_line(lines):
    """Return the functions of a text by the numbers of their first lines."""
    nodes = ast.walk(syntax_tree("".join(lines)))
    found = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    return {(*node.decorator_list, node)[0].lineno: node for node in found}


def syntax_tree(text, tries=20):
    """Return the tree of a text; try again if another thread has made one meanwhile.

    Python 3.11 counts the depth of trees for all threads together, and raises
    `SystemError` (https://github.com/python/cpython/issues/106905).
    """
    for _ in range(tries):
        with suppress(SystemError):
            return ast.parse(text)
    return ast.parse(text)


def function_syntax_tree(function):
    """Return the syntax tree of a function.

    Raises:
      OSError: if its text is not there.
    """
    code = function.__code__
    lines = linecache.getlines(code.co_filename, function.__globals__)
    found = functions_by_line(tuple(lines)).get(code.co_firstlineno) if lines else None
    if found is None or found.name != code.co_name:
        raise OSError(f"The text of {function} is not there.")
    return found


def always_returns(statements):
    """Return whether all ways through some statements lead to a ``return``."""
    last = statements[-1] if statements else None
    both = (
        isinstance(last, ast.If)
        and always_returns(last.body)
        and always_returns(last.orelse)
    )
    return both or isinstance(last, ast.Return)


# Functions that are instructions in machine code, with the operands x, y and z.
INTRINSICS: dict = {
    alloca: "place = alloca i64, i64 {x}; ptrtoint i64* {place} to i64",
    f64_to_f32_bits: "wide = bitcast i64 {x} to double; "
    "narrow = fptrunc double {wide} to float; "
    "bits = bitcast float {narrow} to i32; zext i32 {bits} to i64",
}
SHIFTS = [*map(str, range(64))]  # by how many bits a word may be shifted


class LowLevelEmitter:
    """Writes one function of words as LLVM.

    Args:
      function: a function of Python that keeps to the language.
      linkage: "internal ", or "" if it can be called from outside.

    Attributes:
      called: list of the functions that it calls.
      known: the variables that have a value for sure where we write.
    """

    def __init__(self, function, linkage=""):
        self.tree, self.linkage = function_syntax_tree(function), linkage
        self.code, self.names = function.__code__, function.__globals__
        self.f, self.called = FunctionBuilder(), []
        self.parameters = [arg.arg for arg in self.tree.args.args]
        nodes = [*ast.walk(self.tree)]
        for node in nodes:
            if found := unsupported_syntax(node):
                self.refuse(node, f"{found} is not in the language of words")
        stored = [n for n in nodes if isinstance(n, ast.Name)]
        self.variables = {n.id for n in stored if isinstance(n.ctx, ast.Store)}
        self.known = {*self.parameters}

    def refuse(self, node, complaint):
        """Raise a `SyntaxError` about a node, with its line."""
        node = node if hasattr(node, "lineno") else self.tree
        place = self.code.co_filename, node.lineno, node.col_offset + 1, None
        raise SyntaxError(f"{complaint} (in {self.tree.name})", place)

    def text(self):
        """Return the function."""
        for name in self.code.co_freevars:
            self.refuse(self.tree, f"{name} belongs to a function around")
        for name in sorted(self.variables):
            self.f.line(f"%at.{name} = alloca i64")
        for name in self.parameters:
            if name in self.variables:
                self.f.line(f"store i64 %in.{name}, i64* %at.{name}")
        self.write(self.tree.body)
        if not always_returns(self.tree.body):
            self.refuse(self.tree, "a way through it ends without a return")
        self.f.line("unreachable")
        parameters = ", ".join(f"i64 %in.{name}" for name in self.parameters)
        how = "alwaysinline nounwind" if self.linkage else "nounwind"
        head = f"define {self.linkage}i64 @{self.tree.name}({parameters}) {how} {{"
        return "\n".join([head, "entry:", *self.f.lines, "}", ""])

    def write(self, statements):
        """Write statements, one after the other."""
        for statement in statements:
            kind = type(statement).__name__
            if not hasattr(self, kind):
                self.refuse(statement, f"a {kind} in a function of words")
            getattr(self, kind)(statement)

    def labels(self, *hints):
        """Return new labels."""
        return [self.f.name(hint)[1:] for hint in hints]

    def go_on(self, label):
        """End the block, by going on with another, and begin that one."""
        self.f.line(f"br label %{label}")
        self.f.start(label)

    def Expr(self, node):
        if not isinstance(getattr(node.value, "value", 0), str):  # a docstring
            self.value(node.value)

    def Return(self, node):
        self.f.line(f"ret i64 {self.value(node.value, node)}")
        self.f.start(*self.labels("behind"))
        self.known |= self.variables  # no way leads there

    def Assign(self, node):
        value, [target] = self.value(node.value), node.targets
        self.store(target, self.place(target), value)

    def AugAssign(self, node):
        place = self.place(node.target)
        sides = self.loaded(node.target, place), self.value(node.value)
        self.store(node.target, place, self.operation(node, *sides))

    def If(self, node):
        yes, no, end = self.labels("then", "else", "end")
        self.branch(node.test, yes, no)
        before = {*self.known}
        self.f.start(yes)
        self.write(node.body)
        self.f.line(f"br label %{end}")
        then, self.known = self.known, before
        self.f.start(no)
        self.write(node.orelse)
        self.go_on(end)
        self.known &= then

    def While(self, node):
        test, body, end = self.labels("test", "body", "end")
        self.go_on(test)
        self.branch(node.test, body, end)
        before = {*self.known}
        self.f.start(body)
        self.write(node.body)
        self.f.line(f"br label %{test}")
        self.f.start(end)
        self.known = before

    def branch(self, test, yes, no):
        """Go to one of two blocks; ``and`` and ``or`` do only what is needed."""
        if isinstance(test, ast.BoolOp):
            *first, last = test.values
            for part in first:
                [more] = self.labels("more")
                both = isinstance(test.op, ast.And)
                self.branch(part, more if both else yes, no if both else more)
                self.f.start(more)
            return self.branch(last, yes, no)
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return self.branch(test.operand, no, yes)
        self.f.line(f"br i1 {self.truth(test)}, label %{yes}, label %{no}")

    def truth(self, test):
        """Return the name of a bit."""
        if isinstance(test, ast.Compare):
            sides = self.value(test.left), self.value(test.comparators[0])
            relation = ICMP_PREDICATES[type(test.ops[0])]
            return self.f.emit(f"icmp {relation} i64 {sides[0]}, {sides[1]}")
        return self.f.emit(f"icmp ne i64 {self.value(test)}, 0")

    def value(self, node, around=None):
        """Return the name of a word, or its digits."""
        write = getattr(self, "value_of_" + type(node).__name__, None)
        if write is not None:
            return write(node)
        kind = type(node).__name__
        return self.refuse(node or around, f"{kind} is not a word, or not here")

    def number(self, node, value):
        """Return the digits of a number that is known."""
        if not isinstance(value, int) or not -(2**63) <= value < 2**63:
            self.refuse(node, f"{value!r} is not an integer of 64 bits")
        return str(int(value))

    def outer(self, node):
        """Return what the module has by a name, as a function or a table."""
        name = getattr(node, "id", None)
        if name not in self.names or name in {*self.variables, *self.parameters}:
            self.refuse(node, f"{name or 'this'} is not a name of the module")
        return self.names[name]

    def value_of_Constant(self, node):
        return self.number(node, node.value)

    def value_of_Name(self, node):
        if node.id in self.variables:
            return self.loaded(node, self.place(node))
        if node.id in self.parameters:
            return f"%in.{node.id}"
        return self.number(node, self.outer(node))

    def value_of_Attribute(self, node):
        return self.number(node, getattr(self.outer(node.value), node.attr, None))

    def value_of_BinOp(self, node):
        left, right = self.value(node.left), self.value(node.right)
        return self.operation(node, left, right)

    def operation(self, node, left, right):
        """Write the operation of a node on two words."""
        if isinstance(node.op, ast.LShift | ast.RShift) and right not in SHIFTS:
            self.refuse(node, "it shifts by another number than one from 0 to 63")
        return self.f.emit(f"{OPERATORS[type(node.op)]} i64 {left}, {right}")

    def value_of_UnaryOp(self, node):
        if isinstance(node.op, ast.Not):
            self.refuse(node, "`not` is for conditions")
        return self.f.emit(f"sub i64 0, {self.value(node.operand)}")

    def value_of_Compare(self, node):
        return self.f.emit(f"zext i1 {self.truth(node)} to i64")

    def value_of_Subscript(self, node):
        return self.loaded(node, self.place(node))

    def value_of_Call(self, node):
        function = self.outer(node.func)
        args = [self.value(arg) for arg in node.args]
        taken = getattr(getattr(function, "__code__", None), "co_argcount", None)
        if taken is None or (
            len(args) < 1 if function is call_pointer else len(args) != taken
        ):
            self.refuse(node, f"{function!r} is not called with {len(args)} words")
        if function in INTRINSICS:
            return self.f.instructions(INTRINSICS[function], args)
        if function is call_pointer:
            kinds = ", ".join(["i64"] * (len(args) - 1))
            callee = self.f.emit(f"inttoptr i64 {args.pop(0)} to i64 ({kinds})*")
        else:
            self.called.append(function)
            callee = f"@{function.__name__}"
        words = ", ".join(f"i64 {arg}" for arg in args)
        return self.f.emit(f"call i64 {callee}({words})")

    def place(self, target):
        """Return a typed pointer to what is loaded or stored, and its bits."""
        if isinstance(target, ast.Name):
            return f"%at.{target.id}", 64
        memory = self.outer(getattr(target, "value", target))
        if not isinstance(target, ast.Subscript) or not isinstance(memory, TypedMemory):
            self.refuse(target, "it is neither a variable nor memory")
        address = self.value(target.slice)
        return self.f.emit(f"inttoptr i64 {address} to i{memory.bits}*"), memory.bits

    def loaded(self, node, place):
        """Return the word at a place, that of a node."""
        if isinstance(node, ast.Name) and node.id not in self.known:
            self.refuse(node, f"{node.id} may have no value here")
        pointer, bits = place
        found = self.f.emit(f"load i{bits}, i{bits}* {pointer}")
        return found if bits == 64 else self.f.emit(f"zext i{bits} {found} to i64")

    def store(self, target, place, value):
        """Write a word to a variable or to memory."""
        if isinstance(target, ast.Name):
            self.known.add(target.id)
        pointer, bits = place
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
            emitter = LowLevelEmitter(
                function, "" if function in functions else "internal "
            )
            if emitter.tree.name in [other.__name__ for other in texts]:
                emitter.refuse(emitter.tree, "another function has this name")
            texts[function] = emitter.text()
            wanted += emitter.called
    return "\n".join(texts.values())


class LowLevelLibrary(Library):
    """Machine code of functions of words, made with two of LLVM's passes.

    With cheaper instruction selection besides (``opt=1``) it takes a quarter of the
    time of all passes, and the code runs on each processor of the family.
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
        dispose_passes(binding, passes)
        return module, machine

    def recipe(self, binding):
        """Return what the code depends on besides the text."""
        return f"{binding.get_default_triple()} inlined"

    def place(self, name):
        """Return the address of a function."""
        address = self.engine.get_function_address(name)
        if not address:
            raise LookupError(f"the library has no function `{name}`")
        return address


# Where Python and NumPy keep what is in their objects.

ObjectOffsets = SimpleNamespace(
    refs=0, type=8, size=16,  # every object, and those with a length
    tuple_items=getattr(tuple, "__basicsize__", 24), list_items=24,
    float_value=16, call=128,  # how a type is called
    scalar_value=16,  # of NumPy's scalars, and of Python's complex numbers
    data=16, ndim=24, dims=32, base=48, descr=56, flags=64,  # NumPy's arrays
)  # fmt: skip
ORDERED_FLAG, WRITEABLE_FLAG = 0x101, 0x400  # flags of arrays


class UnknownLayout(Exception):
    """Objects are not laid out as machine code would have to know."""


def require_layout(truth, what):
    """Raise `UnknownLayout` unless something is true."""
    if not truth:
        raise UnknownLayout(what)


def object_size(kind):
    """Return how many bytes an object of a class has, or 0 if that is unknown."""
    return getattr(kind, "__basicsize__", 0)


def slot_offset(kind, slot):
    """Return where the objects of a class keep what is in one of its slots."""
    return object_size(kind.__base__) + 8 * sorted(kind.__slots__).index(slot)


ObjectOffsets.buffer, ObjectOffsets.aval, ObjectOffsets.placement = [
    slot_offset(ArrayImpl, name) for name in ArrayImpl.__slots__
]


# Further places, for the package's fast path.

ObjectOffsets.weak, ObjectOffsets.config_values = (
    slot_offset(AbstractValue, "weak_type"),
    slot_offset(Config, "_values"),
)
ObjectOffsets.weak_references = getattr(ArrayImpl, "__weakrefoffset__", 0)
ObjectOffsets.fast_path = object_size(JitFunction)  # the one slot of a derived class


def check_interpreter():
    """Raise `UnknownLayout` unless this is a plain CPython of 64 bits."""
    require_layout(sys.implementation.name == "cpython", "another Python")
    require_layout(
        not sysconfig.get_config_var("Py_GIL_DISABLED"), "threads without a lock"
    )
    require_layout(
        struct.calcsize("P") == 8 and sys.byteorder == "little", "the machine"
    )
    sample = object()
    count = i64[id(sample) + ObjectOffsets.refs]
    again = [sample] * 3
    require_layout(
        i64[id(sample) + ObjectOffsets.refs] == count + 3 < 100, "counts of references"
    )
    require_layout(i64[id(again) + ObjectOffsets.type] == id(list), "types")


def check_slots():
    """Raise `UnknownLayout` unless slots are where `slot_offset` says."""
    for kind in (ArrayImpl, AbstractValue, Config):
        for slot in kind.__slots__:
            sample, value = object.__new__(kind), object()
            getattr(kind, slot).__set__(sample, value)
            require_layout(i64[id(sample) + slot_offset(kind, slot)] == id(value), slot)


def check_containers():
    """Raise `UnknownLayout` unless tuples, lists, dictionaries, floats are as usual."""
    item, other = object(), object()
    pair, row, table = (item, other), [item, other], {"a": item, "b": other}
    sizes = [i64[id(x) + ObjectOffsets.size] for x in (pair, row, table, (), [], {})]
    require_layout(sizes == [2, 2, 2, 0, 0, 0], "lengths")
    require_layout(
        2 <= i64[id(row) + ObjectOffsets.list_items + 8] < 16, "lists"
    )  # how many have room
    for start in (
        id(pair) + ObjectOffsets.tuple_items,
        i64[id(row) + ObjectOffsets.list_items],
    ):
        items = [i64[start], i64[start + 8]]
        require_layout(items == [id(item), id(other)], "items")
    bits = struct.unpack("q", struct.pack("d", 0.1))[0]
    require_layout(i64[id(0.1) + ObjectOffsets.float_value] == bits, "floats")


def check_scalars():
    """Raise `UnknownLayout` unless scalars have numbers where `ObjectOffsets` says."""
    for x in (*(dtype.type(1) for dtype in SHORT_DTYPE_NAMES), 0.1 + 0.2j):
        array = np.array(x)
        found = ctypes.string_at(id(x) + ObjectOffsets.scalar_value, array.itemsize)
        require_layout(found == array.tobytes(), f"scalars of {array.dtype}")


def check_calls():
    """Raise `UnknownLayout` unless `ObjectOffsets.call` says how types are called."""
    kinds = [type("Kind", (), {"__call__": f}) for f in (lambda self: 1, print)]
    plain = type("Kind", (), {})
    found = [i64[id(kind) + ObjectOffsets.call] for kind in (plain, *kinds)]
    require_layout(found[0] == 0 != found[1] == found[2], "calls of objects")


def check_arrays():
    """Raise `UnknownLayout` unless NumPy's arrays are as its headers say."""
    base, locked = np.zeros((3, 5), np.float32), np.ones(4)
    locked.flags.writeable = False
    for x in (base, base.T, base[1:, 2], np.array(2), np.zeros(7, bool), locked):
        where, flags = id(x), u32[id(x) + ObjectOffsets.flags]
        gap = (
            i64[where + ObjectOffsets.dims + 8] - i64[where + ObjectOffsets.dims]
        )  # the strides come next
        require_layout(
            gap == 8 * x.ndim and u32[where + ObjectOffsets.ndim] == x.ndim, "axes"
        )
        dims = [i64[i64[where + ObjectOffsets.dims] + 8 * i] for i in range(x.ndim)]
        require_layout(
            i64[where + ObjectOffsets.data] == x.ctypes.data, "the data of arrays"
        )
        require_layout(tuple(dims) == x.shape, "shapes")
        require_layout(
            i64[where + ObjectOffsets.descr] == id(x.dtype), "the dtypes of arrays"
        )
        owner = 0 if x.base is None else id(x.base)
        require_layout(i64[where + ObjectOffsets.base] == owner, "the owners of memory")
        shown = [flags & bit != 0 for bit in (1, 0x100, WRITEABLE_FLAG)]
        known = [x.flags.c_contiguous, x.flags.aligned, x.flags.writeable]
        require_layout(shown == known, "the flags of arrays")


def check_layout():
    """Raise `UnknownLayout` unless everything is where machine code looks for it."""
    check_interpreter()
    check_slots()
    check_containers()
    check_scalars()
    check_calls()
    check_arrays()
