"""scan and fori_loop for their users: values, trees, caches, and what they refuse."""

import gc
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minijax
import minijax.numpy as jnp
from minijax import disable_jit, jit, lax, make_jaxpr, vmap
from minijax.scans.step import cached_per_function
from minijax.tree_util import tree_structure
from tests.scan_cases import CASES, ROWS, TABLE, X


def by_hand(f, carry, xs, reverse=False):
    rows = {}
    for i in sorted(range(len(xs)), reverse=reverse):
        carry, rows[i] = f(carry, xs[i])
    return carry, np.stack([rows[i] for i in range(len(xs))])


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("unroll", [1, 2, 7, 0, True, False])
def test_the_definition(reverse, unroll):
    def step(c, a):
        return c * 0.5 + a, c - a

    ours = lax.scan(step, jnp.asarray(X), TABLE, reverse=reverse, unroll=unroll)
    theirs = by_hand(step, X, np.asarray(TABLE), reverse)
    for a, b in zip(ours, theirs):
        np.testing.assert_allclose(a, b, rtol=1e-6)


@settings(max_examples=25)
@given(st.lists(st.integers(-4, 4), max_size=6), st.booleans())
def test_running_sums(numbers, reverse):
    xs = np.array(numbers, "int32")
    total, sums = lax.scan(lambda c, a: (c + a, c + a), 0, xs, reverse=reverse)
    assert total == sum(numbers)
    expected = np.cumsum(xs[::-1])[::-1] if reverse else np.cumsum(xs)
    np.testing.assert_array_equal(sums, expected)


def test_the_body_is_called_once():
    calls = []

    def step(c, a):
        calls.append(1)
        return c + a, c

    for _ in range(3):
        lax.scan(step, jnp.float32(0), ROWS)
    assert len(calls) == 1


def test_length_alone():
    last, ys = lax.scan(lambda c, x: (c + 1, x), 0, length=5)
    assert (last, ys) == (5, None)


def test_trees_keep_their_structure():
    carry, ys = CASES["trees"](X)
    assert tree_structure(carry) == tree_structure({"p": 0, "q": 0})
    assert tree_structure(ys) == tree_structure(({"p": 0, "q": 0}, [0]))


def test_what_is_passed_on_is_not_computed():
    xs = jnp.asarray(TABLE)
    carry, ys = lax.scan(lambda c, a: (c, (a, c)), X, xs)
    assert carry is X
    assert ys[0] is xs
    np.testing.assert_array_equal(ys[1], np.stack([X] * 4))


def test_weak_initial_values_become_strong():
    carry, _ = lax.scan(lambda c, a: (c * a, None), 1, ROWS)
    assert (carry.dtype, carry.weak_type) == (np.float32, False)
    carry, _ = lax.scan(lambda c, a: (c * 2, None), 1.0, ROWS)
    assert carry.weak_type


def test_loops_in_python_for_disable_jit():
    seen = []

    def step(c, a):
        seen.append(float(a))
        return (c + a if a > 0 else c), a

    with disable_jit():
        carry, ys = lax.scan(step, 0.0, ROWS, reverse=True)
        assert lax.fori_loop(2, 2, lambda i, c: c + 1, 7) == 7
    assert seen == [float(a) for a in ROWS[::-1]]
    np.testing.assert_array_equal(ys, ROWS)


@pytest.mark.parametrize("bounds", [(0, 4), (2, 5), (3, 3), (5, 1), (-2, 2)])
def test_fori_loop(bounds):
    lower, upper = bounds
    expected = 1.0
    for i in range(lower, upper):
        expected = expected * 0.5 + i
    body = lambda i, c: c * 0.5 + i  # noqa: E731
    assert lax.fori_loop(lower, upper, body, 1.0) == expected
    assert jit(lambda a, b: lax.fori_loop(a, b, body, 1.0))(lower, upper) == expected


def test_known_bounds_make_a_scan():
    names = lambda f, *args: [e.primitive.name for e in make_jaxpr(f)(*args).eqns]  # noqa: E731
    body = lambda i, c: c + i  # noqa: E731
    assert names(lambda: lax.fori_loop(0, np.int32(3), body, 0)) == ["scan"]
    assert names(lambda: lax.fori_loop(0, 3, body, 0)) == ["scan"]
    assert names(lambda n: lax.fori_loop(0, n, body, 0), 3) == ["while"]


def test_fori_loop_writes_down_its_body_once():
    calls = []

    def body(i, c):
        calls.append(1)
        return c + i

    for n in (3, 3, 4):
        lax.fori_loop(0, n, body, 0)
    assert len(calls) == 1
    outer = jit(lambda n: lax.fori_loop(0, n, body, 0))
    assert (outer(3), outer(4)) == (3, 6)
    assert len(calls) == 2


def test_bodies_are_let_go():
    def run():
        table = jnp.ones(3)

        def body(i, c):
            return c * table

        lax.fori_loop(0, 3, body, jnp.ones(3))
        lax.scan(lambda c, a: (c * table + a, c), jnp.ones(3), TABLE)
        return weakref.ref(body)

    gone = run()
    gc.collect()
    assert gone() is None


def test_functions_without_weak_references():
    class Add:
        __slots__ = ()

        def __call__(self, i, c):
            return c + i

    assert lax.fori_loop(0, 4, Add(), 0) == 6
    assert cached_per_function(lambda function: function, add := Add())() is add


def test_methods_as_bodies():
    class Model:
        def step(self, i, c):
            return c + i

    assert lax.fori_loop(0, 4, Model().step, 0) == 6


# What is refused: the message names the leaf, both types, and what was given.

REFUSED = {
    "dtype of a leaf": (
        lambda: lax.scan(
            lambda s, a: ({"w": [s["w"][0] * a]}, a), {"w": [jnp.int32(1)]}, ROWS
        ),
        TypeError,
        ["s['w'][0]", "int32[]", "float32[]"],
    ),
    "shape": (
        lambda: lax.scan(lambda s, a: (s + TABLE, a), 1.0, ROWS),
        TypeError,
        ["s ", "float32[]", "float32[4,3]"],
    ),
    "tree": (
        lambda: lax.scan(lambda s, a: ((s, s), a), 1.0, ROWS),
        TypeError,
        ["s", "tuple"],
    ),
    "no pair": (lambda: lax.scan(lambda s, a: s, 1.0, ROWS), TypeError, ["pair"]),
    "lengths": (
        lambda: lax.scan(lambda s, a: (s, a), 1.0, {"u": ROWS, "v": TABLE[:2]}),
        ValueError,
        ["xs['u']: 4", "xs['v']: 2"],
    ),
    "length": (
        lambda: lax.scan(lambda s, a: (s, a), 1.0, ROWS, length=3),
        ValueError,
        ["length: 3", "xs: 4"],
    ),
    "no rows": (
        lambda: lax.scan(lambda s, a: (s, a), 1.0, [ROWS, 2.0]),
        ValueError,
        ["xs[1]", "2.0"],
    ),
    "nothing": (lambda: lax.scan(lambda s, a: (s, a), 1.0), ValueError, ["length"]),
    "traced length": (
        lambda: jit(lambda n: lax.scan(lambda s, a: (s, a), 1.0, length=n))(3),
        minijax.errors.ConcretizationTypeError,
        ["length", "fori_loop"],
    ),
    "traced unroll": (
        lambda: jit(lambda n: lax.scan(lambda s, a: (s, a), 1.0, ROWS, unroll=n))(3),
        minijax.errors.ConcretizationTypeError,
        ["unroll"],
    ),
    "unroll": (
        lambda: lax.scan(lambda s, a: (s, a), 1.0, ROWS, unroll=-2),
        ValueError,
        ["unroll", "-2"],
    ),
    "bounds": (
        lambda: lax.fori_loop(jnp.int32(0), jnp.uint8(3), lambda i, c: c, 0),
        TypeError,
        ["int32", "uint8"],
    ),
    "unrolled while": (
        lambda: jit(lambda n: lax.fori_loop(0, n, lambda i, c: c, 0, unroll=2))(3),
        ValueError,
        ["unroll", "upper"],
    ),
    "not a function": (lambda: lax.fori_loop(0, 3, 4, 0), TypeError, ["body_fun", "4"]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    call, kind, facts = REFUSED[name]
    with pytest.raises(kind) as caught:
        call()
    for fact in facts:
        assert fact in str(caught.value)


def test_no_steps_in_python():
    with disable_jit(), pytest.raises(ValueError, match="zero-length"):
        lax.scan(lambda c, a: (c, a), 1.0, ROWS[:0])


def test_threads_share_one_program():
    from concurrent.futures import ThreadPoolExecutor

    calls = []

    def step(c, a):
        calls.append(1)
        return c + a, c

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: lax.scan(step, 0.0, ROWS)[0], range(40)))
    assert len({float(r) for r in results}) == 1
    assert len(calls) <= 2  # the second is for the strong carry


def test_many_eager_loops_leave_nothing_behind():
    gc.collect()
    before = len(gc.get_objects())
    for n in range(100):
        lax.scan(lambda c, a: (c * n + a, c), jnp.float32(1), ROWS)  # noqa: B023
    gc.collect()
    assert len(gc.get_objects()) - before < 500


def test_vmapped_lengths_of_fori_loop():
    def triangle(n):
        return lax.fori_loop(0, n, lambda i, c: c + i, 0)

    np.testing.assert_array_equal(vmap(triangle)(jnp.arange(5)), [0, 0, 1, 3, 6])
