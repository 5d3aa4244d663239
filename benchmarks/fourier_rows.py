"""Rows about Fourier transforms: alone, in loops, in batches, of pictures."""

from rows import row
from side_by_side import random


def spectrum(jax, *shape):
    """Return complex numbers."""
    return jax.numpy.asarray(random(*shape) + 1j * random(*shape), "complex64")


@row("fft of {}", 1.0, 0.5, 8, 64, 100, 256, 1000, 1024, 4096, 16384)
def alone(jax, n):
    """One transform of complex numbers."""
    function, x = jax.jit(jax.numpy.fft.fft), spectrum(jax, n)
    return lambda: function(x)


@row("rfft of {}", 1.0, 0.5, 1024)
def of_real(jax, n):
    """One transform of real numbers."""
    function, x = jax.jit(jax.numpy.fft.rfft), jax.numpy.asarray(random(n))
    return lambda: function(x)


@row("fft2 of 64 x 64", 1.0, 0.5)
def picture(jax):
    """A transform along two axes."""
    function, x = jax.jit(jax.numpy.fft.fft2), spectrum(jax, 64, 64)
    return lambda: function(x)


@row("rfft and irfft of 256, 100 in a scan", 1.0, 0.5)
def heat(jax):
    """Heat on a ring: each step multiplies a spectrum."""
    jnp = jax.numpy
    decay = jnp.exp(-1e-4 * jnp.arange(129.0) ** 2)

    def step(x, _):
        return jnp.fft.irfft(jnp.fft.rfft(x) * decay), None

    function = jax.jit(lambda x: jax.lax.scan(step, x, None, length=100)[0])
    start = jnp.asarray(random(256))
    return lambda: function(start)


@row("fft of 256, a batch of 100", 1.0, 0.5)
def many(jax):
    """A transform of each row."""
    function, x = jax.jit(jax.numpy.fft.fft), spectrum(jax, 100, 256)
    return lambda: function(x)
