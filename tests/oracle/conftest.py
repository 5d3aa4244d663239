"""What all comparisons with JAX share."""

import itertools

import jax
import pytest

jax.config.update("jax_num_cpu_devices", 2)  # as tests/conftest.py says of minijax

numbers = itertools.count(1)


@pytest.fixture(autouse=True)
def compiled_programs_are_forgotten():
    """Let go of JAX's programs now and then; thousands of them fill gigabytes."""
    yield
    if next(numbers) % 100 == 0:
        jax.clear_caches()
