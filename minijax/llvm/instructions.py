"""LLVM's types and instructions, and the text of one function in the making.

Conversions to them round to even.

Reference: the LLVM Language Reference, https://llvm.org/docs/LangRef.html.
"""

# Made from chapters/18_llvm_ground.md by `make chapter`;
# edit the chapter, not this file.

import functools
import struct
from typing import NamedTuple

import numpy as np

from minijax.arrays.dtypes import short_dtype_name
from minijax.kernels.ir import NUMPY_MATH, compute_dtype, scalar_ops

# LLVM's types, and numbers in its text.

_TYPES = {
    "bool": "i1", "i8": "i8", "i16": "i16", "i32": "i32", "i64": "i64", "u8": "i8",
    "u16": "i16", "u32": "i32", "u64": "i64", "f32": "float", "f64": "double",
}  # fmt: skip


def llvm_type(dtype):
    """Return LLVM's type of a scalar of this dtype, in a register."""
    return _TYPES[short_dtype_name(compute_dtype(dtype))]


def llvm_memory_type(dtype):
    """Return LLVM's type of an element: bools have 8 bits, halves are bit patterns."""
    halves = dtype != compute_dtype(dtype)
    return "i16" if halves else "i8" if dtype.kind == "b" else llvm_type(dtype)


def type_bytes(kind):
    """Return how many bytes a number of a type of LLVM has."""
    return {"float": 4, "double": 8}.get(kind) or int(kind.removeprefix("i")) // 8


def intrinsic_suffix(kind, lanes):
    """Return what stands for a type in the names of intrinsics: ``f32``, ``v8i32``."""
    letter, many = "i" if kind.startswith("i") else "f", f"v{lanes}" if lanes else ""
    return f"{many}{letter}{8 * type_bytes(kind)}"


def pointer_type(kind):
    """Return the type of addresses of a type."""
    return f"{kind}*"


def llvm_constant(value):
    """Return a scalar as LLVM writes it, exactly.

    Floats have all their digits; infinities and NaN stand as the bits of 64-bit floats.
    """
    if value.dtype.kind != "f":
        return str(value.item()).lower()
    if not np.isfinite(value):
        [bits] = struct.unpack("<Q", struct.pack("<d", value))
        return f"0x{bits:016X}"
    return np.format_float_scientific(value, 766, unique=False, trim="0", exp_digits=1)


def vector_type(kind, lanes):
    """Return the type of so many numbers of a type; the type itself for 0 lanes."""
    return f"<{lanes} x {kind}>" if lanes else kind


def splat(kind, literal, lanes):
    """Return the constant that has the same number in each lane."""
    if not lanes:
        return literal
    one = f"<1 x {kind}> <{kind} {literal}>, <1 x {kind}> undef"
    return f"shufflevector ({one}, <{lanes} x i32> zeroinitializer)"


def vector_constant(kind, numbers):
    """Return the constant that has these numbers in its lanes."""
    return f"<{', '.join(f'{kind} {number}' for number in numbers)}>"


class TemplateType(str):
    """A type in a template: ``{t}`` is its name, and ``{t:0.5}`` a number of it."""

    def __new__(cls, kind, lanes=0):
        """Return the type of so many numbers of a type."""
        self = super().__new__(cls, vector_type(kind, lanes))
        self.kind, self.lanes = kind, lanes
        return self

    def __format__(self, literal):
        """Return the type, or a number with the type's lanes."""
        return splat(self.kind, literal, self.lanes) if literal else str(self)


# Scalar operations in LLVM's instructions, for one number or for many at once.

# From names in `scalar_ops` to instructions by the kind of dtype: b(ool), i(nteger),
# u(nsigned), f(loat).
instructions: dict = {}


def define_instruction(name, **templates):
    """Say what an operation is in LLVM, by letters of kinds, such as ``iu="..."``.

    In a template ``{x}``, ``{y}`` and ``{z}`` are the operands, ``{t}`` is their type,
    ``{t:1}`` a number of it, and ``{flags}`` stands where LLVM may be told to contract.
    Instructions are split by semicolons; all but the last have names. What has been
    made of the instructions before is forgotten.
    """
    instructions[name] = {
        kind: text for kinds, text in templates.items() for kind in kinds
    }
    for forget in cache_clearers:
        forget()


cache_clearers: list = []  # Functions that clear what was made of instructions.


def cached_until_redefined(make):
    """Return a function that remembers its results until an instruction is another."""
    remembering = functools.cache(make)
    cache_clearers.append(remembering.cache_clear)
    return remembering


define_instruction("add", iu="add {t} {x}, {y}", f="fadd {flags}{t} {x}, {y}")
define_instruction("sub", iu="sub {t} {x}, {y}", f="fsub {flags}{t} {x}, {y}")
define_instruction("mul", iu="mul {t} {x}, {y}", f="fmul {flags}{t} {x}, {y}")
define_instruction(
    "div", i="sdiv {t} {x}, {y}", u="udiv {t} {x}, {y}", f="fdiv {t} {x}, {y}"
)
define_instruction("select", bifu="select {i1} {x}, {t} {y}, {t} {z}")
define_instruction(
    "max",
    f="a = fcmp uno {t} {x}, {x}; b = fcmp ogt {t} {x}, {y}; c = or {i1} {a}, {b}; "
    "select {i1} {c}, {t} {x}, {t} {y}",
    i="a = icmp sgt {t} {x}, {y}; select {i1} {a}, {t} {x}, {t} {y}",
    bu="a = icmp ugt {t} {x}, {y}; select {i1} {a}, {t} {x}, {t} {y}",
)


define_instruction(
    "min",
    f="a = fcmp uno {t} {x}, {x}; b = fcmp olt {t} {x}, {y}; c = or {i1} {a}, {b}; "
    "select {i1} {c}, {t} {x}, {t} {y}",
    i="a = icmp slt {t} {x}, {y}; select {i1} {a}, {t} {x}, {t} {y}",
    bu="a = icmp ult {t} {x}, {y}; select {i1} {a}, {t} {x}, {t} {y}",
)
define_instruction(
    "rem", i="srem {t} {x}, {y}", u="urem {t} {x}, {y}", f="frem {t} {x}, {y}"
)
define_instruction("neg", iu="sub {t} {t:0}, {x}", f="fneg {t} {x}")
define_instruction(
    "abs",
    i="a = sub {t} {t:0}, {x}; b = icmp slt {t} {x}, {t:0}; "
    "select {i1} {b}, {t} {a}, {t} {x}",
    f="call {t} @llvm.fabs.{s}({t} {x})",
)
define_instruction("and", biu="and {t} {x}, {y}")
define_instruction("or", biu="or {t} {x}, {y}")
define_instruction("xor", biu="xor {t} {x}, {y}")
define_instruction("not", biu="xor {t} {x}, {t:-1}")
define_instruction("shift_left", iu="shl {t} {x}, {y}")
define_instruction("shift_right", i="ashr {t} {x}, {y}", u="lshr {t} {x}, {y}")
define_instruction("population_count", iu="call {t} @llvm.ctpop.{s}({t} {x})")
define_instruction("clz", iu="call {t} @llvm.ctlz.{s}({t} {x}, i1 false)")
define_instruction("copysign", f="call {t} @llvm.copysign.{s}({t} {x}, {t} {y})")
for _name in ("floor", "ceil", "trunc", "rint", "sqrt"):
    define_instruction(_name, f=f"call {{t}} @llvm.{_name}.{{s}}({{t}} {{x}})")
define_instruction(
    "as_float16",
    f="bits = bitcast {float} {x} to {i32}; top = and {i32} {bits}, {i32:-2147483648}; "
    "low = and {i32} {bits}, {i32:2147483647}; size = bitcast {i32} {low} to {float}; "
    "place = lshr {i32} {low}, {i32:13}; odd = and {i32} {place}, {i32:1}; "
    "risen = add {i32} {low}, {odd}; above = add {i32} {risen}, {i32:4095}; "
    "cut = and {i32} {above}, {i32:-8192}; usual = bitcast {i32} {cut} to {float}; "
    "large = fcmp oge {float} {size}, {float:65520.0}; "
    "high = select {i1} {large}, {float} {float:0x7FF0000000000000}, {float} {usual}; "
    "sum = fadd {float} {size}, {float:0.5}; least = fsub {float} {sum}, {float:0.5}; "
    "small = fcmp olt {float} {size}, {float:0x3F10000000000000}; "  # 2 ** -14
    "found = select {i1} {small}, {float} {least}, {float} {high}; "
    "digits = bitcast {float} {found} to {i32}; all = or {i32} {digits}, {top}; "
    "short = bitcast {i32} {all} to {float}; nan = fcmp uno {float} {x}, {x}; "
    "select {i1} {nan}, {float} {x}, {float} {short}",
)

# The same on a processor that converts numbers of 16 bits.
BY_PROCESSOR = "h = fptrunc {float} {x} to {half}; fpext {half} {h} to {float}"

_ORDERED = {
    "eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge",
}  # fmt: skip
for _name, _float in _ORDERED.items():
    _signed, _unsigned = (
        (_name, _name) if _name in ("eq", "ne") else (f"s{_name}", f"u{_name}")
    )
    define_instruction(
        _name,
        f=f"fcmp {_float} {{t}} {{x}}, {{y}}",
        i=f"icmp {_signed} {{t}} {{x}}, {{y}}",
        bu=f"icmp {_unsigned} {{t}} {{x}}, {{y}}",
    )

OPERAND_NAMES = "xyz"

# In the mathematical library of every system; with an f at the end for 32 bits.
for _name in NUMPY_MATH:
    _letters = OPERAND_NAMES[: scalar_ops[_name].arity]
    _args = ", ".join(f"{{t}} {{{letter}}}" for letter in _letters)
    define_instruction(_name, f=f"call {{t}} @{_name}{{m}}({_args})")


class PartialFormat(dict):
    """What is known of a template; the places of all else stay."""

    def __missing__(self, key):
        return f"{{{key}}}"


@cached_until_redefined
def instruction_template(op, dtype, result, lanes=0, flags="", halves=False):
    """Return the instructions of an operation, with places for operands.

    Args:
      op: a name in `scalar_ops` or `recastings`.
      dtype, result: of the operands and of the result, in registers.
      lanes: how many numbers are computed at once; 0 for one that is no vector.
      flags: what LLVM may do to sums and products.
      halves: whether the processor converts numbers of 16 bits.

    Raises:
      TypeError: if the operation has no instructions for the dtype.
    """
    if op == "convert":
        template = conversion(dtype, result, lanes)
    elif op == "bitcast":
        template = "bitcast {t} {x} to {r}"
    elif op == "as_float16":
        template = rounded_to_half(dtype, halves)
    else:
        template = template_of(op, dtype)
    return instantiate_template(template, lanes, dtype, result, flags)


def template_of(op, dtype):
    """Return what was said of an operation and a dtype, with places for all else."""
    template = instructions.get(op, {}).get(dtype.kind)
    if template is None:
        raise TypeError(
            f"The scalar operation {op!r} has no LLVM instructions for {dtype}. Say "
            f"what it is: minijax.llvm.instructions.define_instruction({op!r}, "
            f"{dtype.kind}=...)."
        )
    return template


def instantiate_template(template, lanes, dtype=None, result=None, flags=""):
    """Return a template with its types filled in."""
    names = "i1", "i16", "i32", "half", "float"
    kinds = {kind: TemplateType(kind, lanes) for kind in names}
    types = PartialFormat(kinds, flags=flags, m="f" if dtype == np.float32 else "")
    if dtype:
        old, new = llvm_type(dtype), llvm_type(result)
        types |= {"t": TemplateType(old, lanes), "s": intrinsic_suffix(old, lanes)}
        types |= {"r": TemplateType(new, lanes), "rs": intrinsic_suffix(new, lanes)}
    return template.format_map(types)


def rounded_to_half(dtype, halves):
    """Return the template that rounds to float16; numbers of 64 bits to 32 first."""
    template = BY_PROCESSOR if halves else instructions["as_float16"]["f"]
    if dtype == np.float32:
        return template
    *steps, last = template.replace("{x}", "{n}").split("; ")
    first, end = "n = fptrunc {t} {x} to {float}", "fpext {float} {end} to {t}"
    return "; ".join([first, *steps, f"end = {last}", end])


def conversion(old, new, lanes=0):
    """Return the template that converts numbers to another dtype."""
    if new.kind == "b":
        floats = old.kind == "f"
        return "fcmp une {t} {x}, {t:0.0}" if floats else "icmp ne {t} {x}, {t:0}"
    signed = (new if old.kind == "f" else old).kind == "i"
    if old.kind == "f" and new.kind != "f":  # stops at the limits; 0 for NaN
        verb = "fptosi" if signed else "fptoui"
        if lanes:
            return "; ".join(saturating(verb, old, np.iinfo(new)))
        return f"call {{r}} @llvm.{verb}.sat.{{rs}}.{{s}}({{t}} {{x}})"
    if old.kind == new.kind == "f":
        verbs = "fpext", "bitcast", "fptrunc"
    elif new.kind == "f":
        verbs = ("sitofp" if signed else "uitofp",) * 3
    else:
        verbs = "sext" if signed else "zext", "bitcast", "trunc"
    bits = [1 if dtype.kind == "b" else 8 * dtype.itemsize for dtype in (old, new)]
    verb = verbs[1 + (bits[0] > bits[1]) - (bits[0] < bits[1])]
    return f"{verb} {{t}} {{x}} to {{r}}"


def saturating(verb, old, ends):
    """Return the instructions that convert a vector of floats to integers.

    Floats beyond an end of the integers become that end, and NaN becomes 0.
    """
    if int(old.type(ends.max)) == ends.max:
        return clamp_instruction(verb, old, ends)
    least, beyond = (llvm_constant(old.type(n)) for n in (ends.min, ends.max + 1))
    return [
        f"low = fcmp oge {{t}} {{x}}, {{t:{least}}}",
        f"below = fcmp olt {{t}} {{x}}, {{t:{beyond}}}",
        "inside = and {i1} {low}, {below}",
        "near = select {i1} {inside}, {t} {x}, {t} {t:0.0}",
        f"whole = {verb} {{t}} {{near}} to {{r}}",
        f"under = fcmp olt {{t}} {{x}}, {{t:{least}}}",
        f"over = fcmp oge {{t}} {{x}}, {{t:{beyond}}}",
        f"risen = select {{i1}} {{under}}, {{r}} {{r:{ends.min}}}, {{r}} {{whole}}",
        f"select {{i1}} {{over}}, {{r}} {{r:{ends.max}}}, {{r}} {{risen}}",
    ]


def clamp_instruction(verb, old, ends):
    """Return the same where both ends are floats; short integers are cut from long."""
    low, high = (llvm_constant(old.type(end)) for end in (ends.min, ends.max))
    whole = f"{verb} {{t}} {{near}} to {{r}}"
    if ends.bits < 32:
        whole = "whole = fptosi {t} {near} to {i32}; trunc {i32} {whole} to {r}"
    return [
        f"less = fcmp ogt {{t}} {{t:{low}}}, {{x}}",
        f"risen = select {{i1}} {{less}}, {{t}} {{t:{low}}}, {{t}} {{x}}",
        f"more = fcmp olt {{t}} {{t:{high}}}, {{risen}}",
        f"inside = select {{i1}} {{more}}, {{t}} {{t:{high}}}, {{t}} {{risen}}",
        "number = fcmp ord {t} {x}, {x}",
        "near = select {i1} {number}, {t} {inside}, {t} {t:0.0}",
        whole,
    ]


# The text of one function of LLVM, in the making.


class LoopScope(NamedTuple):
    """The text of a loop's body, in the making, and what was computed in it."""

    lines: list
    memo: dict


NOINLINE = " noinline"  # of a call: the function is not copied to that place


class FunctionBuilder:
    """The text of one function in the making, in which loops are open.

    Attributes:
      lines: those of the innermost loop that is open.
      block: the label of the block that is being written.
      scopes: the function's `LoopScope`, then those of the open loops.
      depth: the number of the scope that is written to.
      depths: from names to the depth where they are known.
      needed: what the text needs besides: from names to texts of functions.
      halves: whether the processor converts numbers of 16 bits.
    """

    halves = False

    def __init__(self):
        self.block, self.count = "entry", 0
        self.scopes, self.depths, self.needed = [LoopScope([], {})], {}, {}
        self.at_depth(0)

    def at_depth(self, depth):
        """Write to the scope at this depth from now on."""
        self.depth, self.lines = depth, self.scopes[depth].lines

    def name(self, hint="v"):
        """Return a new name; it has a dot, which those of parameters do not have."""
        self.count += 1
        return f"%{hint}.{self.count}"

    def line(self, text):
        """Write an instruction."""
        self.lines.append(f"  {text}")

    def emit(self, text, hint="v"):
        """Write an instruction, and return the name of its result."""
        name = self.name(hint)
        self.line(f"{name} = {text}")
        self.depths[name] = self.depth
        return name

    def declare(self, text):
        """Say that a function is called, by its declaration."""
        self.needed.setdefault(text.partition("@")[2].partition("(")[0], text)

    def start(self, label):
        """Begin a block."""
        self.lines.append(f"{label}:")
        self.block = label

    def instructions(self, template, args):
        """Write instructions with operands filled in; return the last result's name."""
        names = dict(zip(OPERAND_NAMES, args))
        for step in template.split("; "):
            name, _, text = step.rpartition(" = ")
            if text.startswith("call "):
                self.declare(declaration(text))
            names[name] = self.emit(text.format_map(names))
        return names[""]

    def operation(self, op, args, dtype, result, lanes=0, flags=""):
        """Write a scalar operation, or one on vectors; return the result's name.

        In a block it is written once: turns side by side have much in common.
        """

        def write():
            steps = instruction_template(op, dtype, result, lanes, flags, self.halves)
            return self.instructions(steps, args)

        key = self.block, op, (*args,), dtype, result, lanes, flags
        return self.written(key, self.depth, write)

    def cached_instructions(self, key, depth, *texts):
        """Write instructions in a scope, once; return the name of the last result.

        In a text, ``{}`` stands for the result before.
        """
        return self.written(key, depth, lambda: self._chain(texts))

    def _chain(self, texts):
        name = ""
        for text in texts:
            name = self.emit(text.format(name))
        return name

    def written(self, key, depth, write):
        """Call a function that writes to a scope, once; return what it has returned."""
        memo, here = self.scopes[depth].memo, self.depth
        if key not in memo:
            self.at_depth(depth)
            memo[key] = write()
            self.at_depth(here)
        return memo[key]

    def call(self, result, name, *args, own=False, how=""):
        """Write a call; `result` is its type, and `args` are pairs of type and name.

        A function that is the module's `own` is not declared. `how` is what LLVM is
        told of this call.
        """
        if not own:
            kinds = ", ".join(kind for kind, _ in args)
            self.needed[name] = f"declare {result} @{name}({kinds})"
        operands = ", ".join(f"{kind} {arg}" for kind, arg in args)
        text = f"call {result} @{name}({operands}){how}"
        return self.line(text) if result == "void" else self.emit(text)

    def splat(self, kind, name, lanes):
        """Return a scalar as a vector, made where the scalar is known."""
        if not lanes or not name.startswith("%"):
            return splat(kind, name, lanes)
        vector, zeros = vector_type(kind, lanes), f"<{lanes} x i32> zeroinitializer"
        first = f"insertelement {vector} undef, {kind} {name}, i32 0"
        every = f"shufflevector {vector} {{}}, {vector} undef, {zeros}"
        return self.cached_instructions((first, lanes), self.depths[name], first, every)

    def select(self, which, x, y, kind="i64", lanes=0):
        """Write the choice of one of two values, in each of so many lanes."""
        bools, kind = vector_type("i1", lanes), vector_type(kind, lanes)
        return self.emit(f"select {bools} {which}, {kind} {x}, {kind} {y}")

    def any_lane(self, mask, lanes):
        """Write whether a mask lets any of its lanes through."""
        bools = vector_type("i1", lanes)
        return self.call("i1", f"llvm.vector.reduce.or.v{lanes}i1", (bools, mask))

    def extract_element(self, kind, x, lanes, lane):
        """Write the number in one lane of a vector."""
        return self.emit(f"extractelement {vector_type(kind, lanes)} {x}, i32 {lane}")

    def insert_element(self, kind, x, lanes, lane, number):
        """Write a vector with another number in one lane."""
        vector = f"{vector_type(kind, lanes)} {x}"
        return self.emit(f"insertelement {vector}, {kind} {number}, i32 {lane}")

    def shuffle(self, kind, x, y, order, lanes):
        """Write the vector of numbers of two vectors of so many, by their places."""
        vector, places = vector_type(kind, lanes), vector_constant("i32", order)
        mask = f"<{len(order)} x i32> {places}"
        return self.emit(f"shufflevector {vector} {x}, {vector} {y}, {mask}")

    def at(self, kind, base, *places):
        """Write the address that is so many numbers behind another one."""
        for place in places:
            address = f"{pointer_type(kind)} {base}, i64 {place}"
            base = self.emit(f"getelementptr {kind}, {address}", "p")
        return base

    def cast(self, old, address, new):
        """Write an address of one type as that of another."""
        kinds = pointer_type(old), pointer_type(new)
        return self.emit(f"bitcast {kinds[0]} {address} to {kinds[1]}", "p")

    def load(self, kind, address, lanes=0):
        """Write the load of a number, or of so many that lie one after the other."""
        place = self._place(kind, address, lanes)
        return self.emit(f"load {vector_type(kind, lanes)}, {place}", "x")

    def store(self, kind, x, address, lanes=0):
        """Write the store of a number, or of a vector's, one after the other."""
        place = self._place(kind, address, lanes)
        self.line(f"store {vector_type(kind, lanes)} {x}, {place}")

    def _place(self, kind, address, lanes):
        if not lanes:
            return f"{pointer_type(kind)} {address}"
        vector = vector_type(kind, lanes)
        where = self.cast(kind, address, vector)
        return f"{pointer_type(vector)} {where}, align {type_bytes(kind)}"

    def counted_loop(self, first, step, count, carried, body):
        """Write a loop; return the names of its last values.

        Args:
          first: the first index, an int; the others follow by `step`.
          step: an int.
          count: how many iterations there are; none and one make no loop.
          carried: pairs of LLVM's type and the first value.
          body: a function that writes the body; it is given the index, an int or a
            name, and the names of the carried values, and returns those of the next.
        """
        if count < 2:
            values = [value for _, value in carried]
            return body(first, values) if count else values
        return self.loop(first + step * count, carried, body, first, step)

    def loop(self, limit, carried, body, first=0, step=1):
        """Write a loop of one iteration at least; return the names of its last values.

        Args:
          limit: an int or a name; the index is below it.
          carried, body, first, step: as for `counted_loop`; the index is a name.
        """
        number = self.count = self.count + 1
        index, names = f"%i{number}", [self.name("c") for _ in carried]
        entry, self.block = self.block, f"loop{number}"
        self._open([index, *names])
        results = body(index, names)
        following = self.emit(f"add nuw nsw i64 {index}, {step}", "n")
        more = self.emit(f"icmp ult i64 {following}, {limit}", "b")
        self.line(f"br i1 {more}, label %loop{number}, label %done{number}")
        rows = [(index, "i64", first, following)]
        rows += [(name, *pair, x) for name, pair, x in zip(names, carried, results)]
        self._put_loop(number, entry, rows)
        self.depths |= dict.fromkeys(results, self.depth)
        return results

    def if_then(self, condition, write, values=()):
        """Write what is done under a condition only; return what becomes of values.

        Args:
          condition: the name of a bool.
          write: a function that writes it, and returns the names of new values.
          values: pairs of LLVM's type and the value where it is not done.
        """
        number, before = self.count + 1, self.block
        self.count = number
        self._open([])
        self.block = f"then{number}"
        found = write()
        self.line(f"br label %after{number}")
        last, inside = self.block, self.scopes.pop().lines
        self.at_depth(self.depth - 1)
        self.line(f"br i1 {condition}, label %then{number}, label %after{number}")
        self.start(f"then{number}")
        self.lines.extend(inside)
        self.start(f"after{number}")
        return [
            self.emit(f"phi {kind} [ {x}, %{last} ], [ {value}, %{before} ]")
            for (kind, value), x in zip(values, found if values else ())
        ]

    def definition(self, name, params, attributes, result=None, linkage="internal "):
        """Return the text of the function.

        Args:
          name, attributes, linkage: in LLVM's words.
          params: pairs of type and name.
          result: a pair of type and name, if it returns something.
        """
        kind, value = result or ("void", "")
        listed = ", ".join(f"{kind} {param}" for kind, param in params)
        head = f"define {linkage}{kind} @{name}({listed}) {attributes} {{"
        end = f"  ret {kind} {value}".rstrip()
        return "\n".join([head, "entry:", *self.lines, end, "}"])

    def _put_loop(self, number, entry, rows):
        """End a loop, and put its text into that of the scope around it."""
        last, inside = self.block, self.scopes.pop().lines
        self.at_depth(self.depth - 1)
        self.line(f"br label %loop{number}")
        self.start(f"loop{number}")
        for name, kind, first, following in rows:
            pairs = f"[ {first}, %{entry} ], [ {following}, %{last} ]"
            self.line(f"{name} = phi {kind} {pairs}")
        self.lines.extend(inside)
        self.start(f"done{number}")

    def _open(self, names):
        self.scopes.append(LoopScope([], {}))
        self.at_depth(self.depth + 1)
        self.depths |= dict.fromkeys(names, self.depth)


def declaration(call):
    """Return the declaration of the function that an instruction calls."""
    head, _, args = call.removeprefix("call ").removesuffix(")").partition("(")
    types = [arg.rpartition(" ")[0] for arg in args.split(", ")]
    return f"declare {head}({', '.join(types)})"


# Narrow floats: what makes numbers of their patterns of bits, and patterns of
# numbers.

WIDENINGS = {
    "from_bf16": [
        "wide = zext {i16} {x} to {i32}",
        "bits = shl {i32} {wide}, {i32:16}",
        "bitcast {i32} {bits} to {float}",
    ],
    "to_bf16": [
        "bits = bitcast {float} {x} to {i32}",
        "high = lshr {i32} {bits}, {i32:16}",
        "odd = and {i32} {high}, {i32:1}",
        "bias = add {i32} {odd}, {i32:32767}",
        "moved = add {i32} {bits}, {bias}",
        "rounded = lshr {i32} {moved}, {i32:16}",
        "nan = fcmp uno {float} {x}, {x}",
        "quiet = or {i32} {high}, {i32:64}",
        "y = select {i1} {nan}, {i32} {quiet}, {i32} {rounded}",
        "trunc {i32} {y} to {i16}",
    ],
    "from_f16": [
        "wide = zext {i16} {x} to {i32}",
        "sign = and {i32} {wide}, {i32:32768}",
        "top = shl {i32} {sign}, {i32:16}",
        "rest = and {i32} {wide}, {i32:32767}",
        "bits = shl {i32} {rest}, {i32:13}",
        "small = bitcast {i32} {bits} to {float}",
        "scaled = fmul {float} {small}, {float:0x46F0000000000000}",  # 2 ** 112
        "usual = bitcast {float} {scaled} to {i32}",
        "huge = or {i32} {bits}, {i32:2139095040}",
        "special = icmp uge {i32} {rest}, {i32:31744}",
        "size = select {i1} {special}, {i32} {huge}, {i32} {usual}",
        "all = or {i32} {size}, {top}",
        "bitcast {i32} {all} to {float}",
    ],
    "to_f16": [
        "all = bitcast {float} {x} to {i32}",
        "top = and {i32} {all}, {i32:-2147483648}",
        "bits = and {i32} {all}, {i32:2147483647}",
        "place = lshr {i32} {bits}, {i32:13}",
        "odd = and {i32} {place}, {i32:1}",
        "bias = add {i32} {odd}, {i32:3355447295}",  # ((15 - 127) << 23) + 4095
        "moved = add {i32} {bits}, {bias}",
        "usual = lshr {i32} {moved}, {i32:13}",
        "magnitude = bitcast {i32} {bits} to {float}",
        "sum = fadd {float} {magnitude}, {float:5.000000e-01}",
        "sumbits = bitcast {float} {sum} to {i32}",
        "tiny = sub {i32} {sumbits}, {i32:1056964608}",
        "below = icmp ult {i32} {bits}, {i32:947912704}",  # 2 ** -14
        "finite = select {i1} {below}, {i32} {tiny}, {i32} {usual}",
        "nan = icmp ugt {i32} {bits}, {i32:2139095040}",
        "huge = select {i1} {nan}, {i32} {i32:32256}, {i32} {i32:31744}",
        "above = icmp uge {i32} {bits}, {i32:1199570944}",  # 2 ** 16
        "size = select {i1} {above}, {i32} {huge}, {i32} {finite}",
        "sign = lshr {i32} {top}, {i32:16}",
        "y = or {i32} {size}, {sign}",
        "trunc {i32} {y} to {i16}",
    ],
}


# On a processor that has instructions for it; for float16 alone.
HALF_CONVERSIONS = {
    "from_f16": "h = bitcast {i16} {x} to {half}; fpext {half} {h} to {float}",
    "to_f16": "h = fptrunc {float} {x} to {half}; bitcast {half} {h} to {i16}",
}


@cached_until_redefined
def half_conversion_function(name, lanes):
    """Return the name and the text of a conversion of so many numbers at once."""
    f, label = FunctionBuilder(), f"{name}_v{lanes}" if lanes else name
    old, new = ("i16", "float") if name.startswith("from") else ("float", "i16")
    old, new = vector_type(old, lanes), vector_type(new, lanes)
    result = f.instructions(
        instantiate_template("; ".join(WIDENINGS[name]), lanes), ["%x"]
    )
    return label, f.definition(label, [(old, "%x")], "alwaysinline", (new, result))
