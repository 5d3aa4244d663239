# Made from chapters/02_arrays.md by `make chapter`;
# edit the chapter, not this file.
"""The switches of the package.

Reference: ``jax.config``.
"""

import os
from contextlib import contextmanager
from contextvars import ContextVar


class Config:
    """Named switches: each is an attribute, and may differ in a thread for a while."""

    def __init__(self):
        self._defaults = {}
        self._overrides = {}

    def define(self, name, default, accepts=bool):
        """Add a switch; `accepts` turns a value into a valid one, or raises."""
        self._defaults[name] = accepts(default), accepts
        self._overrides[name] = ContextVar(name)
        setattr(Config, name, property(lambda self: self._value(name)))

    def update(self, name, value):
        """Set a switch for the whole process.

        Raises:
          AttributeError: if there is no switch of this name.
        """
        accepts = self._known(name)[1]
        self._defaults[name] = accepts(value), accepts

    @contextmanager
    def override(self, name, value):
        """Set a switch for a ``with`` block, in this thread alone."""
        accepts = self._known(name)[1]
        token = self._overrides[name].set(accepts(value))
        try:
            yield
        finally:
            self._overrides[name].reset(token)

    def _value(self, name):
        return self._overrides[name].get(self._defaults[name][0])

    def __getattr__(self, name):
        self._known(name)  # raises, as a known switch is a property

    def _known(self, name):
        if name.startswith("__") or name not in self._defaults:
            known = ", ".join(sorted(self._defaults))
            raise AttributeError(f"Unrecognized config option: {name}; known: {known}")
        return self._defaults[name]


def _on_or_off(value):
    words = {"1": True, "true": True, "on": True, "0": False, "false": False}
    return words.get(value.lower(), False) if isinstance(value, str) else bool(value)


config = Config()
config.define("jax_enable_x64", os.environ.get("JAX_ENABLE_X64", "0"), _on_or_off)


def enable_x64(new_val=True):
    """Return a context manager inside which 64-bit types exist (or do not).

    Reference: ``jax.enable_x64``.
    """
    return config.override("jax_enable_x64", new_val)
