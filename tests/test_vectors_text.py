"""The text of LLVM with vectors: scalars made wide, loops, what is written where."""

import numpy as np
import pytest

from minijax.kernels.scalar_ops import scalar_ops
from minijax.vectors.targets import TargetLibrary, host_target
from minijax.vectors.text import VectorText, operation, splat, wide_function, widened

F32, I32, BOOL = (np.dtype(name) for name in ("float32", "int32", "bool"))


@pytest.mark.parametrize(
    ("scalar", "vector"),
    [
        ("fadd float %a, %b", "fadd <4 x float> %a, %b"),
        ("fneg double %a", "fneg <4 x double> %a"),
        ("%y = zext i1 %x to i8", "%y = zext <4 x i1> %x to <4 x i8>"),
        (
            "call i32 @llvm.ctlz.i32(i32 %x, i1 false)",
            "call <4 x i32> @llvm.ctlz.v4i32(<4 x i32> %x, i1 false)",
        ),
        (
            "call i32 @llvm.fptosi.sat.i32.f32(float %x)",
            "call <4 x i32> @llvm.fptosi.sat.v4i32.v4f32(<4 x float> %x)",
        ),
    ],
)
def test_widened(scalar, vector):
    assert widened(scalar, 4) == vector


def test_numbers_become_constants_of_their_type():
    assert widened("sub i32 0, %x", 8) == f"sub <8 x i32> {splat('i32', '0', 8)}, %x"
    both = widened("select i1 %c, i32 31, i32 -2", 2)
    assert both == (
        f"select <2 x i1> %c, <2 x i32> {splat('i32', '31', 2)}, "
        f"<2 x i32> {splat('i32', '-2', 2)}"
    )


DTYPES = [
    np.dtype(n) for n in ("bool", "int8", "uint32", "int64", "float32", "float64")
]


@pytest.mark.parametrize("op", sorted(scalar_ops))
def test_every_operation_parses(op):
    """LLVM takes each operation on vectors that is no call of the library."""
    f, row = VectorText(), scalar_ops[op]
    for dtype in [dtype for dtype in DTYPES if dtype.kind in row.llvm]:
        kind = f"<8 x {_type(dtype)}>"
        arity = row.arity - (op == "select")
        if "@llvm." not in row.llvm[dtype.kind] and "call" in row.llvm[dtype.kind]:
            continue
        names = [f.emit(f"freeze {kind} undef") for _ in range(arity)]
        if op == "select":
            names.insert(0, f.emit("freeze <8 x i1> undef"))
        f.operation(op, names, dtype, row.result or dtype, 8)
    lines = "\n".join([*f.needed.values(), "define void @f() {", *f.lines])
    TargetLibrary(f"{lines}\n  ret void\n}}", host_target())


def _type(dtype):
    from minijax.kernels.llvm_text import type_of

    return type_of(dtype)


def test_flags_are_for_rounded_operations():
    assert operation("add", 2, F32, F32, 4, "contract ").text == (
        "fadd contract <4 x float> {0}, {1}"
    )
    assert "contract" not in operation("lt", 2, F32, BOOL, 4, "contract ").text
    assert "contract" not in operation("add", 2, I32, I32, 4, "contract ").text


def test_halves_are_made_wide():
    name, text = wide_function("to_bf16", 8)
    assert name == "to_bf16_v8"
    assert "define internal <8 x i16> @to_bf16_v8(<8 x float> %x)" in text
    assert wide_function("to_bf16", 0)[0] == "to_bf16"
    TargetLibrary(f"{text}\n{wide_function('from_f16', 3)[1]}", host_target())


def test_what_does_not_change_is_written_outside_of_a_loop():
    f = VectorText()

    def body(index, names):
        f.once("a", 0, "add i64 %n, 1")
        f.once("b", 1, f"add i64 {index}, 1")
        return [f.emit(f"add i64 {names[0]}, {index}")]

    [last] = f.turns(0, 2, 5, [("i64", "0")], body)
    text = "\n".join(f.lines)
    assert text.index("%n, 1") < text.index("loop1:") < text.index("%i1, 1")
    assert "icmp ult i64" in text and ", 10" in text
    assert f.depths[last] == 0


def test_one_turn_is_no_loop():
    f = VectorText()
    assert f.turns(7, 3, 1, [("i64", "5")], lambda index, names: [*names, index]) == [
        "5",
        7,
    ]
    assert f.turns(7, 3, 0, [("i64", "5")], None) == ["5"]
    assert f.lines == []
