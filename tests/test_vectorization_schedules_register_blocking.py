"""Rows of folds side by side: what a load serves, with whatever else a row needs."""

import itertools

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import jit, make_jaxpr
from minijax.fusion.fusion_pass import fuse
from minijax.kernels.loop_nests import print_nest
from minijax.kernels.lowering import lower
from minijax.llvm.targets import TARGETS, scheduler
from tests.commands import some, turned
from tests.processors import runnable_kinds


def shortest(a, b):
    return jnp.min(a[:, :, None] + b[None], axis=1)


def with_indices(a, b):
    i = jnp.arange(a.shape[0])[:, None, None]
    j = jnp.arange(a.shape[1])[None, :, None]
    return jnp.sum(jnp.where(i > j, a[:, :, None] * b[None], i - j), axis=1)


def padded(a, b):
    wide = jnp.pad(a, ((2, 1), (1, 0)))
    return jnp.max(wide[1:-2, :-1, None] - b[None], axis=1)


def reversed_rows(a, b):
    return jnp.sum(jnp.abs(a[::-1, :, None] - b[None]), axis=1)


def two_folds(a, b):
    both = a[:, :, None] * b[None]
    return both.max(axis=1) - both.min(axis=1)


def places(a, b):
    return jnp.argmin(a[:, :, None] + b[None], axis=1)


FUNCTIONS = [shortest, with_indices, padded, reversed_rows, two_folds, places]
SIZES = [(1, 5, 40), (2, 3, 64), (3, 7, 65), (5, 16, 33), (8, 9, 100), (17, 31, 16)]


DTYPES = ["float32", "int32", "uint16", "bfloat16", "float16"]


@pytest.mark.parametrize(
    "f, sizes, dtype", some(itertools.product(FUNCTIONS, SIZES, DTYPES), 2)
)
def test_rows_side_by_side_are_rows(f, sizes, dtype):
    n, m, k = sizes
    rng = np.random.default_rng(sum(sizes))
    a, b = (jnp.array(rng.integers(1, 9, s), dtype) for s in ((n, m), (m, k)))
    with minijax.disable_jit():
        wanted = f(a, b)
    np.testing.assert_array_equal(jit(f)(a, b), wanted)


def logsumexp(x):
    return minijax.nn.logsumexp(x, axis=1)


def normalised(x):
    centred = x - x.mean(1, keepdims=True)
    return centred / jnp.sqrt((centred * centred).mean(1, keepdims=True) + 1)


def extremes(x):
    return x.max(1) - x.min(1), x.argmax(1), jnp.exp(-x).sum(1) + x[:, 0]


def padded_rows(x):
    wide = jnp.pad(x, ((1, 0), (0, 2)), constant_values=3)
    return (wide * jnp.arange(wide.shape[1])).sum(1)


SHORT_ROWS = [logsumexp, normalised, extremes, padded_rows]


COLUMNS = 3, 8, 15, 17, 33, 50, 64, 65


@pytest.mark.parametrize("columns, kind", turned(COLUMNS, runnable_kinds(), 1))
def test_short_rows_side_by_side_are_rows(columns, kind):
    rng = np.random.default_rng(columns)
    for rows in (3, 5, 2700):  # of which there are strips
        x = jnp.array(rng.normal(size=(rows, columns)), "float32")
        for f in SHORT_ROWS:
            with minijax.config.override("minijax_cpu", kind):
                ours = jit(lambda x, f=f: f(x), backend="cpu")(x)
            wanted = f(x)
            pairs = zip(*map(minijax.tree_util.tree_leaves, (ours, wanted)))
            for found, right in pairs:
                np.testing.assert_allclose(found, right, rtol=2e-5, atol=2e-4)


@pytest.mark.parametrize("columns, beside", [(64, True), (65, False)])
def test_which_rows_are_short(columns, beside):
    program = fuse(lower(make_jaxpr(logsumexp)(jnp.ones((20_000, columns)))))
    [kernel] = [step.kernel for step in program.steps]
    text = print_nest(kernel, scheduler.value(kernel, TARGETS["avx512"]))
    assert ("4 side by side" in text) == beside, text


def test_a_product_of_another_kind_has_its_rows_side_by_side():
    program = fuse(lower(make_jaxpr(shortest)(jnp.ones((64, 64)), jnp.ones((64, 64)))))
    [kernel] = [step.kernel for step in program.steps]
    for name in ("avx2", "avx512"):
        text = print_nest(kernel, scheduler.value(kernel, TARGETS[name]))
        assert "side by side" in text or "together" in text, text
