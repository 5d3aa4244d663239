"""`ragged_all_to_all` beside a loop over all slices, and its derivatives."""

from functools import partial

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import P, lax, make_mesh, shard_map

RNG = np.random.default_rng(3)


def slices(size, parts, rows, kept):
    """Return offsets and sizes that do not overlap in what is received."""
    count = size * parts
    send_sizes = RNG.integers(0, 3, (size, count))
    sources = RNG.integers(0, rows - 2, (size, count))
    places = np.zeros((size, count), int)
    for receiver in range(size):
        mine = slice(receiver * parts, (receiver + 1) * parts)
        lengths = send_sizes[:, mine].reshape(-1)
        gaps = RNG.integers(0, 2, lengths.size)
        ends = np.cumsum(lengths + gaps)
        assert ends[-1] <= kept
        places[:, mine] = (ends - lengths).reshape(size, parts)
    received = send_sizes.reshape(size, size, parts).swapaxes(0, 1)
    return [sources, send_sizes, places, received.reshape(size, count)]


def one_by_one(operand, output, sources, lengths, places, _):
    """Return the results for all examples, slice after slice."""
    found, size = output.copy(), len(operand)
    for sender in range(size):
        parts = sources.shape[1] // size
        for i in range(sources.shape[1]):
            start, place = sources[sender, i], places[sender, i]
            length = lengths[sender, i]
            found[i // parts, place : place + length] = operand[
                sender, start : start + length
            ]
    return found


SIZE, ROWS, KEPT = len(minijax.devices()), 6, 40
CASES = [slices(SIZE, parts, ROWS, KEPT) for parts in (1, 2)]
exchange = partial(lax.ragged_all_to_all, axis_name="i")


def arrays(*shape):
    operand = RNG.normal(size=(SIZE, ROWS, *shape)).astype("float32")
    return operand, RNG.normal(size=(SIZE, KEPT, *shape)).astype("float32")


def mapped(f):
    return minijax.vmap(f, axis_name="i")


def on_devices(f, check=True):
    mesh = make_mesh((SIZE,), ("i",))
    how = {"mesh": mesh, "in_specs": P("i"), "out_specs": P("i"), "check_vma": check}

    def block(*args):
        return f(*[x[0] for x in args])[None]

    return shard_map(block, **how)


WAYS = {
    "vmap": mapped,
    "jit of vmap": lambda f: minijax.jit(mapped(f)),
    "devices": on_devices,
    "unchecked": partial(on_devices, check=False),
    "jit on devices": lambda f: minijax.jit(on_devices(f)),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", [0, 1])
@pytest.mark.parametrize("shape", [(), (2,)])
def test_each_slice_arrives(way, case, shape):
    args = (*arrays(*shape), *CASES[case])
    found = WAYS[way](exchange)(*args)
    np.testing.assert_array_equal(found, one_by_one(*args))


@pytest.mark.parametrize("way", ["vmap", "devices", "jit on devices"])
def test_the_exchange_is_linear_and_its_transpose_adds(way):
    (operand, output), numbers = arrays(), CASES[1]
    weights = RNG.normal(size=output.shape).astype("float32")

    def loss(operand, output):
        return (WAYS[way](exchange)(operand, output, *numbers) * weights).sum()

    slopes = minijax.grad(loss, (0, 1))(operand, output)
    for given, slope in zip((operand, output), slopes, strict=True):
        for place in [(0, 0), (1, 3), (1, 5)]:
            unit = np.zeros_like(given)
            unit[place] = 1
            others = np.zeros_like(operand), np.zeros_like(output)
            moved = (unit, others[1]) if given is operand else (others[0], unit)
            rate = (one_by_one(*moved, *numbers) * weights).sum()
            np.testing.assert_allclose(slope[place], rate, rtol=1e-5)


@pytest.mark.parametrize("way", ["vmap", "devices"])
def test_a_second_batch_goes_around(way):
    (operand, output), numbers = arrays(), CASES[0]
    both = np.stack([operand, -operand])
    over = minijax.vmap(WAYS[way](exchange), (0, *[None] * 5))
    found = over(both, output, *numbers)
    for one, result in zip(both, found, strict=True):
        np.testing.assert_array_equal(result, one_by_one(one, output, *numbers))


def test_groups_of_devices():
    (operand, output), size = arrays(), SIZE // 2
    halves = [slices(size, 1, ROWS, KEPT) for _ in range(2)]
    numbers = [np.concatenate(pair) for pair in zip(*halves, strict=True)]
    groups = [[*range(size)], [*range(size, SIZE)]]
    in_groups = partial(exchange, axis_index_groups=groups)
    found = on_devices(in_groups, check=False)(operand, output, *numbers)
    for half, group in zip(halves, groups, strict=True):
        expected = one_by_one(operand[group], output[group], *half)
        np.testing.assert_array_equal(np.asarray(found)[group], expected)


def test_of_two_slices_at_one_row_the_later_one_counts():
    operand = jnp.array([[1.0], [2.0]])
    zero, one = np.zeros((2, 2), int), np.ones((2, 2), int)
    found = mapped(exchange)(operand, jnp.zeros((2, 1)), zero, one, zero, one)
    assert found.tolist() == [[2.0], [2.0]]


def test_nothing_to_send_leaves_the_output():
    output, zero = jnp.ones((2, 3)), np.zeros((2, 2), int)
    found = mapped(exchange)(jnp.zeros((2, 0)), output, zero, zero, zero, zero)
    assert found.tolist() == output.tolist()


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (2, np.zeros((2, 2)), "input_offsets must be integer type"),
        (5, np.zeros((2, 2, 1), int), "recv_sizes must be rank 1 with positive"),
        (3, np.zeros((2, 4), int), "as many slices for each example"),
        (1, np.zeros((2, 3, 1), "float32"), "but the first axis, and the dtype"),
        (1, np.zeros((2, 3), int), "but the first axis, and the dtype"),
    ],
)
def test_what_does_not_fit_is_refused(place, value, message):
    zero = np.zeros((2, 2), int)
    args = [np.zeros((2, 3), "float32"), np.zeros((2, 3), "float32"), *[zero] * 4]
    args[place] = value
    with pytest.raises(ValueError, match=message):
        mapped(exchange)(*args)


def test_an_axis_is_needed():
    zero = np.zeros(2, int)
    with pytest.raises(NameError, match="unbound axis name: i"):
        exchange(np.zeros(3), np.zeros(3), zero, zero, zero, zero)
