"""Callbacks: messages, batches, effects, both backends, memory."""

import gc
import threading
import weakref
from contextlib import suppress

import numpy as np
import pytest

import minijax
from minijax import (
    ShapeDtypeStruct,
    effects_barrier,
    grad,
    jit,
    make_jaxpr,
    pure_callback,
    vmap,
)
from minijax.arrays.array import ArrayImpl
from minijax.callbacks.host_calls import vmap_methods
from minijax.errors import JaxRuntimeError
from minijax.experimental import io_callback
from minijax.jitting.compilation import compile_cached
from minijax.rematerialization.jaxpr_transforms import effect_rules, has_effects
from tests.backends_here import HERE

SCALAR, VECTOR = ShapeDtypeStruct((), "float32"), ShapeDtypeStruct((3,), "float32")
X = np.arange(3, dtype="float32")
both_ways = pytest.mark.parametrize("way", [lambda f: f, jit], ids=["eager", "jit"])


def sine(x, method=None):
    spec = ShapeDtypeStruct(np.shape(x), "float32")
    return pure_callback(np.sin, spec, x, vmap_method=method)


@pytest.mark.parametrize("backend", HERE)
def test_every_backend_calls(backend):
    f = jit(lambda x: 2 * sine(x) + sine(x[0]), backend=backend)
    np.testing.assert_allclose(f(X), 2 * np.sin(X), rtol=1e-6)


@pytest.mark.parametrize("backend", HERE)
def test_callbacks_see_strong_arrays(backend):
    seen = []

    def note(a, b):
        seen.extend([a, b])
        return np.float32(0)

    jit(lambda x: pure_callback(note, SCALAR, x, 1.0), backend=backend)(2.0)
    assert all(isinstance(x, ArrayImpl) and not x.weak_type for x in seen)
    assert [x.dtype.name for x in seen] == ["float32", "float32"]


def test_results_are_copies():
    kept = np.ones(3, "float32")
    result = jit(lambda x: pure_callback(lambda x: kept, VECTOR, x))(X)
    kept[:] = 5
    np.testing.assert_array_equal(result, 1)


def test_arguments_cannot_be_changed():
    def change(x):
        np.asarray(x)[:] = 9
        return x

    x = minijax.numpy.zeros(3)
    for f in (change, jit(lambda x: pure_callback(change, VECTOR, x))):
        with suppress(ValueError, JaxRuntimeError):  # it is read-only
            f(x)
        np.testing.assert_array_equal(x, 0)


BROKEN = {
    "shape": (lambda: {"a": [np.ones(2, "float32")]}, "float32[3] at result['a'][0]"),
    "dtype": (lambda: {"a": [np.ones(3, "int32")]}, "returned int32[3]"),
    "tree": (lambda: (X, X), "promised PyTreeDef({'a': [*]}), and returned"),
    "no array": (lambda: {"a": ["text"]}, "no array at result['a'][0]"),
    "error": (lambda: {"a": 1 // 0}, "raised ZeroDivisionError: integer division"),
}


@both_ways
@pytest.mark.parametrize("name", BROKEN)
def test_messages_name_the_leaf_and_the_line(way, name):
    make, words = BROKEN[name]

    def f(x):
        return pure_callback(lambda x: make(), {"a": [VECTOR]}, x)  # the line

    with pytest.raises(JaxRuntimeError) as info:
        way(f)(X)
    assert words in str(info.value)
    assert "test_callbacks_callback_primitives.py" in str(info.value)
    assert "# the line" in str(info.value)


@both_ways
def test_the_users_error_is_the_cause(way):
    class Mine(Exception):
        pass

    def fail(x):
        raise Mine("no")

    with pytest.raises(JaxRuntimeError, match="fail raised .*Mine: no") as info:
        way(lambda x: pure_callback(fail, SCALAR, x))(1.0)
    assert isinstance(info.value.__cause__, Mine)


def test_interrupts_pass():
    def interrupt(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        jit(lambda x: pure_callback(interrupt, SCALAR, x))(1.0)


def test_refusals_before_anything_is_called():
    with pytest.raises(TypeError, match=r"the argument x is of type str"):
        pure_callback(lambda x: x, SCALAR, "text")
    with pytest.raises(TypeError, match="callable"):
        pure_callback(3, SCALAR, 1.0)
    with pytest.raises(AttributeError, match="leaf 3"):
        pure_callback(np.sin, 3, 1.0)
    with pytest.raises(ValueError, match="64-bit"):
        pure_callback(np.sin, ShapeDtypeStruct((), "float64"), 1.0)
    with pytest.raises(ValueError, match="vmap_method must be one of 'sequential'"):
        sine(1.0, "often")
    with pytest.raises(NotImplementedError, match="call sin once for each"):
        vmap(sine)(X)


def test_64_bits_where_they_exist():
    with minijax.enable_x64():
        wide = jit(lambda x: pure_callback(np.sin, x, x))(np.float64(1.0))
        assert wide.dtype == np.float64 and float(wide) == np.sin(1.0)


@pytest.mark.parametrize("method", vmap_methods)
@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["eager", "jit"])
def test_vmap_methods(method, wrap):
    def add(x, y):
        spec = ShapeDtypeStruct(np.shape(x), "float32")
        return pure_callback(
            lambda x, y: np.asarray(x) + np.asarray(y), spec, x, y, vmap_method=method
        )

    matrix = np.arange(6, dtype="float32").reshape(2, 3)
    result = wrap(vmap(wrap(add), in_axes=(1, None), out_axes=1))(matrix, X[:2])
    np.testing.assert_array_equal(result, matrix + X[:2, None])


@pytest.mark.parametrize("method", vmap_methods)
def test_no_examples(method):
    result = vmap(lambda x: sine(x, method))(np.zeros((0, 3), "float32"))
    assert result.shape == (0, 3) and result.dtype == np.float32


def test_effects_stay_and_happen_in_order():
    order = []

    def step(name):
        return io_callback(lambda: order.append(name), None)

    @jit
    def f(x):
        step("a")
        jit(lambda: step("b"))()
        step("c")
        return x

    f(1.0)
    f(2.0)
    assert order == list("abcabc")
    assert has_effects(make_jaxpr(f)(1.0).jaxpr)
    assert effects_barrier() is None


def test_known_effects_happen_once_under_grad():
    order = []

    @jit
    def f(x):
        io_callback(lambda: order.append("known"), None)
        return x * x

    grad(f)(3.0)
    minijax.linearize(f, 3.0)[1](1.0)
    assert order == ["known"] * 2


def test_pure_callbacks_have_no_effect():
    from minijax.callbacks.callback import io_callback_p, pure_callback_p

    assert pure_callback_p not in effect_rules and io_callback_p in effect_rules


def test_emitted_lines():
    text = compile_cached(make_jaxpr(lambda x: sine(x))(X), "python").text
    assert "[b] = sin(a)" in text and " at 0x" not in text


def test_a_program_lets_go_of_its_callback():
    def make():
        big = np.ones(1000)

        def callback(x):
            return np.float32(big[0])

        f = jit(lambda x: pure_callback(callback, SCALAR, x))
        f(1.0)
        return weakref.ref(callback)

    gone = make()
    gc.collect()
    assert gone() is None


def test_many_threads():
    f = jit(lambda x: pure_callback(lambda x: np.asarray(x) + 1, SCALAR, x))
    results = []

    def work(i):
        results.append(float(f(float(i))))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [i + 1.0 for i in range(16)]


def test_a_callback_may_use_the_package():
    def inside(x):
        return jit(grad(lambda y: y**3))(x)

    f = jit(lambda x: pure_callback(inside, SCALAR, x))
    assert float(f(2.0)) == 12.0
    assert float(make_jaxpr(f)(2.0).in_avals[0].size) == 1


def test_masked_results_are_refused():
    masked = np.ma.masked_array(np.ones(2, np.float32), [0, 1])

    def call():
        shape = minijax.ShapeDtypeStruct((2,), np.float32)
        return minijax.pure_callback(lambda: masked, shape)

    for way in (call, minijax.jit(call)):
        with pytest.raises(JaxRuntimeError, match="masked arrays"):
            way()
