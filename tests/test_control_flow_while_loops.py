"""while_loop: carries, constants, and what it refuses."""

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import disable_jit, jit, lax, make_jaxpr, vmap
from minijax.jaxprs.checker import check_jaxpr


def power(x, n):
    def body(c):
        return {"i": c["i"] + 1, "p": c["p"] * x}

    return lax.while_loop(lambda c: c["i"] < n, body, {"i": 0, "p": 1.0})["p"]


def test_values():
    for f in (power, jit(power)):
        assert f(2.0, 10) == 1024
        assert f(2.0, 0) == 1
    check_jaxpr(make_jaxpr(power)(2.0, 10))


@pytest.mark.parametrize("backend", ["interpreter", "python"])
def test_backends(backend):
    np.testing.assert_allclose(jit(power, backend=backend)(1.5, 7), 1.5**7, rtol=1e-6)
    batched = jit(vmap(power), backend=backend)
    x, n = jnp.asarray([1.5, 2.0, 3.0]), jnp.asarray([0, 7, 2])
    np.testing.assert_allclose(batched(x, n), [1, 128, 9], rtol=1e-6)


def test_weak_starts():
    out = lax.while_loop(lambda c: c < 3, lambda c: c + np.float32(1), 0)
    assert (out, out.dtype, out.weak_type) == (3, np.float32, False)
    out = lax.while_loop(lambda c: c < 3, lambda c: c + 1, 0)
    assert (out.dtype, out.weak_type) == (np.int32, True)


def test_what_never_changes_is_a_constant():
    def f(x, y):
        def body(c):
            i, y, p = c
            return i + 1, y, p * y

        return lax.while_loop(lambda c: c[0] < 3, body, (0, y, x))

    [eqn] = make_jaxpr(f)(2.0, 3.0).eqns
    assert eqn.params["body_nconsts"] == 1
    assert len(eqn.outvars) == 2
    assert f(2.0, 3.0) == (3, 3.0, 54.0)


def test_what_the_condition_asks_for_is_carried():
    def f(n):
        return lax.while_loop(lambda c: c[0] < c[1], lambda c: (c[0] + 1, c[1]), (0, n))

    [eqn] = make_jaxpr(f)(5).eqns
    assert len(eqn.outvars) == 2
    assert f(5) == (5, 5)


def test_nothing_is_carried():
    assert lax.while_loop(lambda c: False, lambda c: c, ()) == ()


def test_without_jit():
    seen = []

    def body(c):
        seen.append(int(c))
        return c + 1

    with disable_jit():
        assert lax.while_loop(lambda c: c < 3, body, 0) == 3
        assert seen == [0, 1, 2]
        out = vmap(lambda n: lax.while_loop(lambda c: c < n, lambda c: c + 1, 0))(
            jnp.asarray([1, 4])
        )
    np.testing.assert_array_equal(out, [1, 4])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: lax.while_loop(1, abs, 0), "callable"),
        (lambda: lax.while_loop(lambda c: c, lambda c: c, 0), "boolean scalar"),
        (lambda: lax.while_loop(lambda c: c > 0, lambda c: c, jnp.ones(2)), "bool[2]"),
        (lambda: lax.while_loop(lambda c: (c > 0,), lambda c: c, 0), "boolean scalar"),
        (lambda: lax.while_loop(lambda c: True, lambda c: c, "a"), "str"),
        (
            lambda: lax.while_loop(
                lambda c: True, lambda c: {"a": c["a"] + 0.5}, {"a": np.int32(1)}
            ),
            "c['a'] comes in as int32[] and goes out as ~float32[] (the dtypes differ)",
        ),
        (
            lambda: lax.while_loop(lambda t: True, lambda t: (t[0],), (1, 2)),
            "at t: expected a tuple of length 2",
        ),
    ],
)
def test_refusals(call, words):
    with pytest.raises(TypeError) as caught:
        call()
    assert words in str(caught.value)
