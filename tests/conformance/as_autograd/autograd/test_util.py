"""Derivatives beside differences, as the tests of autograd ask for them."""

import itertools

import jax
import numpy as onp

from autograd import of_places

STEP = 1e-6
TOLERANCE = 1e-6


def scalar_close(a, b):
    return abs(a - b) < TOLERANCE or abs(a - b) / abs(a + b) < TOLERANCE


def leaves(tree):
    return [onp.asarray(x) for x in jax.tree_util.tree_leaves(tree)]


def inner(a, b):
    """The product of two trees over the real numbers."""
    assert len(leaves(a)) == len(leaves(b))
    for x, y in zip(leaves(a), leaves(b), strict=True):
        assert x.shape == y.shape and onp.iscomplexobj(x) == onp.iscomplexobj(y), (x, y)
    return sum(
        float(onp.sum(onp.real(onp.conj(x) * y)))
        for x, y in zip(leaves(a), leaves(b), strict=True)
    )


def like(tree):
    """Random numbers in the shape of a tree."""

    def one(x):
        x = onp.asarray(x)
        moved = onp.random.randn(*x.shape)
        if onp.iscomplexobj(x):
            moved = moved + 1j * onp.random.randn(*x.shape)
        return onp.asarray(moved).astype(x.dtype)

    return jax.tree_util.tree_map(one, tree)


def moved(x, v, by):
    return jax.tree_util.tree_map(lambda x, v: onp.asarray(x) + by * v, x, v)


def conjugate(tree):
    return jax.tree_util.tree_map(
        lambda x: onp.conj(x) if onp.iscomplexobj(x) else onp.asarray(x), tree
    )


def floats(tree):
    """A tree of numbers with integers as floats; autograd makes no difference."""
    return jax.tree_util.tree_map(
        lambda x: (
            x
            if jax.numpy.issubdtype(jax.numpy.result_type(x), onp.inexact)
            else onp.asarray(x, float)
        ),
        tree,
    )


def check_equivalent(a, b):
    v = like(a)
    assert scalar_close(inner(v, a), inner(v, b)), f"Value mismatch:\nx: {a}\ny: {b}"


@of_places
def check_grads(f, x, modes=("fwd", "rev"), order=2):
    x = floats(x)
    value, v = f(x), like(x)
    after, before = f(moved(x, v, STEP / 2)), f(moved(x, v, -STEP / 2))
    slope = jax.tree_util.tree_map(
        lambda a, b: (onp.asarray(a) - onp.asarray(b)) / STEP, after, before
    )
    u = like(value)
    if "fwd" in modes:
        exact = jax.jvp(f, (x,), (v,))[1]
        assert scalar_close(inner(u, slope), inner(u, exact)), ("JVP", exact, slope)
    if "rev" in modes:
        back = jax.vjp(f, x)[1](conjugate(u))[0]
        assert scalar_close(inner(u, slope), inner(conjugate(back), v)), ("VJP", back)
    if order > 1 and "fwd" in modes:
        check_grads(
            lambda x, v: jax.jvp(f, (x,), (v,))[1], (0, 1), modes=modes, order=order - 1
        )(x, v)
    if order > 1 and "rev" in modes:
        check_grads(
            lambda x, u: jax.vjp(f, x)[1](u)[0], (0, 1), modes=modes, order=order - 1
        )(x, u)


def combo_check(f, argnum, *args, **settings):
    """All combinations of the arguments and words that it is called with."""

    def check(*choices, **words):
        for values in itertools.product(*choices):
            for kept in itertools.product(*words.values()):
                words_kept = dict(zip(words, kept, strict=True))
                check_grads(f, argnum, *args, **settings)(*values, **words_kept)

    return check
