"""Folds of windows (pooling), the elements that win in them, and all columns.

References: ``jax.lax.reduce_window``, ``jax._src.lax.windowed_reductions``.
"""

# Made from chapters/30_windows_rest.md by `make chapter`;
# edit the chapter, not this file.

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from minijax import lax
from minijax.arrays.array import ShapedArray, def_shape_and_impl, shape_rules, typeof
from minijax.arrays.dtypes import canonicalize_dtype, dtype_kind
from minijax.arrays.numerics import (
    ANY_KINDS,
    NUMBER_DTYPE_KINDS,
    ORDERED_KINDS,
    canonicalize_int_tuple,
    check_kind,
    convert_impl,
    sum_accumulator_dtype,
)
from minijax.batching.vmap import batch_dim_to_front, vmap, vmap_rules
from minijax.core import Primitive, Tracer, impl_rules
from minijax.forward_mode.jvp import jvp_flat_fun, jvp_rules, linear_jvp
from minijax.indexing.dimension_numbers import ScatterDimensionNumbers
from minijax.indexing.gather_scatter import scatter_add
from minijax.jaxprs.jaxpr import ClosedJaxpr, eval_jaxpr, trace_to_jaxpr
from minijax.jitting.stages import FLOPS, _moved, cost_rules
from minijax.kernels.builder import KernelBuilder, broadcast_scalar_view
from minijax.kernels.lowering import kernel_rules
from minijax.lax.reductions import max_of_dtype, min_of_dtype
from minijax.matmul.lowering import materialize
from minijax.python_backend.codegen import python_rules
from minijax.python_backend.source import write_evaluation
from minijax.pytrees.tree_operations import tree_unflatten
from minijax.pytrees.tree_util import tree_flatten
from minijax.reverse_mode.backward_pass import deftranspose, transpose_rules
from minijax.windows.convolution import sliding_window_view
from minijax.windows.convolution_tiles import is_empty, load_windows, view_of_windows
from minijax.windows.geometry import (
    Window,
    dilate_dim,
    dilated_lengths,
    int_tuple_or_default,
    make_window,
    padtype_to_pads,
    phases_of,
)

# Folds of windows: sums, extremes, and programs of two numbers.

reduce_window_p = Primitive("reduce_window")
reduce_window_p.multiple_results = True
reduce_window_sum_p = Primitive("reduce_window_sum")
reduce_window_max_p = Primitive("reduce_window_max")
reduce_window_min_p = Primitive("reduce_window_min")


def pooling_window(
    window_dimensions,
    window_strides,
    padding,
    base_dilation=None,
    window_dilation=None,
    **_,
):
    """Return the `Window` of a primitive's parameters."""
    how = window_strides, padding, base_dilation, window_dilation
    return make_window(window_dimensions, *how)


def window_params(sliding):
    """Return the parameters of a primitive that say how its windows slide."""
    return {
        "base_dilation": sliding.base_dilation,
        "padding": sliding.padding,
        "window_dilation": sliding.window_dilation,
        "window_dimensions": sliding.sizes,
        "window_strides": sliding.strides,
    }


def check_window(name, shape, sliding):
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
        sliding = pooling_window(**params)
        check_window(primitive.name, x.shape, sliding)
        return [ShapedArray(sliding.counts(x.shape), x.dtype)]

    def compute(xp, x, **params):
        sliding, dtype = pooling_window(**params), sum_accumulator_dtype(x.dtype)
        x = x.astype(dtype, copy=False)
        windows = sliding_window_view(xp, x, sliding, identity(dtype))
        return fold(xp, windows, tuple(range(x.ndim, 2 * x.ndim)))

    def_shape_and_impl(primitive, shape, compute)


def _sum(xp, x, axes):
    return xp.sum(x, axes, x.dtype)


REDUCER_IDENTITIES = {  # of the folds; and what they are called in kernels
    reduce_window_sum_p: (lambda dtype: dtype.type(0), "add"),
    reduce_window_max_p: (min_of_dtype, "max"),
    reduce_window_min_p: (max_of_dtype, "min"),
}
pooling(
    reduce_window_sum_p,
    NUMBER_DTYPE_KINDS,
    REDUCER_IDENTITIES[reduce_window_sum_p][0],
    _sum,
)
pooling(
    reduce_window_max_p, ANY_KINDS, min_of_dtype, lambda xp, x, axes: xp.max(x, axes)
)
pooling(
    reduce_window_min_p, ANY_KINDS, max_of_dtype, lambda xp, x, axes: xp.min(x, axes)
)


def reduce_windows(combine, operands, inits, sliding):
    """Fold the windows of some arrays by a function, axis after axis, last one first.

    Args:
      combine: from two lists of arrays to one: an associative operation, for which
        the scalars `inits` change nothing.
      operands: list of arrays of one shape.
      inits: list of scalars, what is in padding and in gaps.
      sliding: the `Window`.
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
        return combine(starts, reduce_windows(combine, operands, inits, sliding))

    def where_there(xs, ys):
        there, also = xs[0], ys[0]
        both, pairs = combine(xs[1:], ys[1:]), zip(xs[1:], ys[1:])
        one = [lax.select(there, x, y) for x, y in pairs]
        both_there = lax.bitwise_and(there, also)
        chosen = [lax.select(both_there, z, x) for z, x in zip(both, one)]
        return [lax.bitwise_or(there, also), *chosen]

    flags, inits = [lax.full(shape, True), *operands], [np.False_, *inits]
    found = reduce_windows(where_there, flags, inits, sliding)
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
    return entering_once(combine, operands, inits, pooling_window(**params))


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
    sliding = pooling_window(**params)
    check_window("reduce_window", operands[0].shape, sliding)
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
    sizes = canonicalize_int_tuple(window_dimensions)
    ones = (1,) * len(sizes)
    strides = int_tuple_or_default(window_strides, ones)
    gaps = int_tuple_or_default(window_dilation, ones)
    if isinstance(padding, str):
        wide_window = [*map(dilate_dim, sizes, gaps)]
        padding = padtype_to_pads(avals[0].shape, wide_window, strides, padding)
    pads = tuple([canonicalize_int_tuple((low, high)) for low, high in padding])
    if len(pads) != len(sizes) == avals[0].ndim:
        raise ValueError(
            f"reduce_window needs a pair of pads for each of {len(sizes)} axes, got "
            f"{pads}."
        )
    base = int_tuple_or_default(base_dilation, ones)
    params = window_params(Window(sizes, strides, pads, base, gaps))
    known = _known_fold(computation, avals, inits)
    if known:
        return tree_unflatten(tree, known.bind_all(operands[0], **params))
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
    number = number.real if dtype_kind(aval.dtype) != "c" else number
    return convert_impl(np, np.asarray(number, own.dtype), aval.dtype)[()]


def _known_fold(computation, avals, inits):
    """Return the primitive that a function and its initial value stand for, or None."""
    folds = {lax.add: reduce_window_sum_p, lax.max: reduce_window_max_p}
    folds[lax.min] = reduce_window_min_p
    primitive = folds.get(computation) if callable(computation) else None
    if primitive is None or len(avals) > 1 or typeof(inits[0]).shape:
        return None
    if isinstance(inits[0], Tracer):
        return None
    identity = REDUCER_IDENTITIES[primitive][0](avals[0].dtype)
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


# Elements that win in their windows: their tangents, and where they are.


select_and_gather_add_p = Primitive("select_and_gather_add")
select_and_scatter_add_p = Primitive("select_and_scatter_add")


def select_in_windows(operand, others, sliding, select_prim, padded):
    """Return the numbers of some arrays where a comparison selects an element.

    Args:
      operand: array whose elements are compared.
      others: arrays of its shape.
      select_prim: a primitive, ``ge`` or ``le``.
      padded: for each of the others what it has where there is no element.

    Returns:
      A list of arrays with a number for each window.
    """
    dtype = typeof(operand).dtype
    worst = (min_of_dtype if select_prim is lax.ge_p else max_of_dtype)(dtype)

    def winner(xs, ys):
        stays = select_prim.bind(xs[0], ys[0])
        return [lax.select(stays, x, y) for x, y in zip(xs, ys)]

    inits = [np.asarray(worst, dtype)[()], *padded]
    return reduce_windows(winner, [operand, *others], inits, sliding)[1:]


def _gather_add(tangents, operand, *, select_prim, **params):
    zero = typeof(tangents).dtype.type(0)
    how = pooling_window(**params), select_prim, [zero]
    return select_in_windows(operand, [tangents], *how)


POSITION_DTYPES = [
    np.dtype(np.int32),
    np.dtype(np.uint32),
]  # if all elements can be counted


def _place_dtype(aval):
    """Return the dtype that numbers the elements of an array, and one more."""
    for dtype in (*POSITION_DTYPES, canonicalize_dtype(np.int64)):
        if aval.size <= np.iinfo(dtype).max:
            return dtype
    raise OverflowError(
        f"The gradient of an extreme in windows of {aval}: the places of its elements "
        "need 64 bits. Take windows of parts of the array, or have integers of 64 "
        'bits: config.update("jax_enable_x64", True).'
    )


def _scatter_add(source, operand, *, select_prim, **params):
    aval, dtype = typeof(operand), typeof(source).dtype
    counting = _place_dtype(aval)
    numbers = lax.reshape(lax.iota(counting, aval.size), aval.shape)
    nowhere = np.array(-1).astype(counting)[()]  # unsigned: the largest number
    how = pooling_window(**params), select_prim, [nowhere]
    [places] = select_in_windows(operand, [numbers], *how)
    places = lax.reshape(places, (typeof(places).size, 1))
    flat = lax.reshape(source, (typeof(source).size,))
    axes = ScatterDimensionNumbers((), (0,), (0,))
    zeros = lax.full((aval.size,), 0, dtype)
    return [
        lax.reshape(scatter_add(zeros, places, flat, axes, mode="drop"), aval.shape)
    ]


impl_rules[select_and_gather_add_p] = _gather_add
impl_rules[select_and_scatter_add_p] = _scatter_add


def _gather_add_shape(tangents, operand, *, select_prim, **params):
    if tangents.shape != operand.shape:
        raise TypeError(
            "select_and_gather_add needs tangents of the operand's shape, got "
            f"{tangents} and {operand}."
        )
    sliding = pooling_window(**params)
    check_kind("select_and_gather_add", ORDERED_KINDS, [operand])
    check_window("select_and_gather_add", operand.shape, sliding)
    return [ShapedArray(sliding.counts(operand.shape), tangents.dtype)]


def _scatter_add_shape(source, operand, *, select_prim, **params):
    sliding = pooling_window(**params)
    check_kind("select_and_scatter_add", ORDERED_KINDS, [operand])
    check_window("select_and_scatter_add", operand.shape, sliding)
    if source.shape != sliding.counts(operand.shape):
        raise TypeError(
            "select_and_scatter_add needs a number for each window, shape "
            f"{sliding.counts(operand.shape)}, got {source}."
        )
    return [ShapedArray(operand.shape, source.dtype)]


shape_rules[select_and_gather_add_p] = _gather_add_shape
shape_rules[select_and_scatter_add_p] = _scatter_add_shape


# The columns of folds of windows: derivatives, batches, costs, kernels.

jvp_rules[reduce_window_sum_p] = linear_jvp(reduce_window_sum_p)


def _sum_transpose(ct, x, **params):
    sliding, shape = pooling_window(**params), x.aval.shape
    config = [
        (width - low - 1, n + low - out, stride - 1)
        for (n, width, out, (low, _)), stride in zip(
            dilated_lengths(sliding, shape), sliding.strides
        )
    ]
    ct = lax.pad(ct, typeof(ct).dtype.type(0), config)
    ones = (1,) * len(shape)
    back = sliding._replace(
        strides=sliding.base_dilation,
        padding=((0, 0),) * len(shape),
        base_dilation=ones,
    )
    return reduce_window_sum_p.bind(ct, **window_params(back))


deftranspose(reduce_window_sum_p, _sum_transpose)


def _extreme_jvp(primitive, select_prim, primals, tangents, **params):
    results = primitive.bind_all(*primals, **params)
    how = {"select_prim": select_prim, **params}
    return results, select_and_gather_add_p.bind_all(tangents[0], *primals, **how)


for _primitive, _select in (
    (reduce_window_max_p, lax.ge_p),
    (reduce_window_min_p, lax.le_p),
):
    jvp_rules[_primitive] = partial(_extreme_jvp, _primitive, _select)
    transpose_rules.reasons[_primitive] = (
        "It is not linear: its tangent is that of the element which has won, and the "
        "primitive that takes it is transposed."
    )


def _program_jvp(primals, tangents, **params):
    """Differentiate the operations that a fold by a program is made of."""
    call = partial(impl_rules[reduce_window_p], **params)
    return jvp_flat_fun(call, primals, tangents)


jvp_rules[reduce_window_p] = _program_jvp
transpose_rules.reasons[reduce_window_p] = (
    "Differentiation writes its operations down, and these are transposed."
)


def _selecting_jvp(primitive, primals, tangents, **params):
    """Carry on the tangent of the first operand; places do not move."""
    results = primitive.bind_all(*primals, **params)
    if tangents[0] is None:
        return results, [None]
    return results, primitive.bind_all(tangents[0], primals[1], **params)


def _gather_back(ct, tangents, operand, **params):
    sliding = pooling_window(**params)
    if max(*sliding.base_dilation, *sliding.window_dilation, 1) > 1:
        return impl_rules[select_and_scatter_add_p](ct, operand, **params)[0]
    params = {k: v for k, v in params.items() if "dilation" not in k}
    return select_and_scatter_add_p.bind(ct, operand, **params)


def _scatter_back(ct, source, operand, select_prim, **params):
    params = window_params(pooling_window(**params))
    return select_and_gather_add_p.bind(ct, operand, select_prim=select_prim, **params)


for _primitive, _back in (
    (select_and_gather_add_p, _gather_back),
    (select_and_scatter_add_p, _scatter_back),
):
    jvp_rules[_primitive] = partial(_selecting_jvp, _primitive)
    deftranspose(_primitive, _back, None)


def window_batch(primitive):
    """Return the vmap rule: windows that do not extend along the axis of examples."""

    def rule(axis, args, dims, **params):
        args = [batch_dim_to_front(x, dim, axis.size) for x, dim in zip(args, dims)]
        return primitive.bind_all(*args, **_one_in_front(params)), [0]

    return rule


def _one_in_front(params):
    fronts = {"padding": ((0, 0),)}
    slides = "padding window_dimensions window_strides base_dilation window_dilation"
    return {
        name: (*fronts.get(name, (1,)), *value) if name in slides.split() else value
        for name, value in params.items()
    }


def _program_batch(axis, args, dims, **params):
    count = len(args) // 2
    if any(dim is not None for dim in dims[count:]):
        call = partial(impl_rules[reduce_window_p], **params)
        results = vmap(lambda *xs: call(*xs), tuple(dims), 0, axis_size=axis.size)(
            *args
        )
        return results, [0] * len(results)
    operands = [
        batch_dim_to_front(x, dim, axis.size) for x, dim in zip(args, dims[:count])
    ]
    results = reduce_window_p.bind(*operands, *args[count:], **_one_in_front(params))
    return results, [0] * len(results)


for _primitive in (
    *REDUCER_IDENTITIES,
    select_and_gather_add_p,
    select_and_scatter_add_p,
):
    vmap_rules[_primitive] = window_batch(_primitive)
vmap_rules[reduce_window_p] = _program_batch


def window_cost(eqn):
    """Count an operation for each element of each window."""
    taps = math.prod(eqn.params["window_dimensions"])
    size = min(atom.aval.size for atom in (*eqn.invars[:1], *eqn.outvars))
    return {FLOPS: taps * size * len(eqn.outvars)} | _moved(eqn)


MAX_UNROLLED_WINDOW = 64  # elements of a window


def lower_as_program(lowering, eqn, *operands):
    """Add the steps of the operations that a primitive is made of."""
    return lower_function(
        lowering, partial(impl_rules[eqn.primitive], **eqn.params), eqn, operands
    )


def lower_function(lowering, call, eqn, operands):
    """Add the steps of a function of the operands of an equation."""
    avals = [atom.aval for atom in eqn.invars]
    closed = ClosedJaxpr(*trace_to_jaxpr(lambda *xs: call(*xs), avals))
    return lowering.program(closed, operands)


def lower_fold(lowering, eqn, x):
    """Add the kernels of a fold of windows; return the view of its result."""
    [var], sliding = eqn.outvars, pooling_window(**eqn.params)
    identity, how = REDUCER_IDENTITIES[eqn.primitive]
    if math.prod(sliding.sizes) > MAX_UNROLLED_WINDOW and how != "add":
        combine = {"max": lax.max, "min": lax.min}[how]
        return lower_function(lowering, doubled(combine, sliding, identity), eqn, [x])
    if x.dtype.kind == "b":
        how = {"max": "or", "min": "and"}[how]
    if not var.aval.size:
        return [broadcast_scalar_view(x.dtype.type(0), var.aval.shape)]
    out, rank = lowering.allocate(var.aval), var.aval.ndim
    x = materialize(lowering, x, x.dtype)
    for phases in phases_of(sliding, x.shape):
        y, taps = view_of_windows(out, phases, 0), [phase.taps for phase in phases]
        k = KernelBuilder(eqn.primitive.name, (*y.shape, *taps))
        found = k.constant(identity(x.dtype), x.dtype)
        if not is_empty(phases):
            within = range(rank, 2 * rank)
            args = phases, (), range(rank), within, identity(x.dtype)
            found = k.fold(how, (*within,), load_windows(k, x, *args))
        lowering.run(k, (y, found))
    return [out]


def doubled(combine, sliding, identity):
    """Return a fold of windows as a function of the array."""

    def call(x):
        init = identity(typeof(x).dtype)
        return reduce_windows(lambda a, b: [combine(a[0], b[0])], [x], [init], sliding)

    return call


AS_PROGRAMS = (reduce_window_p, select_and_gather_add_p, select_and_scatter_add_p)
kernel_rules.update(dict.fromkeys(REDUCER_IDENTITIES, lower_fold))
kernel_rules.update(dict.fromkeys(AS_PROGRAMS, lower_as_program))
cost_rules.update(dict.fromkeys([*REDUCER_IDENTITIES, *AS_PROGRAMS], window_cost))
python_rules.update(
    dict.fromkeys([*REDUCER_IDENTITIES, *AS_PROGRAMS], write_evaluation)
)
