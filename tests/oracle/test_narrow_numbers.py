"""Floats as integers, and arithmetic in float16, beside compiled JAX."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import minijax  # noqa: E402

INTEGERS = [f"{u}int{bits}" for u in ("", "u") for bits in (8, 16, 32, 64)]
SIZES = 1, 7, 8, 15, 16, 17, 31, 33, 64, 65


def both(f, *xs):
    """The results of a function of a package, compiled by minijax and by JAX."""
    with np.errstate(all="ignore"):
        return [
            np.asarray(p.jit(lambda *x, p=p: f(p, *x))(*xs)) for p in (minijax, jax)
        ]


def same(f, *xs):
    """Assert that numbers, signs of zeros and places of NaN are the same."""
    ours, theirs = both(f, *xs)
    assert ours.dtype == theirs.dtype
    np.testing.assert_array_equal(ours, theirs)
    if ours.dtype.kind == "f":
        known = ~np.isnan(theirs)
        np.testing.assert_array_equal(
            np.signbit(ours)[known], np.signbit(theirs)[known]
        )


def near_ends(dtype):
    """Floats around the ends of all integers, halves, infinities and NaN."""
    ends = np.array(
        [0.5, 1.5, *[2.0**n for n in (7, 8, 15, 16, 31, 32, 63, 64)]], dtype
    )
    near = [ends, ends - 1, ends - dtype(0.5), ends + 1]
    near += [np.nextafter(x, dtype(end)) for x in near for end in (0, np.inf)]
    odd = np.array([0, np.inf, np.nan, 3e38], dtype)
    size = np.concatenate([*near, odd])
    return np.concatenate([size, -size])


@pytest.mark.parametrize("new", INTEGERS)
@pytest.mark.parametrize("old", [np.float32, np.float64])
def test_floats_as_integers(old, new):
    with minijax.enable_x64(True), jax.enable_x64(True):
        x = near_ends(old)
        for size in (*SIZES, x.size):
            same(lambda p, x: x.astype(new), x[-size:])


def test_arithmetic_of_halves():
    """Every float16 of finite size, subnormal ones too, in a chain of operations."""
    every = np.arange(2**16, dtype=np.uint16).view(np.float16)
    for size in (*SIZES, every.size):
        x = every[:size] if size < 1000 else every
        same(lambda p, x: x * x, x)
        same(lambda p, x: x.astype("float32"), x)
        same(lambda p, x: (x + x) * p.numpy.float16(0.3), x)
        same(lambda p, x: x.astype("float32").astype("float16"), x)


def test_horner_in_float16():
    """Ours rounds after each operation; so does XLA, but where processors have fp16.

    There it makes one instruction of a product and a sum, which rounds once.
    """
    x = np.linspace(-2, 2, 4001).astype(np.float16)

    def polynomial(p, x, multiply_add=lambda total, x: total * x + np.float16(0.5)):
        total = x
        for _ in range(8):
            total = multiply_add(total, x)
        return total

    def once(total, x):
        return (np.float32(total) * np.float32(x) + np.float32(0.5)).astype(np.float16)

    ours, theirs = both(polynomial, x)
    np.testing.assert_array_equal(ours, polynomial(np, x))
    instead = polynomial(np, x, once)
    assert any(np.array_equal(theirs, wanted) for wanted in (ours, instead))
