# Made from chapters/11_jit.md by `make chapter`;
# edit the chapter, not this file.
"""Switches of staging: programs off for a while, and reasons for new ones told.

Reference: ``jax.disable_jit``, ``jax.explain_cache_misses``.
"""

from minijax.settings import config


def disable_jit(disable=True):
    """Return a context manager inside which functions run as Python, not as programs.

    Reference: ``jax.disable_jit``.
    """
    return config.override("jax_disable_jit", disable)


def explain_cache_misses(new_val=True):
    """Return a context manager inside which each tracing logs its reason, a sentence.

    The logger is ``minijax.cache_misses``, the level WARNING.

    Reference: ``jax.explain_cache_misses``.
    """
    return config.override("jax_explain_cache_misses", new_val)
