"""Folds of windows: sums, extremes, and programs of two numbers.

Reference: ``jax.lax.reduce_window``.
"""

# Made from chapters/30_windows_rest.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import lax
from minijax.arrays.array import primitive_rules, shape_rules
from minijax.arrays.avals import ShapedArray, typeof
from minijax.arrays.checks import ANY, NUMBER, check_kind, integers
from minijax.arrays.numerics import convert, wide
from minijax.batching.trace import vmap
from minijax.core import Primitive, Tracer, impl_rules
from minijax.jaxprs.jaxpr import eval_jaxpr
from minijax.jaxprs.staging import trace_to_jaxpr
from minijax.lax.reductions import highest, lowest
from minijax.pytrees.operations import tree_unflatten
from minijax.pytrees.treedefs import tree_flatten
from minijax.windows.convolution import windows_of
from minijax.windows.geometry import (
    Sliding,
    dilated,
    full_sliding,
    integers_or,
    padtype_to_pads,
)

reduce_window_p = Primitive("reduce_window")
reduce_window_sum_p = Primitive("reduce_window_sum")
reduce_window_max_p = Primitive("reduce_window_max")
reduce_window_min_p = Primitive("reduce_window_min")


def sliding_of(
    window_dimensions,
    window_strides,
    padding,
    base_dilation=None,
    window_dilation=None,
    **_,
):
    """Return the `Sliding` of a primitive's parameters."""
    how = window_strides, padding, base_dilation, window_dilation
    return full_sliding(window_dimensions, *how)


def params_of(sliding):
    """Return the parameters of a primitive that say how its windows slide."""
    return {
        "base_dilation": sliding.base_dilation,
        "padding": sliding.padding,
        "window_dilation": sliding.window_dilation,
        "window_dimensions": sliding.sizes,
        "window_strides": sliding.strides,
    }


def check_sliding(name, shape, sliding):
    """Raise a TypeError unless windows can slide over an array of a shape."""
    if len(sliding.sizes) != len(shape):
        raise TypeError(
            f"{name} got the wrong number of window_dimensions for operand: got "
            f"operand shape {shape} with window_dimensions {sliding.sizes}."
        )
    names = "window_dimensions window_strides padding base_dilation window_dilation"
    for part, entries in zip(names.split(), sliding):
        if len(entries) != len(shape):
            raise TypeError(
                f"{name} got inconsistent {part} and window_dimensions: got {part} "
                f"{entries} and window_dimensions {sliding.sizes}."
            )
        if part != "padding" and min(entries, default=1) < 1:
            raise TypeError(
                f"{name} {part} must have every element be strictly positive, got "
                f"{entries}."
            )


def pooling(primitive, accepts, identity, fold):
    """Give a primitive that folds windows of one array its first two rules.

    Args:
      accepts: letters of the kinds of dtypes.
      identity: a function of a dtype: the number that changes nothing.
      fold: a function of the array module, windows and their axes.
    """

    def shape(x, **params):
        check_kind(primitive.name, accepts, [x])
        sliding = sliding_of(**params)
        check_sliding(primitive.name, x.shape, sliding)
        return [ShapedArray(sliding.counts(x.shape), x.dtype)]

    def compute(xp, x, **params):
        sliding, dtype = sliding_of(**params), wide(x.dtype)
        x = x.astype(dtype, copy=False)
        windows = windows_of(xp, x, sliding, identity(dtype))
        return fold(xp, windows, tuple(range(x.ndim, 2 * x.ndim)))

    primitive_rules(primitive, shape, compute)


def _sum(xp, x, axes):
    return xp.sum(x, axes, x.dtype)


IDENTITIES = {  # of the folds; and what they are called in kernels
    reduce_window_sum_p: (lambda dtype: dtype.type(0), "add"),
    reduce_window_max_p: (lowest, "max"),
    reduce_window_min_p: (highest, "min"),
}
pooling(reduce_window_sum_p, NUMBER, IDENTITIES[reduce_window_sum_p][0], _sum)
pooling(reduce_window_max_p, ANY, lowest, lambda xp, x, axes: xp.max(x, axes))
pooling(reduce_window_min_p, ANY, highest, lambda xp, x, axes: xp.min(x, axes))


def combined(combine, operands, inits, sliding):
    """Fold the windows of some arrays by a function, axis after axis, last one first.

    Args:
      combine: from two lists of arrays to one: an associative operation, for which
        the scalars `inits` change nothing.
      operands: list of arrays of one shape.
      inits: list of scalars, what is in padding and in gaps.
      sliding: the `Sliding`.
    """
    counts = sliding.counts(typeof(operands[0]).shape)
    gaps = zip(sliding.padding, sliding.base_dilation)
    config = [(*pads, gap - 1) for pads, gap in gaps]
    if 0 in counts:
        return [lax.full(counts, 0, typeof(x).dtype) for x in operands]
    xs = [lax.pad(x, init, config) for x, init in zip(operands, inits)]
    for axis in reversed(range(len(counts))):
        how = [part[axis] for part in (sliding.sizes, sliding.window_dilation)]
        how += [sliding.strides[axis], counts[axis]]
        xs = combined_along(combine, xs, axis, *how)
    return xs


def entering_once(combine, operands, inits, sliding):
    """Fold windows by a function, with initial values that may change a number.

    They enter once for each window. Elements of the padding and of gaps do not enter;
    flags that travel along say where these are.
    """
    shape = typeof(operands[0]).shape
    counts = sliding.counts(shape)
    starts = [
        lax.full(counts, init, typeof(x).dtype) for x, init in zip(operands, inits)
    ]
    if 0 in counts:
        return starts
    if sliding.room(shape) == shape and not any(map(any, sliding.padding)):
        return combine(starts, combined(combine, operands, inits, sliding))

    def where_there(xs, ys):
        there, also = xs[0], ys[0]
        both, pairs = combine(xs[1:], ys[1:]), zip(xs[1:], ys[1:])
        one = [lax.select(there, x, y) for x, y in pairs]
        both_there = lax.bitwise_and(there, also)
        chosen = [lax.select(both_there, z, x) for z, x in zip(both, one)]
        return [lax.bitwise_or(there, also), *chosen]

    flags, inits = [lax.full(shape, True), *operands], [np.False_, *inits]
    found = combined(where_there, flags, inits, sliding)
    return where_there([lax.full(counts, True), *starts], found)[1:]


def combined_along(combine, xs, axis, size, gap, stride, count):
    """Fold the windows along an axis: one by one if they are few, or by doubling."""
    room = typeof(xs[0]).shape[axis]

    def part(xs, start, length, step=1):
        end = start + (length - 1) * step + 1
        return [lax.slice_in_dim(x, start, end, step, axis) for x in xs]

    def dense(size):
        if size == 1:
            return xs
        half = dense(size // 2)
        length = room - (size - 1) * gap
        both = combine(part(half, 0, length), part(half, size // 2 * gap, length))
        odd = size % 2
        return combine(both, part(xs, (size - 1) * gap, length)) if odd else both

    if (size - 1) * count > 2 * size.bit_length() * room:
        return part(dense(size), 0, count, stride)
    found = part(xs, 0, count, stride)
    for tap in range(1, size):
        found = combine(found, part(xs, tap * gap, count, stride))
    return found


def elementwise_program(jaxpr, consts, ndim):
    """Return a jaxpr of scalars as a function of two lists of arrays."""

    def call(xs, ys):
        f = lambda *scalars: eval_jaxpr(jaxpr, consts, *scalars)  # noqa: E731
        for _ in range(ndim):
            f = vmap(f)
        return f(*xs, *ys)

    return call


def _window_programs(*args, jaxpr, consts, **params):
    """Fold windows by a program: what the primitive means."""
    operands, inits = args[: len(args) // 2], args[len(args) // 2 :]
    combine = elementwise_program(jaxpr, consts, typeof(operands[0]).ndim)
    return entering_once(combine, operands, inits, sliding_of(**params))


def _program_shape(*args, jaxpr, consts, **params):
    operands, inits = args[: len(args) // 2], args[len(args) // 2 :]
    if any(init.shape for init in inits):
        raise TypeError(
            "reduce_window expected init_values to be scalars but init_values have "
            f"shapes {[init.shape for init in inits]}."
        )
    if len({x.shape for x in operands}) != 1:
        raise TypeError(
            "reduce_window needs operands of one shape, got "
            f"{[x.shape for x in operands]}."
        )
    sliding = sliding_of(**params)
    check_sliding("reduce_window", operands[0].shape, sliding)
    counts = sliding.counts(operands[0].shape)
    return [ShapedArray(counts, x.dtype) for x in operands]


shape_rules[reduce_window_p] = _program_shape
impl_rules[reduce_window_p] = _window_programs


def reduce_window(
    operand: Any,
    init_value: Any,
    computation: Callable,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Any:
    """Fold the windows of an array, or of several of one shape.

    Args:
      operand: an array, or a tree of them.
      init_value: a scalar, or a tree of them, which enters once for each window.
      computation: an associative function of two scalars, or of two trees of them.
      window_dimensions, window_strides: sizes of a window, and by how much it moves.
      padding: ``"VALID"``, ``"SAME"``, ``"SAME_LOWER"``, or pairs of numbers.
      base_dilation, window_dilation: distances of neighbours in the array and in a
        window.

    Raises:
      TypeError, ValueError: if an argument lacks an entry, or trees differ.

    Reference: ``jax.lax.reduce_window``.
    """
    operands, tree = tree_flatten(operand)
    inits, other = tree_flatten(init_value)
    if tree != other:
        raise ValueError(
            "Operands must have the same tree structure as init_values: "
            f"{tree} and {other}."
        )
    if not operands:
        raise ValueError("reduce_window needs at least one operand.")
    if any(map(np.shape, inits)):
        raise TypeError(
            "reduce_window expects init_value to be scalars, from which each window "
            f"begins, but they have shapes {[*map(np.shape, inits)]}."
        )
    avals = [typeof(x) for x in operands]
    inits = [_init_like(init, aval) for init, aval in zip(inits, avals)]
    sizes, ones = integers(window_dimensions), (1,) * len(window_dimensions)
    strides = integers_or(window_strides, ones)
    gaps = integers_or(window_dilation, ones)
    if isinstance(padding, str):
        wide_window = [*map(dilated, sizes, gaps)]
        padding = padtype_to_pads(avals[0].shape, wide_window, strides, padding)
    padding = tuple(integers((low, high)) for low, high in padding)
    if len(padding) != len(sizes) == avals[0].ndim:
        raise ValueError(
            f"reduce_window needs a pair of pads for each of {len(sizes)} axes, got "
            f"{padding}."
        )
    base = integers_or(base_dilation, ones)
    params = params_of(Sliding(sizes, strides, padding, base, gaps))
    known = _known_fold(computation, avals, inits)
    if known:
        return tree_unflatten(tree, known.bind(operands[0], **params))
    jaxpr, consts = _program_of(computation, tree, avals)
    results = reduce_window_p.bind(
        *operands, *inits, jaxpr=jaxpr, consts=tuple(consts), **params
    )
    return tree_unflatten(tree, results)


def _init_like(init, aval):
    own = typeof(init)
    if own.shape or isinstance(init, Tracer):
        return (
            init
            if own.dtype == aval.dtype
            else lax.convert_element_type(init, aval.dtype)
        )
    number = np.asarray(init)
    number = number.real if aval.dtype.kind != "c" else number
    return convert(np, np.asarray(number, own.dtype), aval.dtype)[()]


def _known_fold(computation, avals, inits):
    """Return the primitive that a function and its initial value stand for, or None."""
    folds = {lax.add: reduce_window_sum_p, lax.max: reduce_window_max_p}
    folds[lax.min] = reduce_window_min_p
    primitive = folds.get(computation) if callable(computation) else None
    if primitive is None or len(avals) > 1 or typeof(inits[0]).shape:
        return None
    if isinstance(inits[0], Tracer):
        return None
    identity = IDENTITIES[primitive][0](avals[0].dtype)
    return primitive if np.asarray(inits[0]) == identity else None


def _program_of(computation, tree, avals):
    """Return a function of two trees of scalars as a jaxpr, and its constants."""
    count = len(avals)
    scalars = [ShapedArray((), aval.dtype) for aval in avals]

    def flat(*args):
        pair = [tree_unflatten(tree, part) for part in (args[:count], args[count:])]
        results, other = tree_flatten(computation(*pair))
        if other != tree:
            raise ValueError(
                "The function of reduce_window must return what it is given: expected "
                f"{tree}, got {other}."
            )
        found = [typeof(x).dtype for x in results]
        if found != [aval.dtype for aval in avals]:
            raise TypeError(
                "The function of reduce_window must return numbers of the dtypes that "
                f"it is given: {[aval.dtype for aval in avals]}, got {found}."
            )
        return results

    jaxpr, consts = trace_to_jaxpr(flat, [*scalars, *scalars])
    if any(isinstance(x, Tracer) for x in consts):
        raise NotImplementedError(
            "The function of reduce_window uses a value of the program around it. Give "
            "that value as an operand of its own."
        )
    return jaxpr, consts
