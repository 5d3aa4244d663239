"""Operations and bytes, counted in programs."""

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import lax
from minijax.jitting.stages import cost_analysis, memory_analysis, peak_of_temporaries

V, M = np.ones(4, np.float32), np.ones((3, 4), np.float32)


def costs(f, *args):
    counts = cost_analysis(minijax.make_jaxpr(f)(*args).jaxpr)
    return tuple(counts[k] for k in ("flops", "transcendentals", "bytes accessed"))


@pytest.mark.parametrize(
    ("f", "args", "expected"),
    [
        (lambda x: x + x, (V,), (4, 0, 48)),
        (lambda x: jnp.sin(x), (V,), (0, 4, 32)),
        (lambda a, b: a @ b, (M, V), (24, 0, 48 + 16 + 12)),
        (lambda a: a @ a.T, (M,), (2 * 3 * 3 * 4, 0, 48 * 2 + 48 * 2 + 36)),
        (lambda a: a.sum(0), (M,), (8, 0, 48 + 16)),
        (lambda a: a[1:], (M,), (0, 0, 2 * 32)),
        (lambda a: a.reshape(-1), (M,), (0, 0, 96)),
        (lambda x: lax.integer_pow(x, 3), (V,), (8, 0, 32)),
        (lambda x: x, (V,), (0, 0, 0)),
        (lambda x: minijax.jit(jnp.sin)(minijax.jit(jnp.sin)(x)), (V,), (0, 8, 64)),
    ],
)
def test_costs(f, args, expected):
    assert costs(f, *args) == expected


def test_temporaries():
    def chain(x):
        for _ in range(5):
            x = jnp.sin(x)
        return x

    def wide(x):
        return sum(jnp.sin(x * k) for k in range(5))

    peak = lambda f: peak_of_temporaries(minijax.make_jaxpr(f)(V).jaxpr)  # noqa: E731
    assert peak(lambda x: x) == 0
    assert peak(jnp.sin) == 0
    assert peak(chain) == 2 * 16
    assert peak(minijax.jit(chain)) == 2 * 16
    assert peak(wide) >= 2 * 16
    assert peak(lambda x: (jnp.sin(x), x)[1]) == 16


def test_memory():
    closed = minijax.make_jaxpr(lambda a, b: jnp.sin(a) @ b)(M, V)
    stats = memory_analysis(closed.jaxpr, (False, True), "text")
    assert stats.argument_size_in_bytes == 64
    assert stats.output_size_in_bytes == 12
    assert stats.alias_size_in_bytes == 16
    assert stats.temp_size_in_bytes == 48
    assert stats.generated_code_size_in_bytes == 4
    assert stats.peak_memory_in_bytes == 64 + 12 - 16 + 48
