"""The choice between programs, as an equation: cond and switch.

Reference: ``jax.lax.cond``, ``jax.lax.switch``.
"""

# Made from chapters/15_branches.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import lax
from minijax.arrays.array import ArrayImpl, asbuffer, shape_rules
from minijax.arrays.avals import typeof
from minijax.arrays.settings import config
from minijax.batching.trace import program_primitives
from minijax.branches.agreement import write_branches
from minijax.branches.selecting import (
    NOTHING,
    all_operands,
    as_predicate,
    both_functions,
    is_concrete,
)
from minijax.core import Primitive, impl_rules
from minijax.jitting.compilation import run_program
from minijax.jitting.primitive import check_operands

cond_p = Primitive("cond")
program_primitives.add(cond_p)


def _cond_shape(index, *operands, branches):
    for branch in branches:
        check_operands("A branch of cond", branch.in_avals, operands)
    return branches[0].out_avals


shape_rules[cond_p] = _cond_shape


def _cond_impl(index, *operands, branches):
    outs = run_program(branches[int(index)], operands, name="cond")
    return list(map(of_type, outs, branches[0].out_avals))


def of_type(x, aval):
    """Return an array as one of the type `aval`, which differs in weakness at most."""
    return x if x.aval == aval else ArrayImpl(asbuffer(x), aval, x.placement)


impl_rules[cond_p] = _cond_impl


def _choose(index, written):
    """Bind the choice among `WrittenBranches`, and return the tree of its results."""
    outs = cond_p.bind(index, *written.inputs, branches=written.programs)
    return written.result(outs)


def cond(
    pred: Any,
    true_fun: Any,
    false_fun: Any,
    *operands: Any,
    operand: Any = NOTHING,
) -> Any:
    """Apply one of two functions; both are written down, one of them is run.

    Args:
      pred: a scalar, of booleans or real numbers; a number is true if it is not 0.
      true_fun, false_fun: functions of the operands that return trees of arrays, with
        the same structure, shapes and dtypes.
      *operands: trees of arrays.
      operand: the only operand, in an older way of calling; it may be None.

    Returns:
      What the chosen function returns.

    Raises:
      TypeError: if the predicate is no scalar, a function cannot be called, or the
        functions return different things; the message names the leaves.

    Reference: ``jax.lax.cond``.
    """
    given = true_fun, false_fun, operands, operand
    true_fun, false_fun, operands = both_functions(*given)
    pred = as_predicate(pred)
    if config.jax_disable_jit and is_concrete(pred):
        return true_fun(*operands) if pred else false_fun(*operands)
    functions, labels = (true_fun, false_fun), ("true_fun", "false_fun")
    written = write_branches("cond", functions, labels, operands)
    index = lax.convert_element_type(pred, np.int32)
    return _choose(index, written._replace(programs=written.programs[::-1]))


def switch(
    index: Any, branches: Sequence[Callable], *operands: Any, operand: Any = NOTHING
) -> Any:
    """Apply one of several functions; all are written down, one of them is run.

    Args:
      index: an integer scalar, brought into the range of `branches`.
      branches: a sequence of functions of the operands that return trees of arrays,
        with the same structure, shapes and dtypes.
      *operands: trees of arrays.
      operand: the only operand, in an older way of calling; it may be None.

    Returns:
      What the chosen function returns.

    Raises:
      TypeError: if the index is no integer scalar, a branch cannot be called, or
        branches return different things; the message names the leaves.
      ValueError: if there are no branches.

    Reference: ``jax.lax.switch``.
    """
    branches = tuple(branches)
    if not all(map(callable, branches)):
        raise TypeError("switch: the branches must be a sequence of callables.")
    operands = all_operands("switch", operands, operand)
    aval = typeof(index)
    if aval.shape or aval.dtype.kind not in "iu":
        raise TypeError(f"switch: the index must be an integer scalar, not a {aval}.")
    if len(branches) < 2:
        return _only(branches)(*operands)
    index = lax.convert_element_type(index, np.int32)
    index = lax.clamp(np.int32(0), index, np.int32(len(branches) - 1))
    if config.jax_disable_jit and is_concrete(index):
        return branches[int(index)](*operands)
    labels = [f"branch {i}" for i in range(len(branches))]
    return _choose(index, write_branches("switch", branches, labels, operands))


def _only(branches):
    if not branches:
        raise ValueError("switch: there is no branch to choose.")
    return branches[0]
