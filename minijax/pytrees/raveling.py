"""A tree of arrays as one long vector, and back.

Reference: ``jax.flatten_util``.
"""

# Made from chapters/05_pytrees_rest.md by `make chapter`;
# edit the chapter, not this file.

import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from minijax import lax
from minijax.arrays.avals import typeof
from minijax.core import Array
from minijax.lax.promotion import promote_types
from minijax.pytrees.treedefs import PyTreeDef, tree_flatten
from minijax.typing import ArrayLike


def ravel_pytree(pytree: Any) -> tuple[Array, Callable[[ArrayLike], Any]]:
    """Lay all numbers of a tree of arrays in a row.

    Args:
      pytree: a tree of arrays and scalars.

    Returns:
      A vector of the dtype that the leaves have together, and a function that turns a
      vector of this shape back into a tree of the same structure, shapes and dtypes.

    Reference: ``jax.flatten_util.ravel_pytree``.
    """
    leaves, treedef = tree_flatten(pytree)
    avals = [typeof(leaf) for leaf in leaves]
    shapes, kinds = zip(*((x.shape, x.dtype) for x in avals)) if avals else ((), ())
    if not leaves:
        return lax.full((0,), 0.0, float), _Unravel(treedef, shapes)
    whole, mixed = functools.reduce(promote_types, kinds), len(set(kinds)) > 1
    if mixed:
        leaves = [lax.convert_element_type(x, whole) for x in leaves]
    rows = [lax.reshape(x, (math.prod(shape),)) for x, shape in zip(leaves, shapes)]
    types = (kinds, whole) if mixed else ()
    return lax.concatenate(rows, 0), _Unravel(treedef, shapes, *types)


@dataclass(frozen=True)
class _Unravel:
    """The way back from a vector to a tree; equal for trees of equal structure.

    Attributes:
      treedef: the structure.
      shapes: of the leaves.
      dtypes: of the leaves; empty if they have one, and then any vector will do.
      dtype: of the vector, or None.
    """

    treedef: PyTreeDef
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[np.dtype, ...] = ()
    dtype: np.dtype | None = None

    def __call__(self, vector):
        """Return the tree whose numbers are those of a vector.

        Raises:
          ValueError: if the vector has another length.
          TypeError: if the leaves have several dtypes, and it is not of their common
            one.
        """
        return self.treedef.unflatten(self._leaves(vector) if self.shapes else ())

    def _leaves(self, vector):
        given = typeof(vector)
        ends = [*itertools.accumulate(map(math.prod, self.shapes))]
        if given.shape != (ends[-1],):
            raise ValueError(
                f"The tree takes a vector of {ends[-1]} numbers, one for each element "
                f"of its leaves, but got an array of shape {given.shape}."
            )
        if self.dtype is not None and given.dtype != self.dtype:
            raise TypeError(
                "The leaves of the tree have several dtypes, and its vector has to be "
                f"of dtype {self.dtype.name}, which holds them all; got "
                f"{given.dtype.name}."
            )
        rows = [lax.slice(vector, [i], [j]) for i, j in zip([0, *ends], ends)]
        leaves = [lax.reshape(*pair) for pair in zip(rows, self.shapes)]
        return list(map(_cast, leaves, self.dtypes)) if self.dtypes else leaves


def _cast(x, dtype):
    if typeof(x).dtype.kind == "c" and dtype.kind != "c":
        x = lax.real(x)
    return lax.convert_element_type(x, dtype)
