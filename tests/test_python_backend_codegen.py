"""Programs as functions of Python: their text, memory, names and constants."""

import gc
import linecache
import re
import weakref

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import grad, jit, lax, make_jaxpr
from minijax.core import Primitive
from minijax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Var
from minijax.python_backend.codegen import (
    Emission,
    PythonEmitter,
    emit,
    last_uses,
    python_rules,
)
from minijax.python_backend.codegen_rules import assign_outputs, inline_jaxpr_into

X = np.float32([0.1, 0.2, 0.3])


def text_of(f, *args):
    """The text of a function, without comments."""
    text = emit(make_jaxpr(f)(*args), "f")[0]
    return re.sub(r"(?m)^ *#.*\n", "", text)


def test_text_of_a_loss():
    def loss(w, x, y):
        residual = jnp.tanh(x @ w) - y
        return (residual * residual).sum()

    assert text_of(loss, X, np.ones((8, 3), "f"), np.ones(8, "f")) == (
        "def f(a, b, c):\n"
        "    d = (b @ a.reshape((3, 1))).reshape((8,))\n"
        "    e = np.tanh(d)\n"
        "    del d\n"
        "    f_ = e - c\n"
        "    del e\n"
        "    g = f_ * f_\n"
        "    del f_\n"
        "    h = np.add.reduce(g, axis=(0,))\n"
        "    return [h]\n"
    )


def test_text_is_the_same_each_time():
    def f(x):
        return grad(lambda x: (jnp.tanh(x) * 2.0 * x).sum())(x)

    assert emit(make_jaxpr(f)(X))[0] == emit(make_jaxpr(f)(X))[0]


def test_letters_are_those_of_the_jaxpr():
    inner = jit(lambda x: jnp.sin(x) * 2.0)
    closed = make_jaxpr(lambda x: inner(inner(x) + 1.0))(X)
    printed = re.findall(r"(\w+):f32\[3\]", str(closed))
    emitted = re.findall(r"^ +(?:\[?)(\w)\]? =|\((\w)\):", emit(closed)[0], re.M)
    assert {*map("".join, emitted)} == {*printed}


def test_users_line_is_a_comment():
    def f(x):
        y = jnp.sin(x) * 2.0
        return y

    text = emit(make_jaxpr(f)(X))[0]
    assert text.count("# y = jnp.sin(x) * 2.0") == 1


def test_functions_are_shared():
    inner = jit(lambda x: jnp.sin(x) * 2.0)
    text = emit(make_jaxpr(lambda x: inner(inner(x)) + inner(x))(X))[0]
    assert text.count("def ") == 2 and text.count("= lambda_(") == 3


def test_functions_of_one_name_and_other_programs():
    sine, cosine = (jit(lambda x, g=g: g(x)) for g in (jnp.sin, jnp.cos))
    closed = make_jaxpr(lambda x: sine(x) + cosine(x))(X)
    _, function, _ = emit(closed)
    np.testing.assert_array_equal(function(X)[0], np.sin(X) + np.cos(X))


def test_a_function_called_like_what_it_calls():
    text, function, _ = emit(make_jaxpr(lambda x: lax.erf(x))(X), "erf")
    assert "def erf(a)" in text and "erf_(a)" in text
    assert function(X)[0].shape == (3,)


@pytest.mark.parametrize("length", [214, 354, 800])
def test_long_programs(length):
    def f(x):
        for _ in range(length):
            x = jnp.tanh(x)
        return x

    closed = make_jaxpr(f)(X)
    [result] = emit(closed)[1](X)
    expected = X
    for _ in range(length):
        expected = np.tanh(expected)
    np.testing.assert_array_equal(result, expected)


def test_constants_belong_to_their_program():
    closed = [make_jaxpr(lambda x, c=c: x * c)(X) for c in (X + 1, X + 2)]
    texts, functions = zip(*[emit(program)[:2] for program in closed])
    assert re.sub("#.*", "", texts[0]) == re.sub("#.*", "", texts[1])
    for function, c in zip(functions, (X + 1, X + 2)):
        np.testing.assert_array_equal(function(X)[0], X * c)


def test_constants_without_axes_are_scalars():
    c = jnp.sin(1.0)
    [result] = emit(make_jaxpr(lambda x: x * c)(1.0))[1](np.float32(1))
    assert type(result) is np.float32


def test_programs_of_literals_and_inputs_alone():
    closed = make_jaxpr(lambda x: (x, 1.0, x, np.int8(2)))(X)
    results = emit(closed)[1](X)
    assert results[0] is X and results[2] is X
    assert [type(r) for r in results[1::2]] == [np.float32, np.int8]
    assert emit(make_jaxpr(lambda: ())())[1]() == []


def test_equations_that_nobody_needs_are_left_out():
    assert "sin" not in text_of(lambda x: (jnp.sin(x), x * 2.0)[1], X)
    inner = jit(lambda x: (jnp.sin(x), x * 2.0))
    assert "sin" not in text_of(lambda x: inner(x)[1], X)


def test_memory_stays_bounded():
    def f(x):
        for _ in range(50):
            x = jnp.tanh(x) * 2.0
        return x

    held, alive = [], []
    watched = Primitive("watched")

    class Watched(np.ndarray):
        def __array_finalize__(self, other):
            held.append(weakref.ref(self))
            alive.append(sum(ref() is not None for ref in held))

    assert watched not in python_rules
    emit(make_jaxpr(f)(X))[1](X.view(Watched))
    assert len(alive) > 90 and max(alive) <= 4


def test_no_reference_cycles_and_no_source_left():
    inner = jit(lambda x: lax.erf(x) * X)
    closed = make_jaxpr(lambda x: inner(inner(x)))(X)
    gc.collect()
    before = len([name for name in linecache.cache if name.startswith("<minijax")])
    for _ in range(20):
        text, function, _ = emit(closed)
        function(X)
    reference = weakref.ref(function)
    del function
    assert reference() is None
    after = len([name for name in linecache.cache if name.startswith("<minijax")])
    assert after == before
    assert gc.collect() == 0


def repeated(body, times, *types):
    """A program that applies a program to a value several times."""
    repeat = Primitive("repeat")
    start, end = Var(body.in_avals[0]), Var(body.out_avals[0])
    eqn = JaxprEqn([start], [end], repeat, {"body": body, "times": times})
    return repeat, ClosedJaxpr(Jaxpr([], [start], [end], [eqn]), [])


def test_inline_in_a_block():
    body = make_jaxpr(lambda x: jnp.tanh(jnp.sin(x)))(X)
    repeat, closed = repeated(body, 3)

    def write(emitter, eqn, operands, results):
        body = eqn.params["body"]
        emitter.assign(results, operands)
        with emitter.block(f"for _ in range({eqn.params['times']}):"):
            assign_outputs(emitter, body, emitter.inline(body, results), results)

    python_rules[repeat] = write
    try:
        text, function, _ = emit(closed)
    finally:
        del python_rules[repeat]
    expected = X
    for _ in range(3):
        expected = np.tanh(np.sin(expected))
    np.testing.assert_array_equal(function(X)[0], expected)
    assert text.count("del ") == 2  # the sine, and the loop's own name of the result


def emitter_of(closed):
    """A emitter, and the names of the inputs of a program."""
    emitter = PythonEmitter(Emission(closed.jaxpr))
    return emitter, [emitter.name("x") for _ in closed.invars]


def written(closed, names):
    """The lines of a program in place, without comments."""
    emitter, inputs = emitter_of(closed)
    inline_jaxpr_into(emitter, closed, inputs, names)
    return [line.strip() for line in emitter.lines if "#" not in line]


def test_results_in_place_have_the_names_that_are_given():
    closed = make_jaxpr(lambda x: (jnp.sin(x), x, jnp.sin(x) * 2.0))(X)
    assert written(closed, ["p", "q", "_"]) == [
        *("p = np.sin(x)", "c = np.sin(x)", "d = c * 2.0", "del c"),
        *("q = x", "del d"),
    ]


def test_one_value_may_be_two_results():
    closed = make_jaxpr(lambda x: [jnp.sin(x)] * 2)(X)
    assert written(closed, ["p", "q"]) == ["q = np.sin(x)", "p = q"]


def test_results_are_handed_over_and_forgotten():
    closed = make_jaxpr(lambda x, n: (jnp.sin(x), x, n + 1.0))(X, 1.0)
    emitter, inputs = emitter_of(closed)
    values = emitter.inline(closed, inputs)
    start = len(emitter.lines)
    assign_outputs(emitter, closed, values, ["p", "q", "r"])
    made, passed, number = values
    assert [line.strip() for line in emitter.lines[start:]] == [
        f"p, q, r = {made}, {passed}, {number}",
        f"del {made}",  # the second is an input, the third has no axes
    ]


def test_a_promise_is_kept_once():
    closed = make_jaxpr(lambda x: jnp.sin(x) * 2.0)(X)
    emitter, inputs = emitter_of(closed)
    inline_jaxpr_into(emitter, closed, inputs, ["p"])
    assert not emitter.declared_types and emitter.inline(closed, inputs) != ["p"]


def test_inline_twice_has_other_names():
    closed = make_jaxpr(lambda x: jnp.sin(x) * 2.0)(X)
    emitter, inputs = emitter_of(closed)
    first, second = emitter.inline(closed, inputs), emitter.inline(closed, inputs)
    assert first != second


def test_assign_is_simultaneous():
    emitter, _ = emitter_of(make_jaxpr(jnp.sin)(X))
    emitter.assign(["a", "b", "_", "c"], ["b", "a", "z", "c"])
    assert [line.strip() for line in emitter.lines] == ["a, b = b, a"]
    emitter.assign(["a"], ["a"])
    assert len(emitter.lines) == 1


def test_unused_results_are_not_deleted():
    emitter, _ = emitter_of(make_jaxpr(jnp.sin)(X))
    emitter.forget(["_", "a", "_", "a"])
    assert [line.strip() for line in emitter.lines] == ["del a"]


def test_constants_are_named_once():
    emitter, _ = emitter_of(make_jaxpr(jnp.sin)(X))
    assert emitter.constant(X, "table") == emitter.constant(X, "other") == "table"
    assert emitter.constant(X + 1, "table") == "table_"
    assert emitter.dtype(np.dtype("float32")) == "np.float32"
    assert emitter.dtype(np.dtype(bool)) == "np.bool"


def dying(f, *args):
    """How many variables die after each equation."""
    return [len(variables) for variables in last_uses(make_jaxpr(f)(*args).jaxpr)]


def test_values_die_after_their_last_use():
    x = np.ones(3)
    assert dying(lambda x: jnp.tanh(jnp.sin(x) * x), x) == [0, 1, 1]
    assert dying(lambda x: (jnp.tanh(jnp.sin(x)), jnp.sin(x)), x) == [0, 1, 0]
    assert dying(lambda x: [jnp.sin(x) * 2, x][1], x) == [0, 2]


def test_scalars_are_left_alone():
    assert dying(lambda x: jnp.tanh(jnp.sin(x)), 1.0) == [0, 0]
