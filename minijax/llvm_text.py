# Made from chapters/16_kernels.md by `make chapter`;
# edit the chapter, not this file.
"""Kernels as functions in the text of LLVM's intermediate representation.

Reference: the LLVM Language Reference, https://llvm.org/docs/LangRef.html.
"""

import re
import struct

import numpy as np

from minijax.dtypes import short_name
from minijax.scalar_ops import foldings, in_registers, scalar_ops

_TYPES = {
    "bool": "i1", "i8": "i8", "i16": "i16", "i32": "i32", "i64": "i64", "u8": "i8",
    "u16": "i16", "u32": "i32", "u64": "i64", "f32": "float", "f64": "double",
}  # fmt: skip


def type_of(dtype):
    """Return LLVM's type of a scalar of this dtype, in a register."""
    return _TYPES[short_name(in_registers(dtype))]


def type_in_memory(dtype):
    """Return LLVM's type of an element: bools have 8 bits, halves are bit patterns."""
    halves = dtype != in_registers(dtype)
    return "i16" if halves else "i8" if dtype == bool else type_of(dtype)


def number_text(value):
    """Return a scalar as LLVM writes it: floats by the bits of their 64-bit form."""
    if value.dtype.kind == "f":
        [bits] = struct.unpack("<Q", struct.pack("<d", value))
        return f"0x{bits:016X}"
    return str(value.item()).lower()


class LLVMFunction:
    """The text of one function, in the making.

    Attributes:
      lines: of its body.
      block: the label of the block that is being written.
      declared: declarations of the functions that it calls.
    """

    def __init__(self):
        self.lines, self.block, self.count, self.declared = [], "entry", 0, set()

    def name(self, hint="v"):
        """Return a new name."""
        self.count += 1
        return f"%{hint}{self.count}"

    def line(self, text):
        """Write an instruction."""
        self.lines.append(f"  {text}")

    def emit(self, text, hint="v"):
        """Write an instruction, and return the name of its result."""
        if text.startswith("call "):
            self.declared.add(declaration(text))
        name = self.name(hint)
        self.line(f"{name} = {text}")
        return name

    def start(self, label):
        """Begin a block."""
        self.lines.append(f"{label}:")
        self.block = label

    def instructions(self, template, args, **types):
        """Write the instructions of a scalar operation; return its result's name.

        Args:
          template: instructions with ``{0}`` for operands and names for types, split by
            semicolons; ``a = ...`` gives a result the name ``{a}``.
          args: the names of the operands.
        """
        *steps, last = template.split("; ")
        for step in steps:
            name, _, text = step.partition(" = ")
            types[name] = self.emit(text.format(*args, **types))
        text = last.format(*args, **types)
        return self.emit(text) if " " in text else text


def declaration(call):
    """Return the declaration of the function that an instruction calls."""
    result, name, args = re.fullmatch(r"call (\S+) (@\S+?)\((.*)\)", call).groups()
    types = ", ".join(arg.split()[0] for arg in args.split(", "))
    return f"declare {result} {name}({types})"


def loop(f, size, carried, body):
    """Write a loop that is run at least once; return the names of its last values.

    Args:
      f: the `LLVMFunction`.
      size: how often it is run, at least once.
      carried: pairs of LLVM's type and the first value.
      body: a function that writes the body; it is given the names of the index and of
        the carried values, and returns the names of the next ones.
    """
    number = f.count = f.count + 1
    index, head, done = f"%i{number}", f"loop{number}", f"done{number}"
    names = [f.name("c") for _ in carried]
    entry = f.block
    f.line(f"br label %{head}")
    f.start(head)
    mark = len(f.lines)
    results = body(index, names)
    following = f.emit(f"add nuw nsw i64 {index}, 1", "n")
    more = f.emit(f"icmp ult i64 {following}, {size}", "b")
    f.line(f"br i1 {more}, label %{head}, label %{done}")
    starts = [(index, "i64", "0", following)]
    for name, (kind, first), result in zip(names, carried, results):
        starts.append((name, kind, first, result))
    f.lines[mark:mark] = [
        f"  {name} = phi {kind} [ {first}, %{entry} ], [ {result}, %{f.block} ]"
        for name, kind, first, result in starts
    ]
    f.start(done)
    return results


def operation(f, node, args):
    """Write a scalar operation; return the name of its result."""
    dtype = node.args[-1].dtype
    if node.op == "convert":
        template = conversion(dtype, node.dtype)
    elif node.op == "bitcast":
        template = "bitcast {t} {0} to {r}"
    else:
        template = scalar_ops[node.op].llvm[dtype.kind]
    return write_operation(f, template, args, dtype, node.dtype)


def write_operation(f, template, args, dtype, result):
    """Write a template's instructions for operands of a dtype."""
    types = {"t": type_of(dtype), "r": type_of(result)}
    types["s"], types["rs"] = suffix(dtype), suffix(result)
    types["m"] = "f" if dtype == np.float32 else ""
    return f.instructions(template, args, **types)


def suffix(dtype):
    """Return what stands for a type in the name of an intrinsic: ``f32`` or ``i32``."""
    letter = "f" if dtype.kind == "f" else "i"
    return f"{letter}{dtype.itemsize * 8}"


def conversion(old, new):
    """Return the template that converts numbers to another dtype."""
    if new == bool:
        return "fcmp une {t} {0}, 0.0" if old.kind == "f" else "icmp ne {t} {0}, 0"
    if old.kind == "f" and new.kind == "f":
        verb = "fpext" if old.itemsize < new.itemsize else "fptrunc"
        return f"{verb} {{t}} {{0}} to {{r}}"
    signed = (new if old.kind == "f" else old).kind == "i"
    if old.kind == "f":  # it ends at the limits of the type; NaN becomes 0
        verb = "fptosi" if signed else "fptoui"
        return f"call {{r}} @llvm.{verb}.sat.{{rs}}.{{s}}({{t}} {{0}})"
    if new.kind == "f":
        verb = "sitofp" if signed else "uitofp"
    elif old != bool and old.itemsize > new.itemsize:
        verb = "trunc"
    elif old != bool and old.itemsize == new.itemsize:
        return "{0}"
    else:
        verb = "sext" if signed else "zext"
    return f"{verb} {{t}} {{0}} to {{r}}"


def beat(f, how, dtype, best, rival):
    """Write the choice of the better of two numbers and of its place.

    NaN beats everything, and of equals the first one stays.
    """
    ahead = scalar_ops["gt" if how == "argmax" else "lt"].llvm[dtype.kind]
    wins = write_operation(f, ahead, [rival[0], best[0]], dtype, dtype)
    kind = type_of(dtype)
    if dtype.kind == "f":
        unknown = f.emit(f"fcmp uno {kind} {rival[0]}, {rival[0]}")
        known = f.emit(f"fcmp ord {kind} {best[0]}, {best[0]}")
        wins = f.emit(f"or i1 {wins}, {f.emit(f'and i1 {unknown}, {known}')}")
    return [
        f.emit(f"select i1 {wins}, {kind} {new}, {kind} {old}")
        for kind, new, old in zip((kind, "i64"), rival, best)
    ]


class KernelEmitter:
    """Writes a kernel: a node is computed where the last of its axes begins to move.

    Attributes:
      f: the `LLVMFunction`.
      indices: the names of the indices of the loops that are open, by axis.
    """

    def __init__(self, kernel):
        self.kernel, self.f, self.indices = kernel, LLVMFunction(), {}

    def nest(self, stores, known):
        """Write stores and the loops around them, inside of the loops that are open.

        Args:
          stores: list of `Store`.
          known: from nodes that have been computed to the names of their results.
        """
        self.settle([store.node for store in stores], known)
        inside = {}
        for store in stores:
            shut = [axis for axis in store.place.axes if axis not in self.indices]
            inside.setdefault(shut[0] if shut else None, []).append(store)
        for store in inside.pop(None, []):
            self.store(store, known)
        for axis, group in inside.items():
            self.loop(axis, [], lambda _, group=group: self.nest(group, {**known}))

    def settle(self, wanted, known):
        """Compute the nodes, on the way to those wanted, whose axes are all open."""
        needed, found = [*wanted], set()
        while needed:
            node = needed.pop()
            if node not in known and node not in found:
                found.add(node)
                needed.extend(node.args)
        for node in self.kernel.nodes:
            if node in found and self.indices.keys() >= {*node.level}:
                known[node] = self.compute(node, known)

    def compute(self, node, known):
        """Write the instructions of one node; return the name of its result."""
        if node.op == "constant":
            return number_text(node.detail)
        if node.op == "index":
            return self.indices[node.detail]
        if node.op == "load":
            return self.load(*node.detail)
        if node.op == "fold":
            return self.fold(node, known)
        return operation(self.f, node, [known[arg] for arg in node.args])

    def loop(self, axis, carried, body):
        """Write a loop along an axis; see `loop`."""

        def inside(index, names):
            self.indices[axis] = index
            results = body(names)
            del self.indices[axis]
            return results or []

        size = self.kernel.sizes[axis]
        if size == 0:
            return [first for _, first in carried]
        return loop(self.f, size, carried, inside)

    def fold(self, node, known):
        """Write the loops along the axes that a fold takes away."""
        [arg], (how, axes) = node.args, node.detail
        start = number_text(foldings[how].start(arg.dtype))
        carried = [(type_of(arg.dtype), start)]
        if how.startswith("arg"):
            carried.append(("i64", "0"))

        def inside(axes, names, known):
            known = {**known}
            self.settle([arg], known)
            if not axes:
                return self.combine(node, names, known[arg])
            pairs = [(kind, name) for (kind, _), name in zip(carried, names)]
            return self.loop(axes[0], pairs, lambda names: inside(axes[1:], names, known))

        return inside(axes, [first for _, first in carried], known)[-1]

    def combine(self, node, names, x):
        """Write how one more number enters a fold; return the names of its values."""
        [arg], (how, axes) = node.args, node.detail
        if how.startswith("arg"):
            return beat(self.f, how, arg.dtype, names, [x, self.indices[axes[0]]])
        template = scalar_ops[how].llvm[arg.dtype.kind]
        return [write_operation(self.f, template, [*names, x], arg.dtype, arg.dtype)]

    def address(self, place):
        """Write the sum of an `Affine`; return the name of the result."""
        terms = [self.scaled(axis, place.strides[axis]) for axis in place.axes]
        total = terms.pop(0) if terms else None
        for term in terms:
            total = self.f.emit(f"add i64 {total}, {term}", "a")
        if total is None:
            return str(place.offset)
        return self.f.emit(f"add i64 {total}, {place.offset}", "a") if place.offset else total

    def scaled(self, axis, stride):
        """Write an index times its stride."""
        index = self.indices[axis]
        return index if stride == 1 else self.f.emit(f"mul i64 {index}, {stride}", "a")

    def element(self, buffer, address):
        """Write the pointer to an element; return its type and its name."""
        kind = type_in_memory(buffer.dtype)
        pointer = self.f.emit(
            f"getelementptr inbounds {kind}, {pointer_to(kind)} %{buffer.name}, i64 {address}", "p"
        )
        return kind, f"{pointer_to(kind)} {pointer}"

    def load(self, buffer, place, guards, other):
        """Write a load; return the name of the number."""
        if buffer.size == 0:
            return number_text(other)
        address, inside = self.address(place), None
        for guard in guards:
            at = self.address(guard.place)
            fits = self.f.emit(f"icmp ult i64 {at}, {guard.limit}", "g")
            inside = fits if inside is None else self.f.emit(f"and i1 {inside}, {fits}", "g")
        if inside is not None:
            address = self.f.emit(f"select i1 {inside}, i64 {address}, i64 0", "a")
        kind, pointer = self.element(buffer, address)
        x = from_memory(self.f, buffer.dtype, self.f.emit(f"load {kind}, {pointer}", "e"))
        if inside is None:
            return x
        kind = type_of(buffer.dtype)
        return self.f.emit(f"select i1 {inside}, {kind} {x}, {kind} {number_text(other)}")

    def store(self, store, known):
        """Write a store."""
        buffer, place, node = store
        x = to_memory(self.f, buffer.dtype, known[node])
        kind, pointer = self.element(buffer, self.address(place))
        self.f.line(f"store {kind} {x}, {pointer}")

    def text(self, name):
        """Return the text of the function."""
        self.nest(self.kernel.stores, {})
        written = {store.buffer for store in self.kernel.stores}
        params = ", ".join(
            f"{pointer_to(type_in_memory(buffer.dtype))} noalias "
            f"{'' if buffer in written else 'readonly '}%{buffer.name}"
            for buffer in self.kernel.buffers
        )
        head = f"define void @{name}({params}) nounwind {{\nentry:"
        return "\n".join([head, *self.f.lines, "  ret void", "}"])


def pointer_to(kind):
    """Return the type of addresses of a type."""
    return f"{kind}*"


def from_memory(f, dtype, x):
    """Write what makes of an element in memory a number; return its name."""
    if dtype == bool:
        return f.emit(f"icmp ne i8 {x}, 0")
    if dtype == in_registers(dtype):
        return x
    return f.emit(f"call float @from_{short_name(dtype)}(i16 {x})")


def to_memory(f, dtype, x):
    """Write what makes of a number an element in memory; return its name."""
    if dtype == bool:
        return f.emit(f"zext i1 {x} to i8")
    if dtype == in_registers(dtype):
        return x
    return f.emit(f"call i16 @to_{short_name(dtype)}(float {x})")


# Halves and their patterns of bits; conversions to them round to even.
HALVES = {
    "float @from_bf16": """define internal float @from_bf16(i16 %x) alwaysinline {
  %wide = zext i16 %x to i32
  %bits = shl i32 %wide, 16
  %y = bitcast i32 %bits to float
  ret float %y
}""",
    "i16 @to_bf16": """define internal i16 @to_bf16(float %x) alwaysinline {
  %bits = bitcast float %x to i32
  %high = lshr i32 %bits, 16
  %odd = and i32 %high, 1
  %bias = add i32 %odd, 32767
  %moved = add i32 %bits, %bias
  %rounded = lshr i32 %moved, 16
  %nan = fcmp uno float %x, %x
  %quiet = or i32 %high, 64
  %y = select i1 %nan, i32 %quiet, i32 %rounded
  %z = trunc i32 %y to i16
  ret i16 %z
}""",
    "float @from_f16": """define internal float @from_f16(i16 %x) alwaysinline {
  %wide = zext i16 %x to i32
  %sign = and i32 %wide, 32768
  %top = shl i32 %sign, 16
  %rest = and i32 %wide, 32767
  %bits = shl i32 %rest, 13
  %small = bitcast i32 %bits to float
  %scaled = fmul float %small, 0x46F0000000000000 ; 2 ** 112
  %usual = bitcast float %scaled to i32
  %huge = or i32 %bits, 2139095040
  %special = icmp uge i32 %rest, 31744
  %size = select i1 %special, i32 %huge, i32 %usual
  %all = or i32 %size, %top
  %y = bitcast i32 %all to float
  ret float %y
}""",
    "i16 @to_f16": """define internal i16 @to_f16(float %x) alwaysinline {
  %all = bitcast float %x to i32
  %top = and i32 %all, -2147483648
  %bits = and i32 %all, 2147483647
  %place = lshr i32 %bits, 13
  %odd = and i32 %place, 1
  %bias = add i32 %odd, 3355447295 ; ((15 - 127) << 23) + 4095
  %moved = add i32 %bits, %bias
  %usual = lshr i32 %moved, 13
  %magnitude = bitcast i32 %bits to float
  %sum = fadd float %magnitude, 5.000000e-01
  %sumbits = bitcast float %sum to i32
  %tiny = sub i32 %sumbits, 1056964608
  %below = icmp ult i32 %bits, 947912704 ; 2 ** -14
  %finite = select i1 %below, i32 %tiny, i32 %usual
  %nan = icmp ugt i32 %bits, 2139095040
  %huge = select i1 %nan, i32 32256, i32 31744
  %above = icmp uge i32 %bits, 1199570944 ; 2 ** 16
  %size = select i1 %above, i32 %huge, i32 %finite
  %sign = lshr i32 %top, 16
  %y = or i32 %size, %sign
  %z = trunc i32 %y to i16
  ret i16 %z
}""",
}


def function_name(kernel, number):
    """Return the name of a kernel's function: no other one has it."""
    return f"{re.sub(r'[^0-9A-Za-z_]', '_', kernel.name)}_{number}"


def emit_llvm(kernels):
    """Return the text of a module.

    Args:
      kernels: from names of functions to kernels. A function takes the addresses of
        its kernel's buffers.
    """
    emitters = {name: KernelEmitter(kernel) for name, kernel in kernels.items()}
    functions = [emitter.text(name) for name, emitter in emitters.items()]
    called = set().union(*[emitter.f.declared for emitter in emitters.values()])
    needed = [_provided(declaration) for declaration in sorted(called)]
    return "\n\n".join([*needed, *functions])


def _provided(declaration):
    name = declaration.removeprefix("declare ").partition("(")[0]
    return HALVES.get(name, declaration)
