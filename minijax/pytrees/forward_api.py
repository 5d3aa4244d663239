"""Forward-mode differentiation of functions on trees of arrays.

Reference: ``jax.jvp``.
"""

# Made from chapters/05_pytrees.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Callable
from typing import Any

from minijax.forward.trace import jvp_flat
from minijax.pytrees.api_util import FlatCall, flatten_like
from minijax.pytrees.call_checks import (
    check_callable,
    check_sequences,
    dense_tangent,
    direction,
)
from minijax.pytrees.treedefs import tree_structure


def jvp(fun: Callable, primals: Any, tangents: Any, has_aux: bool = False) -> tuple:
    """Return the value of a function and its derivative in one direction.

    Args:
      fun: a function of arrays, scalars and trees of them.
      primals: tuple (or list) of its arguments.
      tangents: the direction: a tuple (or list) with the tree structure of `primals`,
        whose leaves have the shapes and dtypes of theirs; dtype ``float0`` for
        integers and booleans.
      has_aux: whether `fun` returns a pair ``(result, aux)``.

    Returns:
      The pair ``(primals_out, tangents_out)``, two trees of the same structure; with
      `has_aux` the triple ``(primals_out, tangents_out, aux)``.

    Raises:
      TypeError: if `fun` cannot be called, a leaf is no array, the structures differ
        or a dtype does not fit.
      ValueError: if a tangent does not have the shape of its primal.

    Reference: ``jax.jvp``.
    """
    check_callable(fun)
    check_sequences(primals, tangents)
    call = FlatCall("jvp", fun, primals, has_aux=has_aux)
    structure = tree_structure(primals)
    given = flatten_like(structure, tangents, "tangents", "primals", TypeError)
    directions = [direction(call, i, tangent) for i, tangent in enumerate(given)]
    values, slopes = jvp_flat(call, call.leaves, directions)
    slopes = [dense_tangent(x, t) for x, t in zip(values[: call.num_outs], slopes)]
    results = call.output(values), call.output(slopes)
    return (*results, call.aux(values)) if has_aux else results
