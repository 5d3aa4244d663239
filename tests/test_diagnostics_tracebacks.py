"""Traceback filtering: the modes of JAX, and what the guard leaves alone."""

import inspect
import pickle
import traceback

import numpy as np
import pytest

import minijax
from minijax import numpy as jnp
from minijax._registry import Registry
from minijax.arrays.dtypes import config
from minijax.core import tracer_methods
from minijax.diagnostics import error_messages as public_guards
from minijax.diagnostics.source_info import traceback_entries
from minijax.diagnostics.tracebacks import FILTERING_MODES, UnfilteredStackTrace

V = np.ones(3, np.float32)


def fails():
    minijax.jit(lambda x: minijax.vmap(lambda y: y @ y @ y)(x))(V)


def error_under(mode):
    override = config.override("jax_traceback_filtering", mode)
    with override, pytest.raises(ValueError, match="matmul") as caught:
        fails()
    return caught.value


def files(error):
    return [
        step.tb_frame.f_code.co_filename
        for step in traceback_entries(error.__traceback__)
    ]


@pytest.mark.parametrize("mode", FILTERING_MODES)
def test_frames(mode):
    inside = any("/minijax/" in name for name in files(error_under(mode)))
    assert inside == (mode in ("off", "tracebackhide"))


def test_the_whole_is_the_cause():
    cause = error_under("remove_frames").__cause__
    assert isinstance(cause, UnfilteredStackTrace)
    assert any("/minijax/" in name for name in files(cause))


def test_hidden_frames_are_marked():
    steps = traceback_entries(error_under("tracebackhide").__traceback__)
    marks = [step.tb_frame.f_locals.get("__tracebackhide__") for step in steps]
    assert marks[-1] and not marks[0]


def test_the_mode_is_one_of_jax():
    with pytest.raises(ValueError, match="tracebackhide"):
        config.update("jax_traceback_filtering", "loud")


def test_explained_once():
    text = "".join(traceback.format_exception(error_under("auto")))
    assert text.count("folded away") == 1 and "y @ y" in text


def test_frames_of_a_callback_stay():
    def root(x):
        raise KeyError("mine")

    with pytest.raises(KeyError) as caught:
        minijax.make_jaxpr(root)(1.0)
    assert files(caught.value)[-1] == __file__


def test_public_functions_are_themselves():
    for f in (jnp.abs, minijax.grad, minijax.tree_util.tree_map):
        assert pickle.loads(pickle.dumps(f)) is f
    assert (jnp.abs.__name__, jnp.absolute.__name__) == ("abs", "absolute")


@pytest.mark.parametrize("name", "grad vmap value_and_grad jacfwd jacrev jit".split())
def test_what_is_made_of_a_function_remembers_it(name):
    def f(x, *, scale=2.0):
        """A text."""
        return x * scale

    made = getattr(minijax, name)(f)
    assert made.__wrapped__ is f and made.__name__ == "f"
    assert inspect.signature(made) == inspect.signature(f)


def test_signatures_and_texts_are_those_of_the_function():
    for f in (jnp.sin, minijax.grad, minijax.lax.scan, minijax.random.normal):
        assert inspect.signature(f) == inspect.signature(f.__wrapped__)
        assert f.__doc__ == f.__wrapped__.__doc__ and f.__doc__


def test_a_method_gets_one_guard(monkeypatch):
    table = Registry({"reshape": tracer_methods["reshape"], "plain": lambda x: x})
    monkeypatch.setattr(public_guards, "tracer_methods", table)
    monkeypatch.setattr(public_guards, "TEXT_METHODS", ())
    for _ in range(2):
        public_guards.guard_methods()
        assert table["reshape"] is tracer_methods["reshape"]
        assert table["plain"].__code__ is public_guards.API_BOUNDARY_CODE
    assert table["plain"].__wrapped__("x") == "x"
