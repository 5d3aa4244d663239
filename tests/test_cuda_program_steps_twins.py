"""Independent kernels of the same loops are one launch; others stay where they are."""

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import jit, make_jaxpr
from minijax.cuda.program_steps import MAX_FUSED_NODES, horizontal_fusion
from minijax.fusion.fusion_pass import fuse
from minijax.kernels.lowering import lower
from minijax_book import emulator

X, Y = np.random.default_rng(5).standard_normal((2, 50, 40), np.float32)


def steps_of(f, *args):
    program = fuse(lower(make_jaxpr(f)(*args)))
    return len(program.steps), len(horizontal_fusion(program).steps)


def long(x):
    for _ in range(MAX_FUSED_NODES // 2):
        x = jnp.sin(x)
    return x.sum(0)


@pytest.mark.parametrize(
    ("f", "before", "after"),
    [
        (lambda x, y: (x.sum(0), jnp.exp(y).max(0)), 2, 1),
        (lambda x, y: (x.sum(0), jnp.exp(y).max(1)), 2, 2),  # other loops
        (lambda x, y: (x.sum(0), y[:20].sum(0)), 2, 2),  # other sizes
        (lambda x, y: jnp.sort(x.sum(0)) + y.sum(0), None, None),
        (lambda x, y: (long(x), long(y)), 2, 2),  # too much for one
        (lambda x, y: (x.sum(0), y.sum(0), (x * y).sum(0), x.T @ y), None, None),
    ],
)
def test_twins_are_one_launch(f, before, after):
    found = steps_of(f, X, Y)
    assert found[1] <= found[0]
    if before:
        assert found == (before, after)


def test_what_waits_for_the_other_stays_behind_it():
    f = lambda x: (x.sum(1), jnp.cumsum(jnp.sort(x.sum(1)))[0] + x.sum(1))  # noqa: E731
    program = horizontal_fusion(fuse(lower(make_jaxpr(f)(X))))
    written = {*program.inputs} | {buffer for buffer, _ in program.constants}
    for step in program.steps:
        assert written >= {*step.reads}
        written |= {*step.writes}


@pytest.mark.skipif(not emulator.is_there(), reason="no C++ compiler here")
def test_results_are_those_of_the_host(gpu):
    def f(x, y):
        a, b = x.sum(0), jnp.tanh(y).max(0)
        c = (x - a).std(0)
        return a, b, c, (y * b).min(0), x + 1, y * 2, (x @ y.T).sum(0)

    far = minijax.device_put((X, Y), gpu)
    for ours, theirs in zip(jit(f)(*far), f(jnp.asarray(X), jnp.asarray(Y))):
        np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), 1e-4, 1e-4)
