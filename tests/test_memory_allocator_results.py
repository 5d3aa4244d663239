"""Memory that is used again, and memory that must not be."""

import gc
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import clear_caches
from minijax.arrays.array import ArrayImpl, ShapedArray
from minijax.arrays.dtypes import config
from minijax.memory import allocator as result_memory
from minijax.memory.allocator import (
    BlockPool,
    HeapBlock,
    HugePageBlock,
    allocate_block,
    donated_buffer,
    is_sole_owner,
    pooled_empty,
    size_class,
)

FLOAT = np.dtype("float32")


@pytest.fixture
def pool(monkeypatch):
    """A pool of this test's own."""
    mine = BlockPool()
    monkeypatch.setattr(result_memory, "pool", mine)
    return mine


def array(shape=(8,)):
    return ArrayImpl(pooled_empty(shape, FLOAT), ShapedArray(shape, FLOAT))


def address(buffer):
    return buffer.ctypes.data


@pytest.mark.parametrize("size", [0, 1, 64, 1000, 5_000_000])
def test_aligned(size):
    memory = allocate_block(size)
    assert isinstance(
        memory, HugePageBlock if size > 4_000_000 and os.name == "posix" else HeapBlock
    )
    buffer = pooled_empty((size,), np.dtype("uint8"))
    assert address(buffer) % 64 == 0 and buffer.flags.c_contiguous
    buffer[...] = 7
    assert buffer.sum(dtype=int) == 7 * size


def test_size_classes_waste_little():
    for size in [0, 1, 64, 65, 1000, 123_456, 10**9]:
        assert max(size, 64) <= size_class(size) <= max(1.13 * size, size + 64)
    assert len({size_class(n) for n in range(2**20)}) < 200


def test_without_large_pages(monkeypatch):
    monkeypatch.delattr(result_memory.mmap, "MAP_PRIVATE")
    assert isinstance(allocate_block(5_000_000), HeapBlock)


def test_an_advice_that_is_not_understood(monkeypatch):
    monkeypatch.setattr(result_memory.mmap, "MADV_HUGEPAGE", 12345, raising=False)
    assert isinstance(allocate_block(5_000_000), HugePageBlock)


def test_memory_is_used_again(pool):
    x = array()
    first = address(x._buffer)
    del x
    assert address(array()._buffer) == first


HOLDERS = {
    "the array": lambda x: x,
    "its buffer": lambda x: x._buffer,
    "numpy": np.asarray,
    "a view of a view": lambda x: np.asarray(x)[2:].reshape(2, 3).T,
    "a slice": lambda x: x[2:5],
    "a shape": lambda x: x.reshape(2, 4),
    "dlpack": lambda x: np.from_dlpack(x),
    "a memory view": lambda x: memoryview(np.asarray(x))[3:],
    "an iterator": lambda x: np.nditer(np.asarray(x)),
    "a list": lambda x: [{"deep": np.asarray(x)}],
}


@pytest.mark.parametrize("name", HOLDERS)
def test_what_somebody_holds_is_not_used_again(name, pool):
    x = array()
    x._buffer.flags.writeable = True
    x._buffer[:] = np.arange(8)
    x._buffer.flags.writeable = False
    holder, before = HOLDERS[name](x), address(x._buffer)
    shares = name not in ("a slice", "a shape")  # these may be copies
    del x
    for _ in range(5):
        other = pooled_empty((8,), FLOAT)
        assert not shares or address(other) != before
        other[:] = -1
        if isinstance(holder, ArrayImpl):
            assert -1 not in np.asarray(holder)
    if name == "a memory view":
        assert list(holder) == [3, 4, 5, 6, 7]
    del holder
    gc.collect()


def test_a_cycle_holds_as_well(pool):
    x = array()
    before, cycle = address(x._buffer), {"array": x}
    cycle["self"] = cycle
    del x, cycle
    gc.disable()
    try:
        assert address(pooled_empty((8,), FLOAT)) != before
    finally:
        gc.enable()


def test_what_is_kept_is_bounded():
    pool = BlockPool(limit=1000, each=4)
    for _ in range(3):
        held = [pool.take(64) for _ in range(9)]
        held += [pool.take(200), pool.take(900), pool.take(5000)]
        assert pool.total <= 1000 and max(map(len, pool.kept.values())) <= 4
    del held


def test_large_blocks_are_kept_once_they_were_missed():
    pool = BlockPool(limit=8000)
    held = [pool.take(2000) for _ in range(4)]
    assert pool.total == 0
    del held[1:]
    for _ in range(5):  # what one call drops is there for the next
        pool.take(2000)
    assert pool.total == size_class(2000)
    first = pool.take(2000)
    assert first is not pool.take(2000)  # somebody has it


def test_results_in_turn_have_two_blocks():
    pool, found = BlockPool(limit=8000), []
    for _ in range(12):
        result = pool.take(2000)  # the last one is held until here
        found.append(id(result))
    assert len({*found[-6:]}) == 2 and pool.total == 2 * size_class(2000)


def test_what_is_kept_can_be_given_back():
    pool = BlockPool(limit=2**20)
    held = pool.take(1000)
    pool.take(5000)
    pool.clear()
    assert pool.total == 0 and len(held) >= 1000
    pool.take(5000)
    pool.resize([100, 200])
    assert pool.total == 0 and pool.limit == 200


def test_the_switch():
    before = config.minijax_kept_memory
    try:
        config.update("minijax_kept_memory", "0")
        assert result_memory.pool.limit == result_memory.pool.total == 0
        with config.override("minijax_kept_memory", 5000):
            assert result_memory.pool.limit == 5000
        assert config.minijax_kept_memory == 0  # who reads it is told
        assert result_memory.pool.limit == 0
        for value in (-1, "a lot", 1.5):
            with pytest.raises(ValueError, match="minijax_kept_memory"):
                config.update("minijax_kept_memory", value)
    finally:
        config.update("minijax_kept_memory", before)


def test_clearing_caches_gives_memory_back():
    array()
    assert result_memory.pool.total > 0
    clear_caches()
    assert result_memory.pool.total == 0


def test_a_pool_that_finds_no_memory_gives_its_own_back(monkeypatch, pool):
    def scarce(size):
        if pool.kept:
            raise OSError(12, "Cannot allocate memory")
        return allocate_block(size)

    array()
    assert pool.kept
    monkeypatch.setattr(result_memory, "allocate_block", scarce)
    assert array((1000,)).shape == (1000,)


RESIDENT = """
import resource
import minijax.numpy as jnp
from minijax import jit

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()

f, x = jit(lambda x: x + 1), jnp.ones(5_000_000, "float32")
f(x)
before = resident()
held = [f(x) for _ in range(8)]
full = resident()
del held
print((full - before) // 10**6, (resident() - before) // 10**6)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="no /proc")
def test_dropped_results_go_back_to_the_system():
    output = subprocess.check_output([sys.executable, "-c", RESIDENT], text=True)
    full, rest = map(int, output.split())
    assert full > 100 and rest < 60


def test_threads(pool):
    wrong = []

    def work(mark):
        for _ in range(300):
            buffers = [pooled_empty((16,), FLOAT) for _ in range(3)]
            for buffer in buffers:
                buffer[:] = mark
            mark += 0.5
            if any((buffer != mark - 0.5).any() for buffer in buffers):
                wrong.append(mark)

    threads = [threading.Thread(target=work, args=(1000.0 * k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_has_numbers_of_its_own():
    text = """
import os
import numpy as np
from minijax.memory.allocator import pooled_empty
x = pooled_empty((2_000_000,), np.dtype("float32"))
x[:] = 1
child = os.fork()
if child == 0:
    x[:] = 2
    os._exit(0)
os.waitpid(child, 0)
print(x.min(), x.max())
"""
    found = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert found.stdout.split() == ["1.0", "1.0"], found.stderr


def test_exclusive():
    x = array()
    assert is_sole_owner(x)
    for name, look in HOLDERS.items():
        if name not in ("the array", "a list"):
            holder = look(x)
            assert is_sole_owner(x) == (
                name in ("a slice",) and holder._buffer.base is None
            ), name
            del holder
    gc.collect()
    assert is_sole_owner(x)
    shared = ArrayImpl(x._buffer, x.aval)
    assert not is_sole_owner(x) and not is_sole_owner(shared)


def test_exclusive_but_not_ours():
    ours = ArrayImpl(np.ones(8, FLOAT), ShapedArray((8,), FLOAT))
    assert is_sole_owner(ours)
    whole = np.arange(8, dtype=FLOAT)
    assert not is_sole_owner(ArrayImpl(whole, ShapedArray((8,), FLOAT)))  # we hold it
    assert not is_sole_owner(ArrayImpl(whole[2:], ShapedArray((6,), FLOAT)))
    column = np.ones((4, 4), FLOAT).T
    assert not is_sole_owner(ArrayImpl(column, ShapedArray((4, 4), FLOAT)))
    assert not is_sole_owner(
        ArrayImpl(np.frombuffer(b"abcd" * 8, FLOAT), ShapedArray((8,), FLOAT))
    )


def test_given():
    x = jnp.arange(3.0) + 0
    buffer = donated_buffer(x)
    assert buffer is x._buffer and buffer.flags.writeable
    view = np.asarray(x)
    del buffer
    assert donated_buffer(x) is not x._buffer and np.array_equal(
        donated_buffer(x), view
    )
    numbers = np.arange(3, dtype=FLOAT)
    assert donated_buffer(numbers) is not numbers and donated_buffer(2.0).shape == ()


def test_a_view_that_is_alone_with_its_owner():
    x = ArrayImpl(np.arange(8, dtype=FLOAT).reshape(2, 4), ShapedArray((2, 4), FLOAT))
    owner = x._buffer.base
    assert not is_sole_owner(x)
    del owner
    assert is_sole_owner(x) and donated_buffer(x).flags.writeable
    copy = np.asarray(x)[:1]
    assert not is_sole_owner(x)
    del copy
    assert is_sole_owner(x)
