"""The emulator of CUDA runs what is right, and finds what is wrong."""

import re
from threading import Thread

import numpy as np
import pytest

from minijax_book import emulator
from minijax_book.emulator import CHECK, RACES, TRAFFIC, EmulatorError, Module
from minijax_book.emulator.cupy_card import EmulatedCuPy
from tests.cuda_kernels import CASES, MUTANTS

pytestmark = pytest.mark.skipif(not emulator.is_there(), reason="no C++ compiler here")


@pytest.fixture(scope="module")
def checked():
    """All kernels, compiled at once."""
    return Module("\n".join(case.source for case in CASES.values()))


@pytest.fixture(scope="module")
def fast():
    return Module("\n".join(case.source for case in CASES.values()), checks=False)


def _run(module, name, **options):
    case = CASES[name]
    arguments, out = case.arguments()
    module.launch(name, case.grid, case.block, arguments, **options)
    np.testing.assert_allclose(out.squeeze(), case.after, 1e-4, 1e-5)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("seed", range(4))
def test_kernels_are_right_in_any_order_of_threads(checked, fast, name, seed):
    _run(checked, name, seed=seed)
    _run(fast, name, seed=seed)


@pytest.mark.parametrize("name", MUTANTS)
def test_each_mutant_is_found_in_one_run(name):
    mutant = MUTANTS[name]
    case = CASES[mutant.kernel]
    module = Module(mutant.edit(case.source))
    arguments, _ = case.arguments()
    with pytest.raises(EmulatorError, match=mutant.message) as caught:
        module.launch(mutant.kernel, case.grid, case.block, arguments, seed=1)
    assert re.search(r"line \d+|deadlock|race|bounds", str(caught.value))


def test_a_message_names_line_block_and_thread(checked):
    case = CASES["count"]
    bins = np.zeros(6, np.int32)
    with pytest.raises(EmulatorError) as caught:
        checked.launch("count", (4,), (128,), [case.given[0], bins, np.int32(500)])
    line = 1 + checked.source[: checked.source.index("atomicAdd")].count("\n")
    assert f"line {line}" in str(caught.value)
    assert "[block (0,0,0), thread (6,0,0)]" in str(caught.value)
    assert "0 bytes from array 1" in str(caught.value)


def aligned(array):
    """Return a copy that begins where a sector begins, as arrays of a device do."""
    room = np.zeros(array.nbytes + 32, np.uint8)
    start = -room.ctypes.data % 32
    copy = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    copy.flags.writeable = array.flags.writeable
    return copy


def _traffic(module, name):
    case = CASES[name]
    arguments = [
        aligned(x) if isinstance(x, np.ndarray) else x for x in case.arguments()[0]
    ]
    module.launch(name, case.grid, case.block, arguments, flags=CHECK | RACES | TRAFFIC)
    return module.traffic()


def test_traffic_counts_sectors_of_requests(checked):
    for entry in _traffic(checked, "selu"):
        assert entry.bytes == 2 * 256 * 16  # two blocks, 16 bytes a thread
        assert entry.requests == 2 * 8
        assert entry.sectors == entry.least == entry.bytes // 32


def test_a_strided_load_moves_more_than_it_uses():
    source = """
extern "C" __global__ void strided(const float* x, float* y) {
  y[threadIdx.x] = x[8 * threadIdx.x];
}
"""
    x, y = aligned(np.zeros(256, np.float32)), aligned(np.zeros(32, np.float32))
    module = Module(source)
    module.launch("strided", (1,), (32,), [x, y], flags=CHECK | TRAFFIC)
    load, store = module.traffic()
    assert (load.sectors, load.least) == (32, 4) and not load.write
    assert (store.sectors, store.least) == (4, 4) and store.write


@pytest.mark.parametrize("pitch, turns", [(32, 32), (33, 1), (34, 2), (40, 8)])
def test_bank_conflicts_are_counted(pitch, turns):
    source = """
extern "C" __global__ void column(float* y) {
  __shared__ float tile[32 * PITCH];
  tile[threadIdx.x * PITCH] = threadIdx.x;
  __syncthreads();
  y[threadIdx.x] = tile[threadIdx.x * PITCH];
}
"""
    module = Module(source.replace("PITCH", str(pitch)))
    y = np.zeros(32, np.float32)
    module.launch("column", (1,), (32,), [y], flags=CHECK | TRAFFIC)
    shared = [entry for entry in module.traffic() if entry.shared]
    assert [(entry.turns, entry.least) for entry in shared] == [(turns, 1)] * 2
    assert (y == np.arange(32)).all()


@pytest.mark.parametrize("dtype", ["float16", "int8", "int64", "float64"])
def test_shadows_fit_elements_of_each_size(dtype):
    kind = {"float16": "short", "int8": "signed char", "int64": "long long"}
    source = """
extern "C" __global__ void reverse(TYPE* x, int n) {
  const int i = threadIdx.x, j = n - 1 - i;
  const TYPE a = x[i], b = x[j];
  x[i] = b;
  x[j] = a;
}
""".replace("TYPE", kind.get(dtype, "double"))
    x = np.arange(100).astype(dtype)
    Module(source).launch("reverse", (1,), (50,), [x, np.int32(100)])
    assert (x == np.arange(100)[::-1].astype(dtype)).all()
    with pytest.raises(EmulatorError, match="race"):
        Module(source).launch("reverse", (1,), (100,), [x, np.int32(100)])


@pytest.mark.parametrize(
    "given, message",
    [
        (lambda x, y: [x, y], "takes 3 arguments; it was given 2"),
        (lambda x, y: [x, y, 4096], "argument 2 is int; .* NumPy scalar of 4 bytes"),
        (lambda x, y: [x, y, np.int64(4)], "argument 2 is int64 of int64"),
        (lambda x, y: [np.float32(1), y, np.int32(4)], "argument 0 .* a NumPy array"),
        (lambda x, y: [x, y, x], "argument 2 is ndarray of float32"),
    ],
)
def test_arguments_have_to_fit(checked, given, message):
    x, y = np.zeros(4096, np.float32), np.zeros(4096, np.float32)
    with pytest.raises(EmulatorError, match=message):
        checked.launch("selu", (4,), (256,), given(x, y))


@pytest.mark.parametrize(
    "grid, block",
    [
        ((0,), (256,)),
        ((1,), (0,)),
        ((1,), (1025,)),
        ((1, 70000), (1,)),
        ((1,), (1, 1, 65)),
    ],
)
def test_launches_have_to_fit(checked, grid, block):
    x, y = np.zeros(4096, np.float32), np.zeros(4096, np.float32)
    with pytest.raises(EmulatorError, match="has 1 to"):
        checked.launch("selu", grid, block, [x, y, np.int32(4096)])


def test_shared_memory_has_a_limit():
    source = """
extern "C" __global__ void large(float* y) {
  __shared__ float tile[13000];
  tile[threadIdx.x] = 1;
  __syncthreads();
  y[threadIdx.x] = tile[threadIdx.x];
}
"""
    with pytest.raises(EmulatorError, match="more shared memory than 48 KiB"):
        Module(source).launch("large", (1,), (32,), [np.zeros(32, np.float32)])
    halves = source.replace("13000", "6500")
    texts = [halves.replace("large", name) for name in ("one", "other", "large")]
    for name in ("one", "other", "large"):  # each has 48 KiB of its own
        y = np.zeros(32, np.float32)
        Module("\n".join(texts)).launch(name, (1,), (32,), [y])
        assert y.tolist() == [1] * 32


def test_a_text_that_is_no_kernel_is_refused():
    with pytest.raises(EmulatorError, match="refuses this"):
        Module('extern "C" __global__ void f(float* y) { y[0] = z; }')
    with pytest.raises(EmulatorError, match="There is no kernel 'g'"):
        Module('extern "C" __global__ void f(float* y) { y[0] = 1; }').sizes("g")


def test_a_compiler_that_is_missing_is_named(monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert not emulator.is_there()
    with pytest.raises(EmulatorError, match="no-such-compiler, which is not installed"):
        emulator.compiler()


def test_a_range_of_blocks_runs_alone(checked):
    case = CASES["count"]
    arguments, bins = case.arguments()
    checked.launch("count", case.grid, case.block, arguments, blocks=(1, 3))
    np.testing.assert_array_equal(bins, np.bincount(case.given[0][128:384]))


def test_subnormal_numbers_are_flushed_on_request():
    source = """
extern "C" __global__ void halve(float* y) { y[0] = y[0] / 2; }
"""
    least = np.finfo(np.float32).tiny
    for flags, expected in [(CHECK, least / 2), (CHECK | emulator.FLUSH, 0)]:
        y = np.array([least])
        Module(source).launch("halve", (1,), (1,), [y], flags=flags)
        assert y[0] == expected


@pytest.mark.parametrize("checks", [True, False])
def test_an_int_has_32_bits_and_wraps(checks):
    source = """
extern "C" __global__ void next(int* y) { y[1] = y[0] + 1 > y[0]; y[2] = y[0] + 1; }
"""
    y = np.array([2**31 - 1, 7, 7], np.int32)
    Module(source, checks).launch("next", (1,), (1,), [y])
    assert y.tolist() == [2**31 - 1, 0, -(2**31)]


def test_work_is_not_lost_while_another_thread_waits():
    card, done = EmulatedCuPy(memory=2**16), []
    stream, waiting = card.cuda.Stream(non_blocking=True), []

    def make():
        waiting.append(Thread(target=stream.synchronize))
        waiting[0].start()
        waiting[0].join(0.05)
        return lambda: done.append("work")

    stream.add(make)
    waiting[0].join()
    stream.synchronize()
    assert done == ["work"]
