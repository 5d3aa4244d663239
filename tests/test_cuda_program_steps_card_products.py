"""Products and convolutions of a card by tiles: sizes around tiles, parts, slopes."""

import functools

import numpy as np
import pytest

import minijax
from minijax import grad, jit, lax, make_jaxpr
from minijax.cuda.device import lower_for_gpu
from minijax.cuda.program_steps import (
    DeviceConvolution,
    DeviceMatmul,
    convolution_launch,
    convolution_steps,
    cuda_launches,
    matmul_launch,
    program_for_gpu,
)
from minijax.gpu.cuda_source import PRELUDE
from minijax.kernels.builder import Buffer, contiguous_view, transpose_view
from minijax.kernels.lowering import KernelProgram, lower
from minijax.windows.convolution_tiles import TapProduct
from minijax_book import emulator
from minijax_book.emulator import CHECK, RACES, EmulatorError, Module

pytestmark = pytest.mark.skipif(not emulator.is_there(), reason="no C++ compiler here")
rng = np.random.default_rng(3)
SIZES = [(1, 1, 1), (15, 17, 33), (16, 16, 16), (31, 33, 15), (64, 65, 17)]
SIZES += [(33, 64, 40), (65, 31, 1), (130, 5, 100), (2, 70, 16)]


def product_of(sizes, dtype="float32", turned=False, count=2):
    """A `DeviceMatmul` of matrices that lie row by row, or column by column."""
    rows, columns, terms = sizes
    dtype = np.dtype(dtype)
    shapes = {"a": (rows, terms), "b": (terms, columns), "c": (rows, columns)}
    views = []
    for name, (m, n) in shapes.items():
        shape = (count, n, m) if turned and name != "c" else (count, m, n)
        view = contiguous_view(Buffer(name, dtype, count * m * n), dtype, shape)
        views.append(transpose_view(view, (0, 2, 1)) if shape[1:] != (m, n) else view)
    return DeviceMatmul(*views)


def run_product(step, edit=str):
    """Run a product in the emulator, which looks for races; compare it."""
    launch = matmul_launch(step)
    module = Module(PRELUDE + edit(launch.text))
    dtype, wild = step.out.dtype, rng.integers(-9, 9, step.lhs.source.size)
    memory = [wild.astype(dtype), rng.integers(-9, 9, step.rhs.source.size)]
    memory = [x.astype(dtype) for x in memory]
    memory.append(np.full(step.out.source.size, 77, dtype))
    flags = CHECK | RACES
    grid = (launch.blocks,)
    module.launch(launch.label, grid, (launch.threads,), memory, 1, flags)
    a, b, c = (
        np.lib.stride_tricks.as_strided(
            x, view.shape, [stride * dtype.itemsize for stride in view.strides]
        )
        for x, view in zip(memory, step[:3])
    )
    np.testing.assert_array_equal(c, a @ b)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("sizes", SIZES)
def test_sizes_around_tiles(sizes, turned):
    run_product(product_of(sizes, turned=turned))


@pytest.mark.parametrize("dtype", ["int32", "uint8", "float64", "int64"])
def test_dtypes(dtype):
    run_product(product_of((33, 20, 18), dtype))


MUTANTS = {
    "a row too many": ("row < 65", "row <= 65"),
    "a column too many": ("column < 70", "column <= 70"),
    "a term too many": ("k < last", "k <= last"),
    "no barrier before sums": ("    __syncthreads();\n    #pragma", "    #pragma"),
    "no barrier behind sums": ("        }\n    __syncthreads();", "        }"),
    "a strip too short": ("k < 16", "k < 15"),
    "a tile too narrow": ("b[16][64]", "b[16][48]"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutants_are_found(name):
    old, new = MUTANTS[name]

    def edit(text):
        assert old in text
        return text.replace(old, new)

    with pytest.raises((EmulatorError, AssertionError)):
        run_product(product_of((65, 70, 36), turned=True), edit)


def convolution(strides, padding, gaps=(1, 1), holes=(1, 1), groups=1):
    """A layer of pictures, channels last."""
    return functools.partial(
        lax.conv_general_dilated,
        window_strides=strides,
        padding=padding,
        lhs_dilation=gaps,
        rhs_dilation=holes,
        feature_group_count=groups,
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )


LAYERS = {
    "same": (convolution((1, 1), "SAME"), (2, 9, 10, 5), (3, 3, 5, 16)),
    "strided": (convolution((2, 3), "VALID"), (3, 11, 13, 8), (3, 2, 8, 20)),
    "transposed": (
        convolution((1, 1), [(2, 1), (1, 2)], (2, 2)), (2, 8, 7, 6), (3, 3, 6, 16),
    ),
    "holes": (convolution((1, 1), "SAME", holes=(2, 1)), (2, 9, 9, 4), (3, 3, 4, 33)),
    "groups": (convolution((1, 1), "SAME", groups=2), (2, 9, 9, 8), (3, 3, 4, 32)),
    "one by one": (convolution((1, 1), "VALID"), (3, 8, 8, 17), (1, 1, 17, 65)),
    "uneven parts": (convolution((1, 1), "VALID"), (1, 134, 131, 1), (1, 2, 1, 16)),
    "parts": (convolution((1, 1), "SAME"), (1, 5, 5, 150), (3, 3, 150, 16)),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_convolutions_and_their_gradients(name, gpu):
    layer, *shapes = LAYERS[name]
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in shapes)

    def loss(x, w):
        return (layer(x, w) ** 2).sum()

    for f in (layer, grad(loss, (0, 1))):
        program = lower_for_gpu(make_jaxpr(f)(x, w))
        assert all(type(s) in cuda_launches or s.programs for s in program.walk())
        ours = jit(f)(*minijax.device_put((x, w), gpu))
        for one, other in zip(*map(minijax.tree.leaves, (ours, jit(f)(x, w)))):
            np.testing.assert_allclose(one, other, 1e-3, 1e-3)


def taps_of(name, f=None):
    """The `TapProduct` of a layer."""
    layer, *shapes = LAYERS[name]
    program = lower(make_jaxpr(f or layer)(*[np.ones(s, np.float32) for s in shapes]))
    return next(step for step in program.steps if type(step) is TapProduct)


@pytest.mark.parametrize("terms", [1024, 17409, 100_000, 131_072, 299_999])
def test_no_part_ends_behind_the_terms(terms):
    taps = taps_of("same")
    table = taps.table._replace(shape=(terms, 2))
    taps = taps._replace(table=table, terms=taps.terms._replace(count=1))
    for rows in (1, 40, 130):
        one = taps._replace(outer=(), rows=taps.rows._replace(count=rows))
        first, *_ = convolution_steps(one)
        length = 16 * -(-terms // (first.parts * 16))
        assert (first.parts - 1) * length < terms <= first.parts * length


@pytest.mark.of_the_cpu("runs the steps of a card near by")
def test_a_convolution_in_phases_near_by():
    """Phases write one buffer, and none of them wipes out what another has written."""
    layer, *shapes = LAYERS["transposed"]
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in shapes)
    closed = make_jaxpr(layer)(x, w)
    wanted = KernelProgram(closed)(x, w)
    found = NearBy(closed)(x, w)
    np.testing.assert_allclose(*map(np.asarray, (found[0], wanted[0])), 1e-4, 1e-4)


class NearBy(KernelProgram):
    """Runs the steps of a card by NumPy."""

    def lower(self, closed):
        return program_for_gpu(lower(closed))


def test_many_terms_are_cut_into_parts():
    first, last = convolution_steps(taps_of("parts"))
    assert (
        type(first) is DeviceConvolution
        and first.parts == 2
        and "2 parts" in str(first)
    )
    assert first.writes == [last.buffers[0]] and first.programs == ()
    assert convolution_launch(first).blocks == 2
    [whole_one] = convolution_steps(taps_of("same"))
    assert whole_one.parts == 1 and whole_one.out == whole_one.taps.out
