"""Names for parts of a program, and derivatives in two parts.

Reference: ``jax.named_scope``, ``jax.named_call``, ``jax.fwd_and_bwd``.
"""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from minijax.jitting.api import jit
from minijax.reverse.backwards import vjp


@contextmanager
def named_scope(name: str) -> Iterator[None]:
    """Name a block, or a function that it decorates; programs keep lines instead.

    Args:
      name: a string.

    Raises:
      TypeError: for a name that is no string.

    Reference: ``jax.named_scope``.
    """
    if not isinstance(name, str):
        raise TypeError("named_scope name argument must be a string.")
    yield


def named_call(fun: Callable[..., Any], *, name: str | None = None) -> Callable:
    """Return a function that does the same under a name, its own by default.

    Raises:
      TypeError: if it cannot be called.

    Reference: ``jax.named_call``.
    """
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun}")
    return functools.wraps(fun)(lambda *args, **kwargs: fun(*args, **kwargs))


def fwd_and_bwd(
    fun: Callable[..., Any],
    argnums: int | Sequence[int],
    has_aux: bool = False,
    jitted: bool = True,
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the two halves of a gradient, as functions of their own.

    Args:
      fun: a function of trees of arrays.
      argnums: which positional arguments are differentiated.
      has_aux: whether it returns a pair, of a result and other data.
      jitted: whether both functions are jitted.

    Returns:
      A function with the arguments of `fun` that returns its result, residuals, and
      the other data, if there are any; and one from residuals and a cotangent to the
      cotangents of the arguments.

    Reference: ``jax.fwd_and_bwd``.
    """
    several = (argnums,) if isinstance(argnums, int) else tuple(argnums)

    def fwd(*args, **kwargs):
        def part(*chosen):
            new = list(args)
            for place, value in zip(several, chosen):
                new[place] = value
            return fun(*new, **kwargs)

        return vjp(part, *[args[place] for place in several], has_aux=has_aux)

    def bwd(residuals, cotangent):
        found = residuals(cotangent)
        return found[0] if isinstance(argnums, int) else found

    return (jit(fwd), jit(bwd)) if jitted else (fwd, bwd)
