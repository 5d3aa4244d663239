"""Linear algebra with the names of NumPy.

Reference: ``jax.numpy.linalg``.
"""

# Made from chapters/03_numpy_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax._lazy import namespace

__getattr__, __dir__ = namespace(__name__)
