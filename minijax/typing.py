"""Types for the annotations of functions: what may stand for an array.

Reference: ``jax.typing``.
"""

# Made from chapters/02_arrays_ground.md by `make chapter`;
# edit the chapter, not this file.

from typing import Any, ParamSpec, Protocol, TypeAlias, TypeVar

import numpy as np

from minijax.core import Array


class SupportsDType(Protocol):
    """What has a dtype."""

    @property
    def dtype(self) -> np.dtype: ...


ArrayLike: TypeAlias = Array | np.ndarray | np.generic | bool | int | float | complex
DTypeLike: TypeAlias = str | type[Any] | np.dtype | SupportsDType
P = ParamSpec("P")  # the parameters of a function that is transformed
R = TypeVar("R")  # its result
