"""A few of the stacks of `tests.closure`, beside straight-line code.

`tests/oracle` asks real JAX about a few; `python -m tests.closure` takes all.
"""

from collections import Counter

import numpy as np
import pytest

from tests import closure, corpus


@pytest.mark.parametrize("number, name", [*enumerate(corpus.BASES)])
def test_stacks_mean_what_straight_code_means(number, name):
    counts = Counter()
    stacks = closure.sample(60, number)
    found = list(closure.against_itself(name, stacks, counts))
    assert not found, "\n\n".join(found)
    assert counts["values"] > counts["refused"]


def test_a_rule_that_is_left_out_is_seen():
    """The derivatives of the rules are not those of the function."""
    for rule in ("custom_jvp", "custom_vjp"):
        stack = corpus.simplest(("scan", rule, "vjp"))
        assert stack == ("plain scan", f"plain {rule}", "vjp")
        with closure.minijax.enable_x64():
            larger = closure.composition.own_answer("softmax", stack)
            honest = closure.composition.own_answer("softmax", ("plain scan", "vjp"))
        np.testing.assert_allclose(larger, 1.5 * np.asarray(honest), rtol=1e-9)
