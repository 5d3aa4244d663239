"""Numbers that are equal, or print alike, and are not the same bits."""

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import jit, lax

X = np.array([1, 2], "f")
PLACES = np.array([0, 5])
NANS = [0x7FC00000, 0xFFC00000, 0x7FC00001, 0xFFC12345]


def bits(x):
    """The bits of 32-bit floats."""
    return np.asarray(x).view(np.uint32).tolist()


def chosen(x, number):
    """A kernel with a constant: the sort keeps it apart from its neighbours."""
    return jnp.where(jnp.sort(x) > 0, number, 0)


def padded(x, number):
    """A kernel with a guarded load."""
    return lax.pad(jnp.sort(x), number, [(1, 1, 0)])


def looked_up(x, number):
    """A gather that fills."""
    return jnp.sort(x).at[PLACES].get(mode="fill", fill_value=number)


@pytest.mark.parametrize("f", [chosen, padded, looked_up])
@pytest.mark.parametrize("backend", ["cpu", "llvm", "kernels"])
def test_nans_of_other_bits_are_other_constants(f, backend):
    numbers = np.array(NANS, np.uint32).view("f")
    run = jit(lambda x: [f(x, number) for number in numbers], backend=backend)
    for found, number in zip(run(X), numbers):
        assert {*bits(found)} <= {*bits(X), bits(number), 0}
        assert bits(number) in bits(found), (f, number)


@pytest.mark.parametrize(
    "kind", [float, complex, np.float16, np.float32, np.float64, np.complex64]
)
def test_zeros_of_other_signs_are_other_parameters(kind):
    zeros = [kind(0.0), kind(-0.0)]
    if kind in (complex, np.complex64):
        zeros.append(kind(complex(0.0, -0.0)))
    dtype = "c8" if kind in (complex, np.complex64) else "f"

    def call(x, i):
        return [x.at[i].get(mode="fill", fill_value=zero) for zero in zeros]

    found, wanted = (f(jnp.asarray(X, dtype), PLACES) for f in (jit(call), call))
    for a, b in zip(found, wanted):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


@pytest.mark.parametrize("number", [np.array(5.0, "f"), jnp.float32(5), np.float32(5)])
def test_a_fill_value_may_be_an_array_without_axes(number):
    def call(x):
        return x.at[np.array([0, 9])].get(mode="fill", fill_value=number)

    for f in (call, jit(call)):
        assert f(jnp.arange(3.0)).tolist() == [0, 5]


def test_a_fill_value_is_known_while_tracing():
    with pytest.raises(TypeError, match="fill_value has to be known"):
        jit(lambda x, v: x.at[PLACES].get(mode="fill", fill_value=v))(X, 1.0)


@pytest.mark.parametrize("backend", ["llvm", "kernels"])
def test_two_kernels_with_one_label_are_refused(backend):
    """The hashes of these two begin with the same six digits."""
    x = jnp.arange(4)

    def call(x):
        return x + np.int32(1000311), x + np.int32(1006188)

    with minijax.disable_jit():
        wanted = [np.asarray(y) for y in call(x)]
    for ours, expected in zip(jit(call)(x), wanted):
        assert np.array_equal(ours, expected)
    with pytest.raises(RuntimeError, match="have the label"):
        jit(call, backend=backend)(x)
