"""Transposes in tiles: which kernels, which traffic, and what is found if they err."""

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax.gpu.codegen import LaunchShape
from minijax.gpu.schedules import TileShape, shortest_stride_axis, tile_launch
from minijax.kernels.ir import Affine
from minijax_book import emulator
from tests import cuda_cases
from tests.cuda_cases import CardChance, kernels_of, met_by, traffic_of
from tests.kernel_cases import of_random_kernels

needs_emulator = pytest.mark.skipif(not emulator.is_there(), reason="no C++ compiler")


def test_the_nearest_axis_has_the_shortest_step():
    assert shortest_stride_axis(Affine(3, (8, -1))) == 1
    assert shortest_stride_axis(Affine(3, (2, 0, 9))) == 0
    assert shortest_stride_axis(Affine(3, (0, 0))) is None


def test_transposes_have_tiles():
    [kernel] = kernels_of(lambda x: x.T * 2, jnp.zeros((70, 100)))
    shape = tile_launch(kernel)
    assert shape == TileShape((0, 1), 1, 0)
    assert shape.counts(kernel) == [4, 3]
    assert shape.blocks(kernel) == 12


@pytest.mark.parametrize("axes", [(2, 1, 0), (0, 2, 1), (1, 2, 0), (2, 0, 1)])
def test_axes_in_any_order(axes):
    [kernel] = kernels_of(lambda x: x.transpose(axes) * 2, jnp.zeros((20, 33, 40)))
    assert tile_launch(kernel)


NONE = {
    "as it lies": (lambda x: x * 2, (64, 64)),
    "a column and a row": (lambda x: x[:, :1] * x[:1], (64, 64)),
    "short": (lambda x: x.T * 2, (64, 4)),
    "a fold": (lambda x: x.T.sum(axis=1), (64, 64)),
    "blocks of rows": (lambda x: x.transpose(1, 0, 2) * 2, (20, 20, 20)),
}


@pytest.mark.parametrize("name", NONE)
def test_what_has_no_tiles(name):
    f, shape = NONE[name]
    for kernel in kernels_of(f, jnp.zeros(shape)):
        assert tile_launch(kernel) is None


@needs_emulator
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_random_kernels(seed):
    met = of_random_kernels(seed, 40, CardChance)
    assert any(tile_launch(kernel, least=1) for kernel, *_ in met)
    assert not cuda_cases.differences(met, "tiles")


FUNCTIONS = {
    "turned": lambda x: x.T * 2,
    "beside": lambda x: x.T + x.reshape(x.shape[::-1]),
    "with indices": lambda x: x.T + jnp.arange(x.shape[0]),
    "halves": lambda x: jnp.tanh(x.astype("bfloat16").T),
    "conditions": lambda x: (x > 0).T,
}


@needs_emulator
@pytest.mark.parametrize("name", FUNCTIONS)
def test_shapes_on_both_sides_of_a_tile(name):
    rng, met = np.random.default_rng(0), []
    for shape in [(31, 33), (32, 32), (1, 70), (64, 20), (3, 3)]:
        met.append(met_by(FUNCTIONS[name], rng.standard_normal(shape, np.float32)))
    assert not cuda_cases.differences(met, "tiles")


@needs_emulator
def test_sectors_and_banks():
    [kernel] = kernels_of(lambda x: x.T * 2, jnp.zeros((64, 96)))
    for entry in traffic_of(kernel, tile_launch(kernel)):
        moved = entry.turns if entry.shared else entry.sectors
        assert moved == entry.least
    plain = traffic_of(kernel, LaunchShape((0, 1)))
    assert any(entry.sectors == 8 * entry.least for entry in plain)


MUTANTS = {
    "no barrier": lambda text: text.replace("__syncthreads();", ""),
    "a tile too narrow": lambda text: text.replace("[33]", "[31]"),
    "not turned": lambda text: text.replace("[lane][row]", "[row][lane]"),
    "no bound on rows": lambda text: text.replace(" && j < 40", "").replace(
        "j < 40 && ", ""
    ),
    "seven rows of eight": lambda text: text.replace("row += 8", "row += 7"),
    "the same tile": lambda text: text.replace("blockIdx.x % 2", "0"),
    "a barrier for some": lambda text: text.replace(
        "__syncthreads();", "if (lane < 8) __syncthreads();"
    ),
}


@needs_emulator
@pytest.mark.parametrize("name", MUTANTS)
def test_mutants_are_found(name):
    x = np.random.default_rng(0).standard_normal((40, 50), np.float32)
    assert cuda_cases.notices([met_by(FUNCTIONS["turned"], x)], "tiles", MUTANTS[name])


@needs_emulator
def test_a_tile_of_32_columns_is_right_and_slow():
    """No comparison finds it, and no check: the count of the turns does."""
    [kernel] = kernels_of(lambda x: x.T * 2, jnp.zeros((64, 64)))
    assert not any(
        entry.turns > entry.least for entry in traffic_of(kernel, tile_launch(kernel))
    )
    narrow = traffic_of(
        kernel, tile_launch(kernel), lambda x: x.replace("[33]", "[32]")
    )
    assert any(entry.turns == 32 * entry.least for entry in narrow if entry.shared)
