"""Loops that one block does in one launch do what their steps do one by one."""

import re

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import lax, make_jaxpr
from minijax.fusion.fusion_pass import fuse
from minijax.gpu.block_kernels import (
    block_launch,
    block_loop_buffers,
    block_size,
    fits_block,
    render_block_loop,
)
from minijax.gpu.cuda_source import PRELUDE
from minijax.kernels.lowering import KernelProgram, lower
from minijax_book import emulator
from minijax_book.emulator import EmulatorError, Module

needs_emulator = pytest.mark.skipif(not emulator.is_there(), reason="no C++ compiler")


class InBlocks(KernelProgram):
    """Runs programs by NumPy, and loops that fit a block in the emulator."""

    edit = staticmethod(str)

    def lower(self, closed):
        self.loops = 0
        return fuse(lower(closed))

    def prepare(self, step):
        if not fits_block(step):
            return super().prepare(step)
        self.loops += 1
        module = Module(self.edit(PRELUDE + render_block_loop(step, "loop")))
        parameters, block = block_loop_buffers(step), (block_size(step),)

        def run(memory):
            given = [memory[buffer] for buffer in parameters]
            module.launch("loop", (1,), block, given, seed=1)

        return run


def run(f, *args, edit=str):
    """Run a function with loops in blocks; compare it, and return how many."""
    program = InBlocks.__new__(InBlocks)
    program.edit = edit
    program.__init__(make_jaxpr(f)(*args))
    wanted = KernelProgram(make_jaxpr(f)(*args))(*args)
    for ours, other in zip(program(*args), wanted, strict=True):
        pair = np.asarray(ours), np.asarray(other)
        if pair[0].dtype.itemsize == 2:
            pair = [x.astype(np.float32) for x in pair]
        np.testing.assert_allclose(*pair, 1e-3, 1e-5)
    return program.loops


def lorenz(s):
    def step(s, _):
        x, y, z = s
        moved = jnp.stack([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z])
        return s + 0.01 * moved, s

    return lax.scan(step, s, None, length=60)


def followed(belief, moves, seen):
    def step(belief, likelihood):
        found = (belief[:, None] * moves).sum(axis=0) * likelihood
        return found / found.sum(), jnp.log(found.sum())

    return lax.scan(step, belief, seen)


def roots(x):
    return lax.while_loop(
        lambda y: (abs(y * y - x) > 1e-3).any(), lambda y: (y + x / y) / 2, x
    )


def two_states(x, n):
    return lax.fori_loop(0, 7, lambda i, s: (s[0] * 2 + s[1][0], s[1] + i), (x, n))


def exchanged(x, y):
    return lax.fori_loop(0, 5, lambda i, s: (s[1] + 1, s[0] * 2), (x, y))


def backwards(x, rows):
    return lax.scan(lambda s, r: (s + r, s.sum()), x, rows, reverse=True)


def never(x):
    return lax.while_loop(lambda y: (y > 100).any(), lambda y: y + 1, x)


def squares(a):
    return lax.fori_loop(0, 4, lambda i, a: jnp.tanh(a.T - a.sum(axis=1)), a)


def halved(x):
    return lax.fori_loop(0, 4, lambda i, x: x - x[::-1], x)


rng = np.random.default_rng(0)


def numbers(*shape):
    return rng.random(shape).astype(np.float32) + 0.1


CASES = {
    "lorenz": (lorenz, numbers(3)),
    "followed": (followed, numbers(16) / 9, numbers(16, 16) / 9, numbers(40, 16)),
    "roots": (roots, numbers(39)),
    "two states": (two_states, numbers(5), np.arange(70, dtype=np.int32)),
    "exchanged": (exchanged, numbers(33), numbers(33)),
    "backwards": (backwards, numbers(40), numbers(9, 40)),
    "never": (never, numbers(3)),
    "squares": (squares, numbers(20, 20)),
    "halves": (halved, numbers(7).astype(jnp.bfloat16)),
    "other halves": (halved, numbers(3).astype(np.float16)),
    "bytes": (halved, np.arange(5, dtype=np.int8)),
    "wide": (halved, numbers(3).astype(np.complex64)),
}


@needs_emulator
@pytest.mark.parametrize("name", CASES)
def test_a_loop_is_one_launch(name):
    f, *args = CASES[name]
    assert run(f, *args) == 1


def test_a_thousand_observations_are_few_launches():
    args = numbers(16), numbers(16, 16), numbers(1000, 16)
    steps = fuse(lower(make_jaxpr(followed)(*args))).steps
    assert len(steps) <= 5 and [fits_block(x) for x in steps if x.programs] == [True]


def test_what_does_not_fit():
    def steps_of(f, *args):
        return fuse(lower(make_jaxpr(f)(*args))).steps

    wide = jnp.zeros(2**15)
    [loop] = [x for x in steps_of(lorenz, numbers(3)) if x.programs]
    assert fits_block(loop)
    many = steps_of(lambda x: lax.fori_loop(0, 3, lambda i, x: x * 2, x), wide)
    assert not any(map(fits_block, many))
    product = steps_of(
        lambda a: lax.fori_loop(0, 3, lambda i, a: lax.sort(a), a), numbers(9)
    )
    assert not any(map(fits_block, product))
    branch = steps_of(lambda x: lax.cond(x > 0, jnp.sin, jnp.cos, x), np.float32(1))
    assert not any(map(fits_block, branch))


def test_blocks_of_a_loop_have_one_size():
    for name in ("followed", "squares", "two states"):
        f, *args = CASES[name]
        for loop in fuse(lower(make_jaxpr(f)(*args))).steps:
            if loop.programs:
                threads = block_size(loop)
                assert threads % 32 == 0 and threads <= 256
                for step in loop.body.steps:
                    assert block_launch(step.kernel, threads).threads == threads


@needs_emulator
def test_memory_of_a_state_begins_where_any_number_may():
    flags, words = np.ones((3, 1), bool), np.arange(6, dtype=np.uint32).reshape(3, 2)
    split = minijax.vmap(minijax.random.split)

    def f(flags, words):
        def step(i, state):
            flags, keys = state
            keys = split(keys)[:, 0]
            return ~flags, keys

        keys = minijax.random.wrap_key_data(words)
        flags, keys = lax.fori_loop(0, 3, step, (flags, keys))
        return flags, minijax.random.key_data(keys)

    def looked_at(text):  # g++ puts arrays at round places, and a card does not
        declared = re.findall(r"(.*)__shared__ .*_memory", text)
        assert declared and set(declared) == {"  alignas(16) "}
        assert "(unsigned long long*)" in text
        return text

    assert run(f, flags, words, edit=looked_at) == 1


def last_of_rows(rows, reverse=False):
    """The first number of the last row that a scan comes to."""
    return lax.scan(lambda c, row: (row[0], None), jnp.int8(0), rows, reverse=reverse)


@needs_emulator
@pytest.mark.parametrize("reverse", [False, True])
def test_rows_beyond_31_bits(reverse):
    rows = np.zeros((3, 2**30), np.int8)  # pages that are not touched take no memory
    rows[:, 0] = [5, 6, 7]
    shape = minijax.ShapeDtypeStruct(rows.shape, rows.dtype)
    closed = make_jaxpr(lambda rows: last_of_rows(rows, reverse)[0])(shape)
    [loop] = [step for step in fuse(lower(closed)).steps if step.programs]
    assert fits_block(loop)
    text = render_block_loop(loop, "loop")
    assert re.search(r"row0 = g\d \+ \(long long\)\(.*turn\) \* 1073741824;", text)
    module = Module(PRELUDE + text, checks=False)
    given = [np.zeros(x.size, x.dtype) for x in block_loop_buffers(loop)]
    given[[x.size for x in given].index(rows.size)] = rows.reshape(-1)
    module.launch("loop", (1,), (block_size(loop),), given)
    place = block_loop_buffers(loop).index(loop.results[0])
    assert given[place].tolist() == [5 if reverse else 7]


def test_rows_below_31_bits_have_places_of_32():
    shape = minijax.ShapeDtypeStruct((3, 2**29), np.int8)
    for step in fuse(lower(make_jaxpr(last_of_rows)(shape))).steps:
        assert not step.programs or "long long" not in render_block_loop(step, "loop")


MUTANTS = {
    "no barriers between kernels": lambda text: text.replace(
        "block);\n      __syncthreads();", "block);"
    ),
    "no barrier before the first turn": lambda text: text.replace(
        "  __syncthreads();\n  for (int turn", "  for (int turn"
    ),
    "the state stays": lambda text: re.sub(r"\n.*_before = .*;", "", text),
    "a turn too few": lambda text: text.replace("turn < 40", "turn < 39"),
    "always the first row": lambda text: text.replace("(turn)", "(0)"),
    "some threads leave": lambda text: text.replace(
        "; turn++) {", "; turn++) {\n    if (threadIdx.x == 9) break;"
    ),
}  # fmt: skip


@needs_emulator
@pytest.mark.parametrize("name", MUTANTS)
def test_mutants_are_found(name):
    f, *args = CASES["followed"]
    changed = []

    def edit(text):
        changed.append(MUTANTS[name](text) != text)
        return MUTANTS[name](text)

    with pytest.raises((EmulatorError, AssertionError)):
        run(f, *args, edit=edit)
    assert changed == [True]
