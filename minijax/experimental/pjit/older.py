"""`jit` under its name of before.

Reference: ``jax.experimental.pjit``.
"""

# Made from chapters/36_replicas_rest.md by `make chapter`;
# edit the chapter, not this file.

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from minijax.jitting.api import jit
from minijax.jitting.shardings import UNSPECIFIED


def pjit(
    fun: Callable[..., Any],
    in_shardings: Any = UNSPECIFIED,
    out_shardings: Any = UNSPECIFIED,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    keep_unused: bool = False,
    device: Any = None,
    backend: str | None = None,
    inline: bool = False,
) -> Any:
    """Return a function that runs `fun` as a program. Deprecated.

    The arguments are those of `minijax.jit`. Here they may be given by position.

    Reference: ``jax.experimental.pjit.pjit``.
    """
    choices = {name: value for name, value in locals().items() if name != "fun"}
    warnings.warn(
        "minijax.experimental.pjit.pjit has been deprecated. Please use minijax.jit.",
        DeprecationWarning,
        stacklevel=2,
    )
    return jit(fun, **choices)
