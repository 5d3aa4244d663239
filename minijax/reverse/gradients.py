"""Gradients: the reverse derivative of a function with a single result.

Reference: ``jax.grad``, ``jax.value_and_grad``.
"""

# Made from chapters/10_reverse.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Callable, Sequence
from typing import Any

from minijax.pytrees.call_checks import check_callable
from minijax.reverse.backwards import vjp_flat
from minijax.reverse.derivative_calls import (
    by_argument,
    check_inputs,
    check_outputs,
    check_scalar,
    described,
    flat_call,
    unit,
)
from minijax.typing import P, R


def value_and_grad(
    fun: Callable[P, R],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, tuple[R, Any]]:
    """Return a function that computes the value of `fun` and its gradient.

    Args:
      fun: a function of arrays, scalars and trees of them, whose result is a scalar.
      argnums: the position of the argument to differentiate with respect to, or a
        tuple of positions.
      has_aux: whether `fun` returns a pair ``(value, aux)``.
      holomorphic: whether `fun` is a complex-differentiable function of complex
        arguments.
      allow_int: whether the arguments may hold integers and booleans, for which the
        gradient has zeros of dtype ``float0``.

    Returns:
      A function of the arguments of `fun`. It returns a pair: the value (with `has_aux`
      the pair ``(value, aux)``) and the gradient, which has the structure, shapes and
      dtypes of the argument, or is a tuple of such trees if `argnums` is one.

    Raises:
      TypeError: from that function, if the value is no real scalar, or if a leaf of the
        arguments is no real or complex array.

    Reference: ``jax.value_and_grad``.
    """
    check_callable(fun)

    @described("Value and gradient", fun, argnums)
    def value_and_grad_f(*args, **kwargs):
        call = flat_call("grad", fun, args, kwargs, argnums, has_aux)
        check_inputs(call, holomorphic, allow_int)
        flat, pullback = vjp_flat(call, call.leaves, lambda: call.num_outs)
        check_scalar(call, flat)
        check_outputs(call, flat, holomorphic)
        gradient = by_argument(call, argnums, pullback([unit(flat[0])]))
        value = call.output(flat)
        return ((value, call.aux(flat)) if has_aux else value), gradient

    return value_and_grad_f


def grad(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, Any]:
    """Return a function that computes the gradient of `fun`.

    Args:
      fun, argnums, has_aux, holomorphic, allow_int: as for `value_and_grad`.

    Returns:
      A function of the arguments of `fun` that returns the gradient; with `has_aux` the
      pair ``(gradient, aux)``.

    Raises:
      TypeError: as for `value_and_grad`.

    Reference: ``jax.grad``.
    """
    both = value_and_grad(fun, argnums, has_aux, holomorphic, allow_int)

    @described("Gradient", fun, argnums)
    def grad_f(*args, **kwargs):
        value, gradient = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return grad_f
