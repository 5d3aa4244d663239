"""Sorts on a card: the passes, beside NumPy's stable order."""

import math
from contextlib import suppress

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import jit, lax, make_jaxpr
from minijax.cuda.device import lower_for_gpu
from minijax.cuda.program_steps import TILE, SortPass, sort_launch, sort_passes
from minijax.gpu.cuda_source import PRELUDE
from minijax.kernels.builder import Buffer, contiguous_view
from minijax.kernels.lowering import BufferAllocations, step_kinds
from minijax.sorting.radix_sort import Sort
from minijax_book import emulator
from minijax_book.emulator import EmulatorError, Module

needs_compiler = pytest.mark.skipif(
    not emulator.is_there(), reason="no C++ compiler here"
)
RNG = np.random.default_rng(29)


def sort_of(rows, n, words=("uint32",), operands=("int32",)):
    """A `Sort` of rows with buffers of their own."""
    views = [
        contiguous_view(
            Buffer(f"m{i}", np.dtype(kind), rows * n), np.dtype(kind), (rows, n)
        )
        for i, kind in enumerate([*words, *operands, *operands])
    ]
    cut = len(words), len(words) + len(operands)
    return Sort(*map(tuple, (views[: cut[0]], views[cut[0] : cut[1]], views[cut[1] :])))


@needs_compiler
@pytest.mark.parametrize("dtype", ["int8", "uint16", "float32", "bfloat16"])
@pytest.mark.parametrize("shape", [(1, 2), (5, 7), (3, TILE), (2, TILE + 1), (1, 4100)])
def test_rows_are_sorted_as_on_the_host(shape, dtype, gpu):
    x = jnp.asarray(RNG.integers(-9, 9, shape), dtype)
    far = minijax.device_put(x, gpu)

    @jit
    def f(x):
        return jnp.argsort(x, axis=1), lax.sort((x, -x, x * 0 + 1), num_keys=2)[2]

    for ours, theirs in zip(f(far), f(x)):
        np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))
    assert all(type(s) is not Sort for s in lower_for_gpu(make_jaxpr(f)(x)).walk())


@needs_compiler
def test_signs_of_zero_and_what_is_no_number(gpu):
    x = jnp.array([np.nan, 2, -0.0, 0.0, -np.inf, np.inf, -np.nan, 2, 1], jnp.float32)
    for f in (jnp.sort, lambda x: lax.top_k(x, 3), jnp.median, jnp.unique):
        ours, theirs = f(minijax.device_put(x, gpu)), f(x)
        pairs = zip(minijax.tree.leaves(ours), minijax.tree.leaves(theirs))
        assert all(np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in pairs)


@needs_compiler
def test_operands_of_each_size_go_along(gpu):
    keys = RNG.integers(0, 5, 1500)
    with minijax.enable_x64(True):
        kinds = ["int8", "float16", "int32", "float64", "complex128"]
        xs = [jnp.asarray(np.arange(1500) % 100, kind) for kind in kinds]
        far = minijax.device_put((jnp.asarray(keys), *xs), gpu)
        found = jit(lambda *xs: lax.sort(xs, num_keys=1))(*far)
        order = np.argsort(keys, kind="stable")
        for ours, given in zip(found[1:], xs):
            assert (np.asarray(ours) == np.asarray(given)[order]).all()


@pytest.mark.parametrize("n", [2, TILE, TILE + 1, 5 * TILE, 10**6])
def test_a_launch_for_each_doubling(n):
    passes = sort_passes(sort_of(2, n))
    assert len(passes) == 1 + max(math.ceil(math.log2(n / TILE)), 0)
    for one, following in zip(passes, passes[1:]):
        assert one.after is following.before and one.length == following.width
        assert one.writes == [one.after] and one.after in following.reads
    assert passes[-1].length >= n and passes[-1].writes == [
        x.source for x in passes[0].sort.results
    ]
    assert sort_launch(passes[0]).blocks == 2 * math.ceil(n / TILE)


def test_numpy_does_a_pass_too():
    sort = sort_of(3, 2500)
    keys = RNG.integers(0, 40, (3, 2500)).astype(np.uint32)
    numbers = np.broadcast_to(np.arange(2500, dtype=np.int32), keys.shape)
    memory = BufferAllocations({sort.words[0].source: keys.reshape(-1).view(np.uint8)})
    memory[sort.operands[0].source] = numbers.reshape(-1).copy().view(np.uint8)
    for step in sort_passes(sort):
        assert type(step) is SortPass and str(step).count("runs of") == 1
        assert step_kinds[SortPass].cost(step)
        step_kinds[SortPass].run(None, step)(memory)
        if step.after is not None:
            found = memory[step.after].view(np.int32).reshape(3, -1)
            runs = [
                np.sort(keys[:, k : k + step.length])
                for k in range(0, 2500, step.length)
            ]
            wanted = np.concatenate(runs, axis=1)
            assert (np.take_along_axis(keys, found, 1) == wanted).all()
    places = memory[sort.results[0].source].view(np.int32).reshape(3, -1)
    assert (places == np.argsort(keys, 1, kind="stable")).all()


MUTANTS = {  # of which pass, what is changed in its text, and what it becomes
    "without the barrier in the network": (0, "      __syncthreads();\n", ""),
    "without the first barrier": (0, "+ i;\n  __syncthreads();", "+ i;"),
    "always upwards": (0, " == !(i & size)", ""),
    "a round too few": (0, "step > 0", "step > 1"),
    "without a bound on stores": (0, " && start + i < ", " && start + i <= 1 + "),
    "equals in any order": (1, "    return a < b;\n  }", "    return false;\n  }"),
    "behind the wrong run": (1, "(run ^ 1)", "(run + 1)"),
    "a search that stops early": (1, "low < high)", "low + 1 < high)"),
    "no bound on the other run": (1, "min(start + 1024, 1500LL)", "start + 1024"),
}


@needs_compiler
@pytest.mark.parametrize("name", ["none", *MUTANTS])
def test_mutants_are_caught(name):
    number, old, new = MUTANTS.get(name, (None, "", ""))
    keys = RNG.integers(0, 30, (2, 1500)).astype(np.uint32)
    places = np.broadcast_to(np.arange(1500, dtype=np.int32), keys.shape)
    sort = sort_of(2, 1500)
    given = {sort.words[0].source: keys, sort.operands[0].source: places}
    memory = {x: np.ascontiguousarray(a).reshape(-1).copy() for x, a in given.items()}

    def run():
        for at, step in enumerate(sort_passes(sort)):
            launch = sort_launch(step)
            text = launch.text.replace(old, new) if at == number else launch.text
            assert name == "none" or at != number or text != launch.text
            module = Module(PRELUDE + text)
            for x in launch.buffers:
                memory.setdefault(x, np.zeros(x.size, x.dtype))
            arrays = [memory[x] for x in launch.buffers]
            module.launch(launch.label, (launch.blocks,), (launch.threads,), arrays, 3)
        wanted = np.argsort(keys, 1, kind="stable").reshape(-1)
        return (memory[sort.results[0].source] == wanted).all()

    if name == "none":
        assert run()
        return
    with suppress(EmulatorError):
        assert not run(), "nothing was noticed"
