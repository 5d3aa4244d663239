"""Probability distributions and statistics with the names of SciPy.

Reference: ``jax.scipy.stats``.
"""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax._lazy import namespace
from minijax.scipy.stats.random_variables import offer_paths

__getattr__, __dir__ = namespace(__name__)
offer_paths(__name__)
