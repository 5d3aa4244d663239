# Made from chapters/11_jit.md by `make chapter`;
# edit the chapter, not this file.
"""Reference: ``jax.clear_caches``."""

from minijax.remembering import caches


def clear_caches():
    """Forget all programs and all executables.

    Reference: ``jax.clear_caches``.
    """
    for cache in caches:
        for reference in cache.keyrefs():
            key = reference()
            if key is not None and (once := cache.get(key)):
                once.clear()
