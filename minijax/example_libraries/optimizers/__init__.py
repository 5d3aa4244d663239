"""Optimizers: triples of functions, ``init_fn``, ``update_fn`` and ``params_fn``.

Reference: ``jax.example_libraries.optimizers``.
"""

# Made from chapters/39_training_ground.md by `make chapter`;
# edit the chapter, not this file.

from minijax._lazy import namespace

__getattr__, __dir__ = namespace(__name__)
