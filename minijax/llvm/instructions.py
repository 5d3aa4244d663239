"""Scalar operations in LLVM's instructions, for one number or for many at once.

Reference: the LLVM Language Reference, https://llvm.org/docs/LangRef.html.
"""

# Made from chapters/18_llvm_ground.md by `make chapter`;
# edit the chapter, not this file.

import functools

import numpy as np

from minijax.kernels.scalar_ops import LIBRARY, scalar_ops
from minijax.llvm.types import Kind, number_text, suffix, type_of

# From names in `scalar_ops` to instructions by the kind of dtype: b(ool), i(nteger),
# u(nsigned), f(loat).
instructions: dict = {}


def instruction(name, **templates):
    """Say what an operation is in LLVM, by letters of kinds, such as ``iu="..."``.

    In a template ``{x}``, ``{y}`` and ``{z}`` are the operands, ``{t}`` is their type,
    ``{t:1}`` a number of it, and ``{flags}`` stands where LLVM may be told to contract.
    Instructions are split by semicolons; all but the last have names. What has been
    made of the instructions before is forgotten.
    """
    instructions[name] = {
        kind: text for kinds, text in templates.items() for kind in kinds
    }
    for forget in forgetting:
        forget()


forgetting: list = []  # functions that clear what was made of instructions


def made_of_instructions(make):
    """Return a function that remembers its results until an instruction is another."""
    remembering = functools.cache(make)
    forgetting.append(remembering.cache_clear)
    return remembering


instruction("add", iu="add {t} {x}, {y}", f="fadd {flags}{t} {x}, {y}")
instruction("sub", iu="sub {t} {x}, {y}", f="fsub {flags}{t} {x}, {y}")
instruction("mul", iu="mul {t} {x}, {y}", f="fmul {flags}{t} {x}, {y}")
instruction("div", i="sdiv {t} {x}, {y}", u="udiv {t} {x}, {y}", f="fdiv {t} {x}, {y}")
instruction("select", bifu="select {i1} {x}, {t} {y}, {t} {z}")
instruction(
    "max",
    f="a = fcmp uno {t} {x}, {x}; b = fcmp ogt {t} {x}, {y}; c = or {i1} {a}, {b}; "
    "select {i1} {c}, {t} {x}, {t} {y}",
    i="a = icmp sgt {t} {x}, {y}; select {i1} {a}, {t} {x}, {t} {y}",
    bu="a = icmp ugt {t} {x}, {y}; select {i1} {a}, {t} {x}, {t} {y}",
)


instruction(
    "min",
    f="a = fcmp uno {t} {x}, {x}; b = fcmp olt {t} {x}, {y}; c = or {i1} {a}, {b}; "
    "select {i1} {c}, {t} {x}, {t} {y}",
    i="a = icmp slt {t} {x}, {y}; select {i1} {a}, {t} {x}, {t} {y}",
    bu="a = icmp ult {t} {x}, {y}; select {i1} {a}, {t} {x}, {t} {y}",
)
instruction("rem", i="srem {t} {x}, {y}", u="urem {t} {x}, {y}", f="frem {t} {x}, {y}")
instruction("neg", iu="sub {t} {t:0}, {x}", f="fneg {t} {x}")
instruction(
    "abs",
    i="a = sub {t} {t:0}, {x}; b = icmp slt {t} {x}, {t:0}; "
    "select {i1} {b}, {t} {a}, {t} {x}",
    f="call {t} @llvm.fabs.{s}({t} {x})",
)
instruction("and", biu="and {t} {x}, {y}")
instruction("or", biu="or {t} {x}, {y}")
instruction("xor", biu="xor {t} {x}, {y}")
instruction("not", biu="xor {t} {x}, {t:-1}")
instruction("shift_left", iu="shl {t} {x}, {y}")
instruction("shift_right", i="ashr {t} {x}, {y}", u="lshr {t} {x}, {y}")
instruction("population_count", iu="call {t} @llvm.ctpop.{s}({t} {x})")
instruction("clz", iu="call {t} @llvm.ctlz.{s}({t} {x}, i1 false)")
instruction("copysign", f="call {t} @llvm.copysign.{s}({t} {x}, {t} {y})")
for _name in ("floor", "ceil", "trunc", "rint", "sqrt"):
    instruction(_name, f=f"call {{t}} @llvm.{_name}.{{s}}({{t}} {{x}})")
instruction(
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
    instruction(
        _name,
        f=f"fcmp {_float} {{t}} {{x}}, {{y}}",
        i=f"icmp {_signed} {{t}} {{x}}, {{y}}",
        bu=f"icmp {_unsigned} {{t}} {{x}}, {{y}}",
    )

OPERANDS = "xyz"

# In the mathematical library of every system; with an f at the end for 32 bits.
for _name in LIBRARY:
    _letters = OPERANDS[: scalar_ops[_name].arity]
    _args = ", ".join(f"{{t}} {{{letter}}}" for letter in _letters)
    instruction(_name, f=f"call {{t}} @{_name}{{m}}({_args})")


class Known(dict):
    """What is known of a template; the places of all else stay."""

    def __missing__(self, key):
        return f"{{{key}}}"


@made_of_instructions
def operation(op, dtype, result, lanes=0, flags="", halves=False):
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
    return filled(template, lanes, dtype, result, flags)


def template_of(op, dtype):
    """Return what was said of an operation and a dtype, with places for all else."""
    template = instructions.get(op, {}).get(dtype.kind)
    if template is None:
        raise TypeError(
            f"The scalar operation {op!r} has no LLVM instructions for {dtype}. Say "
            f"what it is: minijax.llvm.instructions.instruction({op!r}, "
            f"{dtype.kind}=...)."
        )
    return template


def filled(template, lanes, dtype=None, result=None, flags=""):
    """Return a template with its types filled in."""
    names = "i1", "i16", "i32", "half", "float"
    kinds = {kind: Kind(kind, lanes) for kind in names}
    types = Known(kinds, flags=flags, m="f" if dtype == np.float32 else "")
    if dtype:
        old, new = type_of(dtype), type_of(result)
        types |= {"t": Kind(old, lanes), "s": suffix(old, lanes)}
        types |= {"r": Kind(new, lanes), "rs": suffix(new, lanes)}
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
        return clamped(verb, old, ends)
    least, beyond = (number_text(old.type(n)) for n in (ends.min, ends.max + 1))
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


def clamped(verb, old, ends):
    """Return the same where both ends are floats; short integers are cut from long."""
    low, high = (number_text(old.type(end)) for end in (ends.min, ends.max))
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
