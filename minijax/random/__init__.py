"""Random numbers: functions of keys.

Reference: ``jax.random``.
"""

# Made from chapters/32_random.md by `make chapter`;
# edit the chapter, not this file.

from minijax._lazy import namespace

__getattr__, __dir__ = namespace(__name__)
