"""LLVM's types, and numbers in its text.

Reference: the LLVM Language Reference, https://llvm.org/docs/LangRef.html.
"""

# Made from chapters/18_llvm_ground.md by `make chapter`;
# edit the chapter, not this file.

import struct

import numpy as np

from minijax.arrays.dtypes import short_name
from minijax.kernels.scalar_ops import in_registers

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


def width_of(kind):
    """Return how many bytes a number of a type of LLVM has."""
    return {"float": 4, "double": 8}.get(kind) or int(kind.removeprefix("i")) // 8


def suffix(kind, lanes):
    """Return what stands for a type in the names of intrinsics: ``f32``, ``v8i32``."""
    letter, many = "i" if kind.startswith("i") else "f", f"v{lanes}" if lanes else ""
    return f"{many}{letter}{8 * width_of(kind)}"


def pointer_to(kind):
    """Return the type of addresses of a type."""
    return f"{kind}*"


def number_text(value):
    """Return a scalar as LLVM writes it, exactly.

    Floats have all their digits; infinities and NaN stand as the bits of 64-bit floats.
    """
    if value.dtype.kind != "f":
        return str(value.item()).lower()
    if not np.isfinite(value):
        [bits] = struct.unpack("<Q", struct.pack("<d", value))
        return f"0x{bits:016X}"
    digits, _, exponent = f"{float(value):.766e}".partition("e")
    digits = digits.rstrip("0")
    return f"{digits}{'0' * digits.endswith('.')}e{int(exponent):+}"


def vector_type(kind, lanes):
    """Return the type of so many numbers of a type; the type itself for 0 lanes."""
    return f"<{lanes} x {kind}>" if lanes else kind


def splat(kind, literal, lanes):
    """Return the constant that has the same number in each lane."""
    if not lanes:
        return literal
    one = f"<1 x {kind}> <{kind} {literal}>, <1 x {kind}> undef"
    return f"shufflevector ({one}, <{lanes} x i32> zeroinitializer)"


def listed(kind, numbers):
    """Return the constant that has these numbers in its lanes."""
    return f"<{', '.join(f'{kind} {number}' for number in numbers)}>"


class Kind(str):
    """A type in a template: ``{t}`` is its name, and ``{t:0.5}`` a number of it."""

    def __new__(cls, kind, lanes=0):
        """Return the type of so many numbers of a type."""
        self = super().__new__(cls, vector_type(kind, lanes))
        self.kind, self.lanes = kind, lanes
        return self

    def __format__(self, literal):
        """Return the type, or a number with the type's lanes."""
        return splat(self.kind, literal, self.lanes) if literal else str(self)
