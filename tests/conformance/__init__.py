"""Test-suites that others wrote, over minijax under the name jax, beside real JAX."""
