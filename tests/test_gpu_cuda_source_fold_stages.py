"""Kernels that fold again what they have folded, in two launches."""

import pytest

import minijax
import minijax.numpy as jnp
from minijax import make_jaxpr
from minijax.fusion.fusion_pass import fuse
from minijax.gpu.cuda_source import multi_stage_fold
from minijax.gpu.schedules import choose_launch, split_folds
from minijax.kernels.lowering import lower
from minijax.llvm.targets import TARGETS
from minijax_book import emulator
from tests import cuda_cases
from tests.test_gpu_schedules_parts import met_in_parts, numbers_for

needs_emulator = pytest.mark.skipif(not emulator.is_there(), reason="no C++ compiler")
A, P = jnp.ones((250, 200)), jnp.ones(200)


def launches_of(f, *args):
    return fuse(lower(make_jaxpr(f)(*args)), TARGETS["gpu"]).steps


FUNCTIONS = {
    "a form": (lambda a, p: (a @ p, (a @ p) @ jnp.ones(250)), A, P),
    "a norm": (lambda a, p: jnp.sqrt(((a @ p) ** 2).sum()), A, P),
    "a test": (lambda a, p: (a @ p).max() > 3, A, P),
    "beside": (lambda a, p: ((a @ p).sum() + p.sum(), p * 2), A, P),
    "columns": (lambda a, p: ((p @ a.T) ** 2).mean(), A, P),
    "a gradient": (lambda a, p: minijax.grad(lambda p: ((a @ p) ** 2).sum())(p), A, P),
}


@needs_emulator
@pytest.mark.parametrize("name", FUNCTIONS)
def test_stages_do_what_the_whole_does(name):
    f, *args = FUNCTIONS[name]
    for step in launches_of(f, *args):
        stages = multi_stage_fold(step)
        if stages:
            met = met_in_parts(step, stages, numbers_for(step))
            assert not cuda_cases.differences(met, "shape")
            first, _ = stages
            assert choose_launch(first.kernel).blocks(first.kernel) > 5
            assert len(split_folds(step)) >= 2
    if name in ("a form", "a norm", "a test"):
        assert any(multi_stage_fold(step) for step in launches_of(f, *args))


STAY = {
    "no fold": (lambda a, p: a * p, A, P),
    "one fold": (lambda a, p: a @ p, A, P),
    "softmax": (lambda a, p: jnp.exp(a - a.max(1, keepdims=True)).sum(1), A, P),
    "little": (lambda a, p: (a[:50, :50] @ p[:50]).sum(), A, P),
}


@pytest.mark.parametrize("name", STAY)
def test_what_stays_whole(name):
    f, *args = STAY[name]
    assert not any(multi_stage_fold(step) for step in launches_of(f, *args))
