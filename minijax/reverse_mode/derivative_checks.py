"""Derivatives checked against differences of function values.

Reference: ``jax.test_util``.
"""

# Made from chapters/10_reverse_rest.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from minijax.arrays.array import as_array_impl, typeof
from minijax.arrays.dtypes import float0, is_inexact
from minijax.pytrees.api_util import jvp
from minijax.pytrees.registry import keystr
from minijax.pytrees.tree_util import tree_leaves, tree_leaves_with_path, tree_map
from minijax.reverse_mode.backward_pass import vjp


def check_grads(
    f: Callable,
    args: tuple,
    order: int,
    modes: str | Sequence[str] = ("fwd", "rev"),
    atol: float | dict | None = None,
    rtol: float | dict | None = None,
    eps: float | None = None,
) -> None:
    """Compare the derivatives of a function with differences of its values.

    Forward mode gives the rate of change in a random direction, and so does the
    difference quotient. Reverse mode gives a gradient of a random combination of
    results; its product with the direction is that combination of the rates.

    Args:
      f: a function of arrays, scalars and trees of them.
      args: tuple of its arguments: the place where to compare.
      order: up to which derivative to go.
      modes: ``"fwd"``, ``"rev"`` or both. At each order, each of them is applied to all
        functions of the order before.
      atol, rtol: absolute and relative tolerance: a number, or a dictionary from dtypes
        to numbers, of which the largest among the dtypes of `args` counts. By default
        1e-5 for 64 bits, 2e-3 for 32 and 1e-1 for 16; so for dtypes not in it.
      eps: the step between two values. By default it is the cube root of the arguments'
        precision, where rounding and curvature do about equal harm. If that quotient
        disagrees, one of a step 32 times as small decides.

    Raises:
      AssertionError: if they disagree; it names mode, order and leaf.
      ValueError: if a mode is neither.

    Reference: ``jax.test_util.check_grads``.
    """
    modes = (modes,) if isinstance(modes, str) else tuple(modes)
    if not set(modes) <= set(CHECKS):
        raise ValueError(f"check_grads knows the modes {[*CHECKS]}, got {modes}.")
    settings = CheckGradsOptions(modes, atol, rtol, eps, np.random.RandomState(0))
    _check(f, tuple(args), order, settings, ())


class CheckGradsOptions(NamedTuple):
    """How to compare; the arguments of `check_grads`, and a random generator."""

    modes: tuple
    atol: float | dict | None
    rtol: float | dict | None
    eps: float | None
    random: np.random.RandomState

    def steps(self, args):
        """Return the steps to try."""
        if self.eps:
            return [self.eps]
        usual = np.cbrt(max(map(precision, tree_leaves(args)), default=1.0))
        return [usual, usual / 32]


def _check(f, args, order, settings, path):
    for mode in settings.modes if order else ():
        what = "check_grads: " + " of ".join((mode, *path))
        derivative = CHECKS[mode](f, args, settings, what)
        _check(derivative, args, order - 1, settings, (mode, *path))


def check_forward(f, args, settings, what):
    """Compare `jvp` with a difference quotient; return the derivative it compared."""
    tangents = rand_like(args, settings.random)
    quotient = partial(numerical_jvp, f, args, tangents)
    assert_derivatives_close(what, jvp(f, args, tangents)[1], quotient, args, settings)
    return lambda *xs: inexact_leaves(jvp(f, xs, tangents)[1])


def check_reverse(f, args, settings, what):
    """Compare `vjp` with a difference quotient; return the derivative it compared."""
    tangents = rand_like(args, settings.random)
    result, vjp_fun = vjp(f, *args)
    cotangents = rand_like(result, settings.random)

    def quotient(eps):
        return tree_inner_product(cotangents, numerical_jvp(f, args, tangents, eps))

    assert_derivatives_close(
        what,
        tree_inner_product(vjp_fun(cotangents), tangents),
        quotient,
        args,
        settings,
    )
    return lambda *xs: inexact_leaves(vjp(f, *xs)[1](cotangents))


CHECKS = {"fwd": check_forward, "rev": check_reverse}


def inexact_leaves(tree):
    """Return the leaves that have derivatives: real and complex ones."""
    return [leaf for leaf in tree_leaves(tree) if is_inexact(leaf.dtype)]


def rand_like(tree, random):
    """Return a random direction: normally distributed, ``float0`` for integers."""

    def sample(x):
        aval = typeof(x)
        if not is_inexact(aval.dtype):
            return np.zeros(aval.shape, float0)
        values = random.standard_normal(aval.shape)
        if aval.dtype.kind == "c":
            values = values + 1j * random.standard_normal(aval.shape)
        return as_array_impl(np.asarray(values, aval.dtype))

    return tree_map(sample, tree)


def numerical_jvp(f, args, tangents, eps):
    """Return the difference quotient of `f` in a direction, centred on `args`."""

    def step(size):
        def move(x, t):
            dtype = typeof(x).dtype
            if not is_inexact(dtype):
                return x
            return as_array_impl(
                np.asarray(to_float64(x) + size * to_float64(t), dtype)
            )

        return f(*tree_map(move, args, tangents))

    return tree_map(
        lambda y, z: (to_float64(y) - to_float64(z)) / eps,
        step(eps / 2),
        step(-eps / 2),
    )


def precision(x):
    """Return the distance from 1 to the next number of the dtype of `x`."""
    dtype = typeof(x).dtype
    if dtype.name == "bfloat16":
        return 2.0**-7
    return float(np.finfo(dtype).eps) if is_inexact(dtype) else 0.0


def to_float64(x):
    """Return an array or scalar as a NumPy array of 64-bit floats, or complex."""
    array = np.asarray(x)
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def tree_inner_product(cotangents, tangents):
    """Return what cotangents and tangents make together: one real number."""
    pairs = zip(tree_leaves(cotangents), tree_leaves(tangents))
    terms = [
        np.sum(to_float64(ct) * to_float64(t)).real
        for ct, t in pairs
        if ct.dtype != float0
    ]
    return np.sum(terms)


def tolerance(args, given=None):
    """Return how far apart two derivatives may be in the precision of `args`.

    Args:
      args: where the derivatives are compared.
      given: a number, a dictionary from dtypes to numbers, or None.
    """
    if given is not None and not isinstance(given, dict):
        return given
    chosen = {np.dtype(dtype): number for dtype, number in (given or {}).items()}
    leaves = [x for x in tree_leaves(args) if is_inexact(typeof(x).dtype)]
    usual = [(typeof(x).dtype, precision(x)) for x in leaves]
    found = [chosen.get(dtype, _usual_tolerance(eps)) for dtype, eps in usual]
    return max(found, default=_usual_tolerance(0.0))


def _usual_tolerance(eps):
    return 1e-1 if eps > 1e-4 else 2e-3 if eps > 1e-10 else 1e-5


def assert_derivatives_close(what, derivative, quotient, args, settings):
    """Raise an AssertionError if two trees of derivatives are too far apart.

    Args:
      what: the derivative is, for the message.
      derivative: a tree of arrays.
      quotient: function of a step that returns the tree of difference quotients.
      args: where they are compared.
      settings: the `CheckGradsOptions`.
    """
    found = None
    for eps in settings.steps(args):
        wrong = closeness_message(derivative, quotient(eps), args, settings)
        if wrong is None:
            return
        found = found or wrong
    raise AssertionError(f"{what} disagrees with the difference quotient at {found}")


QUOTIENT = "the derivative", "the quotient"


def closeness_message(derivative, expected, args, settings, words=QUOTIENT):
    """Return where two trees are too far apart, a text with words for them, or None."""
    atol, rtol = (tolerance(args, x) for x in (settings.atol, settings.rtol))
    for (path, x), y in zip(tree_leaves_with_path(derivative), tree_leaves(expected)):
        if getattr(x, "dtype", None) == float0:
            continue
        if not np.allclose(to_float64(x), y, rtol, atol, equal_nan=True):
            return (
                f"result{keystr(path)}: {words[0]} is {np.asarray(x)}, {words[1]} {y} "
                f"(rtol={rtol}, atol={atol})."
            )


# Functions that return derivatives, checked against differences of values.


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
    settings = CheckGradsOptions((), atol, rtol, eps, np.random.RandomState(0))
    tangents = rand_like(tuple(args), settings.random)
    result, rates = f_jvp(tuple(args), tangents)
    name = f"check_jvp: {err_msg}".rstrip(": ") + ":"
    _check_values(name, result, f(*args), args, settings)
    _check_dtypes(f"{name} the tangent", rates, result)
    quotient = partial(numerical_jvp, f, tuple(args), tangents)
    assert_derivatives_close(f"{name} the tangent", rates, quotient, args, settings)


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
    settings = CheckGradsOptions((), atol, rtol, eps, np.random.RandomState(0))
    result, pullback = f_vjp(*args)
    name = f"check_vjp: {err_msg}".rstrip(": ") + ":"
    _check_values(name, result, f(*args), args, settings)
    tangents = rand_like(tuple(args), settings.random)
    cotangents = rand_like(result, settings.random)

    def quotient(step):
        return tree_inner_product(
            cotangents, numerical_jvp(f, tuple(args), tangents, step)
        )

    product = tree_inner_product(pullback(cotangents), tangents)
    assert_derivatives_close(f"{name} the cotangent", product, quotient, args, settings)


def _check_values(name, result, expected, args, settings):
    words = "the value", "that of the function"
    found = closeness_message(
        result, tree_map(to_float64, expected), args, settings, words
    )
    if found:
        raise AssertionError(f"{name} the value disagrees with the function at {found}")


def _check_dtypes(name, xs, ys):
    for x, y in zip(tree_leaves(xs), tree_leaves(ys)):
        if is_inexact(typeof(y).dtype) and typeof(x).dtype != typeof(y).dtype:
            raise AssertionError(f"{name} is of {typeof(x)}, and the value {typeof(y)}")
