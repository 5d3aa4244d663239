"""The name that `shard_map` had before it became a name of the package.

Reference: ``jax.experimental.shard_map``.
"""

# Made from chapters/36_replicas_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax._lazy import namespace

__getattr__, __dir__ = namespace(__name__)
