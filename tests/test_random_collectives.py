"""Random programs with collectives in loops and branches: pmap = vmap = a loop."""

import pytest

from tests.commands import blocks
from tests.random_collectives import check, has, random_body


@pytest.mark.parametrize("seed", blocks(4, 60))
def test_pmap_is_vmap_is_a_loop(seed):
    check(seed)


def test_a_fault_is_found(monkeypatch):
    from minijax import lax
    from tests import random_collectives

    wrong = lambda a, b, _: lax.ppermute(a, "i", [(0, 0)])  # noqa: E731
    monkeypatch.setitem(random_collectives.TRACED, "turn", wrong)
    monkeypatch.setattr(
        random_collectives, "random_body", lambda *args: [("turn", 0, 1, [])]
    )
    with pytest.raises(AssertionError, match="seed 0, vmap"):
        check(0)


def test_programs_hold_collectives_in_loops_and_branches():
    import random

    bodies = [random_body(random.Random(seed), 5, 2) for seed in range(60)]
    inner = [b for body in bodies for _, _, _, bs in body for b in bs]
    for kind in ("psum", "gather", "turn", "scatter", "exchange"):
        assert any(has(body, kind) for body in inner)
