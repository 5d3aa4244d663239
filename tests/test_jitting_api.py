"""The arguments of jit, and what it refuses."""

import numpy as np
import pytest

import minijax


def f(x, y, z=3, *, k=1):
    return x + y * z + k


CALLS = {
    "plain": (lambda: minijax.jit(f)(1.0, 2.0), 8.0),
    "static": (lambda: minijax.jit(f, static_argnums=1)(1.0, 2), 8.0),
    "negative": (lambda: minijax.jit(f, static_argnums=-1)(1.0, 2, 4), 10.0),
    "default": (lambda: minijax.jit(f, static_argnums=2)(1.0, 2), 8.0),
    "keyword": (lambda: minijax.jit(f, static_argnames="k")(1.0, 2, k=4), 11.0),
    "by name": (lambda: minijax.jit(f, static_argnames="y")(1.0, 2), 8.0),
    "by both": (
        lambda: minijax.jit(f, static_argnums=1, static_argnames="k")(1.0, 2, k=2),
        9.0,
    ),
    "factory": (lambda: minijax.jit(static_argnums=1)(f)(1.0, 2), 8.0),
    "inline": (lambda: minijax.jit(f, inline=True)(1.0, 2.0), 8.0),
    "keep": (lambda: minijax.jit(f, keep_unused=True)(1.0, 2.0), 8.0),
    "backend": (lambda: minijax.jit(f, backend="interpreter")(1.0, 2.0), 8.0),
    "twice": (lambda: minijax.jit(minijax.jit(f))(1.0, 2.0), 8.0),
    "self": (lambda: minijax.jit(lambda self, fun: self + fun)(self=1.0, fun=2.0), 3.0),
    "rest": (
        lambda: minijax.jit(lambda *a: a[0] * a[-1], static_argnums=-1)(2.0, 4),
        8.0,
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_call(name):
    call, expected = CALLS[name]
    assert float(call()) == expected


REFUSED = {
    "no function": (lambda: minijax.jit(3), TypeError, "callable value, got 3"),
    "none": (lambda: minijax.jit(None), TypeError, "callable value, got None"),
    "range": (
        lambda: minijax.jit(f, static_argnums=7),
        ValueError,
        r"static_argnums=\(7,\), but the function has 3 positional arguments",
    ),
    "both": (
        lambda: minijax.jit(f, static_argnums=0, donate_argnames="x"),
        ValueError,
        "static or donated, not both: .*x",
    ),
    "device": (
        lambda: minijax.jit(f, device="cpu"),
        ValueError,
        "a device of minijax.devices",
    ),
    "device and backend": (
        lambda: minijax.jit(f, device=minijax.devices()[0], backend="cpu"),
        ValueError,
        "can't specify both a device and a backend for jit, got device=CpuDevice",
    ),
    "backend": (
        lambda: minijax.jit(f, backend="abacus")(1.0, 2.0),
        RuntimeError,
        "Unknown backend 'abacus'",
    ),
    "missing": (
        lambda: minijax.jit(f)(1.0),
        TypeError,
        "missing 1 required positional",
    ),
    "result": (
        lambda: minijax.jit(lambda x: {"a": "text"})(1.0),
        TypeError,
        r"returned a value of type str at result\['a'\]",
    ),
    "if": (
        lambda: minijax.jit(lambda x: x if x > 0 else -x)(1.0),
        minijax.errors.TracerBoolConversionError,
        "argument x",
    ),
}


@pytest.mark.filterwarnings("ignore:backend and device argument:DeprecationWarning")
@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    call, error, text = REFUSED[name]
    with pytest.raises(error, match=text):
        call()


def test_results_are_arrays():
    results = minijax.jit(lambda x: (1, 2.0, True, np.ones(2), None, x))(1.0)
    assert results[4] is None
    assert [type(x).__name__ for x in results if x is not None] == ["ArrayImpl"] * 5
    assert [x.weak_type for x in results if x is not None] == [
        True,
        True,
        False,
        False,
        True,
    ]
