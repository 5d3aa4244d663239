"""The greedy fuser: how many kernels are left, and that they compute the same."""

import pytest

import minijax.numpy as jnp
from minijax import enable_x64, grad, lax, make_jaxpr
from minijax.fusion.greedy import fuse_greedily
from minijax.kernels.checker import check_kernel
from minijax.kernels.lowering import LoweredProgram, lower
from minijax.llvm.targets import current_target
from tests import fusion_cases
from tests.fusion_cases import FusedProgram
from tests.fusion_traffic import loss
from tests.test_fusion_fusion_pass import (
    LARGE,
    Twice,
    X,
    adam,
    gaps,
    pieces,
    selu,
    softmax,
    tricky,
)


class GreedyProgram(FusedProgram):
    """Interprets the checked kernels that pasting leaves."""

    def lower(self, closed):
        """The fused program."""
        return fuse_greedily(lower(closed))


@pytest.mark.parametrize(
    "f, args, count",
    [
        (lambda x: x, [X], 0),
        (selu, [X], 1),
        (lambda x: selu(x).T, [X], 1),
        (lambda x: selu(x.T).reshape(12)[::-1] + 1, [X], 1),
        (softmax, [LARGE], 1),
        (softmax, [jnp.ones((2, 40_000))], 3),
        (lambda x: jnp.exp(x).sum(1), [LARGE], 1),
        (lambda x: jnp.exp(x).sum(0), [LARGE], 1),
        (lambda x: x - x.sum(0), [X], 2),
        (lambda x: (x.sum(0), x.sum(1)), [X], 2),
        (lambda x, b: x + jnp.exp(b), [X, X[0]], 2),
        (adam, [LARGE, LARGE], 1),
    ],
)
def test_numbers_of_kernels(f, args, count):
    program = fuse_greedily(lower(make_jaxpr(f)(*args)))
    for kernel in program.kernels.values():
        check_kernel(kernel)
    assert len(program.steps) == count


def test_loss_and_its_gradient_lose_kernels():
    args = jnp.ones((4, 5)), X, jnp.ones((3, 5))
    for f, count in ((loss, 5), (grad(loss), 12)):
        program = lower(make_jaxpr(f)(*args))
        assert len(fuse_greedily(program).steps) <= len(program.steps) / 2, count


@pytest.mark.parametrize("dtype, most", [("float32", 150), ("float64", 300)])
def test_the_target_says_how_many_bytes_a_row_may_have(dtype, most):
    with enable_x64():
        program = lower(make_jaxpr(softmax)(LARGE.astype(dtype)))
    for near, count in ((most, 1), (most - 1, 3)):
        target = current_target()._replace(cache_elements=near)
        assert len(fuse_greedily(program, target).steps) == count


def sought_backwards(x):
    """An array that one reader walks forwards; another one seeks in it backwards."""
    y = x.reshape(12) + 1.0
    return lax.argmax(y[::-1], 0, "int32"), jnp.sign(y)


def one_for_all(x):
    """A whole array, and one that repeats one of its elements."""
    y = x.reshape(12) * 2.0
    return y, jnp.broadcast_to(y[1], (12,))


@pytest.mark.parametrize(
    "f", [pieces, gaps, tricky, softmax, selu, sought_backwards, one_for_all]
)
def test_results(f, monkeypatch):
    monkeypatch.setattr(fusion_cases, "FusedProgram", GreedyProgram)
    wrong, _ = fusion_cases.compare(make_jaxpr(f)(X), [X])
    assert not wrong, wrong[0]


def test_random_programs(monkeypatch):
    monkeypatch.setattr(fusion_cases, "FusedProgram", GreedyProgram)
    for program in fusion_cases.random_programs(5, 60):
        wrong, _ = fusion_cases.compare(*program)
        assert not wrong, f"{program[0]}\n{wrong[0]}"


def test_programs_within_steps():
    inner = lower(make_jaxpr(selu)(X))
    [step] = fuse_greedily(LoweredProgram([], [], [], [Twice(inner)])).steps
    assert len(inner.steps) == 6 and len(step.program.steps) == 1
