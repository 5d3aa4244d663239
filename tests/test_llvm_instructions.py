"""Scalar operations in LLVM's instructions, for scalars and for many lanes."""

import sys

import numpy as np
import pytest

import minijax
from minijax.elementary_functions import real_functions as elementary
from minijax.kernels.ir import NUMPY_MATH, scalar_ops
from minijax.llvm.instructions import (
    FunctionBuilder,
    cache_clearers,
    define_instruction,
    half_conversion_function,
    instruction_template,
    instructions,
    llvm_type,
    splat,
)
from minijax.llvm.targets import FORCED_TARGETS, TARGETS, TargetLibrary, host_target
from minijax.vectorization.vector_functions import function_texts
from tests.commands import LONG

F32, F64, I32, BOOL = map(np.dtype, ("float32", "float64", "int32", "bool"))


@pytest.mark.parametrize(
    ("op", "dtypes", "scalar", "vector"),
    [
        ("add", (F32, F32), "fadd float {x}, {y}", "fadd <4 x float> {x}, {y}"),
        ("neg", (F64, F64), "fneg double {x}", "fneg <4 x double> {x}"),
        (
            "clz",
            (I32, I32),
            "call i32 @llvm.ctlz.i32(i32 {x}, i1 false)",
            "call <4 x i32> @llvm.ctlz.v4i32(<4 x i32> {x}, i1 false)",
        ),
        (
            "convert",
            (I32, F32),
            "sitofp i32 {x} to float",
            "sitofp <4 x i32> {x} to <4 x float>",
        ),
        (
            "select",
            (F32, F32),
            "select i1 {x}, float {y}, float {z}",
            "select <4 x i1> {x}, <4 x float> {y}, <4 x float> {z}",
        ),
    ],
)
def test_lanes(op, dtypes, scalar, vector):
    assert instruction_template(op, *dtypes) == scalar
    assert instruction_template(op, *dtypes, 4) == vector


def test_numbers_become_constants_of_their_type():
    assert instruction_template("neg", I32, I32) == "sub i32 0, {x}"
    assert (
        instruction_template("neg", I32, I32, 8)
        == f"sub <8 x i32> {splat('i32', '0', 8)}, {{x}}"
    )


def test_there_are_instructions_for_each_kind_of_each_operation():
    """What the table of meanings accepts can be written, and nothing else."""
    assert {name: {*row.kinds} for name, row in scalar_ops.items()} == {
        name: {*templates} for name, templates in instructions.items()
    }
    for name, row in scalar_ops.items():
        for template in instructions[name].values():
            used = [letter for letter in "xyz" if f"{{{letter}}}" in template]
            assert len(used) == row.arity, name


def test_what_is_not_said_of_an_operation_is_asked_for():
    """Whatever it costs: a costly one need not be in the library of the system."""
    for op, dtype, place in ("new", F32, "f"), ("add", np.dtype(bool), "b"):
        said = rf"'{op}' has no LLVM .* {dtype}. .*instruction\('{op}', {place}=...\)"
        with pytest.raises(TypeError, match=said):
            instruction_template(op, dtype, dtype)
    rows = {name for name, row in scalar_ops.items() if row.cost == "transcendentals"}
    assert NUMPY_MATH.keys() <= rows


DTYPES = [
    np.dtype(n) for n in ("bool", "int8", "uint32", "int64", "float32", "float64")
]


@pytest.mark.parametrize("op", sorted(scalar_ops))
def test_every_operation_parses(op):
    """LLVM takes each operation on vectors that is no call of the library."""
    f, row = FunctionBuilder(), scalar_ops[op]
    for dtype in [dtype for dtype in DTYPES if dtype.kind in row.kinds]:
        kind, template = f"<8 x {llvm_type(dtype)}>", instructions[op][dtype.kind]
        arity = row.arity - (op == "select")
        if "@llvm." not in template and "call" in template:
            continue
        names = [f.emit(f"freeze {kind} undef") for _ in range(arity)]
        if op == "select":
            names.insert(0, f.emit("freeze <8 x i1> undef"))
        f.operation(op, names, dtype, row.result or dtype, 8)
    lines = "\n".join([*f.needed.values(), "define void @f() {", *f.lines])
    TargetLibrary(f"{lines}\n  ret void\n}}", host_target())


def test_flags_are_for_rounded_operations():
    assert instruction_template("add", F32, F32, 4, "contract ") == (
        "fadd contract <4 x float> {x}, {y}"
    )
    assert "contract" not in instruction_template("lt", F32, BOOL, 4, "contract ")
    assert "contract" not in instruction_template("add", I32, I32, 4, "contract ")


def test_halves_are_made_wide():
    name, text = half_conversion_function("to_bf16", 8)
    assert name == "to_bf16_v8"
    assert "define internal <8 x i16> @to_bf16_v8(<8 x float> %x)" in text
    assert half_conversion_function("to_bf16", 0)[0] == "to_bf16"
    TargetLibrary(
        f"{text}\n{half_conversion_function('from_f16', 3)[1]}", host_target()
    )


def test_what_does_not_change_is_written_outside_of_a_loop():
    f = FunctionBuilder()

    def body(index, names):
        f.cached_instructions("a", 0, "add i64 %n, 1")
        f.cached_instructions("b", 1, f"add i64 {index}, 1")
        return [f.emit(f"add i64 {names[0]}, {index}")]

    [last] = f.counted_loop(0, 2, 5, [("i64", "0")], body)
    text = "\n".join(f.lines)
    assert text.index("%n, 1") < text.index("loop1:") < text.index("%i1, 1")
    assert "icmp ult i64" in text and ", 10" in text
    assert f.depths[last] == 0


def test_one_turn_is_no_loop():
    f = FunctionBuilder()
    last = f.counted_loop(7, 3, 1, [("i64", "5")], lambda i, names: [*names, i])
    assert last == ["5", 7]
    assert f.counted_loop(7, 3, 0, [("i64", "5")], None) == ["5"]
    assert f.lines == []


def numbers_at_ends():
    """Floats around the ends of all integers, halves, infinities, NaN, tiny numbers."""
    found = [0, -0.0, 0.5, -0.5, 1.5, -0.99999, 1e-45, np.inf, -np.inf, np.nan]
    for end in (2.0**n for n in (7, 8, 15, 16, 31, 32, 63, 64)):
        for value in (end, end - 1, end - 0.5, end + 1):
            for wide in (np.float32(value), np.float64(value)):
                near = wide, np.nextafter(wide, np.inf), np.nextafter(wide, -np.inf)
                found += [*near, *(-x for x in near)]
    return np.array(found, np.float64)


INTEGERS = [f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64)]
FLOATS = ["float16", "bfloat16", "float32", "float64"]


@pytest.mark.parametrize("new", INTEGERS)
@pytest.mark.parametrize("old", FLOATS)
def test_floats_stop_at_the_ends_of_integers(old, new):
    """One number, a vector with a remainder, and many: the evaluation's integers.

    Each pair of types takes a third of the sizes, the next one another third, so that
    each type meets each size. `LONG=1` takes all.
    """
    turn = (FLOATS.index(old) + INTEGERS.index(new)) % 3
    with minijax.enable_x64(True), np.errstate(all="ignore"):
        every = np.asarray(minijax.numpy.asarray(numbers_at_ends()).astype(old))
        sizes = [1, 7, 8, 9, 15, 16, 17, 31, 33, 63, 65, every.size]
        for size in sizes if LONG else sizes[turn::3]:
            for x in (every[:size], every[-size:], np.repeat(every, 2)[:size]):
                run = {
                    name: np.asarray(
                        minijax.jit(lambda x: x.astype(new), backend=name)(x)
                    )
                    for name in ("interpreter", "cpu")
                }
                np.testing.assert_array_equal(run["cpu"], run["interpreter"])


def test_vectors_of_floats_are_converted_at_once():
    """No intrinsic that LLVM takes apart, whatever the integers are."""
    for new in "int8 uint8 int16 uint16 int32 uint32 int64 uint64".split():
        text = instruction_template("convert", F32, np.dtype(new), 8)
        assert ".sat." not in text and "to <8 x i" in text
        assert ".sat." in instruction_template("convert", F32, np.dtype(new))


def floats_around_halves():
    """Every float16, its neighbours in 32 bits, and what lies between two."""
    every = np.arange(2**16, dtype=np.uint16).view(np.float16).astype(np.float32)
    size = every[np.isfinite(every)]
    gap = np.nextafter(size.astype(np.float16), np.float16(np.inf)).astype(np.float32)
    middle = np.where(np.isfinite(gap), (size + gap) / 2, np.float32(65520))
    around = [
        np.nextafter(x, np.float32(end)) for x in (size, middle) for end in (-9e9, 9e9)
    ]
    odd = np.array([1e-45, -1e-45, 3e38, -3e38, 65519.996, 65520, 2**-25], np.float32)
    return np.concatenate([every, middle, *around, odd]).astype(np.float32)


@pytest.mark.parametrize("kind", ["", *FORCED_TARGETS])
def test_halves_by_instructions_and_by_arithmetic(kind):
    """In memory, and in registers between two operations: as NumPy rounds."""
    if kind and vector_kinds_here().get(kind) is None:
        pytest.skip("This processor is of another kind.")
    with np.errstate(all="ignore"):
        x = floats_around_halves()
    with (
        np.errstate(all="ignore"),
        minijax.enable_x64(True),
        minijax.config.override("minijax_cpu", kind),
    ):
        wanted = x.astype(np.float16)
        run = {
            "stored": lambda x: x.astype("float16"),
            "kept": lambda x: x.astype("float16").astype("float32"),
            "loaded": lambda x: x.astype("float32"),
            "chain": lambda x: (x * x + 1) * x,
        }
        run = {name: minijax.jit(f, backend="cpu") for name, f in run.items()}
        for size in (1, 7, 15, 16, 17, 33, x.size):
            some = x[-size:]
            same(run["stored"](some), wanted[-size:])
            same(run["kept"](some), wanted[-size:].astype(np.float32))
            same(run["loaded"](wanted[-size:]), wanted[-size:].astype(np.float32))
            half = wanted[-size:]
            same(run["chain"](half), (half * half + np.float16(1)) * half)


def same(ours, wanted):
    """Assert that two arrays have the same numbers, signs of zeros, and NaN."""
    ours = np.asarray(ours)
    assert ours.dtype == wanted.dtype
    np.testing.assert_array_equal(ours, wanted)
    known = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(ours)[known], np.signbit(wanted)[known])


def vector_kinds_here():
    """The kinds of targets that this processor can run, by name."""
    width, here = host_target().vector_bytes, host_target().triple.startswith("x86")
    return {
        kind: TARGETS[kind]
        for kind in FORCED_TARGETS
        if kind == "plain" or (here and TARGETS[kind].vector_bytes <= width)
    }


def test_which_processors_convert_halves():
    """By their features, or where these are not listed by their kind."""
    kinds = {kind: TARGETS[kind].halves for kind in (*FORCED_TARGETS, "aarch64")}
    assert kinds == {"plain": False, "avx2": True, "avx512": True, "aarch64": True}
    listed = TARGETS["avx2"]._replace(features="+avx2,-f16c")
    assert not listed.halves and listed._replace(features="+avx2,+f16c").halves


def test_rounding_of_64_bits_goes_by_32():
    x = np.array([2049 + 2**-40, 1e-8, 65519.9999999, np.nan, -0.0])
    with np.errstate(over="ignore"):
        ours = scalar_ops["as_float16"].numpy(x)
        same(ours, x.astype(np.float32).astype(np.float16).astype(np.float64))
    for halves in (False, True):
        text = instruction_template("as_float16", F64, F64, 4, "", halves)
        assert text.endswith("fpext <4 x float> {end} to <4 x double>")
        assert ("to <4 x half>" in text) == halves


def test_an_instruction_that_is_said_again_is_used():
    """What was made of the one before is forgotten: operations, and whole functions."""
    function, said = elementary.scalar_function("exp", F32), instructions["mul"]

    def texts():
        return instruction_template("mul", F32, F32), [
            *function_texts(function, 8).values()
        ][-1]

    before = texts()
    try:
        define_instruction("mul", f="fmul fast {t} {x}, {y}")
        assert "fast" not in "".join(before)
        assert all("fmul fast" in text for text in texts())
    finally:
        define_instruction("mul", **said)
    assert texts() == before


def test_a_body_that_is_said_again_is_used(monkeypatch):
    before = elementary.scalar_function("exp", F32)
    monkeypatch.setitem(
        elementary.function_bodies, "exp", elementary.function_bodies["tanh"]
    )
    assert elementary.scalar_function("exp", F32).nodes != before.nodes
    monkeypatch.undo()
    assert elementary.scalar_function("exp", F32) is before


def test_nothing_else_remembers_instructions():
    """A cache of a function that writes instructions is one that is cleared."""
    known = {forget.__self__ for forget in cache_clearers}
    found = set()
    for name, module in [*sys.modules.items()]:
        if name.startswith(("minijax.llvm", "minijax.vectorization", "minijax.matmul")):
            values = [x for x in vars(module).values() if hasattr(x, "cache_clear")]
            found |= {x for x in values if x.__module__ == name}
    others = {f"{x.__module__}.{x.__name__}" for x in found - known}
    assert others == NOT_OF_INSTRUCTIONS


# Caches of facts about this computer, of a text without scalar operations, and of
# machine code that stays, as its addresses are held.
NOT_OF_INSTRUCTIONS = {
    "minijax.matmul.gemm.gemm_library",
    "minijax.llvm.targets.host_target",
    "minijax.llvm.compiler.host",
    "minijax.vectorization.schedules.square_function",
}
