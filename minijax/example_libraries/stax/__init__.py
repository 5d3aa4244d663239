"""Layers of neural networks: pairs of functions, ``init`` and ``apply``.

Reference: ``jax.example_libraries.stax``.
"""

# Made from chapters/39_training_ground.md by `make chapter`;
# edit the chapter, not this file.

from minijax._lazy import namespace

__getattr__, __dir__ = namespace(__name__)
