"""Conditionals: cond and switch, their rules, and an if statement in Python.

References: ``jax.lax.cond``, ``jax.lax.switch``, the rules of ``cond_p`` in
``jax._src.lax.control_flow.conditionals``.
"""

# Made from chapters/15_branches.md by `make chapter`;
# edit the chapter, not this file.
# Amended in chapters/28_indexing_rest.md: cond, switch (7e6968e1).

from collections.abc import Callable, Sequence
from functools import reduce
from operator import or_
from typing import Any

import numpy as np

from minijax import lax
from minijax.arrays.array import ArrayImpl, asbuffer, shape_rules, typeof
from minijax.arrays.dtypes import config, dtype_kind
from minijax.batching.vmap import (
    batch_dim_to_front,
    higher_order_primitives,
    move_one_axis,
    vmap_rules,
)
from minijax.control_flow.common import (
    UNSET,
    any_per_position,
    canonical_cond_args,
    empty_p,
    is_concrete,
    operands_or_keyword,
    raise_if_io_effect,
    scalar_predicate,
    select_by_index,
    trace_branches,
    transpose_branches,
    unify_residuals,
)
from minijax.core import Primitive, impl_rules, set_current_trace
from minijax.custom_derivatives.custom_jvp_vjp import stop_gradient_p
from minijax.forward_mode.jvp import jvp_rules
from minijax.jaxprs.jaxpr import Literal, jaxpr_as_fun
from minijax.jitting.compilation import run_program
from minijax.jitting.primitive import check_jaxpr_operands
from minijax.jitting.stages import cost_analysis, cost_rules
from minijax.linearization.linearize import partial_eval_rules
from minijax.python_backend.codegen import python_rules
from minijax.python_backend.codegen_rules import inline_jaxpr_into
from minijax.pytrees.api_util import Loan, holds_refs, returning_refs
from minijax.rematerialization.jaxpr_transforms import (
    batch_jaxpr,
    cotangent_avals,
    dce_closed_jaxpr,
    dce_rules,
    jvp_jaxpr,
    partition_list,
    prune_inputs,
    scatter_by_mask,
    select_where,
)
from minijax.rematerialization.partial_eval import partial_eval_jaxpr
from minijax.reverse_mode.backward_pass import UndefinedPrimal, transpose_rules

# The choice between programs, as an equation: cond and switch.

cond_p = Primitive("cond")
cond_p.multiple_results = True
higher_order_primitives.add(cond_p)


def _cond_shape(index, *operands, branches):
    for branch in branches:
        check_jaxpr_operands("A branch of cond", branch.in_avals, operands)
    return branches[0].out_avals


shape_rules[cond_p] = _cond_shape


def _cond_impl(index, *operands, branches):
    outs = run_program(branches[int(index)], operands, name="cond")
    return list(map(convert_weak_type, outs, branches[0].out_avals))


def convert_weak_type(x, aval):
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
    operand: Any = UNSET,
) -> Any:
    """Apply one of two functions; both are written down, one of them is run.

    Args:
      pred: a scalar, of booleans or real numbers; a number is true if it is not 0.
      true_fun, false_fun: functions of the operands that return trees of arrays, with
        the same structure, shapes and dtypes.
      *operands: trees of arrays, and references, to which a function may write.
      operand: the only operand, in an older way of calling; it may be None.

    Returns:
      What the chosen function returns.

    Raises:
      TypeError: if the predicate is no scalar, a function cannot be called, or the
        functions return different things; the message names the leaves.

    Reference: ``jax.lax.cond``.
    """
    given = true_fun, false_fun, operands, operand
    true_fun, false_fun, operands = canonical_cond_args(*given)
    if holds_refs(operands):
        functions = returning_refs(true_fun), returning_refs(false_fun)
        lend = Loan("cond", true_fun, operands)
        return lend.call(lambda *operands: cond(pred, *functions, *operands))
    pred = scalar_predicate(pred)
    if config.jax_disable_jit and is_concrete(pred):
        return true_fun(*operands) if pred else false_fun(*operands)
    functions, labels = (true_fun, false_fun), ("true_fun", "false_fun")
    written = trace_branches("cond", functions, labels, operands)
    index = lax.convert_element_type(pred, np.int32)
    return _choose(index, written._replace(programs=written.programs[::-1]))


def switch(
    index: Any, branches: Sequence[Callable], *operands: Any, operand: Any = UNSET
) -> Any:
    """Apply one of several functions; all are written down, one of them is run.

    Args:
      index: an integer scalar, brought into the range of `branches`.
      branches: a sequence of functions of the operands that return trees of arrays,
        with the same structure, shapes and dtypes.
      *operands: trees of arrays, and references, to which a function may write.
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
    operands = operands_or_keyword("switch", operands, operand)
    if branches and holds_refs(operands):
        functions = list(map(returning_refs, branches))
        lend = Loan("switch", branches[0], operands)
        return lend.call(lambda *operands: switch(index, functions, *operands))
    aval = typeof(index)
    if aval.shape or dtype_kind(aval.dtype) not in "iu":
        raise TypeError(f"switch: the index must be an integer scalar, not a {aval}.")
    if len(branches) < 2:
        return _only(branches)(*operands)
    index = lax.convert_element_type(index, np.int32)
    index = lax.clamp(np.int32(0), index, np.int32(len(branches) - 1))
    if config.jax_disable_jit and is_concrete(index):
        return branches[int(index)](*operands)
    labels = [f"branch {i}" for i in range(len(branches))]
    return _choose(index, trace_branches("switch", branches, labels, operands))


def _only(branches):
    if not branches:
        raise ValueError("switch: there is no branch to choose.")
    return branches[0]


def agree(transform, branches):
    """Transform programs so that they agree about their results.

    Args:
      transform: a function of a program, which returns the transformed one and, for
        each result, a flag. With flags as a second argument, it makes a program that
        has all of these.
      branches: a sequence of programs of one type.

    Returns:
      The tuple of the transformed programs, and their common flags.
    """
    joint = any_per_position([transform(branch)[1] for branch in branches])
    return tuple([transform(branch, joint)[0] for branch in branches]), joint


# The rules of cond: derivatives, batches, splitting, transposition.


def _cond_jvp(primals, tangents, branches):
    tangents = tangents[1:]  # the index is an integer, and has none
    moving = tuple([tangent is not None for tangent in tangents])
    derived, moves = agree(lambda b, *joint: jvp_jaxpr(b, moving, *joint), branches)
    given = select_where(moving, tangents)
    outs = cond_p.bind(*primals, *given, branches=derived)
    # a tangent for each result that moves, and None for the others
    return outs[: len(moves)], scatter_by_mask(moves, outs[len(moves) :])


jvp_rules[cond_p] = _cond_jvp


def _cond_dce(eqn, used):
    pruned = [dce_closed_jaxpr(branch, used) for branch in eqn.params["branches"]]
    needed = any_per_position([needs for _, needs in pruned])
    branches = tuple([prune_inputs(program, needed) for program, _ in pruned])
    index, *operands = eqn.invars
    return eqn.replace(
        invars=[index, *select_where(needed, operands)],
        outvars=select_where(used, eqn.outvars),
        params={"branches": branches},
    )


dce_rules[cond_p] = _cond_dce


def _run_one(axis, index, operands, dims, branches):
    """Run the same branch for all examples."""
    pairs = zip(operands, dims)
    operands = [x if dim is None else move_one_axis(x, dim, 0) for x, dim in pairs]
    dims = tuple([None if dim is None else 0 for dim in dims])

    def batched(branch, *joint):
        program, found = batch_jaxpr(branch, axis, dims, *joint)
        return program, [dim is not None for dim in found]

    branches, fronts = agree(batched, branches)
    outs = cond_p.bind(index, *operands, branches=branches)
    return outs, [0 if front else None for front in fronts]


def _cond_vmap(axis, args, dims, branches):
    (index, *operands), (index_dim, *dims) = args, dims
    if index_dim is None:
        return _run_one(axis, index, operands, dims, branches)
    operands = [batch_dim_to_front(x, dim, axis.size) for x, dim in zip(operands, dims)]
    return _run_all(
        axis, batch_dim_to_front(index, index_dim, axis.size), operands, branches
    )


vmap_rules[cond_p] = _cond_vmap


def partial_eval_branches(branches, in_unknown):
    """Split programs so that a result is unknown in all of them or in none."""

    def split(branch, *joint):
        parts = partial_eval_jaxpr(branch, in_unknown, *joint)
        return parts, parts.out_unknown

    return agree(split, branches)[0]


def _partial_eval_cond(trace, primitive, args, in_unknown, params):
    """Run the known part now, and leave a choice of the unknown parts to the tape."""
    if in_unknown[0]:
        with set_current_trace(trace.tape):
            return primitive.bind_all(*args, **params)
    parts = partial_eval_branches(params["branches"], tuple(in_unknown[1:]))
    known, unknown = unify_residuals(parts)
    known_args, unknown_args = partition_list(in_unknown, args)
    with set_current_trace(trace.parent):
        outs = cond_p.bind(*known_args, branches=known)
    slots = outs[parts[0].out_unknown.count(False) :]
    with set_current_trace(trace.tape):
        unknown_outs = cond_p.bind(args[0], *slots, *unknown_args, branches=unknown)
    return parts[0].results(outs, unknown_outs)


partial_eval_rules[cond_p] = _partial_eval_cond


def _cond_transpose(cotangents, index, *operands, branches):
    linear = tuple([isinstance(x, UndefinedPrimal) for x in operands])
    given = cotangent_avals(cotangents)
    backwards, arrives = transpose_branches(branches, linear, given)
    values, _ = partition_list(linear, operands)
    arrived = cond_p.bind(
        index, *values, *select_where(given, cotangents), branches=backwards
    )
    of_linear = scatter_by_mask(arrives, arrived)  # None where nothing arrives
    return [None, *scatter_by_mask(linear, of_linear)]  # None for what has no place


transpose_rules[cond_p] = _cond_transpose


# A choice in emitted Python: an if statement; and what it costs.


def write_cond(emitter, eqn, operands, results):
    """Write a choice as an if statement, of which one branch runs.

    Args:
      emitter: the `PythonEmitter` of the function.
      eqn: the equation.
      operands: expressions of its operands.
      results: the names of its results.
    """
    index, *operands = operands
    branches = eqn.params["branches"]
    tests = [f"elif {index} == {number}:" for number in range(len(branches))]
    tests[0] = f"if {index} == 0:"
    if len(branches) == 2:  # the one that is chosen by "true" comes first
        branches, tests[0] = branches[::-1], f"if {index}:"
    for test, branch in zip([*tests[:-1], "else:"], branches):
        with emitter.block(test):
            inline_jaxpr_into(emitter, branch, operands, results)


python_rules[cond_p] = write_cond


def most_expensive(eqn):
    """Return, of each cost, that of the branch in which it is largest."""
    return reduce(or_, map(cost_analysis, eqn.params["branches"]))


cost_rules[cond_p] = most_expensive
python_rules[empty_p] = lambda emitter, eqn, operands, results: emitter.assign(
    results, [emitter.scalar(Literal(np.zeros((), eqn.params["dtype"])[()]))]
)
python_rules[stop_gradient_p] = lambda emitter, eqn, operands, results: emitter.assign(
    results, operands
)


def _run_all(axis, index, operands, branches):
    """Run every branch on all examples, and choose among the results."""
    raise_if_io_effect("a cond whose predicate differs between examples", *branches)
    results = []
    for number, branch in enumerate(branches):
        program, _ = batch_jaxpr(branch, axis, (0,) * len(operands), True)
        mine = lax.eq(index, np.int32(number))
        sheltered = [
            select_by_index(mine, stop_gradient_p.bind(x), x) for x in operands
        ]
        results.append(jaxpr_as_fun(program)(*sheltered))
    outs = [select_by_index(index, *cases) for cases in zip(*results)]
    return outs, [0] * len(outs)
