"""Softmax with the arguments of SciPy.

Reference: ``jax.scipy.special``.
"""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

from typing import Any

from minijax.compositions import normalisation
from minijax.compositions.normalisation import logsumexp as logsumexp
from minijax.core import Array
from minijax.typing import ArrayLike


def softmax(x: ArrayLike, /, *, axis: Any = None) -> Array:
    """Compute ``exp(x) / sum(exp(x))`` along axes, by default along all.

    Reference: ``jax.scipy.special.softmax``.
    """
    return normalisation.softmax(x, axis)


def log_softmax(x: ArrayLike, /, *, axis: Any = None) -> Array:
    """Compute the logarithm of `softmax`, along axes, by default along all.

    Reference: ``jax.scipy.special.log_softmax``.
    """
    return normalisation.log_softmax(x, axis)
