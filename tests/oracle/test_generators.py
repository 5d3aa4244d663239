"""Keys of `rbg` and `unsafe_rbg`: bits, new keys and draws are JAX's, on its CPU."""

import jax
import jax.extend
import numpy as np
import pytest

import minijax
from tests.commands import some
from tests.sampler_cases import CASES, COUNTED, EXACT, FLOATS, VECTORS

GENERATORS = "rbg", "unsafe_rbg"
SHAPES = [(), (1,), (5,), (3, 5), (0,), (2, 0), (2, 3, 4)]


def numbers(m, x):
    of_keys = m.numpy.issubdtype(x.dtype, m.dtypes.prng_key)
    return np.asarray(m.random.key_data(x) if of_keys else x)


def same(impl, f, *args, seed=7):
    """Compare ``f(m, key, *args)``, plain and compiled, with JAX's, compiled."""
    found = []
    for m in (minijax, jax):
        key = m.random.key(seed, impl=impl)
        compiled = m.jit(f, static_argnums=0)
        for call in (f, compiled) if m is minijax else (compiled,):
            leaves = m.tree_util.tree_leaves(call(m, key, *args))
            found.append([numbers(m, leaf) for leaf in leaves])
    for others in found[1:]:
        for ours, theirs in zip(found[0], others, strict=True):
            assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("impl", GENERATORS)
@pytest.mark.parametrize("width", [8, 16, 32, 64])
def test_bits_and_new_keys(impl, width):
    with minijax.enable_x64(width == 64), jax.enable_x64(width == 64):
        same(impl, lambda m, k: [m.random.bits(k, s, f"uint{width}") for s in SHAPES])
        same(impl, lambda m, k: [m.random.split(k, s) for s in SHAPES])
        for seed in (0, -1, 2**31, 2**40 + 3):
            same(impl, key_and_next, seed=seed)


def key_and_next(m, k):
    return k, m.random.fold_in(k, 2**31)


def row(m, k):
    return m.random.split(k, 6).reshape(2, 3)


TIMES = np.arange(3, dtype=np.uint32)
MAPPED = {
    "bits": lambda m, k: m.vmap(m.vmap(lambda k: m.random.bits(k, (3,))))(row(m, k)),
    "inner axis": lambda m, k: m.vmap(
        m.vmap(lambda k: m.random.bits(k, (3,)), out_axes=1), in_axes=1
    )(row(m, k)),
    "split": lambda m, k: m.vmap(m.vmap(lambda k: m.random.split(k, 3)))(row(m, k)),
    "fold": lambda m, k: m.vmap(m.random.fold_in)(row(m, k)[1], TIMES),
    "fold numbers": lambda m, k: m.vmap(m.random.fold_in, (None, 0))(k, TIMES + 1),
    "fold keys": lambda m, k: m.vmap(m.random.fold_in, (0, None))(row(m, k)[0], 5),
    "fold pairs": lambda m, k: m.vmap(
        m.vmap(m.random.fold_in, (0, None)), (None, 0)
    )(row(m, k)[0], TIMES + 1),
    "fold rows": lambda m, k: m.vmap(m.vmap(m.random.fold_in), (0, None))(
        row(m, k), TIMES + 1
    ),
    "seeds": lambda m, k: m.vmap(
        lambda s: m.random.key(s, impl=m.random.key_impl(k))
    )(TIMES),
    "normal": lambda m, k: m.vmap(lambda k: m.random.randint(k, (2,), 0, 9))(
        row(m, k)[0]
    ),
}  # fmt: skip
MOVED = {
    "gather": lambda m, k: row(m, k)[:, m.numpy.array([2, 0])],
    "choose": lambda m, k: m.numpy.where(TIMES > 1, row(m, k)[0], row(m, k)[1]),
    "set": lambda m, k: row(m, k).at[0, 1].set(k),
    "join": lambda m, k: m.numpy.concatenate([row(m, k).T, row(m, k).T[::-1]]),
    "scan": lambda m, k: m.lax.scan(
        lambda k, _: (m.random.split(k)[0], m.random.bits(k)), k, None, length=4
    ),
    "loop": lambda m, k: m.lax.fori_loop(0, 3, lambda i, k: m.random.fold_in(k, i), k),
    "branch": lambda m, k: m.lax.cond(True, lambda: k, lambda: row(m, k)[0, 0]),
    "older": lambda m, k: m.random.split(k, 3),
}


@pytest.mark.parametrize("impl", GENERATORS)
@pytest.mark.parametrize("name", [*MAPPED, *MOVED])
def test_keys_in_rows_and_on_the_move(impl, name):
    older = name == "older"
    with (
        minijax.threefry_partitionable(not older),
        jax.threefry_partitionable(not older),
    ):
        same(impl, {**MAPPED, **MOVED}[name])


# What a sampler makes of its bits is asked of all, with threefry, in test_random.
DRAWN = [name for name in [*CASES, *VECTORS] if "poisson" not in name]


@pytest.mark.parametrize("name", some(DRAWN, 3))
def test_samplers(name):
    impl, case = GENERATORS[len(name) % 2], {**CASES, **VECTORS}[name]
    found = []
    for m in (minijax, jax):
        found.append(np.asarray(case(m.random, m.random.key(3, impl=impl), (700,))))
    assert found[0].dtype == found[1].dtype and found[0].shape == found[1].shape
    if name in EXACT:
        np.testing.assert_array_equal(*found)
    elif name in COUNTED:
        assert (found[0] != found[1]).sum() <= 2
    else:
        assert name in {**FLOATS, **VECTORS}
        np.testing.assert_allclose(*found, rtol=3e-4, atol=3e-4)


@pytest.mark.parametrize("impl", [*GENERATORS, "threefry2x32"])
def test_texts_and_the_default(impl):
    found = []
    for m in (minijax, jax):
        key = m.random.key(7, impl=impl)
        told = [repr(key), str(key.dtype), str(key.aval), str(m.random.key_impl(key))]
        calls = [lambda k: m.random.bits(k, (3,)), m.random.split, m.random.clone]  # noqa: B023
        told += [str(m.make_jaxpr(f)(key)) for f in calls]
        told.append(str(m.make_jaxpr(lambda s: m.random.key(s, impl=impl))(3)))  # noqa: B023
        with m.default_prng_impl(impl):
            raw = m.random.PRNGKey(3)
            drawn = m.random.split(raw), m.jit(lambda: m.random.key(1))()  # noqa: B023
            told += [str(raw), str(drawn), str(m.random.bits(raw))]
        found.append(told)
    assert found[0] == found[1]


@pytest.mark.parametrize("algorithm", jax.lax.RandomAlgorithm)
@pytest.mark.parametrize("shape", [(), (3,), (2, 2)])
def test_the_first_key_is_that_of_a_batch(algorithm, shape):
    words = np.arange(24, dtype=np.uint32).reshape(2, 4, 3)

    def draw(m, _):
        def f(key):
            return m.lax.rng_bit_generator(key, shape, algorithm=int(algorithm))

        return m.vmap(m.vmap(f, in_axes=1))(words)

    same("rbg", draw)


def own_generator(m, shape):
    """Define a generator of one's own, whose keys are words of a shape."""
    jnp, size = m.numpy, int(np.prod(shape))

    def split(words, new):
        steps = jnp.arange(int(np.prod(new)) * size, dtype="uint32")
        return 7 * words + steps.reshape(*new, *shape)

    def bits(words, width, new):
        row = words.reshape(-1)[0] + jnp.arange(int(np.prod(new)), dtype="uint32")
        return row.reshape(new).astype(f"uint{width}")

    return m.extend.random.define_prng_impl(
        key_shape=shape,
        seed=lambda seed: jnp.full(shape, seed, "uint32") + np.uint32(3),
        split=split,
        random_bits=bits,
        fold_in=lambda words, data: words + data.astype("uint32"),
        tag="own",
    )


def own_draws(m, key):
    keys = m.random.split(key, (2, 3))
    folded = m.vmap(m.random.fold_in)(keys[1], np.arange(3))
    drawn = m.vmap(lambda k: m.random.bits(k, (2, 2), "uint16"))(folded)
    looped = m.lax.scan(lambda k, _: (m.random.split(k)[1], k), key, None, length=3)
    return keys, folded, drawn, looped, m.random.normal(keys[0, 2], (3,)) > 0


@pytest.mark.parametrize("shape", [(1,), (3,), (4, 2)])
def test_a_generator_of_one_s_own(shape):
    found = []
    for m in (minijax, jax):
        impl = own_generator(m, shape)
        key = m.random.key(7, impl=impl)
        assert m.random.key_impl(key) == impl
        assert m.random.key_dtype(impl) == key.dtype
        same_key = m.random.wrap_key_data(m.random.key_data(key), impl=impl)
        leaves = m.tree_util.tree_leaves([key, same_key, own_draws(m, key)])
        leaves += m.tree_util.tree_leaves(m.jit(own_draws, static_argnums=0)(m, key))
        told = [repr(m.random.key_impl(key)), key.shape]
        found.append((told, [numbers(m, leaf) for leaf in leaves]))
    (told, ours), (expected, theirs) = found
    assert told == expected
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one, other)
