"""Some of the stacks of `tests.closure` beside real JAX: values, gradients, texts.

`python -m tests.closure --jax` takes all.
"""

from collections import Counter

import jax
import pytest

import minijax
from minijax import config
from tests import closure, corpus

# Stacks of these are programs that JAX writes as we do, but for a few: they have
# the same equations in another order, or others of which no result is used.
WRITTEN = ["jvp", "vjp", "jit", "custom_jvp", "custom_vjp"]
OTHERS = {
    ("jit", "jvp", "vjp"), ("jit", "vjp", "vjp"),
    ("custom_jvp", "jvp", "jvp"), ("custom_jvp", "jvp", "vjp"),
    ("custom_vjp", "vjp", "jvp"), ("custom_vjp", "vjp", "vjp"),
}  # fmt: skip


@pytest.mark.parametrize("number, name", [*enumerate(corpus.BASES)])
def test_answers_are_jax_s(number, name):
    with config.override("minijax_backend", "python"):
        stacks = closure.sample(40, 7 + number)
        found = list(closure.against_jax(name, stacks, Counter()))
    assert not found, "\n\n".join(found)


@pytest.mark.parametrize("first", [*WRITTEN, "checkpoint"])
def test_texts_are_jax_s(first):
    forgetting = [s for s in corpus.stacks(2, closure.names()) if "checkpoint" in s]
    mixed = [s for s in forgetting if {*s} <= {*WRITTEN, "checkpoint"}]
    for stack in corpus.stacks(3, WRITTEN) + mixed:
        if stack[0] == first and stack not in OTHERS:
            texts = [closure.texts(package, stack) for package in (minijax, jax)]
            assert texts[0] == texts[1], stack
