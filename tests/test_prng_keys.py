"""Keys: arrays without arithmetic, and what is made of them, in every backend."""

import copy
import itertools
import pickle

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import (
    ShapeDtypeStruct,
    eval_shape,
    grad,
    jit,
    lax,
    make_jaxpr,
    random,
    vmap,
)
from minijax.jitting.compilation import compile_cached
from minijax.prng.keys import counter_words, numpy_word_op, threefry2x32
from tests.backends_here import HERE
from tests.commands import some

KEYS = random.split(random.key(7), 6)
PUBLISHED = [
    ([0] * 4, [0x6B200159, 0x99BA4EFE]),
    ([0xFFFFFFFF] * 4, [0x1CB996FC, 0xBB002BE7]),
    (
        [0x13198A2E, 0x03707344, 0x243F6A88, 0x85A308D3],
        [0xC4923A9C, 0x483DF7A0],
    ),
]


def words(keys):
    return np.asarray(random.key_data(keys))


@pytest.mark.parametrize(("numbers", "expected"), PUBLISHED)
def test_the_cipher_is_the_published_one(numbers, expected):
    *key, x, y = map(np.uint32, numbers)
    assert [*threefry2x32(numpy_word_op, key, (x, y))] == expected


def test_numbers_in_two_words():
    assert [half.tolist() for half in counter_words(3)] == [[0, 0, 0], [0, 1, 2]]


def test_texts():
    assert repr(random.key(3)) == "Array((), dtype=key<fry>) overlaying:\n[0 3]"
    assert str(KEYS[:1]) == repr(KEYS[:1]) == f"{KEYS[:1]}"
    assert str(KEYS.aval) == "key<fry>[6]"
    dtypes = [KEYS.dtype, random.key_dtype(), jnp.stack([KEYS, KEYS]).dtype]
    dtypes += [jit(lambda k: k[:2])(KEYS).dtype, eval_shape(lambda k: k, KEYS).dtype]
    jit(vmap(lambda k: dtypes.append(k.dtype)))(KEYS)
    dtypes += [pickle.loads(pickle.dumps(KEYS)).dtype, jnp.empty(2, KEYS.dtype).dtype]
    dtypes += [jnp.result_type(KEYS)]
    assert {f"{x} {x!r} {x!s}" for x in dtypes} == {"key<fry> key<fry> key<fry>"}
    assert {*dtypes, np.empty(2, KEYS.dtype).dtype} == {KEYS.dtype}
    assert "key<fry>" in repr(eval_shape(lambda k: k, KEYS))
    assert "key<fry>" in repr(ShapeDtypeStruct((), KEYS.dtype))
    text = str(make_jaxpr(lambda k: random.split(k, (2, 3)))(KEYS[0]))
    assert "b:key<fry>[2,3] = random_split[shape=(2, 3)] a" in text


PROGRAMS = {
    "seed": lambda keys: random.key(jnp.uint32(9) + random.bits(keys[0])),
    "raw": lambda keys: random.PRNGKey(random.bits(keys[0])),
    "split": lambda keys: random.split(keys[1], (2, 3)),
    "children": lambda keys: vmap(lambda k: random.split(k, 3))(keys),
    "fold_in": lambda keys: random.fold_in(keys[2], 5),
    "fold_all": lambda keys: vmap(random.fold_in)(keys, jnp.arange(6)),
    "bits": lambda keys: random.bits(keys[3], (4, 5)),
    "bytes": lambda keys: random.bits(keys[3], (3, 0), "uint8"),
    "halves": lambda keys: random.bits(keys[3], (9,), "uint16"),
    "columns": lambda keys: vmap(lambda k: random.bits(k, (3,)), out_axes=1)(keys),
    "moved": lambda keys: keys.reshape(2, 3).T[::-1],
    "joined": lambda keys: jnp.concatenate([keys, keys[:2]]),
    "chosen": lambda keys: jnp.where(jnp.arange(6) < 2, keys, keys[::-1]),
    "words": lambda keys: random.key_data(keys[::2].reshape(3, 1)),
    "wrapped": lambda keys: random.wrap_key_data(random.key_data(keys)[:, ::-1]),
    "wrapped rows": lambda keys: random.wrap_key_data(random.key_data(keys).T[:2].T),
    "cloned": lambda keys: random.clone(keys[0]),
    "same": lambda keys: keys,
    "equal": lambda keys: keys == keys[jnp.array([0, 2, 1, 3, 5, 4])],
    "unequal": lambda keys: keys.reshape(2, 3) != keys[1:4],
    "equal halves": lambda keys: (
        random.wrap_key_data(random.key_data(keys).at[::2, 1].add(1)) == keys
    ),
    "equal to one": lambda keys: vmap(lambda k: k != keys[4])(keys[::2]),
    "equal to a constant": lambda keys: (keys == KEYS[2]) | (keys[0] == KEYS[0]),
    "until equal": lambda keys: lax.while_loop(
        lambda c: keys[c] != keys[4], lambda c: c + 1, 0
    ),
    "closed over": lambda keys: random.fold_in(KEYS[0], random.bits(keys[0])),
    "uniform": lambda keys: random.uniform(keys[0], (33,), minval=-1.0),
    "normal": lambda keys: random.normal(random.split(keys[1])[0], (33,)),
    "loop": lambda keys: lax.scan(
        lambda k, sub: (random.split(k)[0], random.uniform(sub)), keys[0], keys
    ),
    "while": lambda keys: lax.while_loop(
        lambda k: random.uniform(k) < 0.8, lambda k: random.split(k)[1], keys[0]
    ),
    "cond": lambda keys: lax.cond(
        random.uniform(keys[0]) < 0.5,
        lambda k: k,
        lambda k: random.split(k)[0],
        keys[1],
    ),
}



def in_the_older_layout(program):
    def older(keys):
        with minijax.threefry_partitionable(False):
            return program(keys)

    return older


PROGRAMS |= {
    f"{name}, older layout": in_the_older_layout(PROGRAMS[name])
    for name in ("split", "children", "bits", "bytes", "halves", "columns", "normal")
}


def as_numbers(tree):
    leaves = minijax.tree.leaves(tree)
    keyed = [x.aval.str_short().startswith("key") for x in leaves]
    return [words(x) if is_key else np.asarray(x) for x, is_key in zip(leaves, keyed)]


@pytest.mark.parametrize("name, backend", some(itertools.product(PROGRAMS, HERE), 2))
def test_backends_agree(name, backend):
    program = PROGRAMS[name]
    with minijax.disable_jit():
        expected = as_numbers(program(KEYS))
    outs = as_numbers(compile_cached(make_jaxpr(program)(KEYS), backend)(KEYS))
    for found, wanted in zip(outs, expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
        assert found.dtype == wanted.dtype


@pytest.mark.parametrize("name", ["split", "bits", "children", "columns", "fold_all"])
def test_vmap_is_a_loop(name):
    many = random.split(random.key(1), (6, 3))
    found = as_numbers(vmap(PROGRAMS[name], in_axes=1)(many))
    rows = [as_numbers(PROGRAMS[name](many[:, i])) for i in range(3)]
    for x, *parts in zip(found, *rows, strict=True):
        assert np.array_equal(x, np.stack(parts))


def test_children_have_the_numbers_of_their_places():
    root = random.key(0)
    few, many = (words(random.split(root, n)) for n in (3, 100))
    assert np.array_equal(few, many[:3])
    assert np.array_equal(words(random.fold_in(root, 7)), many[7])
    assert np.array_equal(random.bits(root, (100,)), many[:, 0] ^ many[:, 1])


def test_raw_keys_stay_raw():
    raw = random.PRNGKey(5)
    assert raw.dtype == np.uint32
    assert np.array_equal(random.split(raw, 3), words(random.split(random.key(5), 3)))
    assert random.fold_in(raw, 1).shape == (2,)
    assert random.key_impl(raw) == random.key_impl(KEYS) == "threefry2x32"


def test_64_bits():
    with minijax.enable_x64():
        assert words(random.key(-(2**40))).tolist() == [2**32 - 2**8, 0]
        assert random.bits(KEYS[0]).dtype == np.uint64
    assert words(random.key(-(2**40))).tolist() == [0, 0]


def test_copies():
    for same in (copy.deepcopy(KEYS), pickle.loads(pickle.dumps(KEYS))):
        assert np.array_equal(words(same), words(KEYS))


def test_derivatives_of_what_is_done_with_a_draw():
    k = random.key(4)
    slopes = grad(lambda m, s: m + s * random.normal(k), (0, 1))(1.0, 2.0)
    assert np.allclose(slopes, (1.0, random.normal(k)))


def test_a_jitted_dropout_is_one_kernel():
    def dropout(k, x):
        return jnp.where(random.uniform(k, x.shape) < 0.9, x / 0.9, 0.0)

    closed = make_jaxpr(dropout)(KEYS[0], jnp.ones((50, 30)))
    assert len(compile_cached(closed, "cpu").lowered.steps) == 1


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: KEYS + 1, TypeError, "add does not accept dtypes key<fry>, int32"),
        (lambda: lax.neg(KEYS), TypeError, "neg does not accept dtype key<fry>"),
        (lambda: KEYS < KEYS, TypeError, "lt does not accept dtype key<fry>"),
        (lambda: KEYS == 1, TypeError, "equal does not accept dtypes key<fry>, int"),
        (lambda: words(KEYS[0]) == KEYS, TypeError, "dtypes key<fry>, uint32"),
        (lambda: lax.eq(KEYS, np.uint32(1)), TypeError, "got key<fry>, uint32"),
        (lambda: jnp.zeros(2).astype(KEYS.dtype), ValueError, "32 to key<fry>"),
        (lambda: lax.bitcast_convert_type(KEYS, "uint32"), ValueError, "from key<fry>"),
        (lambda: KEYS.view("uint32"), ValueError, "Cannot bitcast.* from key<fry> to"),
        (lambda: lax.cond(KEYS[0], int, int), TypeError, "is of dtype key<fry>: comp"),
        (lambda: jnp.ones(3)[KEYS[0]], TypeError, "indexer with type key<fry>"),
        (lambda: jnp.logical_not(KEYS), TypeError, "dtype key<fry> is not a valid"),
        (lambda: jnp.nonzero(KEYS), TypeError, "dtype key<fry> is not a valid"),
        (lambda: KEYS @ KEYS, ValueError, "key<fry> is not a type of numbers"),
        (lambda: jnp.max(KEYS), TypeError, "max does not accept dtype key<fry>"),
        (lambda: KEYS.min(), TypeError, "min does not accept dtype key<fry>"),
        (lambda: jnp.sin(KEYS), TypeError, "key<fry> is not a type of numbers"),
        (lambda: grad(id)(KEYS[0]), TypeError, "but got key<fry> for"),
        (lambda: np.asarray(KEYS), TypeError, "key<fry> cannot be converted to a Num"),
        (lambda: random.split(KEYS), ValueError, r"split accepts a single key.*\(6,\)"),
        (lambda: random.uniform(3), TypeError, "invalid PRNG key data.*Got 3"),
        (lambda: random.key(1.5), TypeError, "PRNG key seed must be an integer"),
        (lambda: random.key([1]), TypeError, "is not a valid JAX type"),
        (lambda: random.key(jnp.arange(2)), TypeError, "key accepts a scalar seed"),
        (lambda: random.key(KEYS[0]), TypeError, "seed, but was given a PRNG key"),
        (lambda: random.key(0, impl="no"), ValueError, "unrecognized PRNG implementa"),
        (
            lambda: random.key(0, impl="philox4x32"),
            NotImplementedError,
            "'philox4x32' is not here",
        ),
        (
            lambda: random.wrap_key_data(jnp.arange(2, dtype="uint32"), impl="rbg"),
            TypeError,
            r"to end with \(4,\)",
        ),
        (lambda: random.key(0, impl="fry", dtype="fry"), ValueError, "both `impl`"),
        (
            lambda: random.fold_in(KEYS[0], [1, 2]),
            TypeError,
            "fold_in accepts a scalar",
        ),
        (lambda: random.wrap_key_data(jnp.arange(3)), TypeError, "to end with"),
        (lambda: random.uniform(KEYS[0], (), int), ValueError, "must be a float dtype"),
        (lambda: random.normal(KEYS[0], (), int), ValueError, "a float or complex"),
        (lambda: random.bits(KEYS[0], (), int), ValueError, "an unsigned int dtype"),
    ],
)
def test_refusals(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


CONVERSIONS = {
    "astype": lambda k: k.astype("uint32"),
    "asarray": lambda k: jnp.asarray(k, "int32"),
    "array": lambda k: jnp.array(k, "float32"),
    "lax": lambda k: lax.convert_element_type(k, "float32"),
    "bool": lambda k: jnp.astype(k, bool),
    "any": jnp.any,
    "all": jnp.all,
}


@pytest.mark.parametrize("name", CONVERSIONS)
@pytest.mark.parametrize("wrap", [lambda f: f, minijax.jit, vmap])
def test_keys_become_no_numbers(name, wrap):
    with pytest.raises(ValueError, match="convert_element_type from key<fry> to"):
        wrap(CONVERSIONS[name])(KEYS)
    same = wrap(lambda k: k.astype(k.dtype))(KEYS)
    assert bool((same == KEYS).all())


@pytest.mark.parametrize("wrap", [lambda f: f, minijax.jit])
@pytest.mark.parametrize("call", [random.bits, random.split, random.wrap_key_data])
def test_words_of_one_key_are_not_keys(wrap, call):
    """Two examples of one word each: a key that was not split, and no pair of keys."""
    with pytest.raises(TypeError, match=r"end with \(2,\) .* got shape=\(\)"):
        wrap(vmap(call))(random.PRNGKey(0))
    assert vmap(call, in_axes=1)(random.PRNGKey(0)[:, None]).shape[0] == 1


@pytest.mark.parametrize("wrap", [lambda f: f, minijax.jit, vmap])
def test_keys_from_nothing(wrap):
    """As JAX's: both words of each are the number that fills the array."""
    for call, word in (
        (jnp.zeros_like, 0),
        (jnp.empty_like, 0),
        (jnp.ones_like, 1),
        (lambda k: lax.full_like(k, 5), 5),
        (lambda k: jnp.full(k.shape, 3, k.dtype), 3),
        (lambda k: jnp.zeros(k.shape, k.dtype), 0),
    ):
        np.testing.assert_array_equal(words(wrap(call)(KEYS)), np.full((6, 2), word))
    first = jnp.full_like(KEYS, KEYS[0])
    assert bool((first == KEYS[0]).all())


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_uniform_keeps_its_ends(dtype):
    x = np.asarray(random.uniform(KEYS[0], (100_000,), dtype)).astype(float)
    assert x.min() >= 0 and x.max() < 1 and abs(x.mean() - 0.5) < 0.005


def test_normal_has_its_moments():
    x = np.asarray(random.normal(KEYS[1], (200_000,))).astype(float)
    assert abs(x.mean()) < 0.01 and abs(x.var() - 1) < 0.02
    z = np.asarray(random.normal(KEYS[1], (200_000,), np.complex64))
    assert abs(z.real.var() - 0.5) < 0.01 and abs((z.real * z.imag).mean()) < 0.01


@pytest.mark.parametrize("x", [2.0, -2.0])
def test_a_key_that_only_one_branch_keeps(x):
    """A gradient keeps it for that branch; the other has to hand on some key."""
    key = random.key(3)

    def forgetful(x, key):
        return minijax.checkpoint(lambda x: x * random.uniform(key) * x)(x)

    def f(x):
        return minijax.lax.cond(x > 0, forgetful, lambda x, key: x, x, key)

    wanted = 2 * x * random.uniform(key) if x > 0 else 1.0
    for slope in (minijax.grad(f), minijax.jit(minijax.grad(f))):
        np.testing.assert_allclose(slope(x), wanted, rtol=1e-6)


def test_keys_in_questions_of_type():
    dtype = KEYS.dtype
    assert jnp.result_type(KEYS) == jnp.result_type(KEYS, KEYS[0]) == dtype
    assert minijax.jit(lambda k: jnp.zeros(jnp.result_type(k) == dtype))(
        KEYS
    ).shape == (1,)
    for other in (1, jnp.float32, jnp.ones(2)):
        with pytest.raises(ValueError, match="key<fry> is not a type of numbers"):
            jnp.result_type(KEYS, other)


def test_keys_are_close_to_themselves():
    assert jnp.isclose(KEYS, KEYS).all() and jnp.allclose(KEYS, KEYS)
    assert not jnp.isclose(KEYS[0], KEYS[1])
    assert minijax.jit(jnp.isclose)(KEYS, KEYS).shape == KEYS.shape
    with pytest.raises(TypeError, match="isclose does not accept dtypes key<fry>, int"):
        jnp.isclose(KEYS, 1)


def test_keys_on_a_diagonal_and_no_decimals():
    assert (jnp.diagflat(KEYS)[1, 1] == KEYS[1]) and jnp.diagflat(KEYS).shape == (6, 6)
    with pytest.raises(TypeError, match="round is of numbers, got key<fry>"):
        jnp.round(KEYS)
    with pytest.raises(ValueError, match="key<fry> is not a type of numbers"):
        jnp.where(KEYS == KEYS, KEYS, 0)
