"""How many launches compiled programs make on a card, counted there; and what comes."""

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import grad, jit
from minijax.cuda.device import lower_for_gpu
from minijax.cuda.program_steps import BlockLoop, is_row_aligned, launches_in
from minijax_book import emulator
from tests import cuda_programs
from tests.commands import LONG
from tests.cuda_compiles import followed, layer_norm, softmax

pytestmark = pytest.mark.skipif(not emulator.is_there(), reason="no C++ compiler here")
RNG = np.random.default_rng(13)


def drawn(*shape):
    return RNG.standard_normal(shape, np.float32)


def loss(params, x, y):
    (w, b), (v, c) = params
    logits = jnp.maximum(x @ w + b, 0) @ v + c
    logits = logits - logits.max(1, keepdims=True)
    return (y * (jnp.log(jnp.exp(logits).sum(1, keepdims=True)) - logits)).sum()


def train(params, x, y):
    grads = grad(loss)(params, x, y)
    return minijax.tree.map(lambda w, g: w - 0.1 * g, params, grads)


def lifted(*args):
    return (layer_norm(*args) ** 3).sum()


NET = [(drawn(64, 128) / 8, drawn(128)), (drawn(128, 10) / 9, drawn(10))]
LABELS = np.eye(10, dtype=np.float32)[RNG.integers(0, 10, 64)]
WIDE, ROW, LONG_ONE = drawn(256, 1024), drawn(1024), drawn(100_003)
TALL = drawn(2000, 40)
CHAIN = abs(drawn(16)), abs(drawn(16, 16)), abs(drawn(1000, 16))
LAUNCHES = {
    "bias and SeLU": (
        lambda x, b: jnp.where(x + b > 0, x + b, jnp.expm1(x + b)), 1, WIDE, ROW,
    ),
    "softmax": (softmax, 1, WIDE),
    "layer norm": (layer_norm, 1, WIDE, ROW, ROW),
    "its gradient": (grad(lifted), 1, WIDE, ROW, ROW),
    "its gradients": (grad(lifted, (0, 1, 2)), 3, WIDE, ROW, ROW),
    "those of many rows": (grad(lifted, (0, 1, 2)), 3, TALL, ROW[:40], ROW[:40]),
    "a sum": (lambda x: x.sum(), 2, LONG_ONE),
    "shares": (lambda x: x / x.sum(), 3, LONG_ONE),
    "totals": (jnp.cumsum, 3, LONG_ONE),
    "a network": (train, 12, NET, drawn(64, 64), LABELS),
    "a chain of 1,000 steps": (followed, 5, *CHAIN),
}  # fmt: skip


@pytest.mark.parametrize("name", LAUNCHES)
def test_programs_make_few_launches(name, machine):
    gpu, cupy = machine
    f, most, *args = LAUNCHES[name]
    expected = minijax.tree.leaves(jit(f)(*args))
    far = minijax.device_put(args, gpu)
    before = cupy.counts["launches"]
    found = minijax.tree.leaves(jit(f)(*far))
    assert cupy.counts["launches"] - before <= most
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, 1e-3, 1e-3 * abs(theirs).max())


@pytest.mark.parametrize("columns", [1, 3, 4, 5, 8])
def test_rows_that_begin_anywhere_are_read_without_vectors(columns, machine):
    def f(h, x):
        def turn(h, row):
            h = h + row.sum() + (row * 2 + 1).max()
            return jnp.sort(h), row * 3

        return minijax.lax.scan(turn, h, x)

    h, x = drawn(5), drawn(7, columns)
    [loop] = [s for s in lower_for_gpu(minijax.make_jaxpr(f)(h, x)).steps if s.programs]
    assert is_row_aligned(loop) == (columns % 4 == 0)
    found = jit(f)(*minijax.device_put((h, x), machine[0]))
    for ours, theirs in zip(found, jit(f)(h, x)):
        np.testing.assert_allclose(ours, theirs, 1e-5)


def test_a_loop_in_a_block_reads_and_writes_what_the_loop_does():
    program = lower_for_gpu(minijax.make_jaxpr(followed)(*CHAIN))
    [step] = [step for step in program.steps if type(step) is BlockLoop]
    loop = step.loop
    assert {*step.reads} == {*loop.reads} and step.writes == [*loop.results, *loop.ys]
    assert not step.programs and str(step).startswith("in one block: ")
    [launch] = [x for x in launches_in(program).values() if x.label[:4] == "loop"]
    assert launch.blocks == 1 and {*launch.buffers} == {*step.reads, *step.writes}


def test_the_corpus_on_a_card():
    wrong, count = cuda_programs.differences(every=2 if LONG else 24)
    assert not wrong and count >= 10


def test_what_is_wrong_in_the_corpus_is_told():
    x = jnp.ones(3)
    assert cuda_programs.compared("a", [x + 1], [x])
    assert not cuda_programs.compared("a", [x], [x])
