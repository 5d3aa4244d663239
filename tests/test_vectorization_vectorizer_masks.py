"""Loops whose vectors have masks: which ones, and that they leave what others leave."""

import dataclasses

import numpy as np
import pytest

from minijax.kernels.checker import NestError, check_kernel, check_nest
from minijax.kernels.ir import Affine, Loop, Parameter, Store
from minijax.kernels.loop_nests import (
    Kernel,
    constant_node,
    fold_node,
    load_node,
    op_node,
)
from minijax.llvm.codegen import module_ir
from minijax.llvm.targets import TARGETS, host_target, kernel_function
from minijax.vectorization import row_schedules as marks
from minijax.vectorization.schedules import schedule_nest
from minijax.vectorization.vector_functions import is_loop, walk_nest
from tests import kernel_cases
from tests.test_vectorization_schedules_kernels import check
from tests.vector_cases import LongChance

F32, WIDE = np.dtype("float32"), TARGETS["avx512"]


def chain(size, count=70, stride=1, last="mul"):
    """A kernel with a body of so many operations."""
    x = Parameter("x", F32, stride * size)
    node, number = load_node(x, Affine(0, (stride,))), constant_node(0.9, F32)
    nodes = [number, node]
    for _ in range(count):
        nodes.append(op_node("mul", nodes[-1], number))
    if last == "fold":
        nodes.append(fold_node("add", (0,), nodes[-1]))
    elif last != "mul":
        nodes.append(op_node(last, nodes[-1]))
    place = Affine(0, (0,) if last == "fold" else (1,))
    out = Parameter("out", F32, 1 if last == "fold" else size)
    store = Store(out, place, nodes[-1])
    return check_kernel(Kernel("chain", (size,), (x, out), (*nodes,), (store,)))


def masked_loops(kernel, target=WIDE):
    """The loops of a kernel's nest whose vectors have masks."""
    steps = check_nest(kernel, schedule_nest(kernel, target))
    loops = filter(is_loop, walk_nest(steps))
    return [loop for loop in loops if loop.kind == "masked"]


@pytest.mark.parametrize("size", [17, 31, 33, 100, 1009])
def test_a_long_body_with_a_rest_has_masks(size):
    [loop] = masked_loops(chain(size))
    assert loop.lanes == (64 if size > 1000 else 16) and size % 16
    narrow = [masked_loops(chain(size), TARGETS[kind]) for kind in ("plain", "avx2")]
    assert narrow == [[], []]


@pytest.mark.parametrize(
    "kernel",
    [chain(96), chain(16), chain(100, 20), chain(100, stride=2),
     chain(100, last="fold"), chain(100, last="sin"),
     dataclasses.replace(chain(100), sizes=(2**31 + 1,))],
    ids=["no rest", "one vector", "short", "strides", "a fold", "rare", "too many"],
)  # fmt: skip
def test_others_have_none(kernel):
    steps = schedule_nest(kernel, WIDE)
    assert not any(step.kind == "masked" for step in walk_nest(steps) if is_loop(step))


def test_a_body_with_masks_is_written_once(monkeypatch):
    kernel = chain(100, 40, last="tanh")
    once = kernel_function(kernel, "f", WIDE)
    monkeypatch.setattr(marks, "MASK_THRESHOLD", 10**6)
    twice = kernel_function(kernel, "f", WIDE)
    counts = [text.text.count("fmul") for text in (once, twice)]
    assert counts == [40, 80]


def test_random_kernels_have_masks(monkeypatch):
    monkeypatch.setattr(marks, "MASK_THRESHOLD", 0)
    met = kernel_cases.of_random_kernels(19, 60, LongChance)
    found = [kernel for kernel, *_ in met if masked_loops(kernel)]
    assert len(found) >= 10


@pytest.mark.skipif(host_target().vector_bytes < 64, reason="this processor has none")
@pytest.mark.parametrize("seed", ["19", "190"])
def test_random_kernels_leave_the_same_with_masks(seed):
    check("--seed", seed, "--count", "60", "--masks")


@pytest.mark.skipif(host_target().vector_bytes < 64, reason="this processor has none")
def test_kernels_of_programs_leave_the_same_with_masks():
    check("--programs", "--every", "40", "--fused", "--masks")


def test_a_loop_of_a_strip_has_no_masks():
    """Its indices are counted from where the strip begins, and the mask is not."""
    kernel = chain(100)
    *steps, loop = schedule_nest(kernel, WIDE)
    plain = loop._replace(kind="vector")
    strip = Loop(loop.axis, [plain], (), "strip", 32)
    check_nest(kernel, [*steps, strip])
    with pytest.raises(NestError, match="a mask is not enough"):
        check_nest(kernel, [*steps, strip._replace(body=[loop])])


def test_text_is_a_module():
    """What stands in front of the kernel's function is what it needs."""
    text = module_ir([kernel_function(chain(100), "f", WIDE)])
    assert text.count("@llvm.masked.load.v16f32") == 2  # declared, and called once
