"""Products by cuBLAS: what it is told, beside a stand-in that checks and computes."""

import ctypes
import importlib.util
import os
import subprocess
import sys

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import jit, make_jaxpr
from minijax.cuda import host_steps as cublas
from minijax.cuda.device import GraphProgram, lower_for_gpu
from minijax.cuda.driver import CudaContext, cupy_stand_in
from minijax.cuda.host_steps import (
    CUBLAS_SIGNATURES,
    CUBLAS_TYPES,
    Cublas,
    CublasMatmul,
    blas_matrices,
    cublas_for,
    cublas_gemm_arguments,
    find_cublas,
    with_cublas_steps,
)
from minijax.cuda.program_steps import DeviceMatmul
from minijax.errors import JaxRuntimeError
from minijax.kernels.builder import Buffer, View
from minijax_book import emulator
from minijax_book.emulator.cublas import EmulatedCublas
from minijax_book.emulator.cupy_card import EmulatedCuPy
from tests.emulated_card import emulated_gpu

needs_compiler = pytest.mark.skipif(
    not emulator.is_there(), reason="no C++ compiler here"
)
FLOAT = np.dtype("float32")
PRODUCTS = {  # what is asked for: operations, m, n, k, how many
    "ij,jk->ik": ((33, 40), (40, 17), ("NN", 17, 33, 40, 1)),
    "ji,jk->ik": ((40, 33), (40, 17), ("NT", 17, 33, 40, 1)),
    "ij,kj->ik": ((16, 64), (32, 64), ("TN", 32, 16, 64, 1)),
    "ji,kj->ik": ((64, 16), (32, 64), ("TT", 32, 16, 64, 1)),
    "aij,ajk->aik": ((3, 20, 37), (3, 37, 18), ("NN", 18, 20, 37, 3)),
    "abij,abkj->abik": ((2, 2, 20, 37), (2, 2, 18, 37), ("TN", 18, 20, 37, 4)),
    "iaj,ajk->aik": ((20, 3, 37), (3, 37, 18), ("NN", 18, 20, 37, 3)),
    "aij,jk->aik": ((3, 20, 37), (37, 18), ("NN", 18, 60, 37, 1)),
}


@pytest.fixture(scope="module")
def machine():
    with emulated_gpu(cublas=True) as pair:
        yield pair


@needs_compiler
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("spec", PRODUCTS)
def test_cublas_is_told_what_the_product_is(spec, dtype, machine):
    gpu, cupy = machine
    *shapes, wanted = PRODUCTS[spec]
    with minijax.enable_x64(dtype == "float64"):
        rng = np.random.default_rng(1)
        a, b = (rng.integers(-4, 5, shape).astype(dtype) for shape in shapes)
        found = jit(lambda x, y: jnp.einsum(spec, x, y))(
            *minijax.device_put((a, b), gpu)
        )
        np.testing.assert_array_equal(np.asarray(found), np.einsum(spec, a, b))
    assert tuple(cupy.cublas.calls[-1])[1:] == wanted and found.dtype == dtype


@needs_compiler
@pytest.mark.parametrize(
    ("f", "shape"),
    [
        (lambda x: x[:, ::2] @ x[:, 1::2].T, (40, 80)),  # no neighbours in memory
        (lambda x: (x @ x.T).astype("int32") @ jnp.ones((40, 40), "int32"), (40, 80)),
        (lambda x: x[::-1, ::-1] @ x.T, (40, 80)),  # backwards
    ],
)
def test_what_it_cannot_take_is_our_kernel_s(f, shape, machine):
    x = np.random.default_rng(2).integers(-4, 5, shape).astype(np.float32)
    far = minijax.device_put(x, machine[0])
    found = jit(f)(far)
    np.testing.assert_array_equal(np.asarray(found), np.asarray(f(jnp.asarray(x))))


@needs_compiler
def test_products_in_graphs_and_loops_are_its_too(machine):
    gpu, cupy = machine
    x = np.random.default_rng(3).standard_normal((20, 40), np.float32)
    program = GraphProgram(make_jaxpr(lambda x: jnp.tanh(x @ x.T) @ x)(x), device=gpu)
    [recorded] = program.steps
    assert len(recorded.actions) == 3
    far, before = minijax.device_put(x, gpu), dict(cupy.counts)
    for _ in range(4):
        [result] = program(far)
        np.testing.assert_allclose(np.asarray(result), np.tanh(x @ x.T) @ x, 1e-4, 1e-5)
        del result
    assert cupy.counts["graphs"] - before["graphs"] == 3

    def powers(x):
        return minijax.lax.fori_loop(0, 3, lambda i, y: jnp.tanh(y @ x), x)

    x = x[:, :20] / 9
    calls = len(cupy.cublas.calls)
    found = jit(powers)(minijax.device_put(x, gpu))
    np.testing.assert_allclose(np.asarray(found), np.asarray(powers(x)), 1e-4, 1e-5)
    assert len(cupy.cublas.calls) - calls == 3


@needs_compiler
def test_with_and_without_it_the_results_agree(machine):
    x = np.random.default_rng(4).standard_normal((64, 96), np.float32)

    def f(x):
        return minijax.grad(lambda x: (jnp.tanh(x @ x.T) ** 2).sum())(x)

    by_cublas = np.asarray(jit(f)(minijax.device_put(x, machine[0])))
    with emulated_gpu() as (gpu, cupy):
        ours = np.asarray(jit(f)(minijax.device_put(x, gpu)))
        assert cupy.cublas is None and cublas_for(gpu.card) is None
    np.testing.assert_allclose(by_cublas, ours, 1e-4, 1e-4)


def test_strides_become_columns_or_do_not():
    def told(shape, strides, offset=0):
        found = blas_matrices(
            View(Buffer("a", FLOAT, 999), FLOAT, shape, offset, strides)
        )
        return found and tuple(found)[1:]

    assert told((3, 4), (4, 1)) == (0, 0, 4, 0)
    assert told((3, 4), (1, 3), offset=2) == (8, 1, 3, 0)
    assert told((3, 4), (7, 1)) == (0, 0, 7, 0)
    assert told((3, 4), (8, 2)) is None and told((3, 4), (-4, 1)) is None
    assert told((3, 4), (0, 1)) is None  # one row for all: columns would overlap
    assert told((1, 4), (0, 1)) == (0, 0, 4, 0) and told((3, 1), (5, 9))[1:3] == (0, 5)
    assert told((2, 3, 4), (12, 4, 1)) == (0, 0, 4, 12)
    assert told((2, 3, 4), (0, 4, 1)) == (0, 0, 4, 0)
    assert told((2, 2, 3, 4), (24, 12, 4, 1)) == (0, 0, 4, 12)
    assert told((2, 2, 3, 4), (12, 24, 4, 1)) is None
    assert told((2, 3), (2**31, 1)) is None


def test_steps_say_who_does_them():
    x = np.ones((40, 40), np.float32)
    program = with_cublas_steps(lower_for_gpu(make_jaxpr(lambda x: x @ x)(x)))
    assert [type(step) for step in program.steps] == [CublasMatmul]
    integers = lower_for_gpu(make_jaxpr(lambda x: x @ x)(x.astype(int)))
    assert [type(step) for step in with_cublas_steps(integers).steps] == [DeviceMatmul]
    assert cublas_gemm_arguments(integers.steps[0]) is None


def test_a_status_is_an_error_that_says_where(machine):
    gpu, _ = machine
    ours = cublas_for(gpu.card)
    with pytest.raises(JaxRuntimeError, match="SetStream_v2 returned the status 7"):
        ours.ask(gpu.card, "cublasSetStream_v2", ours.handle, 12345)


MISTAKES = {  # from an argument's place to a wrong value, and what the stand-in says
    "lda": (9, 3, "columns overlap"),
    "type": (8, 2, "2"),
    "operation": (1, 5, "5"),
    "address": (7, 64, "IllegalAddress"),
    "misaligned": (7, None, "aligned"),
    "way": (17, 77, "77"),
    "algorithm": (18, 0, "algorithm"),
    "size": (3, 0, "0"),
    "too long": (3, 10**6, "columns overlap"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_the_stand_in_finds_mistakes(name, monkeypatch):
    """The check of the calls can fail: each wrong argument is refused."""
    cupy = EmulatedCuPy(memory=2**20, cublas=True)
    monkeypatch.setattr(cupy_stand_in, "value", cupy)
    card = CudaContext(0)
    ours = Cublas(card, cupy.cublas)
    one, none = ctypes.c_float(1), ctypes.c_float(0)
    a, b, c = (card.allocate(4 * 64) for _ in range(3))
    args = [
        ours.handle, 0, 0, 8, 8, 8, ctypes.addressof(one), a.ptr, 0, 8, b.ptr, 0, 8,
        ctypes.addressof(none), c.ptr, 0, 8, 68, -1,
    ]  # fmt: skip
    ours.ask(card, "cublasGemmEx", *args)
    place, wrong, says = MISTAKES[name]
    args[place] = a.ptr + 2 if wrong is None else wrong
    with pytest.raises(JaxRuntimeError, match="status 7"):
        ours.ask(card, "cublasGemmEx", *args)
    assert says in str(cupy.cublas.wrong)


def test_without_a_library_there_is_none(monkeypatch):
    monkeypatch.setattr(cupy_stand_in, "value", None)
    monkeypatch.setitem(sys.modules, "cuda", None)
    monkeypatch.setattr(cublas, "SONAMES", ("libnothing.so",))
    assert find_cublas() is None


def test_the_stand_in_has_the_documented_parameters():
    made = EmulatedCublas(EmulatedCuPy(memory=2**16))
    for name, types in CUBLAS_SIGNATURES.items():
        assert [*type(getattr(made, name))._argtypes_] == types, name


CONTRACT = """
import ctypes, sys
from cuda import pathfinder
path = pathfinder.load_nvidia_dynamic_lib("cublas").abs_path
library = ctypes.CDLL(path)
for name in sys.argv[1:]:
    assert hasattr(library, name), name
from cupy_backends.cuda.api import runtime
from cupy_backends.cuda.libs import cublas
print(runtime.CUDA_R_32F, cublas.CUBLAS_COMPUTE_32F)
print(runtime.CUDA_R_64F, cublas.CUBLAS_COMPUTE_64F)
print(cublas.CUBLAS_OP_N, cublas.CUBLAS_OP_T, cublas.CUBLAS_GEMM_DEFAULT)
"""


def test_the_library_and_cupy_agree_with_our_numbers():
    """With CuPy and cuBLAS installed here, or where `CUPY_PYTHON` is; no driver."""
    python = os.environ.get("CUPY_PYTHON") or sys.executable
    if not os.environ.get("CUPY_PYTHON") and not importlib.util.find_spec("cupy"):
        pytest.skip("no CuPy here: cuBLAS's names are not checked")
    done = subprocess.run(
        [python, "-c", CONTRACT, *CUBLAS_SIGNATURES], text=True, capture_output=True
    )
    if "DynamicLibNotFoundError" in done.stderr:
        pytest.skip("no cuBLAS here: its names are not checked")
    assert done.returncode == 0, done.stderr[-800:]
    numbers = [list(map(int, line.split())) for line in done.stdout.splitlines()]
    assert numbers[:2] == [list(CUBLAS_TYPES[x][:2]) for x in ("float32", "float64")]
    assert numbers[2] == [0, 1, cublas.DEFAULT_ALGORITHM]
