# Made from chapters/11b_python.md by `make chapter`;
# edit the chapter, not this file.
"""Primitives that have no Python of their own are called, as functions on buffers."""

import numpy as np

from minijax.array import ArrayImpl, asbuffer, computations
from minijax.core import EvalTrace, impl_rules, set_current_trace


def exactly(result, aval):
    """Return a result as a buffer of the dtype of `aval`, or a scalar without axes."""
    buffer = np.asarray(result, aval.dtype)
    return buffer if aval.shape else buffer[()]


def evaluation(primitive, in_avals, out_avals):
    """Return a function of buffers that does what evaluating a primitive does.

    Args:
      primitive: a `Primitive` with an entry in `computations` or a rule in `impl_rules`.
      in_avals, out_avals: types of its operands and results.
    """
    compute = computations.get(primitive) or _impl(primitive, in_avals)

    def evaluate(*buffers, **params):
        results = compute(np, *buffers, **params)
        results = results if isinstance(results, list) else [results]
        results = list(map(exactly, results, out_avals))
        return results if len(results) != 1 else results[0]

    return evaluate


def _impl(primitive, avals):
    def compute(xp, *buffers, **params):
        arrays = [ArrayImpl(xp.asarray(x), aval) for x, aval in zip(buffers, avals)]
        with set_current_trace(EvalTrace()):
            return list(map(asbuffer, impl_rules[primitive](*arrays, **params)))

    return compute
