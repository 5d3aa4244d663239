"""Comparisons with the real JAX, which runs in an environment of its own."""
