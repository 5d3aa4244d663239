"""Random bits are JAX's, bit by bit; floats to rounding, and texts of keys."""

import jax
import numpy as np
import pytest

import minijax

SEEDS = [0, 1, -1, 2**31, 2**32 + 5, -(2**40), 123456789]
WIDTHS = ["uint8", "uint16", "uint32"]


def keys(seed):
    return [module.random.key(seed) for module in (minijax, jax)]


def same(ours, theirs):
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
    assert np.array_equal(ours, theirs)


def both(call, seed):
    return [call(m, k) for m, k in zip((minijax, jax), keys(seed))]


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_keys(seed, x64):
    with minijax.enable_x64(x64), jax.enable_x64(x64):
        same(*both(lambda m, k: m.random.key_data(k), seed))
        same(*both(lambda m, k: m.random.PRNGKey(seed), seed))
        same(*both(lambda m, k: m.random.bits(k), seed))
        for num in (1, 2, 3, 0, (), (2, 3)):
            same(*both(lambda m, k: m.random.key_data(m.random.split(k, num)), seed))  # noqa: B023
        for data in (0, 7, 2**31):
            found = both(lambda m, k: m.random.fold_in(k, data), seed)  # noqa: B023
            same(*[m.random.key_data(k) for m, k in zip((minijax, jax), found)])


@pytest.mark.parametrize("dtype", WIDTHS)
@pytest.mark.parametrize("shape", [(), (3,), (100, 120), (0,), (2, 0)])
def test_bits(shape, dtype):
    same(*both(lambda m, k: m.random.bits(k, shape, dtype), 5))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_uniform_and_normal(dtype):
    dtype = np.dtype(jax.numpy.dtype(dtype))
    same(*both(lambda m, k: m.random.uniform(k, (20_000,), dtype), 6))
    found = both(lambda m, k: m.random.normal(k, (20_000,), dtype), 6)
    ours, theirs = [np.asarray(x).astype(float) for x in found]
    tolerance = 4e-2 if dtype.itemsize == 2 else 1e-5
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    "call",
    [
        lambda m, k: m.random.split(k),
        lambda m, k: m.random.split(m.random.key_data(k), (2, 3)),
        lambda m, k: m.random.fold_in(k, 3),
        lambda m, k: m.random.bits(k, (2,)),
        lambda m, k: m.random.key_data(k),
        lambda m, k: m.random.clone(k),
        lambda m, k: m.vmap(lambda k: m.random.bits(k, (2,)))(m.random.split(k, 3)),
    ],
)
def test_texts(call):
    texts = both(lambda m, k: str(m.make_jaxpr(lambda k: call(m, k))(k)), 0)
    assert texts[0] == texts[1]
    assert len({repr(k) for k in keys(3)}) == 1
