"""What all comparisons with JAX share."""

import itertools

import pytest

numbers = itertools.count(1)


@pytest.fixture(autouse=True)
def compiled_programs_are_forgotten():
    """Let go of JAX's programs now and then; thousands of them fill gigabytes."""
    yield
    if next(numbers) % 100 == 0:
        import jax

        jax.clear_caches()
