"""What ``jax.core`` has besides traces and tracers.

Reference: ``jax.core``.
"""

# Made from chapters/14_callbacks_rest.md by `make chapter`;
# edit the chapter, not this file.

from typing import Any, TypeAlias

from minijax.arrays.avals import ShapedArray as ShapedArray
from minijax.arrays.interchange import Record
from minijax.jaxprs.jaxpr import Literal, Var
from minijax.jaxprs.jaxpr import eval_jaxpr as eval_jaxpr
from minijax.switches.managers import (
    ensure_compile_time_eval as ensure_compile_time_eval,
)

AbstractValue = Record
Atom: TypeAlias = Var | Literal
ParamDict = dict[str, Any]
Value = Any
eval_context = ensure_compile_time_eval


def max_dim(d1: int, d2: int) -> int:
    """Return the larger one of two sizes of axes.

    Reference: ``jax.core.max_dim``.
    """
    return max(d1, d2)


def min_dim(d1: int, d2: int) -> int:
    """Return the smaller one of two sizes of axes.

    Reference: ``jax.core.min_dim``.
    """
    return min(d1, d2)
