"""Rules of primitives, under the names that JAX has for them.

`ad` has derivatives, `batching` batches, `mlir` lowerings, and `xla` evaluation;
`partial_eval` splits programs.

Reference: ``jax.interpreters``.
"""

# Made from chapters/14_callbacks_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax._lazy import namespace

__getattr__, __dir__ = namespace(__name__)
