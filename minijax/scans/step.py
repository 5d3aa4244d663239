"""The step of a scan: its operands in groups, and what users give to loops.

Loop-invariant code motion: what the constants of a loop decide is done before it.

References: ``jax.lax.scan``; ``jax.linearize`` of a scan, ``jax.lax.scan``,
``jax.lax.fori_loop``, ``jax.lax.map``.
"""

# Made from chapters/16_scan_ground.md by `make chapter`;
# edit the chapter, not this file.

import operator
from itertools import accumulate, pairwise
from typing import NamedTuple
from weakref import ref

from minijax import lax
from minijax.arrays.array import is_python_scalar, typeof
from minijax.arrays.dtypes import dtype_kind
from minijax.arrays.numerics import canonicalize_axis
from minijax.batching.vmap import vmap
from minijax.control_flow.common import closed_jaxpr_with_io
from minijax.control_flow.while_loops import settle
from minijax.core import Tracer
from minijax.errors import ConcretizationTypeError
from minijax.jaxprs.jaxpr import ClosedJaxpr, jaxpr_as_fun
from minijax.lax.elementwise import add_any
from minijax.pytrees.api_util import flatten_like
from minijax.pytrees.registry import keystr
from minijax.pytrees.tree_util import tree_leaves, tree_leaves_with_path
from minijax.rematerialization.caching import (
    cache_for_object,
    weakref_cache,
    weakref_memoize,
)
from minijax.rematerialization.jaxpr_transforms import (
    batch_jaxpr,
    dce_closed_jaxpr,
    has_effects,
    jvp_jaxpr,
    partition_list,
    prune_inputs,
    trace_flat_fun,
)
from minijax.rematerialization.partial_eval import PartialEvalResult, partial_eval_jaxpr

# The step of a scan: its operands in groups, and what transformations make of it.


def split_list_by_sizes(values, *sizes):
    """Return a list or tuple cut into groups of these sizes, and what is left."""
    ends = [0, *accumulate(sizes), len(values)]
    return [values[start:end] for start, end in pairwise(ends)]


def interleaved(*rows):
    """Return the places of things that come in groups, sorted by column.

    Args:
      *rows: lists of sizes: the things come in groups of these sizes, row by row.
    """
    sizes = [size for row in rows for size in row]
    places = split_list_by_sizes(range(sum(sizes)), *sizes)
    columns = [column for row in rows for column in range(len(row))]
    by_column = sorted(zip(columns, places), key=lambda pair: pair[0])
    return tuple([place for _, group in by_column for place in group])


@weakref_memoize
def jvp_scan_body(step, moving, num_consts, num_carry):
    """Return the step of values and tangents.

    Args:
      step: the `ClosedJaxpr` of a step.
      moving: for each operand of the scan whether it has a tangent.
      num_consts, num_carry: how many operands are constants, and carry.

    Returns:
      A `ClosedJaxpr`, in each group the values before the tangents; for each operand
      whether it has to have a tangent, since some step gives one to the carry; and for
      each result whether it has one.
    """
    consts, carry, xs = split_list_by_sizes(moving, num_consts, num_carry)
    num_ys = len(step.outvars) - num_carry

    def program_for(carry):
        return jvp_jaxpr(step, consts + carry + xs, carry + (False,) * num_ys)

    carry = settle(lambda carry: program_for(carry)[1][:num_carry], carry)
    program, moves = program_for(carry)
    ins = [len(consts), num_carry, len(xs)], [sum(consts), sum(carry), sum(xs)]
    outs = [num_carry, num_ys], [sum(carry), sum(moves[num_carry:])]
    program = closed_jaxpr_with_io(program, interleaved(*ins), interleaved(*outs))
    return program, consts + carry + xs, moves


@weakref_memoize
def dce_scan_body(step, used, num_consts, num_carry):
    """Return a step without the equations and operands that no used result needs.

    Args:
      step: a `ClosedJaxpr`.
      used: for each result of the scan whether it is needed.
      num_consts, num_carry: how many operands are constants, and carry.

    Returns:
      A `ClosedJaxpr`; for each operand whether it is still there; and for each result.
      A carry stays if a step needs it for one that stays.
    """
    carry, ys = split_list_by_sizes(used, num_carry)

    def program_for(carry):
        program, needed = dce_closed_jaxpr(step, carry + ys)
        return program, *split_list_by_sizes(needed, num_consts, num_carry)

    carry = settle(lambda carry: program_for(carry)[2], carry)
    program, consts, _, xs = program_for(carry)
    kept = consts + carry + xs
    return prune_inputs(program, kept), kept, carry + ys


class PartialEvalScanBody(NamedTuple):
    """A step that was split.

    Attributes:
      sizes: how many operands of the scan are constants, and carry.
      in_unknown: for each operand of the scan whether it is unknown.
      out_unknown: the same for each result.
      hoisted: a `PartialEvalResult` of the known step: its `known` part, decided by the
        constants, is done before the loop, and its `unknown` part is the step of the
        loop that runs now. Its results are the known ones, and new residuals.
      unknown: the `ClosedJaxpr` of the step that is left.
      sources: for each residual where it is found: its place among the known operands,
        followed by the new residuals.
      stacked: for each residual whether it has a row for each step.
    """

    sizes: tuple
    in_unknown: tuple
    out_unknown: tuple
    hoisted: PartialEvalResult
    unknown: ClosedJaxpr
    sources: tuple
    stacked: tuple

    @property
    def known(self):
        """The step of the loop that runs now; None if there is nothing to run."""
        step = self.hoisted.unknown
        return step if step.outvars or has_effects(step) else None

    def operands(self, args):
        """Return the known operands and the unknown: consts, carry and xs."""
        pairs = zip(
            split_list_by_sizes(self.in_unknown, *self.sizes),
            split_list_by_sizes(args, *self.sizes),
        )
        known, later = zip(*[partition_list(flags, values) for flags, values in pairs])
        return known, later

    def decide(self, consts):
        """Run what the known constants decide; return it, and the loop's constants."""
        before = self.hoisted.known
        decided_by, others = split_list_by_sizes(consts, len(before.invars))
        decided = jaxpr_as_fun(before)(*decided_by)
        return decided, self.hoisted.residuals(decided_by, decided) + others

    def results(self, known, decided, outs):
        """Return the known results, and the residuals without rows, and with them.

        Args:
          known: the known operands.
          decided: what the constants decide.
          outs: the results of the first loop.
        """
        outs = self.hoisted.results(decided, outs)
        count = self.out_unknown.count(False)
        found = [*known, *outs[count:]]
        residuals = [found[source] for source in self.sources]
        return outs[:count], *partition_list(self.stacked, residuals)


def _hoisted(step, varies, in_loop):
    """Split a step into what is done before the loop, and the rest; effects stay."""
    if not has_effects(step):
        return partial_eval_jaxpr(step, varies, in_loop)
    return PartialEvalResult(
        trace_flat_fun(lambda: [], []), step, (True,) * len(in_loop), ()
    )


def _rows_last(unknown, stacked):
    """Return a program whose residuals with a row for each step come after the rest."""
    invariant, rows = partition_list(stacked, range(len(stacked)))
    rest = range(len(stacked), len(unknown.invars))
    return closed_jaxpr_with_io(unknown, [*invariant, *rest, *rows])


def _known_step(parts, num_consts, num_carry, num_xs):
    """Return the known step's `PartialEvalResult`, and where residuals come from."""
    varies = (False,) * num_consts + (True,) * (num_carry + num_xs)
    carry = range(num_consts, num_consts + num_carry)
    new = [s for s in dict.fromkeys(parts.sources) if s in carry or s >= len(varies)]
    step, num_outs = parts.known, parts.out_unknown.count(False)
    atoms = step.invars + step.outvars
    outvars = step.outvars[:num_outs] + [atoms[source] for source in new]
    step = step.replace(jaxpr=step.jaxpr.replace(outvars=outvars))
    hoisted = _hoisted(step, varies, (True,) * num_outs + (False,) * len(new))
    places = {source: len(varies) + i for i, source in enumerate(new)}
    sources = tuple([places.get(source, source) for source in parts.sources])
    varies += hoisted.out_unknown[num_outs:]
    return hoisted, sources, tuple([varies[source] for source in sources])


@weakref_memoize
def partial_eval_scan_body(step, in_unknown, num_consts, num_carry):
    """Split the step of a scan.

    Args:
      step: a `ClosedJaxpr`.
      in_unknown: for each operand of the scan whether it is unknown.
      num_consts, num_carry: how many operands are constants, and carry.

    Returns:
      A `PartialEvalScanBody`. A carry that is unknown after some step is so from the
      start.
    """
    consts, carry, xs = split_list_by_sizes(in_unknown, num_consts, num_carry)
    rows = (False,) * (len(step.outvars) - num_carry)

    def parts_for(carry):
        return partial_eval_jaxpr(step, consts + carry + xs, carry + rows)

    carry = settle(lambda carry: parts_for(carry).out_unknown[:num_carry], carry)
    parts, in_unknown = parts_for(carry), consts + carry + xs
    counts = [group.count(False) for group in (consts, carry, xs)]
    hoisted, sources, stacked = _known_step(parts, *counts)
    unknown = _rows_last(parts.unknown, stacked)
    sizes, outs = (num_consts, num_carry), parts.out_unknown
    places = sources, stacked
    return PartialEvalScanBody(sizes, in_unknown, outs, hoisted, unknown, *places)


@weakref_memoize
def accumulate_in_carry(step, num_consts, num_sums):
    """Let the step of a loop add to sums what it returned as their terms.

    Args:
      step: a `ClosedJaxpr` from constants, carry and rows to the terms of sums, carry
        and rows of results.
      num_consts: how many of its inputs are constants.
      num_sums: how many of its results are terms of sums.

    Returns:
      A `ClosedJaxpr` in whose carry the sums come first.
    """
    consts, others = split_list_by_sizes(step.in_avals, num_consts)
    sums = step.out_avals[:num_sums]

    def program(*flat):
        consts, sums, others = split_list_by_sizes(flat, num_consts, num_sums)
        terms, outs = split_list_by_sizes(
            jaxpr_as_fun(step)(*consts, *others), num_sums
        )
        return [add_any(total, term) for total, term in zip(sums, terms)] + outs

    return trace_flat_fun(program, [*consts, *sums, *others])


@weakref_memoize
def batch_scan_body(step, axis, mapped, num_consts, num_carry):
    """Return the step of all examples, whose mapped axes are all in front.

    Args:
      step: the `ClosedJaxpr` of a step.
      axis: the `MappedAxis`.
      mapped: for each operand of the scan whether it is mapped.
      num_consts, num_carry: how many operands are constants, and carry.

    Returns:
      A `ClosedJaxpr`; for each operand whether it has to be mapped, since some step
      maps the carry; and for each result whether it is.
    """
    consts, carry, xs = split_list_by_sizes(mapped, num_consts, num_carry)

    def flags(outs):
        return consts + outs[:num_carry] + xs

    def program_for(outs):
        dims = tuple([0 if flag else None for flag in flags(outs)])
        return batch_jaxpr(step, axis, dims, outs)

    def found(outs):
        return tuple([dim is not None for dim in program_for(outs)[1]])

    outs = settle(found, carry + (False,) * (len(step.outvars) - num_carry))
    return program_for(outs)[0], flags(outs), outs


# What users give to loops: numbers of steps, bounds, trees of rows, functions.


def scan_length(xs, length=None):
    """Return the number of steps of a scan.

    Args:
      xs: a tree of arrays with a row for each step.
      length: the number of steps, or None if `xs` tells.

    Raises:
      ValueError: if the numbers of rows disagree, nothing tells the number, or it is
        negative.
      IndexError: if an array has no rows; it is a ValueError for a Python scalar.
      ConcretizationTypeError: if `length` is a tracer.
    """
    told = {} if length is None else {"length": concrete_integer("length", length)}
    if told and told["length"] < 0:
        raise ValueError(f"scan length must be nonnegative, got {told['length']}.")
    for path, x in tree_leaves_with_path(xs):
        told[f"xs{keystr(path)}"] = _count_rows(path, x)
    if not told:
        raise ValueError("scan needs xs to scan over, or a `length`.")
    if len(set(told.values())) > 1:
        numbers = ", ".join(f"{name}: {number}" for name, number in told.items())
        sizes = ", ".join(map(str, told.values()))
        words = f"scan got values with different leading axis sizes: {sizes}"
        raise ValueError(f"{words} ({numbers}).")
    return next(iter(told.values()))


def _count_rows(path, x):
    if typeof(x).shape:
        return typeof(x).shape[0]
    error = ValueError if is_python_scalar(x) else IndexError
    raise error(
        f"scan got value with no leading axis to scan over: {x!r}. It is "
        f"xs{keystr(path)}, whose rows the steps would get."
    )


def concrete_integer(name, x):
    """Return a parameter of a scan as an integer, which has to be known by now."""
    if isinstance(x, Tracer):
        raise ConcretizationTypeError(
            f"The `{name}` of a scan is part of its program, so it cannot be {x!r}. "
            "For a number of steps that is computed, use while_loop or fori_loop."
        )
    try:
        return int(x) if name == "length" else operator.index(x)
    except (TypeError, ValueError) as error:
        why = f"The `{name}` of a scan has to be an integer, not {x!r}."
        raise type(error)(why) from None


def canonicalize_unroll(unroll, length):
    """Return how many steps are written out: `unroll`, True for all of them."""
    if isinstance(unroll, bool):
        return max(length, 1) if unroll else 1
    unroll = concrete_integer("unroll", unroll)
    if unroll < 0:
        raise ValueError(f"`unroll` has to be True, False or at least 0: {unroll}.")
    return unroll


def concrete_bounds_or_none(*bounds):
    """Return bounds as integers, or None if one of them is a tracer, or no scalar."""
    if any(isinstance(bound, Tracer) for bound in bounds):
        return None
    try:
        return [int(bound) for bound in bounds]
    except TypeError:  # not scalars: while_loop will say so
        return None


def bound_dtype(lower, upper):
    """Return the dtype that two bounds have in common; refuse two dtypes."""
    one, two = typeof(lower), typeof(upper)
    if one.dtype == two.dtype:
        return one.dtype
    kinds = dtype_kind(one.dtype), dtype_kind(two.dtype)
    if kinds == ("i", "i") and one.weak_type != two.weak_type:
        return two.dtype if one.weak_type else one.dtype
    raise TypeError(
        "fori_loop: lower and upper must have equal types, got "
        f"{one.dtype.name} and {two.dtype.name}."
    )


def convert_bound(x, dtype):
    """Return a bound converted to a dtype, if it has another one."""
    return x if typeof(x).dtype == dtype else lax.convert_element_type(x, dtype)


_made = weakref_cache()


def cached_per_function(make, fun):
    """Return ``make(function)``, the same for the same function while it lives.

    Args:
      make: from a function without arguments, which returns `fun`, to a function.
      fun: a function.
    """
    try:
        return cache_for_object(_made, fun).get(make, lambda: make(ref(fun)))
    except TypeError:  # it has no hash, or no weak references
        return make(lambda: fun)


def fori_scan_body(function):
    """Return the step of a scan that counts, and calls what `function` returns."""

    def step(loop_carry, _):
        i, value = loop_carry
        return (i + 1, function()(i, value)), None

    return step


def fori_body(function):
    """Return the body of a while that counts, and calls what `function` returns."""

    def body(loop_carry):
        i, upper, value = loop_carry
        return lax.add(i, 1), upper, function()(i, value)

    return body


def fori_cond(loop_carry):
    """Return whether a counting while loop goes on."""
    i, upper, _ = loop_carry
    return lax.lt(i, upper)


def map_body(function):
    """Return the step of a scan that calls, on a row, what `function` returns."""
    return lambda _, row: ((), function()(row))


def batched_map_body(function):
    """Return the step of a scan that maps, over some rows, what `function` returns."""
    return lambda _, rows: ((), vmap(function())(rows))


def split_batches(x, batches, batch_size):
    """Return the batches of an array as rows, and the rows that are left, or None."""
    count, *shape = typeof(x).shape
    end = batches * batch_size
    whole = x if end == count else lax.slice_in_dim(x, 0, end)
    whole = lax.reshape(whole, (batches, batch_size, *shape))
    return whole, None if end == count else lax.slice_in_dim(x, end, None)


def flatten_batches(y):
    """Return the rows of all batches, one after the other."""
    batches, batch_size, *shape = typeof(y).shape
    return lax.reshape(y, (batches * batch_size, *shape))


def concatenate_remainder(y, rest):
    """Return the rows of all batches, and those that were left."""
    return lax.concatenate([flatten_batches(y), rest], 0)


def on_leaves(fn, treedef):
    """Return the function of two lists of arrays which `fn` is on trees.

    It raises ValueError if `fn` returns more or fewer arrays than it gets, TypeError if
    it changes shapes or dtypes.
    """

    def combine(xs, ys):
        result = fn(treedef.unflatten(xs), treedef.unflatten(ys))
        outs = tree_leaves(result)
        if len(outs) != len(xs):
            what = "the result of associative_scan's fn"
            flatten_like(treedef, result, what, "elems")
        paths = [path for path, _ in tree_leaves_with_path(treedef.unflatten(xs))]
        for path, x, out in zip(paths, xs, outs):
            before, after = typeof(x), typeof(out)
            if (before.shape, before.dtype) != (after.shape, after.dtype):
                raise TypeError(
                    "associative_scan: fn has to return arrays of the types that it "
                    f"gets; elems{keystr(path)} goes in as {before} and comes out as "
                    f"{after}."
                )
        return outs

    return combine


def common_axis(elems, axis):
    """Return the axis, counted from the front; refuse trees whose arrays disagree."""
    leaves = [(keystr(path), leaf) for path, leaf in tree_leaves_with_path(elems)]
    if not leaves:
        raise IndexError("associative_scan: there is no array in elems.")
    for path, leaf in leaves:
        if not hasattr(leaf, "ndim"):
            raise AttributeError(
                f"associative_scan: elems{path} is {leaf!r}; it has to be an array."
            )
    axis = canonicalize_axis(axis, leaves[0][1].ndim)
    sizes = [leaf.shape[axis : axis + 1] for _, leaf in leaves]
    if len({*sizes}) > 1:
        listed = [f"elems{path} of shape {leaf.shape}" for path, leaf in leaves]
        raise (ValueError if all(sizes) else IndexError)(
            "associative_scan: all arrays have to have the same size along axis "
            f"{axis}; got {', '.join(listed)}."
        )
    return axis
