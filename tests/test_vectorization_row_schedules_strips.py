"""The functions of folds in strips: around the lengths of strips, and by threads."""

from unittest.mock import patch

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax.fusion.fusion_pass import fuse
from minijax.kernels.checker import NestError, check_nest
from minijax.kernels.loop_nests import print_nest
from minijax.kernels.lowering import lower
from minijax.llvm.targets import forced_target
from minijax.vectorization import row_schedules as strips
from minijax.vectorization.row_schedules import STRIP_LENGTH, strip_mine
from minijax.vectorization.schedules import SCHEDULE_PASSES, schedule_nest
from minijax.vectorization.vector_functions import walk_nest
from tests import annotations
from tests.processors import runnable_kinds


def layer(x, w, b):
    """Functions of sums of products, along the last axis of both operands."""
    return jnp.tanh((x[:, None] * w).sum(2) + b)


def several(x, w, b):
    """Two folds of each row, and three results."""
    y = (x[:, None] * w).sum(2)
    return jnp.exp(-y) + (x * x).sum(1, keepdims=True), y.max(1), jnp.tanh(x.max(1))


def operands(rows, columns, terms):
    """Random arrays of the sizes of a layer."""
    rng = np.random.default_rng(rows)
    shapes = (rows, terms), (columns, terms), (columns,)
    return [rng.normal(size=shape).astype("float32") / 4 for shape in shapes]


def kernel_of(f, *args):
    """The kernel of a function that becomes one."""
    [step] = fuse(lower(minijax.make_jaxpr(f)(*args))).steps
    return step.kernel


def strips_in(steps):
    """The loops of a nest that are done in strips."""
    return [step for step in walk_nest(steps) if getattr(step, "strip", 0)]


SIZES = [(129, 1, 20), (191, 2, 33), (192, 3, 64), (193, 4, 65), (300, 17, 40)]


@pytest.mark.parametrize("kind", runnable_kinds())
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_strips_are_what_whole_sweeps_are(sizes, kind):
    x, w, b = operands(*sizes)
    x = x[:, ::-1]
    for f in (layer, several):
        with (
            patch.object(strips, "MIN_STRIP_MINED_ELEMENTS", 1),
            minijax.config.override("minijax_cpu", kind),
        ):
            ours = minijax.jit(lambda *xs, f=f: f(*xs), backend="cpu")(x, w, b)
        wanted = minijax.jit(f, backend="kernels")(x, w, b)
        for found, right in zip(*map(minijax.tree_util.tree_leaves, (ours, wanted))):
            assert np.allclose(found, right, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("rows", [129, 200, 256, 321])
def test_threads_share_strips(rows):
    """Three threads, each of them a few strips of sixteen rows."""
    x, w, b = operands(rows, 3, 50)
    for f in (layer, several):
        jitted = minijax.jit(f, backend="cpu, recorded")
        annotations.Recorded.met = set()
        ours, wanted = jitted(x, w, b), f(*map(jnp.asarray, (x, w, b)))
        assert {"strip", "parallel"} <= annotations.Recorded.met
        for found, right in zip(*map(minijax.tree_util.tree_leaves, (ours, wanted))):
            assert np.allclose(found, right, rtol=1e-4, atol=1e-5)


def test_where_there_are_strips():
    target = forced_target("avx2")
    large = kernel_of(layer, *operands(1000, 3, 50))
    [loop] = strips_in(schedule_nest(large, target))
    assert loop.strip == STRIP_LENGTH and len(loop.body) == 2
    assert loop.body[1].lanes == 8  # the second sweep has vectors of rows
    for small in (operands(1000, 3, 20), operands(100, 30, 60)):
        assert not strips_in(schedule_nest(kernel_of(layer, *small), target))
    plain = kernel_of(
        lambda x, w, b: (x[:, None] * w).sum(2) + b, *operands(1000, 3, 50)
    )
    assert not strips_in(schedule_nest(plain, target))  # it has no function


def test_they_are_printed_and_checked():
    kernel = kernel_of(layer, *operands(1000, 3, 50))
    steps = check_nest(kernel, schedule_nest(kernel, forced_target("avx2")))
    text = print_nest(kernel, steps)
    assert "64 a strip" in text and "rowstore v" in text and "rowload v" in text
    [loop] = strips_in(steps)
    serial = loop._replace(kind="serial", count=0)
    for wrong in (loop._replace(body=loop.body[1:]), serial):
        changed = [wrong if step is loop else step for step in steps]
        with pytest.raises(NestError):
            check_nest(kernel, changed)
    others = [*loop.body, *loop.body[1].body]
    with pytest.raises(NestError, match="strips"):
        check_nest(kernel, [loop._replace(body=others)])
    assert strip_mine in SCHEDULE_PASSES
