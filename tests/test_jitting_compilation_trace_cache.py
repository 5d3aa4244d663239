"""What a program depends on, and what is kept."""

import gc
import weakref

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax.core import current_trace
from minijax.jitting.arguments import StaticKey
from minijax.jitting.compilation import name_of_program, trace_cache_of, trace_call
from minijax.pytrees.api_util import FlatCall

V = np.float32([0.5, 1.0, 2.0])


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (1, 1.0),
        (1, True),
        (0.0, -0.0),
        ((1, 2), (1.0, 2)),
        ((1, (0.0,)), (1, (-0.0,))),
        ("a", "b"),
        ((1,), (1, 2)),
    ],
)
def test_statics_that_differ(a, b):
    assert StaticKey(a) != StaticKey(b)


NAN = float("nan")


@pytest.mark.parametrize("value", [1, 0.0, -0.0, (1, 2.0), "a", None, NAN, len, (NAN,)])
def test_statics_that_are_the_same(value):
    assert StaticKey(value) == StaticKey(value)
    assert hash(StaticKey(value)) == hash(StaticKey(value))
    assert repr(StaticKey(value)) == repr(value)
    assert StaticKey(value) != value


def test_all_nans_are_one_static_value():
    traced = []
    f = minijax.jit(lambda x, y: traced.append(y) or x, static_argnums=1)
    f(1.0, float("nan"))
    f(1.0, float("nan"))
    assert len(traced) == 1


class Incomparable:
    def __hash__(self):
        return 0

    def __eq__(self, other):
        raise KeyError("no")


def test_statics_that_cannot_be_compared():
    f = minijax.jit(lambda x, mode: x, static_argnums=1)
    f(1.0, Incomparable())
    with pytest.raises(ValueError, match="Incomparable are not: KeyError: 'no'"):
        f(1.0, Incomparable())


def test_a_function_that_calls_its_jitted_self():
    f = minijax.jit(lambda x: f(x))
    with pytest.raises(RecursionError):
        f(1.0)


def f(x, y):
    return {"sum": jnp.sin(x) + y}


def test_a_program_is_written_once():
    call = FlatCall("jit", f, (V, 1.0))
    program = trace_call(call)
    assert trace_call(FlatCall("jit", f, (V + 1, 2.0))) is program
    assert program.name == "f"
    assert str(program.out_tree) == "PyTreeDef({'sum': *})"
    assert program.captured == []
    assert trace_call(call, (("n", StaticKey(1)),)) is not program
    assert trace_call(call, hoist=True) is not program
    assert len(trace_cache_of(f).values) == 3


def test_hoisting():
    table = jnp.asarray(V)
    call = FlatCall("scan", lambda x: x * table, (V,))
    inside, hoisted = trace_call(call), trace_call(call, hoist=True)
    assert len(inside.closed.consts) == 1 and not inside.captured
    assert not hoisted.closed.consts and hoisted.captured[0] is table
    assert len(hoisted.closed.invars) == 2


def test_programs_with_tracers_are_not_kept():
    counts = []

    def outer(x):
        def inner(y):
            counts.append(1)
            return x * y

        once = trace_cache_of(inner)
        program = trace_call(FlatCall("jit", inner, (2.0,)))
        assert len(program.captured) == 1
        assert not once.values and once.refused
        return x

    minijax.grad(outer)(1.0)
    assert counts == [1]


def test_programs_die_with_their_function():
    def function(x):
        return x * jnp.asarray(V)

    kept = weakref.ref(trace_call(FlatCall("jit", function, (V,))).closed)
    assert kept() is not None
    gc.disable()
    try:
        del function
        assert current_trace().parent is None  # who reads lets go of what has ended
        assert kept() is None
    finally:
        gc.enable()


class Unhashable:
    __hash__ = None

    def __call__(self, x):
        return x


def test_functions_that_cannot_be_remembered():
    call = FlatCall("jit", Unhashable(), (1.0,))
    assert trace_call(call) is not trace_call(call)


def test_names():
    from functools import partial

    assert name_of_program(f) == "f"
    assert name_of_program(partial(f, 1)) == "f"
    assert name_of_program(Unhashable()) == "<unnamed function>"
