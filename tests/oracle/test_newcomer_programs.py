"""A newcomer's programs print the same in both packages: only the import differs."""

import jax
import numpy as np
import pytest

import minijax
from tests.newcomer_programs import PROGRAMS


@pytest.mark.parametrize("name", PROGRAMS)
def test_both_print_the_same(name):
    if name == "layers_that_forget" and not hasattr(minijax, "checkpoint"):
        pytest.skip("nothing forgets yet")
    ours, theirs = PROGRAMS[name](minijax), PROGRAMS[name](jax)
    trees = [
        minijax.tree_util.tree_structure(ours),
        jax.tree_util.tree_structure(theirs),
    ]
    assert str(trees[0]) == str(trees[1])
    pairs = zip(*map(jax.tree_util.tree_leaves, (ours, theirs)), strict=True)
    for x, y in pairs:
        assert np.shape(x) == np.shape(y) and np.asarray(x).dtype == np.asarray(y).dtype
        np.testing.assert_allclose(x, y, rtol=2e-5, atol=2e-6)
