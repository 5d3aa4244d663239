"""Evaluation of a primitive by compiling it, and classes of arrays that others made.

Reference: ``jax.interpreters.xla``.
"""

# Made from chapters/40_export_rest.md by `make chapter`;
# edit the chapter, not this file.

from functools import lru_cache, partial
from typing import Any

import numpy as np

from minijax import jit, typeof
from minijax.arrays.array import aval_rules
from minijax.extend.rules import callee_rules, kernel_rules
from minijax.interpreters.mlir import _evaluate


@lru_cache(4096)
def _compiled(prim, lowered, params):
    run = partial(_evaluate, prim) if lowered else prim.bind_all
    return jit(partial(run, **dict(params)))


def apply_primitive(prim: Any, *args: Any, **params: Any) -> Any:
    """Evaluate a primitive by a program that has it alone.

    Args:
      prim: the primitive.
      *args, **params: its operands and parameters, which are hashable.

    Raises:
      NotImplementedError: if nothing says what a program does for it.

    Reference: ``jax.interpreters.xla.apply_primitive``.
    """
    lowered = prim in callee_rules
    if not (lowered or prim in kernel_rules):
        raise NotImplementedError(
            f"MLIR translation rule for primitive '{prim}' not found: "
            "interpreters.mlir.register_lowering(primitive, mlir.lower_fun(f)) gives "
            "it one."
        )
    results = _compiled(prim, lowered, tuple(sorted(params.items())))(*args)
    return results if prim.multiple_results else results[0]


class _Handlers(dict):
    """From a class to a function that makes an array of NumPy of its objects."""

    def __setitem__(self, kind, handler):
        super().__setitem__(kind, handler)
        aval_rules.setdefault(kind, lambda x: typeof(handler(x)))


def _canonical(x):
    return np.asarray(x, typeof(x).dtype)


canonicalize_dtype_handlers = _Handlers(
    dict.fromkeys((np.ndarray, np.generic, bool, int, float, complex), _canonical)
)
pytype_aval_mappings = aval_rules
