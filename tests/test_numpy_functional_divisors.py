"""Greatest common divisors and least common multiples; beside NumPy's."""

import numpy as np
import pytest

import minijax
from minijax import numpy as jnp

RANDOM = np.random.default_rng(0)
PAIRS = RANDOM.integers(-(10**4), 10**4, (2, 200)).astype("int32")
PAIRS[:, :3] = [[0, 0, 5], [0, 7, 0]]


@pytest.mark.parametrize("dtype", ["int32", "int16", "uint8"])
@pytest.mark.parametrize("how", [lambda f: f, minijax.jit, minijax.vmap])
def test_numbers(dtype, how):
    a, b = (PAIRS % 100 if dtype == "uint8" else PAIRS).astype(dtype)
    assert np.array_equal(how(jnp.gcd)(a, b), np.gcd(a, b))
    if dtype != "int16":
        assert np.array_equal(how(jnp.lcm)(a, b), np.lcm(a, b))


def test_the_smallest_number():
    least = np.int32(-(2**31))
    assert jnp.gcd(least, np.int32(48)) == np.gcd(least, np.int32(48))
    for other in range(-128, 128):
        pair = np.int8(other), np.int8(-128)
        assert jnp.gcd(*pair) == jnp.gcd(*pair[::-1]) == np.gcd(*pair)


def test_only_integers():
    for function in (jnp.gcd, jnp.lcm):
        with pytest.raises(ValueError, match="must be integers"):
            function(1.0, 2)
