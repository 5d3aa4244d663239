"""Narrow floats: what makes numbers of their patterns of bits, and patterns of numbers.

Conversions to them round to even.
"""

# Made from chapters/18_llvm_ground.md by `make chapter`;
# edit the chapter, not this file.

from minijax.llvm.instructions import filled, made_of_instructions
from minijax.llvm.types import vector_type
from minijax.llvm.writing import LLVMFunction

HALVES = {
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
OWN_HALVES = {
    "from_f16": "h = bitcast {i16} {x} to {half}; fpext {half} {h} to {float}",
    "to_f16": "h = fptrunc {float} {x} to {half}; bitcast {half} {h} to {i16}",
}


@made_of_instructions
def half_function(name, lanes):
    """Return the name and the text of a conversion of so many numbers at once."""
    f, label = LLVMFunction(), f"{name}_v{lanes}" if lanes else name
    old, new = ("i16", "float") if name.startswith("from") else ("float", "i16")
    old, new = vector_type(old, lanes), vector_type(new, lanes)
    result = f.instructions(filled("; ".join(HALVES[name]), lanes), ["%x"])
    return label, f.definition(label, [(old, "%x")], "alwaysinline", (new, result))
