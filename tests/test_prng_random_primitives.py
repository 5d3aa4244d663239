"""Keys of generators that are functions of words: each backend, and what is refused."""

import pickle

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import lax, random, vmap
from minijax.extend.random import (
    define_prng_impl,
    rbg_prng_impl,
    unsafe_rbg_prng_impl,
)

GENERATORS = "rbg", "unsafe_rbg"


def words(keys):
    return np.asarray(random.key_data(keys))


def program(key, places):
    """Make new keys in all ways, move them, and draw."""
    keys = random.split(key, (2, 3))
    folded = vmap(random.fold_in)(keys[0], jnp.arange(3))
    chosen = jnp.where(jnp.array([True, False, True]), keys[1, places], folded)
    keys = lax.concatenate([keys.at[1, 0].set(chosen[1]).T, chosen[:, None]], 1)
    seeded = vmap(lambda seed: random.key(seed, impl=random.key_impl(key)))(places)
    looped = lax.scan(lambda k, _: (random.split(k)[1], k), key, None, length=3)[1]
    small = vmap(vmap(lambda k: random.bits(k, (3,), "uint8")))(keys)
    drawn = small, vmap(vmap(lambda k: random.normal(k, (3,)) > 0))(keys)
    return [*map(random.key_data, (keys, seeded, looped)), *drawn]


def check_backends(key):
    places = jnp.array([2, 0, 1])
    expected = minijax.jit(program)(key, places)
    with minijax.disable_jit():
        found = [program(key, places)]
    for backend in ("interpreter", "python"):
        found.append(minijax.jit(program, backend=backend)(key, places))
    for results in found:
        for ours, theirs in zip(results, expected, strict=True):
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("impl", GENERATORS)
def test_backends_agree(impl):
    check_backends(random.key(5, impl=impl))


def test_a_batch_is_drawn_from_its_first_key():
    keys = random.split(random.key(1, impl="rbg"), 3)
    drawn = vmap(lambda k: random.bits(k, (2,)))(keys)
    np.testing.assert_array_equal(drawn, random.bits(keys[0], (3, 2)))


@pytest.mark.parametrize("impl", GENERATORS)
def test_no_keys_at_all(impl):
    none = random.split(random.key(1, impl=impl), 0)
    for call in (random.bits, random.split, lambda k: random.fold_in(k, 3)):
        for found in (vmap(call)(none), minijax.jit(vmap(call))(none)):
            assert found.shape[0] == 0
    assert vmap(random.fold_in)(none, jnp.zeros(0, int)).dtype == none.dtype


def test_generators_do_not_mix():
    kinds = [random.key_dtype(name) for name in ("threefry2x32", *GENERATORS)]
    assert list(map(str, kinds)) == ["key<fry>", "key<rbg>", "key<urbg>"]
    assert len({*kinds}) == 3
    with pytest.raises(ValueError, match="key<rbg>"):
        jnp.concatenate([random.key(0, impl="rbg")[None], random.key(0)[None]])
    with pytest.raises(TypeError, match=r"to end with \(4,\).*shape=\(2,\)"):
        random.wrap_key_data(random.PRNGKey(0), impl="rbg")
    with minijax.default_prng_impl("rbg"):
        with pytest.raises(TypeError, match=r"to end with \(4,\)"):
            random.split(np.zeros(2, np.uint32))
        assert random.PRNGKey(0).shape == (4,)


def test_loops_that_reject_have_an_end():
    drawn = random.gamma(random.key(3, impl="unsafe_rbg"), 0.7, (700,))
    assert abs(drawn.mean() - 0.7) < 0.15
    with pytest.raises(NotImplementedError, match="poisson.*threefry2x32.*key<rbg>"):
        random.poisson(random.key(0, impl="rbg"), 1.0)


def test_the_default_is_part_of_a_program():
    @minijax.jit
    def made():
        return random.key(3)

    assert str(made().dtype) == "key<fry>"
    with minijax.default_prng_impl("unsafe_rbg"):
        assert str(made().dtype) == "key<urbg>"


@pytest.mark.parametrize("impl", [rbg_prng_impl, unsafe_rbg_prng_impl])
def test_generators_as_objects(impl):
    key = random.key(9, impl=impl)
    raw = impl.seed(jnp.uint32(9))
    np.testing.assert_array_equal(words(key), raw)
    np.testing.assert_array_equal(words(random.split(key, 3)), impl.split(raw, (3,)))
    np.testing.assert_array_equal(words(random.fold_in(key, 2)), impl.fold_in(raw, 2))
    drawn = impl.random_bits(raw, 16, (5,))
    np.testing.assert_array_equal(random.bits(key, (5,), "uint16"), drawn)
    again = pickle.loads(pickle.dumps(key))
    assert again.dtype == key.dtype and (words(again) == words(key)).all()


def seven_times(shape, **names):
    """Define a generator that adds and multiplies; keys are numbers in `shape`."""
    size = int(np.prod(shape))

    def split(words, new):
        steps = jnp.arange(int(np.prod(new)) * size, dtype="uint32")
        return 7 * words + steps.reshape(*new, *shape)

    return define_prng_impl(
        key_shape=shape,
        seed=lambda seed: jnp.full(shape, seed, "uint32") + 3,
        split=split,
        random_bits=lambda words, width, new: (
            words.reshape(-1)[0] + jnp.arange(int(np.prod(new)), dtype="uint32")
        ).reshape(new).astype(f"uint{width}"),
        fold_in=lambda words, data: words + 7 * data.astype("uint32"),
        **names,
    )  # fmt: skip


@pytest.mark.parametrize("shape", [(), (3,), (4, 2, 7)])
def test_a_generator_of_one_s_own(shape):
    impl = seven_times(shape, name="seven", tag="sev")
    key = random.key(5, impl=impl)
    assert random.key_impl(key) == impl and key.dtype == random.key_dtype(impl)
    assert str(key.dtype).startswith("key<sev")
    raw = words(random.split(key, (2,)))
    assert raw.shape == (2, *shape) and raw.flat[0] == 56
    again = random.wrap_key_data(raw, impl=impl)
    assert again.dtype == key.dtype and (words(again) == raw).all()
    check_backends(key)


def test_generators_of_one_s_own_are_several():
    rules = dict.fromkeys(["seed", "split", "random_bits", "fold_in"], lambda *_: None)
    one, same, other = (
        define_prng_impl(key_shape=shape, **rules) for shape in ((2,), (2,), (3, 1))
    )
    assert one == same and one is same and one != other and hash(one) == hash(same)
    assert repr(one) == "PRNGSpec('<unnamed>')"
    assert random.key_dtype(one) != random.key_dtype(other)
    message = r"to end with \(3, 1\).*got shape=\(3,\)"
    with pytest.raises(TypeError, match=message):
        random.wrap_key_data(np.zeros(3, np.uint32), impl=other)


def test_a_key_is_used_once():
    with minijax.debug_key_reuse(True):
        key = random.key(0, impl="rbg")
        random.bits(key)
        with pytest.raises(minijax.errors.KeyReuseError):
            random.split(key)


def test_what_is_written_down(tmp_path):
    from minijax.training import checkpoints

    key = random.split(random.key(0, impl="unsafe_rbg"))
    checkpoints.save(tmp_path / "keys", {"key": key})
    found = checkpoints.restore(tmp_path / "keys", {"key": key})["key"]
    assert found.dtype == key.dtype and (words(found) == words(key)).all()
    with pytest.raises(NotImplementedError, match="no arrays of key<urbg> here"):
        minijax.export.export(minijax.jit(random.split))(key[0]).mlir_module()
