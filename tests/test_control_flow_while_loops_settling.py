"""Flags that turn one another on."""

from minijax.control_flow.while_loops import settle


def test_flags_settle():
    edges = {0: [1], 1: [2], 2: [], 3: [0]}

    def step(flags):
        reached = {j for i, on in enumerate(flags) if on for j in edges[i]}
        return tuple(i in reached for i in range(len(flags)))

    assert settle(step, (True, False, False, False)) == (True, True, True, False)
    assert settle(step, (False,) * 4) == (False,) * 4
    assert settle(lambda flags: (), ()) == ()
