"""The text of LLVM: numbers, instructions, loops, and the narrow floats."""

import ctypes
import re
from decimal import Decimal

import numpy as np
import pytest

from minijax.llvm.codegen import emit_llvm
from minijax.llvm.compiler import Library
from minijax.llvm.instructions import (
    FunctionBuilder,
    declaration,
    instructions,
    llvm_constant,
    llvm_memory_type,
    llvm_type,
)
from tests import array_cases as cases
from tests.test_kernels_ir_scalar_ops import kernel_of


@pytest.mark.parametrize(
    "value, text",
    [
        (np.bool_(True), "true"),
        (np.int8(-3), "-3"),
        (np.uint8(200), "200"),
        (np.float32(0.5), "5.0e-1"),
        (np.float32(0), "0.0e+0"),
        (np.float64(-np.inf), "0xFFF0000000000000"),
    ],
)
def test_numbers(value, text):
    assert llvm_constant(value) == text


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_floats_are_exact_and_have_no_more_digits_than_they_need(dtype):
    unsigned = np.dtype(f"u{np.dtype(dtype).itemsize}")
    bits = np.random.default_rng(0).integers(0, 2 ** (8 * unsigned.itemsize), 300, "u8")
    values = [*bits.astype(unsigned).view(dtype), np.finfo(dtype).smallest_subnormal]
    for value in filter(np.isfinite, values):
        text = llvm_constant(value)
        assert Decimal(text) == Decimal(float(value))
        assert re.fullmatch(r"-?\d\.(\d*[1-9]|0)e[+-]\d+", text)


def library_of_constants(values):
    text = "".join(
        f"define {llvm_type(x.dtype)} @c{i}() {{\n  ret {llvm_type(x.dtype)} "
        f"{llvm_constant(x)}\n}}\n"
        for i, x in enumerate(values)
    )
    return Library(text)


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_floats_keep_every_bit(name):
    dtype = np.dtype(name)
    bits = np.random.default_rng(0).integers(0, 2**63, 50, np.uint64)
    values = bits.view(np.float64).astype(dtype) if name == "float64" else None
    values = bits.astype(np.uint32).view(dtype) if values is None else values
    values = [*values, *cases.specimen(name), np.finfo(dtype).smallest_subnormal]
    library = library_of_constants(values)
    kind = ctypes.c_float if name == "float32" else ctypes.c_double
    for i, value in enumerate(values):
        found = ctypes.CFUNCTYPE(kind)(library.engine.get_function_address(f"c{i}"))()
        np.testing.assert_array_equal(dtype.type(found), value)
        assert np.signbit(found) == np.signbit(value) or value != value


def test_types():
    for name, kinds in {
        "bool": ("i1", "i8"), "uint8": ("i8", "i8"), "int64": ("i64", "i64"),
        "float16": ("float", "i16"), "bfloat16": ("float", "i16"),
        "float64": ("double", "double"),
    }.items():  # fmt: skip
        if name in cases.DTYPES:
            dtype = cases.dtype_of(name)
            assert (llvm_type(dtype), llvm_memory_type(dtype)) == kinds


def test_declarations():
    assert declaration("call float @powf(float %x, float %y)") == (
        "declare float @powf(float, float)"
    )
    call = "call i8 @llvm.ctlz.i8(i8 %x, i1 false)"
    assert declaration(call) == "declare i8 @llvm.ctlz.i8(i8, i1)"


def test_steps_of_a_template_get_names():
    f = FunctionBuilder()
    template = "a = neg i8 {x}; b = add i8 {a}, {y}; mul i8 {b}, {a}"
    result = f.instructions(template, ["%x", "%y"])
    assert f.lines == [
        "  %v.1 = neg i8 %x",
        "  %v.2 = add i8 %v.1, %y",
        f"  {result} = mul i8 %v.2, %v.1",
    ]


def test_loops_carry_values():
    f = FunctionBuilder()
    [total] = f.loop(
        4, [("i64", "5")],
        lambda i, c: f.loop(
            3, [("i64", c[0])], lambda j, d: [f.emit(f"add i64 {d[0]}, {i}")]
        ),
    )  # fmt: skip
    body = "\n".join([*f.lines, f"  ret i64 {total}"])
    library = Library(f"define i64 @sum() {{\nentry:\n{body}\n}}")
    function = ctypes.CFUNCTYPE(ctypes.c_int64)(
        library.engine.get_function_address("sum")
    )
    assert function() == 5 + 3 * (0 + 1 + 2 + 3)


HALVES = [name for name in ("float16", "bfloat16") if name in cases.DTYPES]


def negated(x):
    """What machine code makes of numbers, through 32 bits and back."""
    ours = np.empty_like(x)
    kernel = kernel_of("neg", [x], ours)
    function = Library(emit_llvm({"neg": kernel})).function("neg", 2)
    function(x.ctypes.data, ours.ctypes.data)
    return ours


@pytest.mark.parametrize("name", HALVES)
def test_every_half(name):
    x = np.arange(2**16, dtype=np.uint16).view(cases.dtype_of(name))
    with np.errstate(all="ignore"):
        ours, wanted = negated(x), -x
        nan = wanted != wanted
    assert (ours != ours)[nan].all()
    assert (ours.view("u2") == wanted.view("u2"))[~nan].all()


@pytest.mark.parametrize("name", HALVES)
def test_rounding_to_halves(name):
    dtype = cases.dtype_of(name)
    bits = np.random.default_rng(1).integers(0, 2**32, 200_000, np.uint32)
    halves = np.arange(2**16, dtype=np.uint16).view(dtype).astype(np.float32)
    with np.errstate(all="ignore"):
        between = (halves + np.roll(halves, 1)) / 2
        x = np.concatenate([bits.view(np.float32), halves, between, -between])
        wanted = (-x).astype(dtype)
    source, ours = np.ascontiguousarray(x), np.empty(x.shape, dtype)
    kernel = kernel_of("neg", [source], ours)
    function = Library(emit_llvm({"neg": kernel})).function("neg", 2)
    function(source.ctypes.data, ours.ctypes.data)
    nan = wanted != wanted
    assert (ours != ours)[nan].all()
    assert (ours.view("u2") == wanted.view("u2"))[~nan].all()


def test_no_row_writes_what_it_does_not_use():
    for templates in instructions.values():
        for template in templates.values():
            *steps, last = template.split("; ")
            for step in steps:
                name, _, _ = step.partition(" = ")
                assert f"{{{name}}}" in template, template
            assert "=" not in last
