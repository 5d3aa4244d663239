# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.
"""Iterative solvers with the names of SciPy.

Reference: ``jax.scipy.sparse.linalg``.
"""

from minijax._lazy import namespace

__getattr__, __dir__ = namespace(__name__)
