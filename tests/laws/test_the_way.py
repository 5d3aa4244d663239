"""How often a reader who follows a program has to go back to a module left before.

The functions are taken in the order in which they are first called; an entry into a
module that was left before counts. Comprehensions are lines of the function in which
they stand, as Python 3.12 runs them too.
"""

import sys

import numpy as np

import minijax
import minijax.numpy as jnp
from minijax.fusion.fusion_pass import fuse
from minijax.kernels.lowering import lower

# The goal for both is 15. One rewriter of kernels took nine copies of its walk away,
# and fusion now goes to it and back.
MOST_RETURNS = {"lower": 23, "fuse": 44}
COMPREHENSIONS = {"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"}


def loss(w, x, y):
    return ((jnp.tanh(x @ w) - y) ** 2).mean()


def functions_called(call):
    """Return the modules of the functions that a call reaches, each function once."""
    found = {}

    def note(frame, event, arg):
        module = frame.f_globals.get("__name__", "")
        inside = frame.f_code.co_name in COMPREHENSIONS
        if event == "call" and module.startswith("minijax.") and not inside:
            found.setdefault(frame.f_code, module)

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return [*found.values()]


def returns(modules):
    """Return how often a module is entered that was left before."""
    steps = [b for a, b in zip(["", *modules], modules) if a != b]
    return len(steps) - len({*steps})


def test_returns_are_counted():
    assert returns(["a", "a", "b", "c"]) == 0
    assert returns(["a", "b", "a", "b", "b"]) == 2


def test_the_way_through_lowering_and_fusion():
    args = np.ones(3, "f4"), np.ones((8, 3), "f4"), np.ones(8, "f4")
    fuse(lower(minijax.make_jaxpr(loss)(*args)))  # what a process finds out once
    closed = minijax.make_jaxpr(minijax.grad(loss))(*args)
    program = lower(closed)
    ways = {"lower": lambda: lower(closed), "fuse": lambda: fuse(program)}
    for name, way in ways.items():
        assert returns(functions_called(way)) <= MOST_RETURNS[name]
