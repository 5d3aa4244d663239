"""Functions that return derivatives, checked against differences of values.

Reference: ``jax.test_util``.
"""

# Made from chapters/10_reverse_rest.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from minijax.arrays.avals import typeof
from minijax.arrays.dtypes import is_inexact
from minijax.pytrees.functions import tree_map
from minijax.pytrees.treedefs import tree_leaves
from minijax.reverse.numerical_checks import (
    Settings,
    compare,
    disagreement,
    pairing,
    random_like,
    rate_of_change,
    wide,
)


def check_jvp(
    f: Callable,
    f_jvp: Callable,
    args: tuple,
    atol: Any = None,
    rtol: Any = None,
    eps: float | None = None,
    err_msg: str = "",
) -> None:
    """Compare a function of forward mode with a function and its differences.

    Args:
      f: a function of arrays, scalars and trees of them.
      f_jvp: from the tuple of arguments and that of tangents to the result of `f` and
        its tangent, such as ``partial(jvp, f)``.
      args: tuple of arguments: where to compare, in one random direction.
      atol, rtol, eps: as in `check_grads`.
      err_msg: what is checked, for the message.

    Raises:
      AssertionError: if values, tangents or their dtypes disagree.

    Reference: ``jax.test_util.check_jvp``.
    """
    settings = Settings((), atol, rtol, eps, np.random.RandomState(0))
    tangents = random_like(tuple(args), settings.random)
    result, rates = f_jvp(tuple(args), tangents)
    name = f"check_jvp: {err_msg}".rstrip(": ") + ":"
    _check_values(name, result, f(*args), args, settings)
    _check_dtypes(f"{name} the tangent", rates, result)
    quotient = partial(rate_of_change, f, tuple(args), tangents)
    compare(f"{name} the tangent", rates, quotient, args, settings)


def check_vjp(
    f: Callable,
    f_vjp: Callable,
    args: tuple,
    atol: Any = None,
    rtol: Any = None,
    eps: float | None = None,
    err_msg: str = "",
) -> None:
    """Compare a function of reverse mode with a function and its differences.

    Args:
      f: a function of arrays, scalars and trees of them.
      f_vjp: from arguments to the result of `f` and a function from its cotangent to
        theirs, such as ``partial(vjp, f)``.
      args, atol, rtol, eps, err_msg: as in `check_jvp`.

    Raises:
      AssertionError: if values disagree, or the product of cotangents and a direction.

    Reference: ``jax.test_util.check_vjp``.
    """
    settings = Settings((), atol, rtol, eps, np.random.RandomState(0))
    result, pullback = f_vjp(*args)
    name = f"check_vjp: {err_msg}".rstrip(": ") + ":"
    _check_values(name, result, f(*args), args, settings)
    tangents = random_like(tuple(args), settings.random)
    cotangents = random_like(result, settings.random)

    def quotient(step):
        return pairing(cotangents, rate_of_change(f, tuple(args), tangents, step))

    product = pairing(pullback(cotangents), tangents)
    compare(f"{name} the cotangent", product, quotient, args, settings)


def _check_values(name, result, expected, args, settings):
    words = "the value", "that of the function"
    found = disagreement(result, tree_map(wide, expected), args, settings, words)
    if found:
        raise AssertionError(f"{name} the value disagrees with the function at {found}")


def _check_dtypes(name, xs, ys):
    for x, y in zip(tree_leaves(xs), tree_leaves(ys)):
        if is_inexact(typeof(y).dtype) and typeof(x).dtype != typeof(y).dtype:
            raise AssertionError(f"{name} is of {typeof(x)}, and the value {typeof(y)}")
