"""Two launches in the same loops, and which steps of a program need which."""

import pytest

import minijax.numpy as jnp
from minijax import make_jaxpr
from minijax.fusion import fusion_pass
from minijax.fusion.alignment import (
    aligned,
    arranged,
    is_plain,
    joined,
    links_between,
    shared_reads,
    sorted_axes,
)
from minijax.fusion.dependences import uses_of
from minijax.fusion.parts import part_of
from minijax.kernels.program_steps import lower

X = jnp.ones((3, 4))


def pair_of(f):
    """The alignment of the two launches of a function, and what links them."""
    first, second = map(part_of, lower(make_jaxpr(f)(X)).steps)
    links = links_between(first, second)
    return aligned(first, second, links or shared_reads(first, second)), links


@pytest.mark.parametrize(
    "f, plain, sizes",
    [
        (lambda x: jnp.exp(x) + 1.0, True, (12,)),
        (lambda x: jnp.exp(x).sum(1), False, (3, 4)),
        (lambda x: x - x.sum(1, keepdims=True), False, (3, 4)),
        (lambda x: x - x.sum(0, keepdims=True), False, (4, 3)),
        (lambda x: (x.sum(0), x.sum(1)), False, None),
    ],
)
def test_loops_of_two(f, plain, sizes):
    pair, links = pair_of(f)
    found = arranged(pair, links)
    assert (links != [] and is_plain(pair, links)) is plain
    assert (found and found[0].sizes) == sizes


def test_orders_in_a_circle_have_no_order_of_axes():
    assert sorted_axes([0, 1], {(1, 0)}) == [1, 0]
    assert sorted_axes([0, 1], {(0, 1), (1, 0)}) is None


def test_uses():
    program = lower(make_jaxpr(lambda x: jnp.exp(x) - x.max(1, keepdims=True))(X))
    uses, last = uses_of(program), len(program.steps) - 1
    assert uses.needs[last] == {0, 1} and uses.users[0] == {last}
    [made] = program.steps[0].writes
    assert uses.makers[made] == 0 and uses.readers[made] == [last]
    assert made not in uses.kept and not uses.shared


@pytest.mark.parametrize(
    "f",
    [
        lambda x: jnp.tanh(jnp.exp(x * 2.0) + x) - 1.0,
        lambda x: jnp.exp(x * 2.0 - x.max(1, keepdims=True)) / x.sum(1, keepdims=True),
        lambda x: (jnp.exp(x.T) * 2.0 + x.T).sum(0),
    ],
)
def test_kernels_that_are_written_later_are_those_that_are_written_at_once(
    f, monkeypatch
):
    program, calls = lower(make_jaxpr(f)(X)), []

    def texts():
        return [str(step.kernel) for step in fusion_pass.fuse(program).steps]

    def counted(*args):
        calls.append(args)
        return joined(*args)

    monkeypatch.setattr(fusion_pass, "joined", counted)
    found = texts()
    assert calls
    monkeypatch.setattr(fusion_pass, "is_plain", lambda *args: False)
    assert texts() == found
