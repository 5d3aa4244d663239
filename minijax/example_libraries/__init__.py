"""Small libraries for examples: layers of networks, and optimizers.

Reference: ``jax.example_libraries``.
"""

# Made from chapters/39_training_ground.md by `make chapter`;
# edit the chapter, not this file.

from minijax._lazy import namespace

__getattr__, __dir__ = namespace(__name__)
