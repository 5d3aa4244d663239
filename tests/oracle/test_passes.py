"""Programs after all passes, against real JAX."""

import jax
import numpy as np
import pytest

import minijax
from minijax import make_jaxpr
from minijax.passes.pipeline import simplify
from tests import corpus
from tests.pass_cases import evaluated

OURS, THEIRS = corpus.programs(minijax), corpus.programs(jax)
STACKS = [("vjp",), ("scan", "grad"), ("cond", "jvp")]


@pytest.mark.parametrize("name", OURS)
def test_corpus(name):
    tables = [corpus.transformations(package) for package in (minijax, jax)]
    with minijax.enable_x64(True), jax.enable_x64(True):
        for stack in STACKS:
            point = OURS[name][1]
            ours = corpus.apply(tables[0], stack, OURS[name][0])
            theirs = corpus.apply(tables[1], stack, THEIRS[name][0])
            try:
                wanted = jax.jit(theirs)(point)
            except (TypeError, ValueError):  # it has no such derivative
                continue
            closed = make_jaxpr(ours)(minijax.numpy.asarray(point))
            [found] = evaluated(simplify(closed), [minijax.numpy.asarray(point)])
            assert found.dtype == wanted.dtype
            assert found.weak_type == wanted.weak_type
            np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-9)
