"""Sorts beside real JAX: values, places, derivatives, texts."""

import jax
import numpy as np
import pytest

import minijax
from tests.sorting_cases import numbers, same_bits

NAMES = "bool int8 uint8 int32 float16 bfloat16 float32 complex64".split()


def both(call):
    return [jax.tree.leaves(call(module)) for module in (minijax, jax)]


def agree(call):
    for ours, theirs in zip(*both(call), strict=True):
        assert same_bits(ours, theirs)


@pytest.mark.parametrize("name", NAMES)
def test_values_and_places(name):
    x = numbers(name, (3, 33))
    for axis in (0, 1, None):
        for down in (False, True):
            agree(lambda m: m.numpy.sort(x, axis, descending=down))  # noqa: B023
            agree(lambda m: m.numpy.argsort(x, axis, descending=down))  # noqa: B023
    agree(lambda m: m.lax.sort((x, x, x), num_keys=2))
    agree(lambda m: m.jit(m.numpy.lexsort)(x))
    if name != "complex64":
        agree(lambda m: m.lax.top_k(x, 5))
        agree(lambda m: m.jit(lambda x: m.lax.top_k(x, 2, axis=0))(x))


def test_derivatives():
    x = np.random.default_rng(0).normal(size=(3, 7)).astype("float32")
    x[:, 3] = x[:, 2]
    w = np.arange(7, dtype="float32")
    agree(lambda m: m.grad(lambda x: (m.lax.sort(x) * w).sum())(x))
    agree(lambda m: m.vmap(m.grad(lambda x: (m.lax.sort(x) * w).sum()))(x))
    agree(lambda m: m.grad(lambda x: m.lax.top_k(x, 4)[0].sum())(x))
    agree(lambda m: m.grad(lambda x: m.numpy.median(x, 1).sum())(x))


def test_texts():
    x = np.ones((2, 3), "float32")
    for call in (
        lambda m: m.make_jaxpr(lambda x: m.lax.sort((x, x), 0, num_keys=2))(x),
        lambda m: m.make_jaxpr(lambda x: m.lax.top_k(x, 2))(x),
        lambda m: m.make_jaxpr(lambda x: m.lax.approx_min_k(x, 2))(x),
        lambda m: m.make_jaxpr(m.vmap(lambda x, y: m.lax.sort((x, y)), (0, None)))(
            x, x[0]
        ),
    ):
        assert str(call(minijax)) == str(call(jax))
