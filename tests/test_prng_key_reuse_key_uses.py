"""Keys that are used twice: the verdicts are those of JAX 0.10.2, with two lines."""

import pytest

import minijax
import minijax.numpy as jnp
from minijax import checkpoint, grad, jit, lax, random, vmap
from minijax.errors import KeyReuseError
from minijax.random import normal, split, uniform


def key():
    return random.key(0)


def twice(k):
    return normal(k) + normal(k)


def after(first, second=normal):
    """Return a function that does two things with one key."""

    def run():
        k = key()
        first(k)
        return second(k)

    return run


def with_rows(first, second):
    def run():
        keys = split(key(), 4)
        first(keys)
        return second(keys)

    return run


def scan(step, start, xs=None):
    return lambda: lax.scan(step, start(), xs, length=None if xs is not None else 2)


def split_step(k, _):
    k, rest = split(k)
    return k, normal(rest)


def made(seed):
    """Return the sum of two numbers drawn with one key, which is made here."""
    return twice(random.key(seed))


def weighted(w, k):
    return jnp.sin(w * uniform(k))


def closed_over(loop):
    def run():
        k = key()
        return loop(k)

    return run


PASSES = {
    "two halves": lambda: [normal(k) for k in split(key())],
    "clone": after(split, lambda k: split(random.clone(k))),
    "fold_in twice": after(
        lambda k: random.fold_in(k, 1), lambda k: random.fold_in(k, 2)
    ),
    "fold_in of a used key": after(normal, lambda k: random.fold_in(k, 2)),
    "raw words": lambda: twice(random.PRNGKey(0)),
    "raw words in jit": lambda: jit(twice)(random.PRNGKey(0)),
    "words of a used key": after(normal, random.key_data),
    "other rows": with_rows(lambda ks: vmap(normal)(ks[:2]), lambda ks: normal(ks[2])),
    "scan that splits": scan(split_step, key),
    "while with fold_in": lambda: lax.while_loop(
        lambda c: uniform(c[1]) < 0.5,
        lambda c: (c[0] + 1, random.fold_in(c[1], 1)),
        (0, key()),
    ),
    "one branch or the other": lambda: lax.cond(True, normal, uniform, key()),
    "gamma": lambda: random.gamma(key(), jnp.ones(3)),
    "mapped while": lambda: vmap(
        lambda k: lax.while_loop(
            lambda c: c[1] < 0.8, lambda c: (split(c[0])[0], c[1] + 0.3), (k, 0.0)
        )
    )(split(key())),
    "grad of a scan": lambda: grad(
        lambda w: lax.scan(
            lambda c, k: (c, w * normal(k)), 0.0, split(random.key(1), 3)
        )[1].sum()
    )(1.0),
    "grad of jit": lambda: grad(jit(lambda w, k: w * normal(k)))(1.0, key()),
    "made in jit": lambda: jit(lambda s: uniform(random.key(s)))(0),
    "made in scan": lambda: lax.scan(
        lambda c, s: (c + uniform(random.key(s)), None), 0.0, jnp.arange(3)
    ),
    "jit of grad of checkpoint": lambda: jit(grad(checkpoint(weighted)))(1.0, key()),
    "grad of jit of checkpoint": lambda: grad(jit(checkpoint(weighted)))(1.0, key()),
}
PASSED = "Previously-consumed key passed to "
CONSUMED = "is already consumed."
SCAN = "scan body function leads to key reuse when repeatedly executed"
WHILE = "while_loop {} function leads to key reuse when repeatedly executed"
FAILS = {
    "eager": (after(normal), PASSED + "jit-compiled function at index 0"),
    "split": (after(split, split), PASSED + "random_split at index 0"),
    "bits": (after(random.bits, random.bits), PASSED + "random_bits at index 0"),
    "a row": (
        with_rows(lambda ks: ks[0], lambda ks: ks[0]),
        PASSED + "slice at index 0",
    ),
    "all rows": (
        with_rows(vmap(normal), lambda ks: normal(ks[0])),
        PASSED + "slice at index 0",
    ),
    "jit": (lambda: jit(twice)(key()), "In jit, argument 0 " + CONSUMED),
    "bits in jit": (
        # A shape of its own: an inlined helper remembers the line of its first call.
        lambda: jit(lambda k: (random.bits(k, (3, 1, 5)), random.bits(k, (3, 1, 5))))(
            key()
        ),
        "In random_bits, argument 0 " + CONSUMED,
    ),
    "vmap": (lambda: vmap(twice)(split(key())), PASSED + "jit-compiled function at"),
    "grad": (
        lambda: grad(lambda x, k: x * twice(k))(1.0, key()),
        PASSED + "jit-compiled function at index 0",
    ),
    "captured by jit": (
        closed_over(lambda k: [f() for f in 2 * [jit(lambda: normal(k))]]),
        PASSED + "jit-compiled function at index 0",
    ),
    "captured by scan": (
        closed_over(lambda k: lax.scan(lambda c, _: (c, normal(k)), 0, length=2)),
        SCAN,
    ),
    "carried unchanged": (scan(lambda k, _: (k, normal(k)), key), SCAN),
    "rows twice": (
        with_rows(*2 * [lambda ks: lax.scan(lambda c, k: (c, normal(k)), 0, ks)]),
        PASSED + "scan at index",
    ),
    "captured by while": (
        closed_over(
            lambda k: lax.while_loop(lambda c: c < 2, lambda c: c + uniform(k), 0.0)
        ),
        WHILE.format("body"),
    ),
    "test of a while": (
        lambda: lax.while_loop(lambda k: uniform(k) < 0.5, lambda k: k, key()),
        WHILE.format("cond"),
    ),
    "test and body": (
        lambda: lax.while_loop(
            lambda k: uniform(k) < 0.5, lambda k: split(k)[0], key()
        ),
        "while_loop cond and body functions both use the same key",
    ),
    "fori_loop": (
        closed_over(lambda k: lax.fori_loop(0, 3, lambda i, c: c + uniform(k), 0.0)),
        SCAN,
    ),
    "after a branch": (
        after(lambda k: lax.cond(True, normal, lambda k: 0.0, k)),
        PASSED + "jit-compiled function at index 0",
    ),
    "made in jit": (lambda: jit(made)(0), "In jit, argument 0 " + CONSUMED),
    "made of words": (
        lambda: jit(lambda k: twice(random.wrap_key_data(k)))(random.PRNGKey(0)),
        "In jit, argument 0 " + CONSUMED,
    ),
    "made in jit of grad": (
        lambda: jit(grad(lambda x: x * made(0)))(1.0),
        "In jit, argument 0 " + CONSUMED,
    ),
    "made in grad of jit": (
        lambda: grad(jit(lambda x: x * made(0)))(1.0),
        "In jit, argument 0 " + CONSUMED,
    ),
    "made in jit of checkpoint": (
        lambda: jit(checkpoint(lambda x: x * made(0)))(1.0),
        "In jit, argument 0 " + CONSUMED,
    ),
    "made in scan": (
        lambda: lax.scan(lambda c, _: (c + made(0), None), 0.0, length=2),
        "In jit, argument 0 " + CONSUMED,
    ),
    "made in while": (
        lambda: lax.while_loop(lambda c: c < 1, lambda c: c + 1 + 0 * made(0), 0.0),
        "In jit, argument 0 " + CONSUMED,
    ),
    "made in a branch": (
        lambda: lax.cond(True, made, lambda s: 0.0, 0),
        "In jit, argument 0 " + CONSUMED,
    ),
    "used, and again by a checkpoint": (
        lambda: jit(lambda k: normal(k) + grad(checkpoint(weighted))(1.0, k))(key()),
        "In jit, argument 0 " + CONSUMED,
    ),
    "gamma": (
        after(*2 * [lambda k: random.gamma(k, 2.0)]),
        PASSED + "jit-compiled function at index 0",
    ),
}


@pytest.mark.parametrize("name", PASSES)
def test_keys_used_once(name):
    with minijax.debug_key_reuse():
        PASSES[name]()


@pytest.mark.parametrize("name", FAILS)
def test_keys_used_twice(name):
    call, words = FAILS[name]
    with minijax.debug_key_reuse(True), pytest.raises(KeyReuseError) as info:
        call()
    assert words in str(info.value)
    assert "It was used in" in str(info.value)
    assert __file__ in str(info.value)


def test_both_lines_are_named():
    with minijax.debug_key_reuse(True), pytest.raises(KeyReuseError) as info:
        jit(twice)(key())
    _, first, second = str(info.value).splitlines()
    assert first.startswith("It was used in") and "(twice)" in first
    assert second.startswith("It is used again in") and "(twice)" in second


def test_off_is_off():
    assert not minijax.config.jax_debug_key_reuse
    twice(key())
    with minijax.debug_key_reuse(True), minijax.debug_key_reuse(False):
        twice(key())
