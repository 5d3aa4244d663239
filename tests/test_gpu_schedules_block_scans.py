"""Running totals by teams of threads: which kernels, and what is found if they err."""

import re

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import lax
from minijax.gpu.codegen import parallel_axes
from minijax.gpu.schedules import ScanShape, is_cooperative, scan_launch
from minijax.kernels.ir import trip_count
from minijax_book import emulator
from tests import cuda_cases
from tests.commands import blocks
from tests.cuda_cases import CardChance, kernels_of, met_by, traffic_of
from tests.kernel_cases import PlacesChance, of_random_kernels

needs_emulator = pytest.mark.skipif(not emulator.is_there(), reason="no C++ compiler")
HOWS = ["shape", "scans by warps", "scans by blocks"]


def totals(x):
    return jnp.cumsum(x, axis=-1)


def test_short_rows_have_warps_and_long_rows_blocks():
    shapes = {
        (100, 50): ScanShape((0,), 1, 32, 8),
        (100, 5000): ScanShape((0,), 1, 256, 1),
        (3, 50): ScanShape((0,), 1, 64, 1),
        (3, 5000): ScanShape((0,), 1, 1024, 1),
    }
    for size, shape in shapes.items():
        [kernel] = kernels_of(totals, jnp.zeros(size))
        assert scan_launch(kernel) == shape
        assert shape.threads <= 1024
        needed = trip_count(kernel, shape.outer)
        assert 0 <= shape.blocks(kernel) * shape.teams - needed < shape.teams


def test_columns_short_rows_and_other_kernels_have_none():
    [columns] = kernels_of(lambda x: jnp.cumsum(x, axis=0), jnp.zeros((64, 64)))
    [short] = kernels_of(totals, jnp.zeros((64, 7)))
    [each] = kernels_of(lambda x: x * 2, jnp.zeros((64, 64)))
    assert scan_launch(columns) is scan_launch(short) is scan_launch(each) is None
    assert is_cooperative(short, parallel_axes(short))


@needs_emulator
@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("chance", [CardChance, PlacesChance])
@pytest.mark.parametrize("seed", blocks(1, 4, start=5))
def test_random_kernels(how, chance, seed):
    met = of_random_kernels(seed, 50, chance)
    assert any(scan_launch(kernel, least=0) for kernel, *_ in met)
    assert not cuda_cases.differences(met, how)


FUNCTIONS = {
    "sums": totals,
    "products": lambda x: jnp.cumprod(x, axis=1),
    "maxima": lambda x: lax.cummax(x, axis=1),
    "minima, backwards": lambda x: lax.cummin(x, axis=1, reverse=True),
    "of integers": lambda x: totals((x * 9).astype("int8")),
    "of conditions": lambda x: totals(x > 0),
}


@needs_emulator
@pytest.mark.parametrize("name", FUNCTIONS)
def test_rows_on_both_sides_of_warps_and_blocks(name):
    rng, met = np.random.default_rng(0), []
    for shape in [(2, 8), (3, 31), (2, 32), (3, 33), (9, 65), (2, 1025), (70, 40)]:
        x = rng.standard_normal(shape, np.float32)
        if name == "maxima":
            x[0, 5] = np.nan
        met.append(met_by(FUNCTIONS[name], x))
    for how in HOWS:
        assert not cuda_cases.differences(met, how)


@needs_emulator
def test_sectors_and_banks():
    [kernel] = kernels_of(totals, jnp.zeros((4, 1024)))
    for entry in traffic_of(kernel, scan_launch(kernel)):
        assert (entry.turns if entry.shared else entry.sectors) == entry.least


def _nth_barrier_less(number):
    def edit(text):
        parts = text.split("__syncthreads();")
        head, tail = parts[: number + 1], parts[number + 1 :]
        return "__syncthreads();".join(head) + "__syncthreads();".join(tail)

    return edit


MUTANTS = {
    "no first barrier": _nth_barrier_less(0),
    "no second barrier": _nth_barrier_less(1),
    "no warps before": lambda text: re.sub(r"if \(w == t / 32\).*;", "", text),
    "a step too few": lambda text: text.replace("d < 32", "d < 16"),
    "every lane adds": lambda text: text.replace("% 32 >= d", ">= 0"),
    "those behind the end store": lambda text: text.replace("if (live)", "if (true)"),
    "those behind the end leave": lambda text: re.sub(
        r"(const bool live = .*;)", r"\1 if (!live) break;", text
    ),
    "a turn too few": lambda text: text.replace("base < 100", "base < 64"),
    "the first lane for the last": lambda text: text.replace("% 32 == 31", "% 32 == 0"),
}


@needs_emulator
@pytest.mark.parametrize("name", MUTANTS)
def test_mutants_are_found(name):
    x = np.random.default_rng(0).standard_normal((3, 100), np.float32)
    met = [met_by(totals, x)]
    assert cuda_cases.notices(met, "scans by blocks", MUTANTS[name])


@needs_emulator
def test_idle_warps_store_nothing():
    x = np.random.default_rng(0).standard_normal((70, 40), np.float32)
    met = [met_by(totals, x)]
    edits = {
        "store": lambda text: text.replace(" && busy", ""),
        "leave": lambda text: re.sub(
            r"const bool busy = (team < \d+);", r"if (!(\1)) return; \g<0>", text
        ),
    }
    assert cuda_cases.notices(met, "scans by warps", edits["store"])
    assert not cuda_cases.differences(met, "scans by warps")
