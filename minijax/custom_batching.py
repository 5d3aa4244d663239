"""Custom vmap rules: functions with a rule of their own for batches.

Reference: ``jax.custom_batching``.
"""

# Made from chapters/11_own_rules_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax._lazy import namespace

__getattr__, __dir__ = namespace(__name__)
