# Made from chapters/12_jit.md by `make chapter`;
# edit the chapter, not this file.
"""Switches of staging: no `jit` for a while, misses explained; and cleared caches.

Reference: ``jax.disable_jit``, ``jax.clear_caches``."""

from contextlib import AbstractContextManager

from minijax.arrays.settings import config
from minijax.jitting.remembering import caches


def clear_caches() -> None:
    """Forget all programs and all executables.

    Reference: ``jax.clear_caches``.
    """
    for cache in caches:
        for reference in cache.keyrefs():
            key = reference()
            if key is not None and (once := cache.get(key)):
                once.clear()


def disable_jit(disable: bool = True) -> AbstractContextManager[None]:
    """Return a context manager inside which functions run as Python, not as programs.

    Reference: ``jax.disable_jit``.
    """
    return config.override("jax_disable_jit", disable)


def explain_cache_misses(new_val: bool = True) -> AbstractContextManager[None]:
    """Return a context manager inside which each tracing logs its reason, a sentence.

    The logger is ``minijax.jitting.trace_cache``, the level WARNING.

    Reference: ``jax.explain_cache_misses``.
    """
    return config.override("jax_explain_cache_misses", new_val)
