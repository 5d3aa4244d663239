"""Streams over long rows, in strips of columns: around strips, vectors and handfuls."""

from unittest.mock import patch

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax.fusion.fusion_pass import fuse
from minijax.kernels.checker import check_nest
from minijax.kernels.ir import Loop
from minijax.kernels.loop_nests import print_nest
from minijax.kernels.lowering import lower
from minijax.llvm.targets import TARGETS, forced_target
from minijax.vectorization import row_schedules as streaming
from minijax.vectorization.row_schedules import (
    MIN_STREAMED_ROWS,
    STRIP_LENGTH,
    Stream,
    strip_width,
)
from minijax.vectorization.schedules import schedule_nest
from minijax.vectorization.vector_functions import walk_nest
from tests import annotations
from tests.commands import turned
from tests.processors import runnable_kinds

KINDS = ["plain", "avx2", "avx512"]


def column_sums(a, b):
    return b.sum(0), (b * b).max(0) - b.min(0)


def products(a, b):
    """Few rows times long ones, with something before and behind the sums."""
    return jnp.tanh((a[:, :, None] * (b + 1)[None]).sum(1) / len(b)) + b[0]


def shortest(a, b):
    return jnp.min(a[:, :, None] + b[None], axis=1)


def with_indices(a, b):
    i, j = jnp.arange(b.shape[0])[:, None], jnp.arange(b.shape[1])[None]
    return jnp.where(i > j, b, i - j).sum(0)


def reversed_rows(a, b):
    return (a[::-1, :, None] * b[None, :, ::-1]).sum(1)


FUNCTIONS = [column_sums, products, shortest, with_indices, reversed_rows]
# Rows side by side, rows that are folded, columns.
SIZES = [
    (1, MIN_STREAMED_ROWS + 1, STRIP_LENGTH + 1),
    (2, 2 * MIN_STREAMED_ROWS, 2 * STRIP_LENGTH - 1), (7, 17, 2 * STRIP_LENGTH),
    (8, 23, 2 * STRIP_LENGTH + 1), (9, 24, 3 * STRIP_LENGTH + 15),
    (17, 40, 3 * STRIP_LENGTH + 17), (3, 1200, STRIP_LENGTH + 16),
]  # fmt: skip


def operands(sizes, dtype="float32"):
    rng, (rows, terms, columns) = np.random.default_rng(sum(sizes)), sizes
    shapes = (rows, terms), (terms, columns)
    return [jnp.array(rng.integers(1, 9, shape), dtype) for shape in shapes]


def small():
    """Caches so small that strips have as few columns as they can."""
    return patch.object(streaming, "far_bytes", lambda target: 2**9)


def nest_of(f, *args):
    with small():
        [step] = fuse(lower(minijax.make_jaxpr(f)(*args))).steps
        return step.kernel, schedule_nest(step.kernel, forced_target("avx512"))


def strips_of_streams(steps):
    return [
        step for step in walk_nest(steps)
        if isinstance(step, Loop) and step.strip and isinstance(step.body[0], Stream)
    ]  # fmt: skip


@pytest.mark.parametrize("sizes, kind", turned(SIZES, runnable_kinds(), 1), ids=str)
def test_strips_are_what_whole_rows_are(sizes, kind):
    a, b = operands(sizes)
    for f in FUNCTIONS:
        with small(), minijax.config.override("minijax_cpu", kind):
            ours = minijax.jit(lambda a, b, f=f: f(a, b), backend="cpu")(a, b)
        wanted = minijax.jit(f, backend="kernels")(a, b)
        for found, right in zip(*map(minijax.tree_util.tree_leaves, (ours, wanted))):
            np.testing.assert_allclose(found, right, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "bfloat16", "float64", "int32"])
def test_dtypes(dtype):
    with minijax.enable_x64():
        a, b = operands((9, 19, 2 * STRIP_LENGTH + 1), dtype)
        for f in (column_sums, shortest, reversed_rows):
            with small():
                ours = minijax.jit(lambda a, b, f=f: f(a, b), backend="cpu")(a, b)
            wanted = minijax.jit(f, backend="kernels")(a, b)
            pairs = zip(*map(minijax.tree_util.tree_leaves, (ours, wanted)))
            for found, right in pairs:
                assert found.dtype == right.dtype
                close = np.asarray(found, float), np.asarray(right, float)
                np.testing.assert_allclose(*close, rtol=1e-2 * (dtype == "bfloat16"))


def test_where_there_are_strips():
    for f, sizes in ((column_sums, (1, 40, 200)), (products, (9, 40, 200))):
        kernel, steps = nest_of(f, *operands(sizes))
        assert strips_of_streams(steps), print_nest(kernel, steps)
        check_nest(kernel, steps)
    few = nest_of(
        shortest, *operands((9, MIN_STREAMED_ROWS, 2000))
    )  # rows are read as ever
    assert not strips_of_streams(few[1])
    narrow = nest_of(shortest, *operands((9, 400, STRIP_LENGTH)))
    assert not strips_of_streams(narrow[1])


def test_what_later_sweeps_take_up_is_kept_whole():
    def softmax(b):
        powers = jnp.exp(b - b.max(0))
        return powers / powers.sum(0)

    b = operands((1, 50, 3 * STRIP_LENGTH + 1))[1] / 9
    with small():
        ours = minijax.jit(softmax, backend="cpu")(b)
    np.testing.assert_allclose(ours, minijax.jit(softmax, backend="kernels")(b), 1e-5)


@pytest.mark.parametrize(
    "columns", [8 * STRIP_LENGTH, 9 * STRIP_LENGTH - 1, 10 * STRIP_LENGTH + 1]
)
def test_threads_share_strips_of_columns(columns):
    a, b = operands((1, 30, columns))
    jitted = minijax.jit(column_sums, backend="cpu, recorded")
    annotations.Recorded.met = set()
    ours, wanted = jitted(a, b), column_sums(a, b)
    assert {"stream", "parallel"} <= annotations.Recorded.met
    for found, right in zip(ours, wanted):
        np.testing.assert_allclose(found, right, rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_running_values_stay_near(kind):
    target, dtype = TARGETS[kind], np.dtype("float32")
    for beside in (1, 2, 3, 8, 1000):
        strip = strip_width(dtype, target, beside)
        assert strip and strip % STRIP_LENGTH == 0
        room = max(streaming.far_bytes(target) // 2, 4 * STRIP_LENGTH * beside)
        assert 4 * strip * beside <= room
