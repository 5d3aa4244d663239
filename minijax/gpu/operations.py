"""Scalar operations in CUDA C: expressions of names, by kinds of dtypes.

Reference: the CUDA C++ Programming Guide, https://docs.nvidia.com/cuda.
"""

# Made from chapters/34_gpu_ground.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax.kernels.scalar_ops import LIBRARY, in_registers, scalar_ops

# From names in `scalar_ops` to expressions by the kind of dtype: b(ool), i(nteger),
# u(nsigned), f(loat).
expressions: dict = {}

_C_TYPES = {
    "b1": "bool", "i1": "signed char", "i2": "short", "i4": "int", "i8": "long long",
    "u1": "unsigned char", "u2": "unsigned short", "u4": "unsigned",
    "u8": "unsigned long long", "f4": "float", "f8": "double",
}  # fmt: skip


def express(name, **templates):
    """Say what an operation is in C, by letters of kinds, such as ``iu="..."``.

    In a template ``{x}``, ``{y}`` and ``{z}`` are the operands, ``{t}`` is their type,
    ``{u}`` an unsigned one as wide as an int or wider, in which sums wrap, ``{m}`` what
    ends the names of functions, ``{bits}`` the size of the type and ``{ones}`` a mask.
    """
    expressions[name] = {k: text for kinds, text in templates.items() for k in kinds}


for _op, _sign in {"add": "+", "sub": "-", "mul": "*"}.items():
    _wrapped = f"({{t}})(({{u}}){{x}} {_sign} ({{u}}){{y}})"
    express(_op, f=f"{{x}} {_sign} {{y}}", iu=_wrapped)
for _op, _sign in {
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}.items():  # fmt: skip
    express(_op, biuf=f"{{x}} {_sign} {{y}}")
for _op, _sign in {"and": "&", "or": "|", "xor": "^"}.items():
    express(_op, b=f"(bool)({{x}} {_sign} {{y}})", iu=f"({{t}})({{x}} {_sign} {{y}})")
express("div", iu="({t})({x} / {y})", f="{x} / {y}")
express("rem", iu="({t})({x} % {y})", f="fmod{m}({x}, {y})")
express("select", biuf="{x} ? {y} : {z}")
express("max", f="{x} != {x} || {x} > {y} ? {x} : {y}", biu="{x} > {y} ? {x} : {y}")
express("min", f="{x} != {x} || {x} < {y} ? {x} : {y}", biu="{x} < {y} ? {x} : {y}")
express("neg", f="-{x}", iu="({t})(0 - ({u}){x})")
express("abs", f="fabs{m}({x})", i="{x} < 0 ? ({t})(0 - ({u}){x}) : {x}")
express("not", b="!{x}", iu="({t})~{x}")
express("shift_left", iu="({t})(({u}){x} << {y})")
express("shift_right", iu="({t})({x} >> {y})")
express("population_count", iu="({t})__popcll({x} & {ones})")
express("clz", iu="({t})(__clzll({x} & {ones}) - (64 - {bits}))")
express("copysign", f="copysign{m}({x}, {y})")
express("as_float16", f="({t})from_f16(to_f16((float){x}))")
express("fma", f="fma{m}({x}, {y}, {z})")  # of `functions.scalar_functions`
for _op in ("floor", "ceil", "trunc", "rint", "sqrt"):
    express(_op, f=f"{_op}{{m}}({{x}})")
for _op in LIBRARY:
    _operands = ", ".join(["{x}", "{y}"][: scalar_ops[_op].arity])
    express(_op, f=f"{_op}{{m}}({_operands})")


# Limits of integers, patterns of bits of narrow floats, and several numbers that are
# loaded and stored as one, which C has no words for.
PRELUDE = """\
template <class T, int count>
struct alignas(sizeof(T) * count) Vector {
  T at[count];
};
template <class R, class F>
__device__ __forceinline__ R saturated(F x, R least, R most) {
  return x != x ? (R)0 : x <= (F)least ? least : x >= (F)most ? most : (R)x;
}
__device__ __forceinline__ float from_bf16(unsigned short x) {
  return __uint_as_float((unsigned)x << 16);
}
__device__ __forceinline__ unsigned short to_bf16(float x) {
  const unsigned b = __float_as_uint(x);
  return x != x ? b >> 16 | 64 : (b + (b >> 16 & 1) + 32767) >> 16;
}
__device__ __forceinline__ float from_f16(unsigned short x) {
  const unsigned rest = x & 32767u, bits = rest << 13;
  const float usual = __uint_as_float(bits) * 0x1p112f;
  const unsigned size = rest >= 31744u ? bits | 0x7f800000u : __float_as_uint(usual);
  return __uint_as_float(size | (x & 32768u) << 16);
}
__device__ __forceinline__ unsigned short to_f16(float x) {
  const unsigned all = __float_as_uint(x), bits = all & 0x7fffffffu;
  const unsigned tiny = __float_as_uint(__uint_as_float(bits) + .5f) - 0x3f000000u;
  const unsigned usual = (bits + (bits >> 13 & 1) + 3355447295u) >> 13;
  const unsigned size = bits > 0x7f800000u    ? 32256u
                        : bits >= 0x477ff000u ? 31744u
                        : bits < 0x38800000u  ? tiny
                                              : usual;
  return size | (all >> 16 & 32768u);
}
"""


def c_type(dtype):
    """Return the type of a number in registers."""
    return _C_TYPES[f"{dtype.kind}{dtype.itemsize}"]


def c_type_in_memory(dtype):
    """Return the type of an element in memory: bytes of 0 or 1, patterns of bits."""
    if dtype.kind == "b":
        return "unsigned char"
    return "unsigned short" if dtype != in_registers(dtype) else c_type(dtype)


def from_memory(dtype, element):
    """Return the expression of the number that an element of a parameter is."""
    if dtype.kind == "b":
        return f"({element} != 0)"
    if dtype == in_registers(dtype):
        return element
    return f"from_{_half(dtype)}({element})"


def to_memory(dtype, number):
    """Return the expression of the element that holds a number."""
    return number if dtype == in_registers(dtype) else f"to_{_half(dtype)}({number})"


def _half(dtype):
    return "f16" if dtype == np.float16 else "bf16"


def c_number(x):
    """Return a NumPy scalar as C writes it."""
    kind, size = x.dtype.kind, x.dtype.itemsize
    if kind == "b":
        return "true" if x else "false"
    if kind != "f":
        ends = {"i8": "LL", "u4": "u", "u8": "ULL"}.get(f"{kind}{size}", "")
        least = kind == "i" and size >= 4 and x == np.iinfo(x.dtype).min
        return f"({int(x) + 1}{ends} - 1)" if least else f"({int(x)}{ends})"
    if np.isfinite(x):
        text = f"{x!s}{'f' if size == 4 else ''}"
        return f"({text})" if np.signbit(x) else text
    bits = int(x.view(f"u{size}"))
    wide = f"__longlong_as_double({bits}LL)"
    return f"__uint_as_float({bits}u)" if size == 4 else wide


def expression(op, args, dtype, result):
    """Return what an operation is in C.

    Args:
      op: a name in `scalar_ops` or `recastings`.
      args: names of the operands.
      dtype, result: of the last operand and of the result, in registers.

    Raises:
      TypeError: if the operation has no CUDA C for the dtype.
    """
    if op == "convert":
        return _conversion(args[0], dtype, result)
    if op == "bitcast":
        return _same_bits(args[0], dtype, result)
    size = dtype.itemsize
    unsigned = "unsigned long long" if size == 8 else "unsigned"
    types = {"t": c_type(dtype), "u": unsigned, "m": "f" if size == 4 else ""}
    masks = {"bits": 8 * size, "ones": f"{2 ** (8 * size) - 1}ULL"}
    operands = dict(zip("xyz", args))
    template = expressions.get(op, {}).get(dtype.kind)
    if template is None:
        raise TypeError(
            f"The scalar operation {op!r} has no CUDA C for {dtype}. Say what it is: "
            f"minijax.gpu.operations.express({op!r}, {dtype.kind}=...)."
        )
    return template.format(**operands, **types, **masks)


def _conversion(x, dtype, result):
    if result.kind == "b":
        return f"{x} != 0"
    if dtype.kind == "f" and result.kind in "iu":  # stops at the limits; 0 for NaN
        limits = np.iinfo(result)
        least, most = (c_number(result.type(end)) for end in (limits.min, limits.max))
        return f"saturated<{c_type(result)}, {c_type(dtype)}>({x}, {least}, {most})"
    return f"({c_type(result)}){x}"


def _same_bits(x, dtype, result):
    wide = result.itemsize == 8
    if dtype.kind == "f" and result.kind != "f":
        name = "__double_as_longlong" if wide else "__float_as_uint"
    elif dtype.kind != "f" and result.kind == "f":
        name = "__longlong_as_double" if wide else "__uint_as_float"
    else:
        return f"({c_type(result)}){x}"
    return f"({c_type(result)}){name}({x})"
