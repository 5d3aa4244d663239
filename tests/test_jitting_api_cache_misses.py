"""Each reason for a trace is one sentence that names the argument."""

import logging

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp

V = np.float32([0.5, 1.0, 2.0])


@pytest.fixture
def reasons(caplog):
    with minijax.explain_cache_misses(), caplog.at_level(logging.WARNING):
        yield lambda: [record.getMessage() for record in caplog.records]


def loss(params, x, n=2):
    return (params["w"] * x).sum() * n


def vmapped(f, name):
    return lambda params, x: minijax.vmap(f, (None, 0), axis_name=name)(params, x)


W = {"w": V}
WEAK = (
    "https://docs.jax.dev/en/latest/type_promotion.html#weak-types says where weak "
    "types come from"
)
ROWS = {
    "dtype": (
        lambda f: f({"w": V.astype(np.int32)}, V),
        "of different input types: the dtype differs at params['w'], now i32[3] and "
        "before f32[3]",
    ),
    "shape": (
        lambda f: f(W, np.ones((2, 3), np.float32)),
        "of different input types: the shape differs at x, now f32[2,3] and before "
        "f32[3]",
    ),
    "shape and dtype": (
        lambda f: f(W, 2),
        "of different input types: the shape and dtype and weak type differs at x, now "
        "i32[]{weak_type=True} and before f32[3]{weak_type=False}; " + WEAK,
    ),
    "structure": (
        lambda f: f({"w": V, "b": V}, V),
        "the structure of its argument params changed from a dict with ('w',) to one "
        "with ('b', 'w')",
    ),
    "static": (
        lambda f: f(W, V, 3),
        "its static argument n changed from its default to 3",
    ),
    "keyword": (
        lambda f: f(W, x=V),
        "the number of its positional arguments changed from 2 to 1",
    ),
    "axes": (
        lambda f: vmapped(f, "batch")(W, np.stack([V, V])),
        "the named axes around the call changed from none to 'batch' of size 2",
    ),
}


def in_x64(f):
    with minijax.enable_x64():
        f(W, V)


ROWS["switch"] = (
    in_x64,
    "the tracing context changed: jax_enable_x64, now True and before False",
)


@pytest.mark.parametrize("name", ROWS)
def test_reason(name, reasons):
    call, reason = ROWS[name]
    f = minijax.jit(loss, static_argnames="n")
    f.clear_cache()
    f(W, V)
    call(f)
    assert reasons()[-1] == f"loss is traced again because {reason}."


def test_structure_inside(reasons):
    f = minijax.jit(lambda d: None)
    f({"a": [1.0, 2.0]}), f({"a": [1.0, (2.0,)]}), f({"a": None})
    assert [text.partition(" because ")[2] for text in reasons()[1:]] == [
        "the structure of its argument d['a'][1] changed from a leaf to a tuple.",
        "the structure of its argument d['a'] changed from a list to None of type "
        "NoneType.",
    ]


def test_weak_type(reasons):
    f = minijax.jit(lambda x: x * 2)
    f(1.0), f(np.float32(1.0)), f(1.0)
    assert reasons()[1:] == [
        "<lambda> is traced again because of different input types: the weak type "
        "differs at x, now f32[]{weak_type=False} and before f32[]{weak_type=True}; "
        f"{WEAK}."
    ]


def test_all_switches_are_named(reasons):
    f = minijax.jit(lambda x: x * 2)
    f(1.0)
    high = minijax.default_matmul_precision("high")
    with minijax.numpy_rank_promotion("warn"), high:
        f(1.0)
    assert "jax_numpy_rank_promotion, now warn and before allow" in reasons()[-1]
    assert "matmul_precision, now high and before None" in reasons()[-1]


def test_statics(reasons):
    f = minijax.jit(lambda x, n: x * n, static_argnums=1)
    f(1.0, 2), f(1.0, 3), f(1.0, 3.0), f(1.0, n=3)
    assert reasons()[1:] == [
        "<lambda> is traced again because its static argument n changed from 2 to 3.",
        "<lambda> is traced again because its static argument n changed from 3 to 3.0.",
    ]


def test_the_nearest_key_is_compared(reasons):
    f = minijax.jit(lambda x, y, z: x)
    f(1, 1, 1), f(V, V, V), f(1, 1, V)
    assert (
        "the shape and dtype and weak type differs at z, now f32[3]{weak_type=False} "
        "and before i32[]{weak_type=True};"
    ) in reasons()[-1]
    f(V, V, 1.5)
    assert "at z, now f32[]{weak_type=True} and before f32[3]" in reasons()[-1]
    f(np.int8(1), np.int8(1), np.int8(1))
    assert reasons()[-1].endswith(", and so did 2 other things.")


def test_the_nearest_key_has_most_static_arguments_in_common(reasons):
    f = minijax.jit(lambda x, a=0, b=0: x, static_argnames=("a", "b"))
    f(1.0, a=1, b=1), f(1.0, a=2, b=2), f(1.0, a=1, b=3)
    assert reasons()[-1].endswith("static argument b changed from 1 to 3.")


def test_the_nearest_key_has_most_arguments_in_common(reasons):
    f = minijax.jit(lambda x, *rest, **options: x)
    f(1.0, 2.0), f(1.0, 2.0, 3.0), f(1.0, 2.0, extra=3.0)
    assert reasons()[-1].endswith("given by keyword changed from nothing to extra.")


def test_functions_with_names_of_their_own(reasons):
    minijax.jit(jnp.sinh)(1.0), minijax.jit(jnp.cosh)(1.0)
    said = reasons()[-1]  # another test may have called it, and cleared the caches
    assert said.startswith("cosh is traced because") and "is new" not in said


def test_first_times(reasons):
    def make():
        return lambda x: x + 1

    first = make()
    minijax.jit(first)(1.0)
    minijax.jit(make())(1.0)
    minijax.clear_caches()
    minijax.jit(first)(1.0)
    assert [text.partition(" because ")[2] for text in reasons()] == [
        "it is called for the first time.",
        "this function object is new: there was another function defined on the same "
        "line, and each object has programs of its own.",
        "the caches were cleared after its last call.",
    ]


def test_closures_over_tracers(reasons):
    def outer(x):
        inner = minijax.jit(lambda y: x * y)
        return inner(2.0) + inner(3.0)

    minijax.grad(outer)(1.0)
    assert reasons()[1] == (
        "<lambda> is traced because it uses values of a transformation around it, and "
        "a program with such values in it is right for one call alone."
    )


def test_keywords(reasons):
    f = minijax.jit(lambda **kwargs: sum(kwargs.values()))
    f(a=1.0, b=2.0), f(a=1.0), f()
    assert [text.partition(" because ")[2] for text in reasons()[1:]] == [
        "what it is given by keyword changed from a and b to a.",
        "what it is given by keyword changed from a to nothing.",
    ]


def test_nothing_is_said_unless_asked(caplog):
    minijax.jit(lambda x: x)(jnp.ones(3))
    assert not caplog.records
