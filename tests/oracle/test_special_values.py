"""Special numbers mean in minijax what they mean in JAX.

See `tests.special_values`, which compares all of them with `--jax`.
"""

import pytest

jax = pytest.importorskip("jax")

import minijax  # noqa: E402
from tests.special_values import (  # noqa: E402
    chosen,
    function_cases,
    in_batches,
    primitive_cases,
)


@pytest.mark.parametrize("cases", [function_cases, primitive_cases])
def test_a_share_beside_jax(cases):
    with minijax.enable_x64(True), jax.enable_x64(True):
        assert not in_batches(chosen(cases(), 10, ["float32", "complex64"]))
