# Made from chapters/32_random.md by `make chapter`;
# edit the chapter, not this file.
"""Random numbers: functions of keys.

Reference: ``jax.random``.
"""

from minijax._lazy import namespace

__getattr__, __dir__ = namespace(__name__)
