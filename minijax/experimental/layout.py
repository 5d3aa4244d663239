"""Layouts of arrays in memory, which change no value.

Reference: ``jax.experimental.layout``.
"""

# Made from chapters/12_jit_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax._lazy import namespace

__getattr__, __dir__ = namespace(__name__)
