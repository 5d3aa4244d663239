"""Switches for those who look for a mistake.

Reference: ``jax.debug_nans``, ``jax.debug_infs``.
"""

# Made from chapters/14_callbacks_rest.md by `make chapter`;
# edit the chapter, not this file.

from contextlib import AbstractContextManager

from minijax.arrays.settings import config


def debug_nans(new_val: bool = True) -> AbstractContextManager:
    """Return a context manager inside which a result that is nan is an error.

    Reference: ``jax.debug_nans``.
    """
    return config.override("jax_debug_nans", new_val)


def debug_infs(new_val: bool = True) -> AbstractContextManager:
    """Return a context manager inside which a result that is infinite is an error.

    Reference: ``jax.debug_infs``.
    """
    return config.override("jax_debug_infs", new_val)
