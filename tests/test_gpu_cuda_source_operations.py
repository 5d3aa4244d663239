"""Scalar operations in CUDA C mean what they mean to NumPy."""

import numpy as np
import pytest

from minijax.arrays.dtypes import bfloat16
from minijax.gpu.cuda_source import (
    PRELUDE,
    c_expression,
    c_literal,
    c_type,
    c_type_in_memory,
    expressions,
    load_conversion_expr,
    store_conversion_expr,
)
from minijax.kernels.ir import cast_ops, scalar_ops
from minijax_book import emulator
from minijax_book.emulator import Module

pytestmark = pytest.mark.skipif(not emulator.is_there(), reason="no C++ compiler here")

DTYPES = {
    "b": ["bool"],
    "i": ["int8", "int16", "int32", "int64"],
    "u": ["uint8", "uint16", "uint32", "uint64"],
    "f": ["float32", "float64"],
}
EVERY = [np.dtype(name) for names in DTYPES.values() for name in names]


def _numbers(dtype):
    """Return limits, special values and others, in memory order."""
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind == "f":
        special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, 1e-30, 300.5]
        rng = np.random.default_rng(0)
        return np.array([*special, *rng.normal(0, 3, 40)], dtype)
    limits = np.iinfo(dtype)
    some = [0, 1, 2, 3, 7, 100, limits.max, limits.max - 1, limits.min, limits.min + 1]
    return np.array(some, dtype)


def _pairs(dtype, count):
    grid = np.meshgrid(*[_numbers(dtype)] * count, indexing="ij")
    return [np.ascontiguousarray(x).reshape(-1) for x in grid]


def _source(name, op, dtype, result, count):
    kinds = [dtype] * count
    if op == "select":
        kinds[0] = np.dtype(bool)
    elements = [load_conversion_expr(kind, f"{x}[i]") for kind, x in zip(kinds, "xyz")]
    value = store_conversion_expr(result, c_expression(op, elements, dtype, result))
    given = [f"const {c_type_in_memory(kind)}* {x}" for kind, x in zip(kinds, "xyz")]
    return f"""
extern "C" __global__ void
{name}({", ".join(given)}, {c_type_in_memory(result)}* out, int n) {{
  const int i = threadIdx.x + blockIdx.x * 64;
  if (i < n) out[i] = {value};
}}
"""


@pytest.fixture(scope="module")
def module():
    """All operations and conversions, compiled at once."""
    texts = [PRELUDE]
    for op, dtype in CASES:
        row = scalar_ops[op]
        name = f"{op}_{dtype}"
        texts.append(_source(name, op, dtype, row.result or dtype, row.arity))
    texts += [_source(f"convert_{a}_{b}", "convert", a, b, 1) for a, b in PAIRS]
    texts += [_source(f"bitcast_{a}_{b}", "bitcast", a, b, 1) for a, b in RECAST]
    return Module("".join(texts))


def _run(module, name, arrays, dtype):
    out = np.empty(arrays[0].size, dtype)
    blocks = -(-out.size // 64)
    module.launch(name, (blocks,), (64,), [*arrays, out, np.int32(out.size)])
    return out


def _defined(op, dtype, arrays):
    """Return operands for which an operation has one meaning."""
    x, *rest = arrays
    keep = np.ones(x.shape, bool)
    if op in ("div", "rem") and dtype.kind in "iu":
        keep = rest[0] != 0
        if dtype.kind == "i":
            keep &= (x != np.iinfo(dtype).min) | (rest[0] != -1)
    if op.startswith("shift"):
        keep = (rest[0] >= 0) & (rest[0] < 8 * dtype.itemsize)
    if op in ("max", "min") and dtype.kind == "f":
        keep = (x != 0) | (rest[0] != 0)
    if op == "pow":
        keep = (x >= 0) & np.isfinite(x) & np.isfinite(rest[0])
    return [a[keep] for a in arrays]


CASES = [
    (op, np.dtype(name))
    for op, row in scalar_ops.items()
    for kind in row.kinds
    for name in DTYPES[kind]
]
PAIRS = [(old, new) for old in EVERY for new in EVERY]
RECAST = [
    (np.dtype(f"{old}{bits}"), np.dtype(f"{new}{bits}"))
    for bits in (32, 64)
    for old in ("int", "uint", "float")
    for new in ("int", "uint", "float")
]


def _operands(op, dtype, arity):
    arrays = _pairs(dtype, min(arity, 2))
    if op == "select":
        return [np.resize([True, False, False], arrays[0].size), *arrays]
    if arity == 3:
        return [*arrays, arrays[1][::-1].copy()]
    return _defined(op, dtype, arrays)


@pytest.mark.parametrize("op, dtype", CASES, ids=str)
def test_operations(module, op, dtype):
    row = scalar_ops[op]
    arrays, result = _operands(op, dtype, row.arity), row.result or dtype
    with np.errstate(all="ignore"):
        wanted = np.asarray(row.numpy(*arrays), result)
    ours = _run(module, f"{op}_{dtype}", arrays, result)
    if row.cost == "transcendentals" or op == "fma":
        tolerance = 1e-5 if dtype == np.float32 else 1e-13
        np.testing.assert_allclose(ours, wanted, tolerance, tolerance)
    else:
        np.testing.assert_array_equal(ours, wanted)


@pytest.mark.parametrize("old, new", PAIRS, ids=str)
def test_conversions(module, old, new):
    x = _numbers(old)
    with np.errstate(all="ignore"):
        wanted = cast_ops["convert"](x, new)
    ours = _run(module, f"convert_{old}_{new}", [x], new)
    np.testing.assert_array_equal(ours, wanted)


@pytest.mark.parametrize("old, new", RECAST, ids=str)
def test_the_same_bits(module, old, new):
    x = _numbers(old)
    assert _run(module, f"bitcast_{old}_{new}", [x], new).tobytes() == x.tobytes()


NARROW = [np.dtype("float16"), np.dtype(bfloat16)]


@pytest.fixture(scope="module", params=NARROW, ids=str)
def narrow(request):
    """A narrow float, and kernels that widen and narrow."""
    dtype = request.param
    texts = f"""
extern "C" __global__ void widen(const unsigned short* x, float* out, int n) {{
  const int i = threadIdx.x + blockIdx.x * 64;
  if (i < n) out[i] = {load_conversion_expr(dtype, "x[i]")};
}}
extern "C" __global__ void narrow(const float* x, unsigned short* out, int n) {{
  const int i = threadIdx.x + blockIdx.x * 64;
  if (i < n) out[i] = {store_conversion_expr(dtype, "x[i]")};
}}
"""
    return dtype, Module(PRELUDE + texts)


def test_narrow_floats_become_wide_and_narrow_again(narrow):
    dtype, module = narrow
    patterns = np.arange(2**16, dtype=np.uint16)
    wide = _run(module, "widen", [patterns], np.float32)
    wanted = patterns.view(dtype).astype(np.float32)
    np.testing.assert_array_equal(wide, wanted)
    out, numbers = _run(module, "narrow", [wide], np.uint16), ~np.isnan(wanted)
    np.testing.assert_array_equal(out[numbers], patterns[numbers])
    assert np.isnan(out[~numbers].view(dtype).astype(np.float32)).all()


def test_wide_floats_are_rounded_to_even(narrow):
    dtype, module = narrow
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2**32, 20_000, np.uint32).view(np.float32)
    numbers = rng.normal(0, 1, 10_000) * 10.0 ** rng.integers(-6, 6, 10_000)
    for x in (bits[~np.isnan(bits)], numbers.astype(np.float32)):
        with np.errstate(over="ignore"):
            wanted = x.astype(dtype).view(np.uint16)
        np.testing.assert_array_equal(_run(module, "narrow", [x], np.uint16), wanted)


def test_numbers_are_written_exactly():
    texts = []
    for dtype in EVERY:
        lines = [f"  out[{i}] = {c_literal(x)};" for i, x in enumerate(_numbers(dtype))]
        head = f'extern "C" __global__ void f_{dtype}({c_type(dtype)}* out) {{'
        texts += [head, *lines, "}"]
    module = Module("\n".join(texts))
    for dtype in EVERY:
        some = _numbers(dtype)
        out = np.empty_like(some)
        module.launch(f"f_{dtype}", (1,), (1,), [out])
        np.testing.assert_array_equal(out, some)
        if dtype.kind == "f":
            assert (np.signbit(out) == np.signbit(some)).all()


def test_each_operation_has_a_text_for_each_kind():
    for op, row in scalar_ops.items():
        assert {*row.kinds} <= {*expressions[op]}, op


def test_an_operation_without_cuda_says_how_to_give_it_some():
    with pytest.raises(TypeError, match=r"'hypot3' has no CUDA C.*express\("):
        c_expression("hypot3", ["x"], np.dtype("float32"), np.dtype("float32"))
    with pytest.raises(TypeError, match=r"'floor' has no CUDA C for int32"):
        c_expression("floor", ["x"], np.dtype("int32"), np.dtype("int32"))
