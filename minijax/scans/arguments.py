"""What users give to loops: numbers of steps, bounds, trees of rows, functions.

Reference: ``jax.lax.scan``, ``jax.lax.fori_loop``, ``jax.lax.map``.
"""

# Made from chapters/16_scan_ground.md by `make chapter`;
# edit the chapter, not this file.

import operator
from weakref import ref

from minijax import lax
from minijax.arrays.avals import is_python_scalar, typeof
from minijax.arrays.checks import canonicalize_axis
from minijax.batching.trace import vmap
from minijax.core import Tracer
from minijax.errors import ConcretizationTypeError
from minijax.forgetting.remembering import cache_by_object
from minijax.pytrees.api_util import flatten_like
from minijax.pytrees.key_paths import keystr
from minijax.pytrees.treedefs import tree_leaves, tree_leaves_with_path


def count_steps(xs, length=None):
    """Return the number of steps of a scan.

    Args:
      xs: a tree of arrays with a row for each step.
      length: the number of steps, or None if `xs` tells.

    Raises:
      ValueError: if the numbers of rows disagree, or nothing tells the number.
      IndexError: if an array has no rows; it is a ValueError for a Python scalar.
      ConcretizationTypeError: if `length` is a tracer.
    """
    told = {} if length is None else {"length": concrete_integer("length", length)}
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


def steps_at_once(unroll, length):
    """Return how many steps are written out: `unroll`, True for all of them."""
    if isinstance(unroll, bool):
        return max(length, 1) if unroll else 1
    unroll = concrete_integer("unroll", unroll)
    if unroll < 0:
        raise ValueError(f"`unroll` has to be True, False or at least 0: {unroll}.")
    return unroll


def known_bounds(*bounds):
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
    if one.dtype.kind == two.dtype.kind == "i" and one.weak_type != two.weak_type:
        return two.dtype if one.weak_type else one.dtype
    raise TypeError(
        "fori_loop: lower and upper must have equal types, got "
        f"{one.dtype.name} and {two.dtype.name}."
    )


def of_dtype(x, dtype):
    """Return a bound converted to a dtype, if it has another one."""
    return x if typeof(x).dtype == dtype else lax.convert_element_type(x, dtype)


_made = cache_by_object()


def made_for(make, fun):
    """Return ``make(function)``, the same for the same function while it lives.

    Args:
      make: from a function without arguments, which returns `fun`, to a function.
      fun: a function.
    """
    try:
        made = _made.setdefault(fun, {})
        return made.get(make) or made.setdefault(make, make(ref(fun)))
    except TypeError:  # it has no hash, or no weak references
        return make(lambda: fun)


def counting_step(function):
    """Return the step of a scan that counts, and calls what `function` returns."""
    def step(loop_carry, _):
        i, value = loop_carry
        return (i + 1, function()(i, value)), None

    return step


def counting_body(function):
    """Return the body of a while that counts, and calls what `function` returns."""
    def body(loop_carry):
        i, upper, value = loop_carry
        return lax.add(i, 1), upper, function()(i, value)

    return body


def below_upper(loop_carry):
    """Return whether a counting while loop goes on."""
    i, upper, _ = loop_carry
    return lax.lt(i, upper)


def row_step(function):
    """Return the step of a scan that calls, on a row, what `function` returns."""
    return lambda _, row: ((), function()(row))


def batch_step(function):
    """Return the step of a scan that maps, over some rows, what `function` returns."""
    return lambda _, rows: ((), vmap(function())(rows))


def cut_batches(x, batches, batch_size):
    """Return the batches of an array as rows, and the rows that are left, or None."""
    count, *shape = typeof(x).shape
    end = batches * batch_size
    whole = x if end == count else lax.slice_in_dim(x, 0, end)
    whole = lax.reshape(whole, (batches, batch_size, *shape))
    return whole, None if end == count else lax.slice_in_dim(x, end, None)


def rows_of_batches(y):
    """Return the rows of all batches, one after the other."""
    batches, batch_size, *shape = typeof(y).shape
    return lax.reshape(y, (batches * batch_size, *shape))


def joined(y, rest):
    """Return the rows of all batches, and those that were left."""
    return lax.concatenate([rows_of_batches(y), rest], 0)


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
