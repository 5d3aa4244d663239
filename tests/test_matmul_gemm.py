"""Matrix products as machine code: every size, layout and target."""

import ctypes
import mmap

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import lax, make_jaxpr
from minijax.kernels.lowering import lower
from minijax.llvm.codegen import module_ir
from minijax.llvm.instructions import FunctionBuilder
from minijax.llvm.targets import TargetLibrary, forced_target, host_target
from minijax.matmul.gemm import (
    BLOCK_SIZES,
    BlockSizes,
    gemm_address,
    gemm_function,
    gemm_library,
    gemm_name,
    micro_tile_for,
    packed_panel_bytes,
)
from minijax.matmul.lowering import (
    Matmul,
    emit_gemm_calls,
    gemm_signature,
    split_halves,
)

LONG = np.dtype("int32")

# The widths that this computer has, with registers. The last is like aarch64.
KINDS = [
    (16, 16), (32, 16), (64, 32), (16, 32),
]  # fmt: skip
TARGETS = [
    host_target()._replace(vector_bytes=width, registers=registers)
    for width, registers in KINDS
    if width <= host_target().vector_bytes
]
NAMES = [f"{target.registers}-{target.vector_bytes}" for target in TARGETS]

SIZES = [1, 2, 3, 4, 5, 7, 8, 11, 12, 13, 16, 24, 31, 32, 33, 48, 64, 70, 100, 130]


# With blocks as small as these, every loop over blocks has several turns.
TINY = BlockSizes(8, 24, 96)


def machine_code(dtype, target, limits=BLOCK_SIZES, pairs=False):
    """The function, whose code is for this computer whatever the target is."""
    text = module_ir([gemm_function(dtype, target, limits, pairs)])
    made = TargetLibrary(text, host_target())
    number, pointer = ctypes.c_int64, ctypes.c_void_p
    kinds = [
        number if x == "i64" else pointer for x in gemm_signature(dtype).split(", ")
    ]
    found = made.engine.get_function_address(gemm_name(dtype, pairs))
    run = ctypes.CFUNCTYPE(None, *kinds)(found)
    run.library, run.limits = made, limits
    return run


def garbage(size):
    """Aligned memory whose bits are those of NaN, as floats; a mark is at its end."""
    memory = np.full(size + 128, 255, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + size + 16]


def multiply(run, a, b, c):
    """Call machine code; check that nothing is written beyond the workspace."""
    (batch, m, n), k = c.shape, a.shape[2]
    space = garbage(packed_panel_bytes((batch, m, n, k), c.dtype, run.limits))
    space[-16:] = 77
    args = [
        item
        for x in (a, b, c)
        for item in (x.ctypes.data, *[step // x.itemsize for step in x.strides])
    ]
    run(batch, m, n, k, *args[:-1], space.ctypes.data)
    assert (space[-16:] == 77).all()


def operand(rng, shape, dtype, how):
    """Random numbers: row by row, column by column, or with gaps of garbage."""
    x = (5 * rng.normal(size=shape)).astype(dtype)
    if how == 1:
        return np.ascontiguousarray(x.swapaxes(1, 2)).swapaxes(1, 2)
    if how == 2:
        (batch, m, n), gap = shape, np.nan if dtype.kind == "f" else 7
        space = np.full((batch, 2 * m, 3 * n), gap, dtype)
        space[:, ::2, ::3] = x
        return space[:, ::2, ::3]
    return x


def check(run, rng, sizes, dtype, hows=(0, 0)):
    """Compare one product with NumPy's, in double precision; look around the result."""
    batch, m, n, k = sizes
    a = operand(rng, (batch, m, k), dtype, hows[0])
    b = operand(rng, (batch, k, n), dtype, hows[1])
    around = np.full((batch, m + 2, n + 5), 99, dtype)
    c = around[:, 1:-1, 2:-3]
    multiply(run, a, b, c)
    if dtype.kind == "f":
        wanted = a.astype(np.float64) @ b
        bound = np.abs(a).astype(np.float64) @ np.abs(b)  # k roundings at most
        assert (np.abs(c - wanted) <= k * np.finfo(dtype).eps * bound).all()
    else:
        assert (c == a @ b).all()
    c[...] = 99
    assert (around == 99).all()


@pytest.mark.parametrize("limits", [BLOCK_SIZES, TINY], ids=["", "tiny"])
@pytest.mark.parametrize("target", TARGETS, ids=NAMES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8"])
def test_random_sizes(dtype, target, limits):
    rng, dtype = np.random.default_rng(19), np.dtype(dtype)
    run = machine_code(dtype, target, limits)
    for _ in range(40):
        sizes = [int(rng.integers(1, 4)), *map(int, rng.choice(SIZES, 3))]
        check(run, rng, sizes, dtype, rng.integers(0, 3, 2))


@pytest.mark.parametrize("limits", [BLOCK_SIZES, TINY], ids=["", "tiny"])
@pytest.mark.parametrize("target", TARGETS, ids=NAMES)
def test_pairs(target, limits):
    rng, run = np.random.default_rng(7), machine_code(LONG, target, limits, pairs=True)
    ends = np.array([-(2**15), 2**15 - 1, -1, 0, 77], "int16")
    for number in range(30):
        m, n, k = map(int, rng.choice(SIZES, 3))
        shapes = (1, m, k), (1, k, n)
        a, b = (rng.choice(ends, (*shape, 2)).view("int32")[..., 0] for shape in shapes)
        if number % 2:
            a = np.ascontiguousarray(a.swapaxes(1, 2)).swapaxes(1, 2)
        around = np.full((1, m + 2, n + 5), 99, "int32")
        c = around[:, 1:-1, 2:-3]
        multiply(run, a, b, c)
        assert (c == sum(map(np.matmul, split_halves(a), split_halves(b)))).all()
        c[...] = 99
        assert (around == 99).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "sizes",
    [
        (1, BLOCK_SIZES.rows + 1, 40, 20),
        (1, 2 * BLOCK_SIZES.rows - 1, 150, BLOCK_SIZES.depth + 1),
        (1, 30, BLOCK_SIZES.columns + 3, 40),
        (1, 13, 5, 3 * BLOCK_SIZES.depth + 2),
        (2, 150, 150, 300),
    ],
)
def test_several_blocks(sizes, dtype):
    dtype = np.dtype(dtype)
    run = machine_code(dtype, host_target())
    for hows in ((0, 0), (1, 1)):
        check(run, np.random.default_rng(0), sizes, dtype, hows)


def test_what_is_no_number_stays_in_its_row_and_column():
    rng, dtype = np.random.default_rng(0), np.dtype("float32")
    run = machine_code(dtype, host_target())
    a, b = operand(rng, (1, 37, 41), dtype, 0), operand(rng, (1, 41, 45), dtype, 0)
    a[0, 36, 3], b[0, 5, 44], a[0, 2, 7] = np.nan, np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        c, wanted = np.empty((1, 37, 45), dtype), a.astype(np.float64) @ b
    multiply(run, a, b, c)
    assert (np.isnan(c) == np.isnan(wanted)).all()
    assert (np.isinf(c) == np.isinf(wanted)).all()
    assert np.isfinite(c).sum() == 35 * 44


def test_tiles_fill_the_registers():
    for target in TARGETS:
        for dtype in map(np.dtype, ("float32", "float64", "int8")):
            rows, vectors, lanes, *_ = tile = micro_tile_for(dtype, target)
            assert lanes * dtype.itemsize == target.vector_bytes
            assert rows * vectors + vectors + 1 <= target.registers
            assert rows % 4 == tile.columns % 4 == 0


def test_made_once():
    dtype = np.dtype("float32")
    assert gemm_library(dtype, host_target()) is gemm_library(dtype, host_target())
    assert gemm_address(dtype, host_target())


@pytest.mark.parametrize("kind", ["plain", "avx2", "avx512"])
def test_compiles_for_forced_targets(kind):
    text = module_ir([gemm_function(np.dtype("float32"), forced_target(kind))])
    widest = {"plain": "xmm", "avx2": "ymm", "avx512": "zmm"}[kind]
    assert widest in TargetLibrary(text, forced_target(kind)).assembly


NUMBERS = [
    (((20, 30), (30, 40)), (((1,), (0,)), ((), ()))),
    (((30, 20), (40, 30)), (((0,), (1,)), ((), ()))),
    (((5, 20, 30), (5, 30, 40)), (((2,), (1,)), ((0,), (0,)))),
    (((2, 19, 3, 20), (2, 17, 3, 20)), (((3,), (3,)), ((0, 2), (0, 2)))),
    (((2, 3, 4, 20, 19), (4, 2, 3, 20, 19)), (((3,), (3,)), ((2, 0, 1), (0, 1, 2)))),
]


@pytest.mark.parametrize("shapes, numbers", NUMBERS)
def test_call_of_a_step(shapes, numbers):
    rng, dtype = np.random.default_rng(1), np.dtype("float32")
    x, y = (rng.normal(size=shape).astype(dtype) for shape in shapes)
    program = make_jaxpr(lambda x, y: lax.dot_general(x, y, numbers))(x, y)
    [step] = lower(program).steps
    assert isinstance(step, Matmul)
    f = FunctionBuilder()
    emit_gemm_calls(f, step, ["%a", "%b", "%c"], "%space")
    head = "define void @run(i8* %a, i8* %b, i8* %c, i8* %space) {"
    caller = "\n".join([head, "entry:", *f.lines, "  ret void", "}"])
    text = module_ir([gemm_function(dtype, host_target())])
    made = TargetLibrary(f"{text}\n\n{caller}", host_target())
    run, out = made.function("run", 4), np.empty(program.out_avals[0].shape, dtype)
    space = garbage(step.workspace)
    run(x.ctypes.data, y.ctypes.data, out.ctypes.data, space.ctypes.data)
    assert np.allclose(out, lax.dot_general(jnp.asarray(x), y, numbers), atol=1e-4)


def test_rows_that_are_far_apart():
    """Places beyond 2**31, in memory of which a few pages are ever touched."""
    dtype, distance = np.dtype("float32"), 2**28 + 3
    rng, run = np.random.default_rng(0), machine_code(dtype, host_target())
    try:
        space = mmap.mmap(-1, 4 * 10 * distance)
    except OSError:
        pytest.skip("this system does not promise memory that it does not have")
    far = np.ndarray((1, 9, 20), dtype, space, 0, (0, 4 * distance, 4))
    far[...] = rng.normal(size=far.shape)
    b = operand(rng, (1, 20, 40), dtype, 0)
    out = np.ndarray((1, 9, 40), dtype, space, 400, (0, 4 * distance, 4))
    multiply(run, far, b, out)
    assert np.allclose(out, far @ b, atol=1e-4)
    del far, out
    space.close()
