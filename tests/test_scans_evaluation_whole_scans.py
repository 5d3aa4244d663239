"""Scans outside of jit: one program for each step and length, let go with its step."""

import gc
import weakref

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import lax, make_jaxpr
from minijax.arrays.dtypes import config
from minijax.jitting.compilation import compile_cached
from minijax.scans.evaluation import program_of_scan
from minijax.scans.scan import scan_impl
from minijax.tree_util import tree_leaves
from tests.scan_cases import CASES, X


@pytest.mark.parametrize("name", CASES)
def test_the_same_as_step_by_step(name):
    whole = CASES[name](X)
    with config.override("minijax_backend", "interpreter"):
        steps = CASES[name](X)
    for a, b in zip(*(tree_leaves(tree) for tree in (whole, steps)), strict=True):
        assert getattr(a, "aval", None) == getattr(b, "aval", None)
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def closed_step():
    return make_jaxpr(lambda c, x: (c + x, c * x))(1.0, np.float32(2))


def test_one_program_per_length():
    step = closed_step()
    one = program_of_scan(step, 3, False, 0, 1, 1)
    assert program_of_scan(step, 3, False, 0, 1, 1) is one
    assert program_of_scan(step, 4, False, 0, 1, 1) is not one
    assert compile_cached(one) is compile_cached(one)


def test_a_step_is_let_go():
    step = closed_step()
    program_of_scan(step, 3, False, 0, 1, 1)
    gone = weakref.ref(step)
    del step
    gc.collect()
    assert gone() is None


def test_step_by_step_alone():
    step, xs = closed_step(), jnp.arange(1.0, 4.0)
    params = {"length": 3, "reverse": True, "num_consts": 0, "num_carry": 1}
    last, ys = scan_impl(1.0, xs, jaxpr=step, unroll=1, **params)
    assert last == 7.0
    np.testing.assert_array_equal(ys, [6.0, 8.0, 3.0])
    np.testing.assert_array_equal(
        lax.scan(lambda c, x: (c + x, c * x), 1.0, xs, reverse=True)[1], ys
    )
