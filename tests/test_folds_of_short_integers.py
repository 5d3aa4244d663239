"""Largest and least of short integers: along rows, columns and both, everywhere."""

import numpy as np
import pytest

import minijax
from minijax import numpy as jnp
from tests.commands import LONG
from tests.processors import runnable_kinds

SHORT = ["int8", "uint8", "int16", "uint16"]
SHAPES = [(1, 1), (3, 5), (7, 33), (16, 16), (17, 31), (64, 65), (5, 1000), (1000, 5)]
SHAPES += [(129, 127), (300, 257), (3, 17, 40), (40, 3, 33), (9, 130, 2)]


def numbers(dtype, shape):
    """Numbers of the whole range, whose order changes if they are read as signed."""
    ends = np.iinfo(dtype)
    rng = np.random.default_rng(len(shape))
    x = rng.integers(ends.min, ends.max, shape, dtype, endpoint=True)
    middle = (int(ends.max) + int(ends.min) + 1) // 2
    special = np.array([ends.min, ends.max, middle, middle - 1], dtype)
    return np.where(rng.random(shape) < 0.2, rng.choice(special, shape), x)


def axes_of(shape):
    """Each axis, each two, and all."""
    every = range(len(shape))
    pairs = [(a, b) for a in every for b in every if a < b]
    return [*every, *pairs, None]


@pytest.mark.parametrize("kind", ["", *runnable_kinds()])
@pytest.mark.parametrize("dtype", SHORT)
def test_largest_and_least(dtype, kind):
    """Each shape in one dtype of each width, the next one in the others; LONG=1: all.

    For processors of other kinds every third shape.
    """
    turn = SHORT.index(dtype)
    of_turn = SHAPES if LONG else SHAPES[(turn + turn // 2) % 2 :: 2]
    with minijax.config.override("minijax_cpu", kind):
        for shape in SHAPES[1 + turn % 2 :: 3] if kind else of_turn:
            x = numbers(dtype, shape)
            run = minijax.jit(
                lambda x: [
                    fold(x, axis)
                    for fold in (jnp.max, jnp.min)
                    for axis in axes_of(x.shape)
                ]
            )
            wanted = [f(x, a) for f in (np.max, np.min) for a in axes_of(shape)]
            for ours, right in zip(run(x), wanted, strict=True):
                assert ours.dtype == dtype
                np.testing.assert_array_equal(ours, right)


@pytest.mark.parametrize("dtype", SHORT)
def test_of_what_is_computed(dtype):
    """Folds of an expression, and of a view: turned, reversed, with steps."""
    for shape in SHAPES[1::3]:
        x = numbers(dtype, shape)
        changes = {
            "negative": lambda x: ~x,
            "turned": lambda x: x.T,
            "reversed": lambda x: x[::-1],
            "in steps": lambda x: x[..., ::2],
            "doubled": lambda x: x + x,
        }
        for change in changes.values():
            run = minijax.jit(lambda x, f=change: [f(x).max(0), f(x).min(-1)])
            largest, least = run(x)
            np.testing.assert_array_equal(largest, change(x).max(0))
            np.testing.assert_array_equal(least, change(x).min(-1))


@pytest.mark.parametrize("dtype", SHORT)
def test_of_one_and_of_many_rows(dtype):
    """Sizes around the lanes of each width, one by one."""
    for size in [
        *range(1, 20),
        *range(30, 36),
        *range(62, 68),
        127,
        128,
        129,
        255,
        513,
    ]:
        x = numbers(dtype, (4, size))
        run = minijax.jit(lambda x: [x.max(1), x.min(1), x.T.max(1), x.T.min(1)])
        wanted = x.max(1), x.min(1), x.T.max(1), x.T.min(1)
        for ours, right in zip(run(x), wanted, strict=True):
            np.testing.assert_array_equal(ours, right)
