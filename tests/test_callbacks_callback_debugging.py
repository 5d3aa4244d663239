"""debug.print and debug.callback."""

import gc
import weakref

import numpy as np
import pytest

import minijax
from minijax import debug, grad, jit, linearize, make_jaxpr, vmap
from minijax.callbacks.callback import debug_callback_p, debug_print_p
from minijax.errors import JaxRuntimeError
from minijax.jitting.compilation import compile_cached
from tests.backends_here import HERE

X = np.arange(3, dtype="float32")


def lines(capsys):
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("backend", HERE)
def test_prints_each_time_it_runs(backend, capsys):
    @jit
    def f(x):
        debug.print("x is {x:.1f}", x=x)
        return x

    with minijax.config.override("minijax_backend", backend):
        f(1.0), f(2.0)
    assert lines(capsys) == ["x is 1.0", "x is 2.0"]


def test_the_namespace():
    names = ["breakpoint", "callback", "print", "visualize_array_sharding"]
    assert set(debug.__all__) == set(dir(debug)) >= {*names}
    assert minijax.debug is debug
    with pytest.raises(AttributeError, match="no attribute 'prnt'"):
        _ = debug.prnt


def test_the_format_is_checked_when_it_is_written():
    def f(x):
        debug.print("{} {}", x)

    for run in (f, jit(f), vmap(f)):
        refusal = "argument 1, counted from 0, and 1 in all"
        with pytest.raises(IndexError, match=refusal):
            run(X)
    unused = r"Unused keyword arguments to `jax.debug.print`: \['x'\]"
    with pytest.raises(ValueError, match=f"{unused}. You may be passing an f-string"):
        debug.print(f"{X}", x=X)
    debug.print("", 1.0, skip_format_check=True)
    debug.print(skip_format_check=True)("", 1.0)


def test_options_can_come_first():
    debug.callback(ordered=True)(seen := [].append, X)
    assert len(seen.__self__) == 1
    with pytest.raises(TypeError, match="must be callable"):
        debug.callback()("no function", X)
    for function in (debug.callback, debug.print):
        with pytest.raises(TypeError, match="in the two-call form"):
            function(x=X)


def test_equations():
    def f(x):
        debug.print("{}, {y}", x, y=2 * x)
        debug.callback(print, x, ordered=True)
        return x

    closed = make_jaxpr(f)(1.0)
    assert "debug_print[fmt={}, {y} ordered=False] a b" in str(closed)
    assert [e.primitive for e in closed.eqns][1:] == [debug_print_p, debug_callback_p]
    text = compile_cached(closed, "python").text
    assert "printer(a, b)" in text and " at 0x" not in text


def test_errors_keep_their_class_eagerly_and_name_the_line_in_programs():
    def f(x):
        debug.callback(lambda x: 1 // 0, x)  # here

    with pytest.raises(ZeroDivisionError):
        f(1.0)
    with pytest.raises(JaxRuntimeError, match="ZeroDivisionError") as info:
        jit(f)(1.0)
    assert "# here" in str(info.value)


def test_static_leaves_stay():
    seen = []

    def note(*args, **kwargs):
        seen.append((args, kwargs))

    marker = object()
    jit(lambda x: debug.callback(note, x, marker, {"a": x, "b": "s"}, k=None))(1.0)
    (x, same, tree), kwargs = seen[0]
    assert same is marker and tree["b"] == "s" and kwargs == {"k": None}
    assert float(x) == float(tree["a"]) == 1.0


def test_derivatives_pass_and_print_once(capsys):
    def f(x):
        debug.print("{}", x)
        return x * x

    _, derivative = linearize(jit(f), 3.0)
    assert float(derivative(1.0)) == float(derivative(2.0)) / 2 == 6.0
    assert lines(capsys) == ["3.0"]
    assert "debug" not in str(make_jaxpr(lambda t: derivative(t))(1.0))
    grad(lambda x: grad(f)(x))(3.0)
    assert lines(capsys) == ["3.0"]


def test_transposition_prints_only_what_is_known(capsys):
    def f(x):
        debug.print("linear {}", x)
        debug.print("known")
        return 2 * x

    minijax.linear_transpose(f, 1.0)(1.0)
    assert lines(capsys) == ["known"]


def test_no_tracer_is_kept():
    kept = []

    @jit
    def f(x):
        kept.append(weakref.ref(x))
        debug.print("{}", x)
        debug.callback(lambda x: None, x)
        return x

    f(1.0)
    gc.collect()
    assert kept[0]() is None


def test_log_has_the_text_the_level_and_the_line(caplog):
    @jit
    def halved(x):
        debug.log("halving {x:.1f}", x=x)
        return x / 2

    halved(3.0)
    assert not caplog.records
    with caplog.at_level("INFO", logger="minijax.callbacks.debugger"):
        vmap(halved)(np.arange(2.0))
    messages = [record.message for record in caplog.records]
    assert messages == ["halving 0.0", "halving 1.0"]
    assert {record.levelname for record in caplog.records} == {"INFO"}
    assert caplog.records[0].filename == "test_callbacks_callback_debugging.py"
    with pytest.raises(TypeError, match="debug.log needs a format"):
        debug.log(3)
