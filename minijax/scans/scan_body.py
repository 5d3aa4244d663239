"""From the user's function of one step to its program, and to the scan that runs it.

Reference: ``jax.lax.scan``.
"""

# Made from chapters/16_scan_upper.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax.arrays.array import asarray_impl
from minijax.branches.agreement import check_carry, promote_weak
from minijax.branches.rewiring import rewired
from minijax.forgetting.programs import merge, only, partition
from minijax.jaxprs.staging_api import abstractify
from minijax.jitting.trace_cache import program_of
from minijax.pytrees.api_util import FlatCall
from minijax.pytrees.treedefs import tree_flatten
from minijax.scans.primitive import bind_scan, row_aval
from minijax.scans.steps import groups


class StepProgram:
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
            self.carry, promoted = promote_weak(self.carry, *avals)
            avals = self._write_down(tree) if promoted else avals
        check_carry("scan", f, tree, avals[0], self.carry_tree, avals[1])

    def _write_down(self, tree):
        """Trace, and return the types of the carry before and after."""
        args = tree.unflatten(self.carry), self.xs
        call = FlatCall("scan", self.f, args, typeof=abstractify)
        count = len(self.carry)
        call.avals[count:] = [row_aval(aval) for aval in call.avals[count:]]
        self.program = program_of(call, hoist=True)
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


def run_step(step, xs, **how):
    """Bind the scan of a step, but for what it only passes on.

    Args:
      step: a `StepProgram`.
      xs: the list of arrays.
      **how: `length`, `reverse` and `unroll`.

    Returns:
      The list of the last carry, and the list of the ys.
    """
    closed, captured = step.program.closed, step.program.captured
    sizes = len(captured), len(step.carry)
    still, given = passed_on(closed, *sizes)
    consts, carry, rows = groups(range(len(closed.invars)), *sizes)
    carry, fixed = partition(still, carry)
    kept = [not flag for flag in still] + [place is None for place in given]
    results = only(kept, range(len(kept)))
    closed = rewired(closed, [*fixed, *consts, *carry, *rows], results)
    carry, fixed = partition(still, step.carry)
    carry, ys = bind_scan(closed, fixed + captured, carry, xs, **how)
    ys = iter(ys)
    ys = [next(ys) if place is None else _as_array(xs[place]) for place in given]
    return merge(still, carry, fixed), ys


def passed_on(closed, num_consts, num_carry):
    """Return what a step does not compute.

    Returns:
      For each of the carry whether it is returned as it came; and for each of the ys
      the place among the xs of the row that it is, or None.
    """
    _, carry, xs = groups(closed.invars, num_consts, num_carry)
    carry_out, ys = groups(closed.outvars, num_carry)
    still = [before is after for before, after in zip(carry, carry_out)]
    return still, [xs.index(y) if y in xs else None for y in ys]


def _as_array(x):
    return asarray_impl(x) if isinstance(x, np.ndarray) else x
