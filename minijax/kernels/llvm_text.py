# Made from chapters/17_kernels.md by `make chapter`;
# edit the chapter, not this file.
"""Kernels as functions in the text of LLVM's intermediate representation.

Reference: the LLVM Language Reference, https://llvm.org/docs/LangRef.html.
"""

import struct
from decimal import Decimal

import numpy as np

from minijax.arrays.dtypes import short_name
from minijax.kernels.scalar_ops import in_registers, scalar_ops

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
    return "i16" if halves else "i8" if dtype.kind == "b" else type_of(dtype)


def number_text(value):
    """Return a scalar as LLVM writes it, exactly.

    Floats have all their digits; infinities and NaN stand as the bits of 64-bit floats.
    """
    if value.dtype.kind != "f":
        return str(value.item()).lower()
    if not np.isfinite(value):
        [bits] = struct.unpack("<Q", struct.pack("<d", value))
        return f"0x{bits:016X}"
    digits, _, exponent = f"{Decimal(float(value)):E}".partition("E")
    return f"{digits}{'' if '.' in digits else '.0'}e{exponent}"


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
    head, _, args = call.removeprefix("call ").removesuffix(")").partition("(")
    types = ", ".join(arg.split()[0] for arg in args.split(", "))
    return f"declare {head}({types})"


def write_loop(f, size, carried, body):
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


def write_operation(f, op, args, dtype, result):
    """Write a scalar operation on operands of a dtype; return its result's name."""
    if op == "convert":
        template = _conversion(dtype, result)
    elif op == "bitcast":
        template = "bitcast {t} {0} to {r}"
    else:
        template = scalar_ops[op].llvm[dtype.kind]
    types = {"t": type_of(dtype), "s": _suffix(dtype), "r": type_of(result)}
    types |= {"rs": _suffix(result), "m": "f" if dtype == np.float32 else ""}
    return f.instructions(template, args, **types)


def _suffix(dtype):
    """Return what stands for a type in the names of intrinsics: ``f32``, ``i32``."""
    return f"{'f' if dtype.kind == 'f' else 'i'}{dtype.itemsize * 8}"


def _conversion(old, new):
    """Return the template that converts numbers to another dtype."""
    if new.kind == "b":
        return "fcmp une {t} {0}, 0.0" if old.kind == "f" else "icmp ne {t} {0}, 0"
    signed = (new if old.kind == "f" else old).kind == "i"
    if old.kind == "f" and new.kind != "f":  # stops at the limits; 0 for NaN
        verb = "fptosi" if signed else "fptoui"
        return f"call {{r}} @llvm.{verb}.sat.{{rs}}.{{s}}({{t}} {{0}})"
    if old.kind == new.kind == "f":
        verbs = "fpext", "bitcast", "fptrunc"
    elif new.kind == "f":
        verbs = ("sitofp" if signed else "uitofp",) * 3
    else:
        verbs = "sext" if signed else "zext", "bitcast", "trunc"
    bits = [1 if dtype.kind == "b" else 8 * dtype.itemsize for dtype in (old, new)]
    verb = verbs[1 + (bits[0] > bits[1]) - (bits[0] < bits[1])]
    return f"{verb} {{t}} {{0}} to {{r}}"


def write_best(f, how, dtype, best, rival):
    """Write the choice of the better of two numbers and of its place.

    NaN is better than any number; of equals, the first one stays.
    """
    bool_, kind = np.dtype(bool), type_of(dtype)
    ahead = "gt" if how == "argmax" else "lt"
    wins = write_operation(f, ahead, [rival[0], best[0]], dtype, bool_)
    if dtype.kind == "f":
        unknown = f.emit(f"fcmp uno {kind} {rival[0]}, {rival[0]}")
        known = f.emit(f"fcmp ord {kind} {best[0]}, {best[0]}")
        wins = f.emit(f"or i1 {wins}, {f.emit(f'and i1 {unknown}, {known}')}")
    return [
        f.emit(f"select i1 {wins}, {kind} {new}, {kind} {old}")
        for kind, new, old in zip((kind, "i64"), rival, best)
    ]


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
