"""Loops as users write them: scan, fori_loop, map, associative_scan.

References: ``jax.lax.associative_scan``; G. Blelloch, *Prefix Sums and Their
Applications* (1990), ``jax.lax.scan``, ``jax.lax.fori_loop``, ``jax.lax.map``.
"""

# Made from chapters/16_scan_upper.md by `make chapter`;
# edit the chapter, not this file.
# Amended in chapters/28_indexing_rest.md: TracedScanBody.__init__ (76921147).
# Amended in chapters/28_indexing_rest.md: scan (de622964).

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import lax
from minijax.arrays.array import as_array_impl, typeof
from minijax.arrays.dtypes import config
from minijax.batching.vmap import vmap
from minijax.control_flow.common import (
    check_carry_type,
    closed_jaxpr_with_io,
    promote_weak_typed_inputs,
    thread_refs,
)
from minijax.forward_mode.jvp_rules import slice_along_axis
from minijax.jaxprs.jaxpr import abstractify
from minijax.jitting.compilation import trace_call
from minijax.pytrees.api_util import FlatCall, Loan, holds_refs, returning_refs
from minijax.pytrees.argument_checks import read_refs, refs_in, write_refs
from minijax.pytrees.tree_util import tree_flatten, tree_leaves, tree_map
from minijax.rematerialization.jaxpr_transforms import (
    merge_lists,
    partition_list,
    select_where,
)
from minijax.scans.scan import bind_scan, scan_indices, unstacked_aval
from minijax.scans.step import (
    batched_map_body,
    bound_dtype,
    cached_per_function,
    canonicalize_unroll,
    common_axis,
    concatenate_remainder,
    concrete_bounds_or_none,
    convert_bound,
    flatten_batches,
    fori_body,
    fori_cond,
    fori_scan_body,
    map_body,
    on_leaves,
    scan_length,
    split_batches,
    split_list_by_sizes,
)
from minijax.typing import ArrayLike

# Associative scan: a parallel prefix in about 2 log2(n) rounds instead of n steps.


def every_second(xs, start, limit, axis):
    """Return the elements `start`, `start` + 2, … before `limit` of each array."""
    return [slice_along_axis(x, axis, start, limit, 2) for x in xs]


def interleave(x, y, axis):
    """Return the elements of `x` and `y` in turn; `x` may have one more than `y`."""
    shape, size = typeof(y).shape, typeof(y).shape[axis]
    more = typeof(x).shape[axis] > size
    both = [slice_along_axis(x, axis, 0, size) if more else x, y]
    columns = [lax.expand_dims(part, (axis + 1,)) for part in both]
    pairs = lax.concatenate(columns, axis + 1)
    result = lax.reshape(pairs, (*shape[:axis], 2 * size, *shape[axis + 1 :]))
    last = [slice_along_axis(x, axis, size, size + 1)] if more else []
    result = lax.concatenate([result, *last], axis)
    return lax.convert_element_type(result, result.dtype)  # never weak, as in JAX


def combine_prefixes(combine, xs, axis):
    """Combine all prefixes of arrays along an axis: neighbours first, then the pairs.

    Args:
      combine: a function of two lists of arrays.
      xs: list of arrays.
      axis: the axis.
    """
    size = typeof(xs[0]).shape[axis]
    if size < 2:
        return xs
    first = every_second(xs, 0, size - 1, axis)
    pairs = combine(first, every_second(xs, 1, size, axis))
    odd = combine_prefixes(combine, pairs, axis)
    even = [slice_along_axis(x, axis, 0, 1) for x in xs]
    if size > 2:
        before = (  # as `zip` did: with an even size, nothing follows the last one
            odd
            if size % 2
            else [slice_along_axis(x, axis, 0, size // 2 - 1) for x in odd]
        )
        later = combine(before, every_second(xs, 2, size, axis))
        even = [lax.concatenate(both, axis) for both in zip(even, later)]
    return [interleave(x, y, axis) for x, y in zip(even, odd)]


def associative_scan(
    fn: Callable, elems: Any, reverse: bool = False, axis: int = 0
) -> Any:
    """Combine the elements along an axis, and keep every partial result.

    Args:
      fn: an associative function. It gets two trees like `elems`, each with some of the
        elements, and combines the first with the first, the second with the second …
      elems: a tree of arrays that have the same size along `axis`.
      reverse: whether to begin with the last element.
      axis: the axis, the same one for all arrays.

    Returns:
      A tree like `elems`. Its element i combines the elements 0 to i; with `reverse`,
      the last to the element i, in this order.

    Raises:
      TypeError: if `fn` cannot be called, or changes shapes or dtypes.
      ValueError: if there is no such axis, if sizes along it differ, or if `fn` returns
        more or fewer arrays than `elems` has.

    Reference: ``jax.lax.associative_scan``.
    """
    if not callable(fn):
        raise TypeError(f"associative_scan: fn is {fn!r}, which cannot be called.")
    axis = common_axis(elems, axis)
    leaves, treedef = tree_flatten(elems)
    if reverse:
        leaves = [lax.rev(leaf, (axis,)) for leaf in leaves]
    results = combine_prefixes(on_leaves(fn, treedef), leaves, axis)
    if reverse:
        results = [lax.rev(result, (axis,)) for result in results]
    return treedef.unflatten(results)


# From the user's function of one step to its program, and to the scan that runs it.


class TracedScanBody:
    """A user's function of one step, written down for a carry and for rows.

    Args:
      f: function from the carry and the rows of one step to the pair of the new carry
        and the rows of the results.
      init: the tree of initial values of the carry.
      xs: tree of arrays.

    Attributes:
      program: the `Program` of `f`.
      carry: the leaves of `init`, those of weak type converted to what a step returns.
      carry_tree: the structure of the carry that `f` returns.

    Raises:
      TypeError: if `f` does not return a pair, or its carry is not what it was.
    """

    def __init__(self, f, init, xs):
        self.f, self.xs = f, xs
        self.carry, tree = tree_flatten(init)
        avals = self._write_down(tree)
        if self.carry_tree == tree:
            self.carry, promoted = promote_weak_typed_inputs(self.carry, *avals)
            avals = self._write_down(tree) if promoted else avals
        check_carry_type("scan", f, tree, avals[0], self.carry_tree, avals[1])
        self.refs, count = refs_in(self.program.captured), len(self.carry)
        self.program = thread_refs(self.program, self.refs, count, count)
        self.carry = [*self.carry, *read_refs(self.refs)]

    def _write_down(self, tree):
        """Trace, and return the types of the carry before and after."""
        args = tree.unflatten(self.carry), self.xs
        call = FlatCall("scan", self.f, args, typeof=abstractify)
        count = len(self.carry)
        call.avals[count:] = [unstacked_aval(aval) for aval in call.avals[count:]]
        self.program = trace_call(call, hoist=True)
        outs = self.program.closed.out_avals
        self.carry_tree, _ = _pair(call, self.program.out_tree, outs)
        outs = outs[: self.carry_tree.num_leaves]
        return call.avals[:count], outs


def _spelled(tree, outs):
    """Return what a step returned instead of a pair: its types, in their tree."""
    types = [aval.str_short() for aval in outs]
    return types[0] if tree.kind is None else str(tree.unflatten(types))


def _pair(call, out_tree, outs):
    parts = out_tree.children()
    if len(parts) == 2 and issubclass(out_tree.kind.type, (tuple, list)):
        return parts
    raise TypeError(
        f"scan body output must be a pair, got {_spelled(out_tree, outs)}. "
        f"{call.fun_name} returns the carry, and what a step adds to the results."
    )


def bind_scan_body(step, xs, **how):
    """Bind the scan of a step, but for what it only passes on.

    Args:
      step: a `TracedScanBody`.
      xs: the list of arrays.
      **how: `length`, `reverse` and `unroll`.

    Returns:
      The list of the last carry, and the list of the ys.
    """
    closed, captured = step.program.closed, step.program.captured
    sizes = len(captured), len(step.carry)
    still, given = passed_on(closed, *sizes)
    consts, carry, rows = split_list_by_sizes(range(len(closed.invars)), *sizes)
    carry, fixed = partition_list(still, carry)
    kept = [not flag for flag in still] + [place is None for place in given]
    results = select_where(kept, range(len(kept)))
    closed = closed_jaxpr_with_io(closed, [*fixed, *consts, *carry, *rows], results)
    carry, fixed = partition_list(still, step.carry)
    carry, ys = bind_scan(closed, fixed + captured, carry, xs, **how)
    ys = iter(ys)
    ys = [next(ys) if place is None else _as_array(xs[place]) for place in given]
    return merge_lists(still, carry, fixed), ys


def passed_on(closed, num_consts, num_carry):
    """Return what a step does not compute.

    Returns:
      For each of the carry whether it is returned as it came; and for each of the ys
      the place among the xs of the row that it is, or None.
    """
    _, carry, xs = split_list_by_sizes(closed.invars, num_consts, num_carry)
    carry_out, ys = split_list_by_sizes(closed.outvars, num_carry)
    still = [before is after for before, after in zip(carry, carry_out)]
    return still, [xs.index(y) if y in xs else None for y in ys]


def _as_array(x):
    return as_array_impl(x) if isinstance(x, np.ndarray) else x


def scan_in_python(f, init, xs, length, reverse):
    """Do what `scan` does in a Python loop: for `disable_jit`."""
    if length == 0:
        raise ValueError(
            "A zero-length scan has no step to learn the types of its results from, "
            "and with disable_jit it runs nothing else."
        )
    carry, rows = init, {}
    for i in scan_indices(length, reverse):
        carry, rows[i] = f(carry, tree_map(lambda x, i=i: _row_of(x, i), xs))
    return carry, tree_map(_stack, *[rows[i] for i in range(length)])


def _row_of(x, i):
    return lax.index_in_dim(x, i, keepdims=False)


def _stack(*rows):
    return lax.concatenate([lax.expand_dims(row, (0,)) for row in rows], 0)


def _counted(lower, upper, body_fun, init_val, unroll):
    length = max(upper - lower, 0)
    if length == 0 and config.jax_disable_jit:
        return init_val
    step = cached_per_function(fori_scan_body, body_fun)
    (_, value), _ = scan(step, (lower, init_val), None, length, unroll=unroll)
    return value


# scan, fori_loop: loops with a known number of steps, as users write them.


def _scan_of_refs(f, init, xs, options):
    """Scan what references hold, row by row, and write the new rows."""
    loan = Loan("scan", f, (init, xs))
    if holds_refs(init):
        raise ValueError(
            "scan: the carry is what a step returns, and references cannot be "
            "returned. Let the step close over the reference; the loop carries what it "
            "holds."
        )
    one_step = returning_refs(f)

    def step(carry, rows):
        result, finals = one_step(carry, rows)
        if not (isinstance(result, (tuple, list)) and len(result) == 2):
            return result  # which scan refuses
        return result[0], (result[1], finals)

    def run(_, xs):
        carry, (ys, finals) = scan(step, init, xs, **options)
        return (carry, ys), finals

    return loan.call(run)


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[Any, Any]:
    """Run a function step by step, each on the carry of the step before.

    Args:
      f: function from the carry, a tree of arrays, and from a tree with one row of each
        array in `xs`, to a pair: the new carry, with the structure, shapes and dtypes
        of the old one, and a tree of arrays, or None.
      init: the carry of the first step.
      xs: tree of arrays, whose leading axes have one size, the number of steps; None if
        the steps need nothing. Of a reference each step gets one to its row.
      length: the number of steps; needed if `xs` has no arrays.
      reverse: whether the steps take the rows from the last to the first; the results
        are stacked in the order of the rows in any case.
      unroll: how many steps a compiler may write out in one go around the loop; True or
        0 for all of them. It does not change results.
      _split_transpose: accepted for compatibility, without effect.

    Returns:
      The pair of the last carry, and of the tree of what the steps have returned, with
      a new leading axis.

    Raises:
      TypeError: if `f` cannot be called or does not return a pair, or if the carry that
        it returns does not have the structure and types of the one that it got.
      ValueError: if the number of steps is not told, or told in different ways, or if a
        reference is to be carried.

    Reference: ``jax.lax.scan``.
    """
    if not callable(f):
        raise TypeError(f"lax.scan: f has to be a function of one step, got {f!r}.")
    if holds_refs((init, xs)):
        options = {"length": length, "reverse": reverse, "unroll": unroll}
        return _scan_of_refs(f, init, xs, options)
    length = scan_length(xs, length)
    if config.jax_disable_jit:
        return scan_in_python(f, init, xs, length, reverse)
    step = TracedScanBody(f, init, xs)
    how = {"length": length, "reverse": bool(reverse)}
    how["unroll"] = canonicalize_unroll(unroll, length)
    carry, ys = bind_scan_body(step, tree_leaves(xs), **how)
    carry = write_refs(step.refs, carry)
    return step.program.out_tree.unflatten([*carry, *ys])


def fori_loop(
    lower: ArrayLike,
    upper: ArrayLike,
    body_fun: Callable[[Any, Any], Any],
    init_val: Any,
    *,
    unroll: int | bool | None = None,
) -> Any:
    """Run a function for each integer from `lower` up to, not including, `upper`.

    If both are known, the loop is a `scan`, and can be differentiated in reverse mode;
    otherwise it is a `while_loop`.

    Args:
      lower, upper: integers, perhaps tracers, of one dtype.
      body_fun: function from an integer and a tree of arrays to such a tree, with the
        same structure, shapes and dtypes.
      init_val: the tree for the first call.
      unroll: as for `scan`; only if both bounds are known.

    Returns:
      What the last call returned; `init_val` if there is none.

    Raises:
      TypeError: if `body_fun` cannot be called, the bounds have different dtypes, or
        the tree changes its structure or types.
      ValueError: if the loop is to be unrolled and the bounds are not known.

    Reference: ``jax.lax.fori_loop``.
    """
    if not callable(body_fun):
        raise TypeError(f"lax.fori_loop: body_fun has to be a function: {body_fun!r}.")
    dtype, bounds = bound_dtype(lower, upper), concrete_bounds_or_none(lower, upper)
    if bounds is not None:
        first, end = bounds
        return _counted(first, end, body_fun, init_val, bool(unroll) and unroll)
    if unroll not in (None, False, 1):
        raise ValueError(
            "Can only use `unroll` in `fori_loop` if the loop bounds are known, but "
            f"lower is {lower!r} and upper is {upper!r}."
        )
    bounds = [convert_bound(bound, dtype) for bound in (lower, upper)]
    body = cached_per_function(fori_body, body_fun)
    return lax.while_loop(fori_cond, body, (*bounds, init_val))[2]


# lax.map: a function of one row, for each row, in a loop and perhaps in batches.


def map(f: Callable, xs: Any, *, batch_size: int | None = None) -> Any:
    """Apply a function to each row of some arrays, one row after the other.

    Args:
      f: function from a tree with one row of each array to a tree of arrays.
      xs: tree of arrays, whose leading axes have one size.
      batch_size: how many rows at once are handed to ``vmap(f)``; 0 for all.

    Returns:
      The tree of what `f` returned, with a new leading axis.

    Raises:
      ValueError: if `xs` has no rows, or different numbers of them.
      TypeError: if `batch_size` is negative.

    Reference: ``jax.lax.map``.
    """
    if batch_size is None:
        return scan(map_body(lambda: f), (), xs)[1]
    if batch_size < 0:
        raise TypeError(f"lax.map: batch_size has to be at least 0, not {batch_size}.")
    count = scan_length(xs)
    batches = count // batch_size if batch_size else 0
    if batches == 0:
        return vmap(f)(xs)
    leaves, treedef = tree_flatten(xs)
    pieces = [split_batches(x, batches, batch_size) for x in leaves]
    whole, rest = (treedef.unflatten(part) for part in zip(*pieces))
    ys = scan(batched_map_body(lambda: f), (), whole)[1]
    if count == batches * batch_size:
        return tree_map(flatten_batches, ys)
    return tree_map(concatenate_remainder, ys, vmap(f)(rest))
