"""Programs on kernels and in machine code, beside the interpreter."""

import threading

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import grad, jit, lax, vmap
from minijax.jitting.compilation import backends, default_backends
from tests.kernel_cases import alike

X = np.linspace(-1, 1, 12, dtype="float32").reshape(3, 4)


def test_no_backend_of_this_floor_is_the_default():
    assert {"kernels", "llvm"} <= {*backends} - {default_backends["cpu"]}


@pytest.mark.parametrize("backend", ["kernels", "llvm"])
def test_switch(backend):
    with minijax.config.override("minijax_backend", backend):
        assert alike(jit(lambda x: jnp.tanh(x).sum(0))(X), np.tanh(X).sum(0))


def test_dialects():
    lowered = jit(jnp.tanh, backend="llvm").lower(X)
    assert "v1:f32[i] = tanh v0" in lowered.as_text("kernels")
    assert "call float @tanhf(float" in lowered.as_text("llvm")
    assert "tanhf" in lowered.compile().as_text()
    assert "ret" in lowered.compile().as_text("assembly")
    with pytest.raises(ValueError, match="dialect: steps"):
        lowered.as_text("steps")


def loops(x):
    c = lax.fori_loop(0, 3, lambda i, c: c * x, x)
    return lax.cond(c.sum() > 0, jnp.sin, jnp.cos, c)


@pytest.mark.parametrize(
    "transform", [lambda f: f, lambda f: grad(lambda x: f(x).sum())]
)
def test_control_flow_is_left_to_python(transform):
    f = transform(loops)
    reference = jit(f, backend="interpreter")(X)
    for backend in ("kernels", "llvm"):
        assert alike(jit(f, backend=backend)(X), reference)
        with minijax.config.override("minijax_backend", backend):
            assert alike(jit(f)(X), reference)


def test_callbacks():
    def f(x):
        shape = minijax.ShapeDtypeStruct(x.shape, x.dtype)
        return minijax.pure_callback(lambda x: np.asarray(x) + 1, shape, x * 2) * 3

    assert alike(jit(f, backend="llvm")(X), (X * 2 + 1) * 3)


def test_calls_do_not_share_memory():
    f = jit(lambda x: jnp.exp(x) + 1.0, backend="llvm")
    first = f(X)
    kept = np.array(first)
    f(X + 1)
    np.testing.assert_array_equal(first, kept)


def test_views_are_given():
    f = jit(lambda x: x + 1.0, backend="llvm")
    np.testing.assert_array_equal(f(jnp.asarray(X).T), X.T + 1)
    np.testing.assert_array_equal(f(X[::-1, ::2]), X[::-1, ::2] + 1)


def test_batches_and_constants():
    f = vmap(lambda x: (x * jnp.arange(4.0)).sum())
    wanted = (X * np.arange(4, dtype="float32")).sum(1)
    assert alike(jit(f, backend="llvm")(X), wanted)


def test_threads():
    f = jit(lambda x: jnp.tanh(x) * 2.0, backend="llvm")
    found = []
    threads = [threading.Thread(target=lambda: found.append(f(X))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6
    for result in found:
        assert alike(result, np.tanh(X) * 2)
