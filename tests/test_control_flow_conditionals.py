"""cond and switch: who is asked, what they return, and what they refuse."""

import gc
import weakref

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import disable_jit, jit, lax, make_jaxpr, vmap
from minijax.core import Tracer
from minijax.jaxprs.checker import check_jaxpr


def pick(x):
    return lax.cond(x > 0, lambda x: jnp.sin(x) * x, lambda x: x * 2.0, x)


@pytest.mark.parametrize("pred", [True, 1, 0.5, np.bool_(True), np.int8(2)])
def test_predicates_that_hold(pred):
    assert lax.cond(pred, lambda: 1, lambda: 2) == 1
    assert jit(lambda p: lax.cond(p, lambda: 1, lambda: 2))(pred) == 1


@pytest.mark.parametrize("pred", [False, 0, 0.0, np.float16(0)])
def test_predicates_that_do_not(pred):
    assert lax.cond(pred, lambda: 1, lambda: 2) == 2


def test_both_branches_are_traced_and_one_is_run():
    asked = []

    def branch(name):
        def run(x):
            asked.append(isinstance(x, Tracer))
            return x * name

        return run

    assert lax.cond(True, branch(2), branch(3), 1.0) == 2
    assert asked == [True, True]


def test_without_jit_one_function_is_called():
    with disable_jit():
        assert lax.cond(True, lambda: "yes", lambda: 1 / 0) == "yes"
        assert lax.switch(1, [lambda: 1 / 0, lambda: "yes"]) == "yes"


def test_trees_and_captured_arrays():
    table = jnp.arange(3.0)

    def f(p, t):
        return lax.cond(
            p,
            lambda t: {"a": t["x"] * table, "b": (t["y"], None)},
            lambda t: {"a": table + 1, "b": (t["x"], None)},
            t,
        )

    out = f(True, {"x": 2.0, "y": 3.0})
    np.testing.assert_array_equal(out["a"], [0, 2, 4])
    assert out["b"] == (3.0, None)
    closed = make_jaxpr(f)(True, {"x": 2.0, "y": 3.0})
    check_jaxpr(closed)
    assert len(closed.eqns[-1].invars) == 4  # index, table, x, y


def test_a_captured_array_is_one_operand():
    closed = make_jaxpr(lambda p, x: lax.cond(p, lambda: x + 1, lambda: x * 2))(1, 2.0)
    assert len(closed.eqns[-1].invars) == 2


def test_what_all_branches_hand_on_is_no_result():
    def f(p, x, y):
        return lax.cond(p, lambda x, y: (x, y), lambda x, y: (x, x), x, y)

    eqn = make_jaxpr(f)(True, 1.0, 2.0).eqns[-1]
    assert len(eqn.outvars) == 1
    assert f(False, 1.0, 2.0) == (1.0, 1.0)


def test_index_stays_inside():
    branches = [lambda: 0, lambda: 1, lambda: 2]
    found = [int(lax.switch(i, branches)) for i in (-5, 0, 1, 2, 7, np.uint8(200))]
    assert found == [0, 0, 1, 2, 2, 2]


def test_weak_types_are_those_of_the_first_branch():
    out = lax.cond(True, lambda: np.float32(1), lambda: 2.0)
    assert (out, out.weak_type) == (1.0, True)
    out = lax.cond(True, lambda: 1.0, lambda: np.float32(2))
    assert (out, out.weak_type) == (1.0, False)


def test_older_ways_of_calling():
    assert lax.cond(True, 1.0, lambda x: x + 1, 5.0, lambda x: x) == 2.0
    assert lax.cond(False, lambda x: x, lambda x: -x, operand=3.0) == -3.0
    assert lax.cond(False, lambda x: 1, lambda x: 2, operand=None) == 2


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: lax.cond(jnp.ones(3), abs, abs, 1), "shape (3,)"),
        (lambda: lax.cond(None, abs, abs, 1), "None"),
        (lambda: lax.cond([1], abs, abs, 1), "scalar"),
        (lambda: lax.cond(1j, abs, abs, 1), "complex"),
        (lambda: lax.cond(True, 1, 2), "callable"),
        (lambda: lax.cond(True, abs, abs, 1, operand=2), "not both"),
        (lambda: lax.cond(True, lambda: {"a": (1, 2)}, lambda: {"a": (1, 2.0)}),
         "result['a'][1] is ~int32[] from true_fun and ~float32[] from false_fun"),
        (lambda: lax.cond(True, lambda: [1], lambda: [1, 2]), "length 2"),
        (lambda: lax.switch(0, [lambda: 1, lambda: 1, lambda: jnp.ones(2)]),
         "float32[2] from branch 2 (the shapes and dtypes differ)"),
        (lambda: lax.switch(0.5, [abs, abs], 1), "float32"),
        (lambda: lax.switch(jnp.ones(2, int), [abs, abs], 1), "int32[2]"),
        (lambda: lax.switch(0, [1, 2]), "callables"),
    ],
)  # fmt: skip
def test_refusals(call, words):
    with pytest.raises(TypeError) as caught:
        call()
    assert words in str(caught.value)


def test_no_branches():
    with pytest.raises(ValueError, match="no branch"):
        lax.switch(0, [])


def test_collectives_inside():
    def f(x, p):
        return lax.cond(p, lambda: lax.psum(x, "i"), lambda: x)

    x = jnp.arange(3.0)
    mapped = vmap(f, in_axes=(0, None), axis_name="i")
    np.testing.assert_array_equal(mapped(x, True), [3, 3, 3])
    np.testing.assert_array_equal(mapped(x, False), x)


def test_traced_once_for_a_function_that_stays():
    calls = []

    def yes(x):
        calls.append(x)
        return x

    for _ in range(5):
        lax.cond(True, yes, jnp.negative, 1.0)
    assert len(calls) == 1


def test_programs_die_with_their_functions():
    def no(x):
        return x * 2

    def once():
        def yes(x):
            return x + 1

        lax.cond(True, yes, no, 1.0)
        return weakref.ref(yes)

    gone = once()
    gc.collect()
    assert gone() is None
