"""Kernels in several launches do what one does, and fill a card."""

import itertools

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import lax, make_jaxpr
from minijax.fusion.fusion_pass import fuse
from minijax.gpu import schedules as parts
from minijax.gpu.schedules import choose_launch, split_count, split_folds
from minijax.kernels.builder import Buffer
from minijax.kernels.checker import check_kernel
from minijax.kernels.ir import Affine, Parameter, Store
from minijax.kernels.loop_nests import Kernel, backward_slice, fold_node, interpret
from minijax.kernels.lowering import Launch, lower
from minijax.threads.split_reductions import (
    assemble_kernel,
    final_fold_kernel,
    partial_fold_kernel,
    row_strides,
    split_of_folds,
    two_stage_fold,
)
from minijax_book import emulator
from tests import cuda_cases
from tests.cuda_cases import CardChance, met_with
from tests.kernel_cases import Chance, random_kernels

needs_emulator = pytest.mark.skipif(not emulator.is_there(), reason="no C++ compiler")


def launches_of(f, *args):
    return fuse(lower(make_jaxpr(f)(*args))).steps


def step_of(kernel):
    """A launch of a kernel, with a buffer for each parameter."""
    return Launch(kernel, [Buffer(*parameter) for parameter in kernel.parameters])


def met_in_parts(step, steps, numbers):
    """What the kernels of some steps meet; the last memory is as the one step's."""
    memory = {b: numbers[b.name].copy() for b in step.buffers}
    wanted, met = {b.name: a.copy() for b, a in memory.items()}, []
    with np.errstate(all="ignore"):
        names = dict(zip([b.name for b in step.buffers], step.kernel.parameters))
        interpret(step.kernel, {names[n].name: wanted[n] for n in wanted})
        for each in steps:
            check_kernel(each.kernel)
            for b in each.buffers:
                memory.setdefault(b, np.zeros(b.size, b.dtype))
            pairs = [*zip(each.kernel.parameters, each.buffers)]
            met.append(met_with(each.kernel, {p.name: memory[b] for p, b in pairs}))
            interpret(each.kernel, {p.name: memory[b] for p, b in pairs})
    for b in step.buffers:
        close = np.allclose(
            memory[b].astype("float64"), wanted[b.name].astype("float64"), 1e-3, 1e-2,
            equal_nan=True,
        )  # fmt: skip
        assert close, f"{step.kernel}\n{memory[b]}\n{wanted[b.name]}"
    return met


def numbers_for(step):
    rng = np.random.default_rng(0)
    return {b.name: rng.integers(-3, 4, b.size).astype(b.dtype) for b in step.buffers}


FUNCTIONS = {
    "a sum": (lambda x: x.sum(), (9000,), 2),
    "a prime number of them": (lambda x: (x * x).sum(), (9001,), 2),
    "a mean": (lambda x: jnp.exp(-x * x).mean() + 1, (9001,), 2),
    "maxima": (lambda x: jnp.maximum(x, -1).max(), (90, 101), 2),
    "columns": (lambda x: x.sum(axis=0), (4001, 5), 2),
    "any": (lambda x: (x > 2).any(), (9001,), 2),
    "padded": (lambda x: jnp.pad(x, 60).sum(), (9001,), 2),
    "beside": (lambda x: ((x * x).sum(), x * 2), (9001,), 2),
    "totals": (jnp.cumsum, (9001,), 3),
    "products, backwards": (lambda x: lax.cumprod(x, reverse=True), (9001,), 3),
    "totals of columns": (lambda x: jnp.cumsum(x, axis=0), (4001, 5), 3),
    "totals of rows": (lambda x: jnp.cumsum(x, axis=1), (3, 4001), 3),
    "maxima so far": (lax.cummax, (8192,), 3),
}


@needs_emulator
@pytest.mark.parametrize("name", FUNCTIONS)
def test_parts_do_what_the_whole_does(name):
    f, shape, count = FUNCTIONS[name]
    [step] = launches_of(f, jnp.zeros(shape))
    steps = split_folds(step)
    assert len(steps) == count
    met = met_in_parts(step, steps, numbers_for(step))
    assert not cuda_cases.differences(met, "shape")
    for first in steps[: count - 2 or 1]:
        assert choose_launch(first.kernel).blocks(first.kernel) > 1


ALONE = {
    "short": (lambda x: x.sum(), (1500,)),
    "many rows": (lambda x: x.sum(axis=1), (6000, 3000)),
    "each": (lambda x: x * 2, (9001,)),
    "a place": (lambda x: x.argmax(), (9001,)),
    "none": (lambda x: x.sum(), (0,)),
    "totals of none": (jnp.cumsum, (0,)),
    "short totals": (jnp.cumsum, (1500,)),
}


@pytest.mark.parametrize("name", ALONE)
def test_what_stays_whole(name):
    f, shape = ALONE[name]
    for step in launches_of(f, jnp.zeros(shape)):
        assert split_folds(step) == [step]


@pytest.mark.parametrize("size", [2048, 4096, 9001, 10**6, 10**6 + 3, 10**8])
@pytest.mark.parametrize("threads", [256, 1024, 7 * 1024, 100_000, 2**18])
def test_parts_are_neither_many_nor_short(size, threads):
    count = split_count(size, threads, 1024)
    length = 32 * -(-size // count // 32)
    assert 1 <= count <= -(-(2**19) // threads)
    assert count * length >= size
    assert count == 1 or size / count >= 990


def lean(kernel):
    """The kernel without nodes that nothing needs."""
    kept = backward_slice([x for store in kernel.stores for x in store.args])
    nodes = [node for node in kernel.nodes if node in kept]
    return assemble_kernel(kernel.name, kernel.sizes, nodes, kernel.stores)


def folded(kernel, how):
    """A kernel that stores a fold of what another one stores, along its last axis."""
    [store] = kernel.stores
    if not store.node.level or 0 in kernel.sizes:
        return None
    end = fold_node(how, store.node.level[-1:], store.node)
    strides, size = row_strides(kernel, end)
    out = Parameter("folded", end.dtype, size)
    stores = [Store(out, Affine(0, tuple(strides)), end)]
    sizes = [n if k in store.node.level else 1 for k, n in enumerate(kernel.sizes)]
    return lean(Kernel("folded", (*sizes,), (), (*kernel.nodes, end), (*stores,)))


def test_random_folds_in_uneven_parts():
    found = 0
    drawn = [*random_kernels(4, 400, Chance), *random_kernels(4, 400, CardChance)]
    for (kernel, memory), count in itertools.product(drawn, (2, 3, 5)):
        kernel = folded(kernel, "max" if count == 2 else "min")
        wishes = {"counts": [count], "room": 2**20, "uneven": True}
        cut = kernel and kernel.nodes and split_of_folds(kernel, **wishes)
        if cut:
            found += 1
            pair = partial_fold_kernel(kernel, cut), final_fold_kernel(kernel, cut)
            left = cut.partial_nodes.values()
            new = [*left, *[store.parameter for store in kernel.stores]]
            zeros = {x.name: np.zeros(x.size, x.dtype) for x in new}
            assert_alike(kernel, pair, memory | zeros)
    assert found > 50


def test_random_totals_in_parts(monkeypatch):
    found = 0
    for count in (2, 3):
        monkeypatch.setattr(parts, "split_count", lambda *_, n=count: n)
        for kernel, memory in random_kernels(9, 600, CardChance):
            step = step_of(lean(kernel))
            if any(node.op == "running" for node in step.kernel.nodes):
                steps = split_folds(step)
                found += len(steps) > 1
                met_in_parts(step, steps, memory)
    assert found > 20


def assert_alike(kernel, kernels, memory):
    wanted, ours = ({k: x.copy() for k, x in memory.items()} for _ in range(2))
    with np.errstate(all="ignore"):
        interpret(kernel, wanted)
        for each in kernels:
            interpret(check_kernel(each), ours)
    for parameter in kernel.parameters:
        a, b = (x[parameter.name].astype("float64") for x in (ours, wanted))
        largest = np.abs(b[np.isfinite(b)]).max(initial=1)
        assert np.allclose(a, b, 1e-3, 1e-3 * largest, equal_nan=True), f"{kernel}"


def test_other_counts_and_other_room():
    [step] = launches_of(lambda x: x.sum(axis=0), jnp.zeros((64, 1000)))
    assert two_stage_fold(step) is None
    first, _ = two_stage_fold(step, counts=[4], room=2**14)
    assert first.kernel.sizes == (4, 1000, 16)
    first, rest, last = two_stage_fold(step, counts=[5], room=2**20)
    assert [k.kernel.sizes[-1] for k in (first, rest, last)] == [12, 4, 6]
    first, _ = two_stage_fold(step, counts=[3], room=2**20, uneven=True)
    assert first.kernel.sizes == (3, 1000, 32)
