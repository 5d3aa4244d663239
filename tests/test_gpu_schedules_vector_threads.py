"""Threads that take several neighbours: when, and what they ask of memory."""

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import enable_x64
from minijax.gpu.codegen import LaunchShape
from minijax.gpu.schedules import VectorShape, is_vector_aligned, vector_launch
from minijax.kernels.ir import Affine
from minijax_book import emulator
from minijax_book.emulator import EmulatorError
from tests import cuda_cases
from tests.cuda_cases import CardChance, kernels_of, met_by, traffic_of
from tests.kernel_cases import of_random_kernels

needs_emulator = pytest.mark.skipif(not emulator.is_there(), reason="no C++ compiler")


@pytest.mark.parametrize(
    "dtype, lanes",
    [("float32", 4), ("bfloat16", 8), ("int8", 16), ("bool", 16), ("float64", 2)],
)
def test_a_vector_has_16_bytes(dtype, lanes):
    with enable_x64(dtype == "float64"):
        [kernel] = kernels_of(lambda x: x & x if dtype == "bool" else x + x,
                              jnp.zeros(4096, dtype))  # fmt: skip
    assert vector_launch(kernel) == VectorShape((0,), lanes)


def test_the_widest_type_counts():
    [kernel] = kernels_of(lambda x: x.astype("bfloat16"), jnp.zeros(4096))
    assert vector_launch(kernel).lanes == 4


NONE = {
    "rows that begin anywhere": (lambda x: x[:, 1:] * 2, (64, 129)),
    "backwards": (lambda x: x[::-1] * 2, (4096,)),
    "every other number": (lambda x: x[::2] * 2, (4096,)),
    "a fold": (lambda x: x.sum(axis=1), (64, 128)),
    "padded": (lambda x: jnp.pad(x, 4), (4096,)),
    "too few": (lambda x: x * 2, (3,)),
    "turned": (lambda x: x.T * 2, (64, 64)),
}


@pytest.mark.parametrize("name", NONE)
def test_what_has_no_vectors(name):
    f, shape = NONE[name]
    [kernel] = kernels_of(f, jnp.zeros(shape))
    assert vector_launch(kernel) is None


def test_unaligned_parameters_have_none():
    [kernel] = kernels_of(lambda x, y: x + y, jnp.zeros(64), jnp.zeros(64))
    for parameter in kernel.parameters:
        assert vector_launch(kernel, unaligned={parameter.name}) is None
    assert vector_launch(kernel, unaligned={"another"})


def test_places_of_vectors():
    assert is_vector_aligned(Affine(4, (8, 1)), 4)
    assert not is_vector_aligned(Affine(2, (8, 1)), 4)
    assert not is_vector_aligned(Affine(0, (6, 1)), 4)
    assert not is_vector_aligned(Affine(0, (8, 2)), 4)


@pytest.mark.parametrize("size", [4, 5, 1023, 1024, 1025, 4097])
def test_runs_cover_all_indices(size):
    [kernel] = kernels_of(lambda x: x * 2, jnp.zeros(size))
    shape = vector_launch(kernel)
    assert 0 <= shape.lanes * shape.runs(kernel) - size < shape.lanes
    assert 0 <= shape.blocks(kernel) * shape.threads - shape.runs(kernel) < 256


@needs_emulator
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_random_kernels(seed):
    met = of_random_kernels(seed, 40, CardChance)
    assert any(vector_launch(kernel) for kernel, *_ in met)
    assert not cuda_cases.differences(met, "vectors")


FUNCTIONS = {
    "numbers": lambda x: x * 2 + 1,
    "indices": lambda x: x + jnp.arange(x.shape[-1]),
    "narrower": lambda x: x.astype("bfloat16"),
    "conditions": lambda x: x > 0,
    "rows": lambda x: x - x[0],
    "columns": lambda x: x * x[:, :1] if x.ndim > 1 else x * 2,
}


@needs_emulator
@pytest.mark.parametrize("name", FUNCTIONS)
def test_rows_that_end_in_shorter_runs(name):
    rng, met = np.random.default_rng(0), []
    for shape in [(4,), (5,), (1027,), (3, 8), (5, 260), (1, 7)]:
        x = rng.standard_normal(shape, np.float32)
        met.append(met_by(FUNCTIONS[name], x))
    assert not cuda_cases.differences(met, "vectors")


@needs_emulator
def test_requests_are_fewer_and_sectors_are_not_more():
    [kernel] = kernels_of(lambda x: x * 2, jnp.zeros(2**14))
    for shape, sectors in ((LaunchShape((0,)), 4), (vector_launch(kernel), 16)):
        for entry in traffic_of(kernel, shape):
            assert entry.sectors == entry.least == sectors * entry.requests


MUTANTS = {
    "one vector further": lambda text: text.replace("run >= ", "run > "),
    "no bound": lambda text: text.replace("if (run >=", "if (false && run >="),
    "no shorter run": lambda text: text.replace("else for (;", "else for (; false &&"),
    "the shorter run one too far": lambda text: text.replace("; i++)", "; i += 2)"),
    "a vector where a row ends": lambda text: text.replace("i <= 258", "i <= 262"),
    "beside its place": lambda text: text.replace("(out + ", "(out + 1 + "),
    "three of four": lambda text: text.replace("c < 4", "c < 3"),
    "always the first number": lambda text: text.replace("a0.at[c]", "a0.at[0]"),
}


@needs_emulator
@pytest.mark.parametrize("name", MUTANTS)
def test_mutants_are_found(name):
    x = np.random.default_rng(0).standard_normal(1000, np.float32)
    narrow = met_by(lambda x: x * 2, x)
    short = met_by(jnp.exp, x[:262])
    assert cuda_cases.notices([narrow, short], "vectors", MUTANTS[name])


@needs_emulator
def test_an_array_that_begins_anywhere_is_noticed():
    [kernel] = kernels_of(lambda x: x * 2, jnp.zeros(256))
    with pytest.raises(EmulatorError, match="misaligned"):
        traffic_of(kernel, vector_launch(kernel), shift=4)
