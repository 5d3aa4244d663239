"""Arrays joined by one kernel: sizes around vectors, layouts, dtypes, their uses."""

import itertools

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import grad, jit, lax, make_jaxpr, vmap
from minijax.kernels.builder import element_work
from minijax.kernels.lowering import lower

SIZES = [0, 1, 7, 8, 9, 15, 16, 17, 63, 64, 65, 200]
DTYPES = ["float32", "int8", "uint16", "int32", "bool", "complex64", "float16"]
MADE = {
    "as it is": lambda x: x,
    "negative": lambda x: x if x.dtype == bool else -x,
    "transposed": lambda x: x.T,
    "backwards": lambda x: x[::-1],
    "every other": lambda x: x[:, ::2],
    "a column": lambda x: x[:, :1],
}
USED = {
    "joined": lambda x: x,
    "sum": lambda x: x.sum(0),
    "largest": lambda x: x.max(),
    "backwards": lambda x: x[::-1] == x,
    "a part": lambda x: x[1:, 1:],
}


def numbers(shape, dtype, seed=0):
    chance = np.random.default_rng(seed)
    x = chance.integers(0, 5, shape)
    return (x * 1j + x.T.sum() if dtype == "complex64" else x).astype(dtype)


def join(np_, parts, axis):
    return np_.concatenate(parts, axis)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", [2, 4])
def test_sizes_around_vectors(dtype, count):
    for seed, sizes in enumerate(zip(*[SIZES[k:] + SIZES[:k] for k in range(count)])):
        parts = [numbers(size, dtype, seed) for size in sizes]
        found = jit(lambda *parts: join(jnp, parts, 0))(*parts)
        np.testing.assert_array_equal(found, np.concatenate(parts))
        parts = [numbers((3, size, 2), dtype, seed) for size in sizes]
        found = jit(lambda *parts: join(jnp, parts, 1))(*parts)
        np.testing.assert_array_equal(found, np.concatenate(parts, 1))
        parts = [numbers((5, size), dtype, seed) for size in sizes]
        found = jit(lambda *parts: join(jnp, parts, -1))(*parts)
        np.testing.assert_array_equal(found, np.concatenate(parts, -1))


PAIRS = dict(enumerate(itertools.product(MADE, MADE)))


@pytest.mark.parametrize("turn", PAIRS, ids=map(" and ".join, PAIRS.values()))
def test_layouts_and_uses(turn):
    """Each pair of layouts in two uses, so that each use meets all layouts."""
    first, second = PAIRS[turn]
    a, b = numbers((34, 34), "float32", 1), numbers((34, 34), "float32", 2)
    for axis in (0, 1):
        sizes = [MADE[made](x).shape[1 - axis] for made, x in ((first, a), (second, b))]
        box = (slice(None), slice(min(sizes)))[:: 1 if axis == 0 else -1]
        used = [*USED.values()][(turn + axis) % len(USED)]

        def program(a, b, join=jnp.concatenate, axis=axis, box=box, used=used):
            parts = [MADE[first](a)[box], MADE[second](b)[box]]
            return used(join(parts, axis=axis))

        found, right = jit(program)(a, b), program(a, b, np.concatenate)
        np.testing.assert_allclose(found, right, rtol=1e-6)


def test_gradients_and_batches():
    a, b = numbers((4, 17), "float32", 1), numbers((4, 9), "float32", 2)

    def program(a, b):
        x = jnp.concatenate([a, -b])
        return (jnp.concatenate([x[1:], x[:1]]) * x).sum()

    batched = jit(vmap(grad(program, (0, 1))))(a, b)
    for row, (x, y) in enumerate(zip(a, b)):
        for found, right in zip(batched, grad(program, (0, 1))(x, y)):
            np.testing.assert_allclose(found[row], right, rtol=1e-6)


@pytest.mark.parametrize("n", [2, 8, 17, 1000])
def test_rotations_of_what_may_be_overwritten(n):
    """The result is as large as its parts' buffer, and may not take its place."""

    def rotated(x):
        return jnp.concatenate([x[1:], -x[:1]])

    def twice(x):
        return rotated(rotated(x * 2)) + x

    def in_a_loop(x):
        return lax.fori_loop(0, 5, lambda _, x: rotated(x), x)

    for program in (rotated, twice, in_a_loop):
        x = numbers(n, "float32") + np.arange(n, dtype="float32")
        found = jit(program, donate_argnums=0)(jnp.asarray(x) + 0)
        np.testing.assert_array_equal(found, program(jnp.asarray(x)))


def test_what_an_element_takes():
    def work(function):
        return element_work(
            lower(make_jaxpr(function)(np.float32([1, 2]))).steps[-1].kernel
        )

    assert work(lambda x: -x) == 1
    assert work(jnp.exp) >= 16
    assert work(lambda x: x.sum()) == float("inf")


def test_dear_parts_are_computed_in_their_places():
    """And cheap ones are computed again, with what uses them."""

    def names(function):
        x = np.ones(3, "float32")
        return [step.kernel.name for step in lower(make_jaxpr(function)(x)).steps]

    cheap = names(lambda x: jnp.concatenate([x, -x - 1]))
    dear = names(lambda x: jnp.concatenate([x, -x - jnp.exp(x)]))
    assert (cheap.count("concatenate"), dear.count("concatenate")) == (1, 2)
    folded = names(lambda x: jnp.concatenate([x, x.sum(keepdims=True)]))
    assert folded.count("concatenate") == 2
