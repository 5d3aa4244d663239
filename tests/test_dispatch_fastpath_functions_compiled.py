"""Calls of what was compiled ahead of time, by the fast path."""

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import core, grad, jit
from minijax.arrays.dtypes import config
from minijax.dispatch.fastpath_functions import FastPathCompiled, enable_fastpath
from minijax.dispatch.word_language import UnknownLayout
from minijax.jitting.arguments import DonatedArray
from tests.test_dispatch_fastpath_functions import X, in_python, same


@pytest.fixture(autouse=True)
def gate():
    """Skip where the fast path stays off."""
    try:
        return enable_fastpath()
    except UnknownLayout:
        pytest.skip("the fast path is off in this Python")


def compiled(f, *args, **options):
    """Return a function that is compiled for some arguments, and warm."""
    function = jit(f, backend="cpu", **options).lower(*args).compile()
    for _ in range(3):
        function(*args)
    return function


def answered(function, *args, **kwargs):
    """Return the result of a call that the fast path answers."""
    before = in_python(function)
    result = function(*args, **kwargs)
    assert in_python(function) == before, "the call has gone through Python"
    return result


def test_calls():
    f = compiled(lambda x, y: {"sum": x + y, "first": x}, X, X)
    assert type(f) is FastPathCompiled
    for k in range(10):
        same(answered(f, X, X * k), {"sum": X + X * k, "first": X})
        same(answered(f, np.asarray(X), X), {"sum": X * 2, "first": X})
    same(f.call(X, X), {"sum": X * 2, "first": X})


@pytest.mark.parametrize("keep", [False, True])
def test_arguments_that_are_not_needed(keep):
    f = compiled(lambda a, x, b, c: x * 2, X[:2], X, 1, [X], keep_unused=keep)
    same(answered(f, X[:2], X, 3, [X]), X * 2)
    same(answered(f, X[:2] + 1, X + 1, 1, [X]), X * 2 + 2)
    for wrong in ((X, X, 1, [X]), (X[:2], X, 1.0, [X]), (X[:2], X, 1, [X[:2]])):
        with pytest.raises(TypeError, match="was compiled. The mismatches"):
            f(*wrong)
    with pytest.raises(TypeError, match="structure"):
        f(X[:2], X, 1, X)


def test_programs_without_inputs_or_results():
    f = compiled(lambda x: jnp.arange(3), X)
    same(answered(f, X), jnp.arange(3))
    g = jit(lambda x: None, backend="cpu").lower(X).compile()
    for _ in range(6):
        assert g(X) is None
    with pytest.raises(TypeError, match="was compiled. The mismatches"):
        f(1.5)


def test_keywords_and_numbers():
    f = jit(lambda x, b=1.0, a=2: (x * b, x + a), backend="cpu")
    f = f.lower(X, b=2.0, a=3).compile()
    for _ in range(3):
        f(X, b=2.0, a=3)
    same(answered(f, X, a=5, b=0.5), (X * 0.5, X + 5))


def test_donation():
    f = jit(lambda x, y: x + y, donate_argnums=0, backend="cpu").lower(X, X).compile()
    for _ in range(3):
        f(X * 2, X)
    for k in range(10):
        x = X * k
        same(answered(f, x, X), X * k + X)
        assert type(x) is DonatedArray
        with pytest.raises((RuntimeError, ValueError), match="deleted"):
            f(x, X)
    x = X * 2
    view = np.asarray(x)
    same(f(x, X), X * 3)
    assert x.is_deleted() and (view == np.asarray(X) * 2).all()


def test_tracers_are_refused():
    f = compiled(lambda x: x * 2, X)
    for transform in (jit, lambda g: grad(lambda x: g(x).sum())):
        with pytest.raises(TypeError, match="Cannot apply JAX transformations"):
            transform(f)(X)
    seen = []
    core.bind_listeners.append(lambda *rest: seen.append(rest))
    try:
        same(f(X), X * 2)
    finally:
        core.bind_listeners.pop()


def test_switches():
    f = compiled(lambda x: x * 2, X)
    records = f._ready.chain[0]
    config.update("jax_enable_x64", True)
    try:
        same(f(X), X * 2)
    finally:
        config.update("jax_enable_x64", False)
    for _ in range(4):
        f(X)
    same(answered(f, X), X * 2)
    assert f._ready.chain[0] is not records
    with minijax.disable_jit():
        same(f(X), X * 2)


def test_copies():
    f = compiled(lambda x: x * 2, X)
    twin = copy.copy(f)
    assert twin is not f and twin._ready is not f._ready
    for _ in range(3):
        same(twin(X), X * 2)
    same(answered(twin, X), X * 2)
    assert f == f and f != twin and len({f, twin}) == 2  # as in JAX, by identity
    kind, fields = f.__reduce__()
    assert pickle.loads(pickle.dumps(kind)) is type(f) and len(fields) == 12


def test_it_is_forgotten():
    f = compiled(lambda x: x * 3, X)
    reference = weakref.ref(f)
    minijax.clear_caches()
    assert not f._ready.chain
    for _ in range(3):
        same(f(X), X * 3)
    same(answered(f, X), X * 3)
    del f
    gc.collect()
    assert reference() is None
