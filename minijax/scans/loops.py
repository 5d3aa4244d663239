"""scan, fori_loop: loops with a known number of steps, as users write them.

Reference: ``jax.lax.scan``, ``jax.lax.fori_loop``.
"""

# Made from chapters/16_scan_upper.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Callable
from typing import Any

from minijax import lax
from minijax.arrays.settings import config
from minijax.pytrees.functions import tree_map
from minijax.pytrees.treedefs import tree_leaves
from minijax.scans.arguments import (
    below_upper,
    bound_dtype,
    count_steps,
    counting_body,
    counting_step,
    known_bounds,
    made_for,
    of_dtype,
    steps_at_once,
)
from minijax.scans.primitive import order_of_rows
from minijax.scans.scan_body import StepProgram, run_step
from minijax.typing import ArrayLike


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
        the steps need nothing.
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
      ValueError: if the number of steps is not told, or told in different ways.

    Reference: ``jax.lax.scan``.
    """
    if not callable(f):
        raise TypeError(f"lax.scan: f has to be a function of one step, got {f!r}.")
    length = count_steps(xs, length)
    if config.jax_disable_jit:
        return scan_in_python(f, init, xs, length, reverse)
    step = StepProgram(f, init, xs)
    how = {"length": length, "reverse": bool(reverse)}
    how["unroll"] = steps_at_once(unroll, length)
    carry, ys = run_step(step, tree_leaves(xs), **how)
    return step.program.out_tree.unflatten([*carry, *ys])


def scan_in_python(f, init, xs, length, reverse):
    """Do what `scan` does in a Python loop: for `disable_jit`."""
    if length == 0:
        raise ValueError(
            "A zero-length scan has no step to learn the types of its results from, "
            "and with disable_jit it runs nothing else."
        )
    carry, rows = init, {}
    for i in order_of_rows(length, reverse):
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
    step = made_for(counting_step, body_fun)
    (_, value), _ = scan(step, (lower, init_val), None, length, unroll=unroll)
    return value


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
    dtype, bounds = bound_dtype(lower, upper), known_bounds(lower, upper)
    if bounds is not None:
        first, end = bounds
        return _counted(first, end, body_fun, init_val, bool(unroll) and unroll)
    if unroll not in (None, False, 1):
        raise ValueError(
            "fori_loop: a loop can be unrolled only if its bounds are known, but "
            f"lower is {lower!r} and upper is {upper!r}."
        )
    bounds = [of_dtype(bound, dtype) for bound in (lower, upper)]
    body = made_for(counting_body, body_fun)
    return lax.while_loop(below_upper, body, (*bounds, init_val))[2]
