# Made from chapters/05_pytrees.md by `make chapter`;
# edit the chapter, not this file.
"""Forward-mode differentiation of functions on trees of arrays.

Reference: ``jax.jvp``.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.arrays.array import asarray_impl
from minijax.arrays.avals import ShapedArray, typeof
from minijax.arrays.dtypes import float0, tangent_dtype
from minijax.forward.trace import jvp_flat
from minijax.lax import broadcast_in_dim
from minijax.pytrees.api_util import FlatCall, flatten_like
from minijax.pytrees.call_names import check_callable
from minijax.pytrees.treedefs import tree_structure


def _check_sequences(primals, tangents):
    if not (isinstance(primals, (tuple, list)) and isinstance(tangents, (tuple, list))):
        raise TypeError(
            "jvp takes a tuple (or list) of primals, one for each argument, and a "
            f"tuple of tangents; got a {type(primals).__name__} and a "
            f"{type(tangents).__name__}. With one argument, write (x,) and (t,)."
        )


def _direction(call, i, tangent):
    """Return the tangent of leaf `i` if it fits: None for integers, which stay put."""
    primal, given = call.avals[i], _tangent_aval(call, i, tangent)
    expected = tangent_dtype(primal.dtype)
    if given.dtype != expected:
        raise TypeError(
            f"jvp: the primal {call.name_of(i)} has dtype {primal.dtype.name}, so its "
            f"tangent must have dtype {_name(expected)}, not {_name(given.dtype)}."
            + _advice(expected)
        )
    if given.shape != primal.shape:
        raise ValueError(
            f"jvp: a tangent has the shape of its primal, but the primal "
            f"{call.name_of(i)} has shape {primal.shape} and its tangent {given.shape}."
        )
    return None if expected == float0 else tangent


def _tangent_aval(call, i, tangent):
    if isinstance(tangent, np.ndarray) and tangent.dtype == float0:
        return ShapedArray(tangent.shape, float0)
    try:
        return typeof(tangent)
    except (TypeError, ValueError) as error:
        message = f"jvp: the tangent of {call.name_of(i)}: {error}"
        raise type(error)(message) from None


def _name(dtype):
    return "float0" if dtype == float0 else dtype.name


def _advice(expected):
    if expected != float0:
        return ""
    return (
        " Integers and booleans have no directions to move in: pass "
        "np.zeros(shape, minijax.arrays.dtypes.float0), or a float for the primal."
    )


def dense_tangent(primal, tangent):
    """Return a tangent as an array: zeros of the right kind where it is None.

    Args:
      primal: the value that it is a tangent of.
      tangent: an array, or None, which stands for zero.
    """
    return zeros_of_tangent(typeof(primal)) if tangent is None else tangent


def zeros_of_tangent(aval):
    """Return the zero tangent of a primal with the given abstract value."""
    dtype = tangent_dtype(aval.dtype)
    if dtype == float0:
        return np.zeros(aval.shape, float0)
    zero = np.zeros((), dtype)
    array = asarray_impl(zero.item() if aval.weak_type else zero)
    return broadcast_in_dim(array, aval.shape, ()) if aval.shape else array


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
    _check_sequences(primals, tangents)
    call = FlatCall("jvp", fun, primals, has_aux=has_aux)
    structure = tree_structure(primals)
    given = flatten_like(structure, tangents, "tangents", "primals", TypeError)
    directions = [_direction(call, i, tangent) for i, tangent in enumerate(given)]
    values, slopes = jvp_flat(call, call.leaves, directions)
    slopes = [dense_tangent(x, t) for x, t in zip(values[: call.num_outs], slopes)]
    results = call.output(values), call.output(slopes)
    return (*results, call.aux(values)) if has_aux else results
