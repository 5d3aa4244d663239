"""The loops of a consumer in which its producer can be computed as well."""

from types import SimpleNamespace

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import jit, lax, make_jaxpr
from minijax.fusion.greedy import (
    _may_alias,
    add_broadcast_loops,
    align_loops,
    fuse_in_common_loops,
    producer_consumer_edges,
)
from minijax.fusion.merging import fusion_group_of
from minijax.kernels.builder import identity_map
from minijax.kernels.lowering import lower

X = jnp.ones((3, 4))


def linked(f):
    """The parts of two launches of a function, and the links between them."""
    first, second = (fusion_group_of(step) for step in lower(make_jaxpr(f)(X)).steps)
    return first, second, producer_consumer_edges(first, second)


@pytest.mark.parametrize(
    "f, home, sizes",
    [
        (lambda x: jnp.exp(x).sum(1), ["4*i + j"], (3, 4)),
        (lambda x: x.sum(1, keepdims=True) - x, ["i", "None"], (3, 4)),
        (lambda x: jnp.exp(x[0]) + x, ["j"], (3, 4)),
        (lambda x: jnp.exp(x.reshape(12)[:4])[::-1] * 2, ["-i + 3"], (4,)),
        (lambda x: x.sum(1).reshape(3) * 2, ["i", "None"], (3,)),
    ],
)
def test_the_indices_of_a_producer_in_the_loops_of_its_consumer(f, home, sizes):
    first, second, links = linked(f)
    places = [(link.store.place, link.load.place) for link in links]
    found, maps, loops = align_loops(first, second, places)
    assert [*map(str, found)] == home and loops == sizes
    assert None not in maps


def test_the_loops_are_those_of_the_part_that_goes_along_more_indices():
    smaller = fuse_in_common_loops(*linked(lambda x: jnp.exp(x[0]) + x))
    larger = fuse_in_common_loops(*linked(lambda x: x.sum(1) * 2))
    assert smaller.producer.sizes == larger.consumer.sizes == (3, 4)
    assert larger.consumer.loops == {0}


def test_a_place_is_sought_along_a_whole_axis_and_forwards():
    first, second, links = linked(lambda x: lax.argmax(x, 1, "int32")[::-1] * 2)
    assert fuse_in_common_loops(first, second, links).producer.sizes == (3, 4)
    parts = [*linked(lambda x: lax.argmax(jnp.exp(x), 1, "int32"))[:2]]
    assert fuse_in_common_loops(
        *parts, producer_consumer_edges(*parts)
    ).consumer.unsplittable_axes == {1}


@pytest.mark.parametrize(
    "limits, home, sizes, wanted, loops",
    [
        ((3, 4), (identity_map(2)[0], None), (3, 4), ["i", "j"], (3, 4)),
        ((4,), (None,), (4, 4), ["j"], (4, 4)),
        ((4,), (None,), (), ["i"], (4,)),
        ((5, 3), (None, identity_map(1)[0]), (3,), ["i", "j"], (5, 3)),
        ((3, 5), (identity_map(1)[0], None), (3,), ["i", "j"], (3, 5)),
        ((2, 5, 3), (None, None, identity_map(1)[0]), (3,), ["i", "j", "k"], (2, 5, 3)),
    ],
)
def test_axes_of_which_no_link_tells_get_loops(limits, home, sizes, wanted, loops):
    found, _, sizes = add_broadcast_loops(limits, home, identity_map(len(sizes)), sizes)
    assert [*map(str, found)] == wanted and sizes == loops


def test_the_two_halves_of_a_scalar_never_meet():
    """A key without axes is two words: no stride leads from one to the other."""
    first, second = (SimpleNamespace(offset=n, strides=()) for n in (0, 1))
    assert not _may_alias(first, second) and not _may_alias(second, first)
    assert _may_alias(first, first)


OVERLAPPING = [
    (n, size, stride)
    for n in range(4, 21)
    for size in range(2, n)
    for stride in range(1, size)
    if ((n - size) // stride + 1) * size == n
]


@pytest.mark.parametrize("n, size, stride", OVERLAPPING)
def test_windows_that_overlap_read_as_many_numbers_as_there_are(n, size, stride):
    """Each number is still stored, and counted, once."""

    def f(x):
        made = jnp.sin(x)
        window = lax.reduce_window(made, 0.0, lax.add, (size,), (stride,), "VALID")
        return made, made.sum(), window, x * 3

    x = jnp.arange(n) + 1.0
    for backend in ("kernels", "cpu"):
        found = jit(f, backend=backend)(x)
        assert all(np.allclose(a, b, atol=1e-5) for a, b in zip(found, f(x)))


@pytest.mark.parametrize("n", [2, 24, 100])
@pytest.mark.parametrize("real", [lambda x: x, jnp.zeros_like])
def test_an_imaginary_part_that_is_a_sum_is_read_in_two_directions(n, real):
    def f(x, y):
        z = lax.complex(real(x), y.sum(1))
        return z[None, :] + z[:, None] + y

    rng = np.random.default_rng(n)
    x, y = rng.normal(size=n).astype("f"), rng.normal(size=(n, n)).astype("f")
    z = np.asarray(real(x)) + 1j * y.sum(1)
    assert np.allclose(jit(f)(x, y), z[None] + z[:, None] + y, atol=1e-4)


@pytest.mark.parametrize("kept", [1, 2, 3])
def test_first_rows_are_read_where_all_are_wanted(kept):
    def f(x):
        made = jnp.sin(x)
        return made, made[:kept] * 2, made[:kept].sum(), made.sum(1)

    x = jnp.arange(12.0).reshape(3, 4)
    for backend in ("kernels", "cpu"):
        found = jit(f, backend=backend)(x)
        assert all(np.allclose(a, b, atol=1e-5) for a, b in zip(found, f(x)))
