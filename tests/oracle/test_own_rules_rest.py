"""Rules for batches and transposes, closures and solutions beside real JAX."""

import re

import jax
import numpy as np
import pytest

import minijax
from tests import own_rules_programs
from tests.oracle.raised import raised

PACKAGES = minijax, jax
NEWCOMERS = tuple(map(own_rules_programs.newcomers, PACKAGES))
TEXTS = tuple(map(own_rules_programs.texts, PACKAGES))
MISTAKES = tuple(map(own_rules_programs.mistakes, PACKAGES))
# The functions of the package itself have other names.
OURS = re.compile(r"rule=<.*>")


@pytest.mark.parametrize("name", NEWCOMERS[0])
def test_newcomers(name):
    ours, theirs = (jax.tree.leaves(programs[name]()) for programs in NEWCOMERS)
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", TEXTS[0])
def test_texts_of_programs(name):
    texts = []
    for package, programs in zip(PACKAGES, TEXTS, strict=True):
        f, args = programs[name]
        texts.append(OURS.sub("rule", str(package.make_jaxpr(f)(*args))))
    assert texts[0] == texts[1]


@pytest.mark.parametrize("name", MISTAKES[0])
def test_messages(name):
    ours, theirs = (raised(mistakes[name]) for mistakes in MISTAKES)
    assert ours == theirs
