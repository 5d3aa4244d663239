"""Primitives on whole arrays in Python: the interpreter's bits, at every dtype."""

import re

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import jit, lax, make_jaxpr
from minijax.python_backend.codegen import emit
from minijax.python_backend.codegen_rules import unchecked_broadcast_to
from tests import array_cases as cases
from tests.emission_cases import compare, mixed, texts

WIDE = ("int64", "uint64", "float64", "complex128")


def agree(programs):
    """Fail unless all programs give the interpreter's bits."""
    found = [compare(*program) for program in programs]
    assert sum(taken for taken, _ in found) > 30
    assert not [difference for _, wrong in found for difference in wrong]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", cases.DTYPES)
def test_bits(name):
    with minijax.enable_x64(name in WIDE):
        agree(mixed(name))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("wide", [False, True])
def test_bits_of_the_programs_of_floor_2(wide):
    with minijax.enable_x64(wide):
        agree(texts())


X, M, H = np.ones(3, "f"), np.ones((2, 3), "f"), np.ones(3, "float16")
TEXTS = [
    (lambda x: x[1:], [X], "a[1:]"),
    (lambda x: lax.slice(x, (0, 0), (2, 3), (1, 2)), [M], "a[:, ::2]"),
    (lambda x: lax.slice(x, (0,), (0,)), [X], "a[:0]"),
    (lambda x: lax.rev(x, (1,)), [M], "a[:, ::-1]"),
    (lambda x: lax.rev(x, (0,)), [M], "a[::-1]"),
    (lambda x: lax.reshape(x, (3, 2)), [M], "a.reshape((3, 2))"),
    (lambda x: lax.reshape(x, ()), [X[:1]], "a.reshape(())[()]"),
    (lambda x: lax.squeeze(x, (0,)), [X[:1]], "a.squeeze((0,))[()]"),
    (lambda x: x.T, [M], "a.transpose((1, 0))"),
    (lambda x: lax.expand_dims(x, (0,)), [X], "a.reshape((1, 3))"),
    (lambda x: lax.broadcast(x, (2,)), [X], "np.broadcast_to(a, (2, 3))"),
    (lambda x: lax.broadcast(x, (2,)), [X[0]], "everywhere(a, (2,))"),
    (lambda x: lax.broadcast_in_dim(x, (3,), (0,)), [X], "a"),
    (
        lambda x: lax.broadcast_in_dim(x, (3, 2), (0,)),
        [X],
        "np.broadcast_to(a.reshape((3, 1)), (3, 2))",
    ),
    (lambda x: x * lax.full((3,), -2.0), [X], "all_m2_0"),
    (lambda: lax.iota("float32", 4), [], "np.arange(4).astype(np.float32)"),
    (lambda x: lax.concatenate([x, x], 0), [X], "np.concatenate([a, a], axis=0)"),
    (lambda x: lax.reduce_sum(x, (0,)), [X], "np.add.reduce(a, axis=(0,))"),
    (
        lambda x: lax.reduce_sum(x, (0,)),
        [np.arange(3)],
        "np.add.reduce(a, axis=(0,), dtype=np.int32)",
    ),
    (
        lambda x: lax.reduce_sum(x, (0,)),
        [H],
        "np.add.reduce(a, axis=(0,), dtype=np.float32).astype(np.float16)",
    ),
    (
        lambda x: lax.reduce_max(x, (0,)),
        [X],
        "np.maximum.reduce(a, axis=(0,), initial=-np.inf)",
    ),
    (
        lambda x: lax.reduce_min(x, (0,)),
        [np.int8([1])],
        "np.minimum.reduce(a, axis=(0,), initial=127)",
    ),
    (
        lambda x: lax.reduce_or(x, (0,)),
        [np.array([True])],
        "np.bitwise_or.reduce(a, axis=(0,))",
    ),
    (lambda x: lax.argmax(x, 0, int), [X], "np.argmax(a, 0).astype(np.int32)"),
    (lambda x: lax.dot(x, x.T), [M], "a @ b"),
    (lambda x: lax.dot(x, x), [X], "(a.reshape((1, 3)) @ a.reshape((3, 1)))[0, 0]"),
    (lambda x: jnp.cumsum(x), [X], "cumsum(a, axis=0, reverse=False)"),
]


@pytest.mark.parametrize(("f", "args", "text"), TEXTS, ids=[text for *_, text in TEXTS])
def test_texts(f, args, text):
    assert f" = {text}\n" in emit(make_jaxpr(f)(*args))[0]


def test_calls_of_programs():
    inner = jit(lambda x, y: (x + y, x, jnp.sum(x)))
    text = emit(make_jaxpr(lambda x: inner(x, x)[0])(X))[0]
    assert re.search(r"\[\w+\] = lambda_\(a(, a)?\)", text)
    nothing = jit(lambda x: ())
    assert "lambda" not in emit(make_jaxpr(lambda x: (nothing(x), x)[1])(X))[0]


def test_axes_that_are_gone():
    def f(x):
        return lax.psum(x, "i") + lax.axis_index("i")

    closed = make_jaxpr(minijax.vmap(f, axis_name="i"))(X)
    assert "= psum" not in emit(closed)[0]


def test_filled_arrays_are_constants():
    text, function, _ = emit(make_jaxpr(lambda: (lax.full((3,), 2.0), 1.0, 2.0))())
    assert "# all_2_0: 2.0 everywhere, f32[3]" in text
    first, again = function()[0], function()[0]
    assert first is again and first.tolist() == [2, 2, 2]
    assert first.strides == (0,) and not first.flags.writeable


@pytest.mark.parametrize("shape", [(3,), (2, 3), (0,), (1, 1)])
@pytest.mark.parametrize("name", [n for n in cases.DTYPES if n != "bfloat16"])
def test_a_scalar_everywhere(name, shape):
    scalar = np.dtype(name).type(1)
    ours, numpys = unchecked_broadcast_to(scalar, shape), np.broadcast_to(scalar, shape)
    np.testing.assert_array_equal(ours, numpys, strict=True)
    assert ours.strides == (0,) * len(shape) and not ours.flags.writeable
