"""Fourier transforms with the names of NumPy.

Reference: ``jax.numpy.fft``.
"""

# Made from chapters/30_windows_upper.md by `make chapter`;
# edit the chapter, not this file.

from minijax._lazy import namespace

__getattr__, __dir__ = namespace(__name__)
