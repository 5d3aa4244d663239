# Made from chapters/03_numpy.md by `make chapter`;
# edit the chapter, not this file.
"""NumPy's functions on arrays that can be transformed.

Reference: ``jax.numpy``.
"""

from minijax._lazy import namespace

__getattr__, __dir__ = namespace(__name__)
