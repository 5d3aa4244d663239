"""StableHLO of sorts, gathers, scatters, windows and keys."""

# Made from chapters/40_export_rest.md by `make chapter`;
# edit the chapter, not this file.

import math

import numpy as np

from minijax import lax
from minijax.core import ShapedArray
from minijax.extend.core import ClosedJaxpr
from minijax.extend.core.primitives import (
    fft_p,
    random_bits_p,
    random_fold_in_p,
    random_seed_p,
    random_split_p,
)
from minijax.extend.dtypes import max_of_dtype, min_of_dtype
from minijax.indexing.dimension_numbers import fill_value_in_dtype
from minijax.lax import FftType, GatherScatterMode
from minijax.lax.linalg import cholesky_p, triangular_solve_p
from minijax.prng.keys import (
    random_clone_p,
    random_unwrap_p,
    random_wrap_p,
    threefry2x32,
)
from minijax.sorting.top_k import approx_top_k_p
from minijax.stablehlo.lowering import (
    convert_op,
    i64_list_attr,
    lower_flat_fun,
    lower_jaxpr,
    precision_config,
    reducer_region,
    register_stablehlo_rules,
    splat_constant,
    stablehlo_rules,
)

# StableHLO of sorts, with the order in which NaN is last and -0 equals 0.


def _alike(block, x):
    """Return a float whose bits are the same for all zeros, and for all NaNs."""
    answer, zero = x.aval.update(dtype=np.dtype(bool)), splat_constant(block, 0, x.aval)
    is_zero = block.op("compare EQ,", [x, zero], answer)
    is_nan = block.op("compare NE,", [x, x], answer)
    x = block.op("select", [is_zero, zero, x], x.aval)
    return block.op(
        "select", [is_nan, splat_constant(block, np.nan, x.aval), x], x.aval
    )


def before(block, x, y):
    """Return whether a scalar stands before another, and whether it may."""
    answer, kind = x.aval.update(dtype=np.dtype(bool)), ""
    if x.aval.dtype.kind == "f" or x.aval.dtype.name == "bfloat16":
        x, y, kind = _alike(block, x), _alike(block, y), ", TOTALORDER"
    return [block.op(f"compare {op},", [x, y], answer, kind) for op in ("LT", "EQ")]


def keys_of_complex(block, x):
    """Return the two numbers by which a complex number is sorted."""
    if x.aval.dtype.kind != "c":
        return [x]
    part = x.aval.update(dtype=np.zeros(0, x.aval.dtype).real.dtype)
    return [block.op(name, [x], part) for name in ("real", "imag")]


def _sort(block, eqn, *operands):
    params = eqn.params
    scalars = [x.aval.update(shape=()) for x in operands for _ in range(2)]

    def compare(block, *xs):
        """Return whether the first of each pair of scalars comes first."""
        keys = [keys_of_complex(block, x) for x in xs[: 2 * params["num_keys"]]]
        keys = [pair for x, y in zip(keys[::2], keys[1::2]) for pair in zip(x, y)]
        answer, _ = before(block, *keys.pop())
        for x, y in reversed(keys):
            less, same = before(block, x, y)
            tied = block.op("and", [same, answer], less.aval)
            answer = block.op("or", [less, tied], less.aval)
        return [answer]

    stable = str(params["is_stable"]).lower()
    how = f"dimension = {params['dimension']} : i64, is_stable = {stable}"
    avals, region = [x.aval for x in operands], block.region(scalars, compare)
    return block.generic("stablehlo.sort", operands, avals, how, [region])


stablehlo_rules[lax.sort_p] = _sort


def with_places(x, axis):
    """Return an array and the place of each element along an axis."""
    return [x, lax.broadcasted_iota(np.int32, x.shape, axis)]


def _swapped(x, axis):
    """Return an array with one axis and the last one exchanged."""
    axes = [*range(x.ndim)]
    axes[axis], axes[-1] = axes[-1], axes[axis]
    return lax.transpose(x, axes)


def top_k_op(block, x, k, axis):
    """Return the largest elements along an axis, and their places."""
    last = len(x.aval.shape) - 1
    if axis != last:
        [x] = lower_flat_fun(block, lambda x: _swapped(x, axis), x)
    shape = (*x.aval.shape[:-1], k)
    places = ShapedArray(shape, np.dtype(np.int32))
    avals = [x.aval.update(shape=shape), places]
    found = block.generic("chlo.top_k", [x], avals, f"k = {k} : i64")
    if axis == last:
        return found
    return lower_flat_fun(block, lambda *xs: [_swapped(y, axis) for y in xs], *found)


def _top_k(block, eqn, x):
    return top_k_op(block, x, eqn.params["k"], eqn.params["axis"])


def _smallest(x, k, axis):
    places = lax.broadcasted_iota(np.int32, x.shape, axis)
    rising = lax.sort([x, places], dimension=axis, num_keys=1)
    return [lax.slice_in_dim(y, 0, k, axis=axis) for y in rising]


def _approx_top_k(block, eqn, x):
    """All are found, as by our own rule."""
    k = eqn.params["k"]
    axis = eqn.params["reduction_dimension"] % len(x.aval.shape)
    if eqn.params["is_max_k"]:
        return top_k_op(block, x, k, axis)
    return lower_flat_fun(block, _smallest, x, k=k, axis=axis)


stablehlo_rules[lax.top_k_p] = _top_k
stablehlo_rules[approx_top_k_p] = _approx_top_k


# StableHLO of reading and writing at computed places.

SLICES = "dynamic_slice dynamic_update_slice"


def _dynamic_slice(block, eqn, x, *starts):
    sizes = i64_list_attr("sizes", eqn.params["slice_sizes"])
    return block.op("dynamic_slice", [x, *starts], eqn.outvars[0].aval, sizes)


stablehlo_rules[lax.dynamic_slice_p] = _dynamic_slice
stablehlo_rules[lax.dynamic_update_slice_p] = lambda block, eqn, *xs: block.op(
    "dynamic_update_slice", xs, xs[0].aval
)


def i64_array_attr(values):
    """Return an attribute that is an array of 64-bit integers."""
    return f"array<i64: {', '.join(map(str, values))}>" if values else "array<i64>"


def bool_attr(value):
    """Return a truth value as it stands in an attribute."""
    return str(bool(value)).lower()


def wide_indices(block, indices):
    """Return indices in a type that holds the sizes of arrays."""
    narrow = indices.aval.dtype.itemsize < 4
    return convert_op(block, indices, np.int32) if narrow else indices


def moved_inside(indices, limits):
    """Return indices from 0 to limits."""
    low = lax.full_like(indices, 0)
    return lax.clamp(low, indices, low + np.asarray(limits, indices.dtype))


def clamp_indices(indices, limits):
    """Return for each vector of indices whether all of them are from 0 to limits."""
    same = lax.eq(indices, moved_inside(indices, limits))
    return lax.reduce_and(same, [indices.ndim - 1])


def _gather(block, eqn, operand, indices):
    params, aval = eqn.params, eqn.outvars[0].aval
    numbers_, sizes = params["dimension_numbers"], params["slice_sizes"]
    indices = wide_indices(block, indices)
    fields = {
        "offset_dims": numbers_.offset_dims,
        "collapsed_slice_dims": numbers_.collapsed_slice_dims,
        "operand_batching_dims": numbers_.operand_batching_dims,
        "start_indices_batching_dims": numbers_.start_indices_batching_dims,
        "start_index_map": numbers_.start_index_map,
    }
    how = dimension_numbers("gather", fields, len(indices.aval.shape) - 1)
    attributes = (
        f"dimension_numbers = {how}, slice_sizes = {i64_array_attr(sizes)}, "
        f"indices_are_sorted = {bool_attr(params['indices_are_sorted'])}"
    )
    [found] = block.generic("stablehlo.gather", [operand, indices], [aval], attributes)
    if params["mode"] is not GatherScatterMode.FILL_OR_DROP:
        return found
    limits = [operand.aval.shape[d] - sizes[d] for d in numbers_.start_index_map]
    kept = [d for d in range(len(aval.shape)) if d not in numbers_.offset_dims]
    [inside] = lower_flat_fun(
        block,
        lambda indices: lax.broadcast_in_dim(
            clamp_indices(indices, limits), aval.shape, kept
        ),
        indices,
    )
    filling = np.full(aval.shape, fill_value_in_dtype(aval.dtype, params["fill_value"]))
    return block.op("select", [inside, found, block.constant(filling, aval)], aval)


def dimension_numbers(name, fields, last):
    """Return the attribute that says which axis means what, without empty lists."""
    said = [f"{field} = {[*axes]}" for field, axes in fields.items() if len(axes)]
    return f"#stablehlo.{name}<{', '.join([*said, f'index_vector_dim = {last}'])}>"


stablehlo_rules[lax.gather_p] = _gather


def _scatter(block, eqn, operand, indices, updates):
    params, ways = eqn.params, eqn.params["dimension_numbers"]
    indices, clip = (
        wide_indices(block, indices),
        params["mode"] is GatherScatterMode.CLIP,
    )
    if clip:
        window = iter(updates.aval.shape[d] for d in ways.update_window_dims)
        gone = {*ways.inserted_window_dims, *ways.operand_batching_dims}
        sizes = [
            1 if d in gone else next(window) for d in range(len(operand.aval.shape))
        ]
        shape, axes = operand.aval.shape, ways.scatter_dims_to_operand_dims
        limits = [shape[d] - sizes[d] for d in axes]
        [indices] = lower_flat_fun(block, lambda x: moved_inside(x, limits), indices)
    fields = {
        "update_window_dims": ways.update_window_dims,
        "inserted_window_dims": ways.inserted_window_dims,
        "input_batching_dims": ways.operand_batching_dims,
        "scatter_indices_batching_dims": ways.scatter_indices_batching_dims,
        "scatter_dims_to_operand_dims": ways.scatter_dims_to_operand_dims,
    }
    how = dimension_numbers("scatter", fields, len(indices.aval.shape) - 1)
    attributes = (
        f"indices_are_sorted = {bool_attr(params['indices_are_sorted'])}, "
        f"scatter_dimension_numbers = {how}, "
        f"unique_indices = {bool_attr(params['unique_indices'] and not clip)}"
    )
    combine = params["update_jaxpr"]

    def enter(inner, x, y):
        if combine is None:
            return [y]
        return lower_jaxpr(inner, ClosedJaxpr(combine, params["update_consts"]), [x, y])

    scalar = operand.aval.update(shape=())
    region = block.region([scalar, scalar], enter)
    operands = [operand, indices, updates]
    return block.generic(
        "stablehlo.scatter", operands, [operand.aval], attributes, [region]
    )


SCATTER_SUFFIXES = "", "_add", "_sub", "_mul", "_min", "_max"
register_stablehlo_rules({f"scatter{kind}": _scatter for kind in SCATTER_SUFFIXES})


# StableHLO of windows that slide: pools and convolutions.


def pairs(padding):
    """Return pairs of numbers as an attribute."""
    return f"dense<{[[*pair] for pair in padding]}> : tensor<{len(padding)}x2xi64>"


def window_attributes(params):
    """Return how a window slides."""
    names = {
        "base_dilation": "base_dilations", "window_dilation": "window_dilations",
        "window_dimensions": "window_dimensions", "window_strides": "window_strides",
    }  # fmt: skip
    said = [f"{names[k]} = {i64_array_attr(params[k])}" for k in names if k in params]
    return ", ".join([*said, f"padding = {pairs(params['padding'])}"])


def reduce_window_op(name, nothing):
    """Return the rule of a primitive that combines the elements in windows."""

    def rule(block, eqn, x):
        scalar = x.aval.update(shape=())
        start = splat_constant(block, nothing(x.aval.dtype), scalar)
        region = block.region([scalar] * 2, reducer_region(name))
        avals, how = [eqn.outvars[0].aval], window_attributes(eqn.params)
        return block.generic(
            "stablehlo.reduce_window", [x, start], avals, how, [region]
        )

    return rule


stablehlo_rules[lax.reduce_window_sum_p] = reduce_window_op("add", lambda dtype: 0)
stablehlo_rules[lax.reduce_window_max_p] = reduce_window_op("maximum", min_of_dtype)
stablehlo_rules[lax.reduce_window_min_p] = reduce_window_op("minimum", max_of_dtype)


def _reduce_window(block, eqn, *operands):
    params, count = eqn.params, len(operands) // 2
    program = ClosedJaxpr(params["jaxpr"], params["consts"])
    scalars = [x.aval.update(shape=()) for x in operands[:count]]
    region = block.region(
        [*scalars, *scalars], lambda inner, *xs: lower_jaxpr(inner, program, xs)
    )
    avals = [var.aval for var in eqn.outvars]
    return block.generic(
        "stablehlo.reduce_window", operands, avals, window_attributes(params), [region]
    )


stablehlo_rules[lax.reduce_window_p] = _reduce_window


def _wins(select_prim):
    """Return the comparison by which an element stays, and what all others beat."""
    return (
        ("compare GE,", min_of_dtype)
        if select_prim is lax.ge_p
        else ("compare LE,", max_of_dtype)
    )


def _select_and_gather_add(block, eqn, tangents, operand):
    name, worst = _wins(eqn.params["select_prim"])
    scalar, other = operand.aval.update(shape=()), tangents.aval.update(shape=())
    starts = [
        splat_constant(block, worst(scalar.dtype), scalar),
        splat_constant(block, 0, other),
    ]

    def better(inner, x, t, y, u):
        stays = inner.op(name, [x, y], scalar.update(dtype=np.dtype(bool)))
        return [
            inner.op("select", [stays, x, y], scalar),
            inner.op("select", [stays, t, u], other),
        ]

    region = block.region([scalar, other, scalar, other], better)
    aval = eqn.outvars[0].aval
    avals = [aval.update(dtype=scalar.dtype), aval]
    how = window_attributes(eqn.params)
    return block.generic(
        "stablehlo.reduce_window", [operand, tangents, *starts], avals, how, [region]
    )[1]


def _select_and_scatter_add(block, eqn, source, operand):
    name, _ = _wins(eqn.params["select_prim"])
    scalar = operand.aval.update(shape=())
    choose = block.region(
        [scalar] * 2,
        lambda inner, x, y: [
            inner.op(name, [x, y], scalar.update(dtype=np.dtype(bool)))
        ],
    )
    join = block.region([scalar] * 2, reducer_region("add"))
    operands = [operand, source, splat_constant(block, 0, scalar)]
    avals, how = [eqn.outvars[0].aval], window_attributes(eqn.params)
    return block.generic(
        "stablehlo.select_and_scatter", operands, avals, how, [choose, join]
    )


stablehlo_rules[lax.select_and_gather_add_p] = _select_and_gather_add
stablehlo_rules[lax.select_and_scatter_add_p] = _select_and_scatter_add


def _axes(spec, letters):
    """Return which axis is which, in the order of the array: ``[b, 0, 1, f]``."""
    first, second, *space = spec
    said = dict(zip([first, second, *space], [*letters, *map(str, range(len(space)))]))
    return f"[{', '.join(said[d] for d in range(len(spec)))}]"


def _convolution(block, eqn, x, y):
    params = eqn.params
    numbers_ = params["dimension_numbers"]
    specs = numbers_.lhs_spec, numbers_.rhs_spec, numbers_.out_spec
    axes = "{}x{}->{}".format(*map(_axes, specs, ("bf", "oi", "bf")))
    window = {
        "stride": [*params["window_strides"]],
        "pad": [[*pair] for pair in params["padding"]],
        "lhs_dilate": [*params["lhs_dilation"]],
        "rhs_dilate": [*params["rhs_dilation"]],
    }
    said = ", ".join(f"{key} = {value}" for key, value in window.items())
    asked = map(
        "#stablehlo<precision {}>".format, precision_config(params["precision"])
    )
    groups = [f"{name}_group_count" for name in ("batch", "feature")]
    groups = ", ".join(f"{name} = {params[name]} : i64" for name in groups)
    [result] = block.inputs([eqn.outvars[0].aval])
    names = f"{x.name}, {y.name}"
    block.line(
        f"{result.name} = stablehlo.convolution({names}) dim_numbers = {axes}, "
        f"window = {{{said}}} {{{groups}, precision_config = [{', '.join(asked)}]}} "
        f": ({x.type}, {y.type}) -> {result.type}"
    )
    return result


stablehlo_rules[lax.conv_general_dilated_p] = _convolution


def _fft(block, eqn, x):
    if len(eqn.params["fft_lengths"]) > MOST_AXES:
        return lower_flat_fun(block, _in_parts, x, **eqn.params)
    kind = ("FFT", "IFFT", "RFFT", "IRFFT")[int(eqn.params["fft_type"])]
    more = f", type = {kind}" + i64_list_attr("length", eqn.params["fft_lengths"])
    return block.op("fft", [x], eqn.outvars[0].aval, more)


MOST_AXES = 3  # of one transform in StableHLO


def _in_parts(x, fft_type, fft_lengths):
    """Transform along the last axes, and along those in front of them."""
    front, last = fft_lengths[:-MOST_AXES], fft_lengths[-MOST_AXES:]
    axes = [*range(x.ndim)]
    batch = x.ndim - len(fft_lengths)
    turned = [*axes[:batch], *axes[-MOST_AXES:], *axes[batch:-MOST_AXES]]

    def along_last(x):
        return fft_p.bind(x, fft_type=fft_type, fft_lengths=last)

    def along_front(x):
        kind = FftType.IFFT if "I" in FftType(fft_type).name else FftType.FFT
        x = lax.transpose(x, turned)
        x = fft_p.bind(x, fft_type=kind, fft_lengths=front)
        return lax.transpose(x, np.argsort(turned).tolist())

    if fft_type == FftType.IRFFT:  # the real axis is the last one to be transformed
        return along_last(along_front(x))
    return along_front(along_last(x))


def _triangle(x, real_diagonal):
    """Return the lower triangle of matrices, or all of them but for a real diagonal."""
    row, column = (
        lax.broadcasted_iota(np.int32, x.shape, x.ndim + i) for i in (-2, -1)
    )
    if not real_diagonal:
        return lax.select(lax.ge(row, column), x, lax.full_like(x, 0))
    return lax.select(
        lax.eq(row, column), lax.complex(lax.real(x), lax.full_like(lax.real(x), 0)), x
    )


def _cholesky(block, eqn, x):
    """What is above the diagonal is undefined in StableHLO, and zero here."""
    if x.aval.dtype.kind == "c":
        [x] = lower_flat_fun(block, lambda x: _triangle(x, True), x)
    factor = block.op("cholesky", [x], x.aval, ", lower = true")
    return lower_flat_fun(block, lambda x: _triangle(x, False), factor)


def _triangular_solve(block, eqn, a, b):
    params, kind = eqn.params, "NO_TRANSPOSE"
    if params["transpose_a"]:
        kind = "ADJOINT" if params["conjugate_a"] else "TRANSPOSE"
    elif params["conjugate_a"] and a.aval.dtype.kind == "c":
        [a] = lower_flat_fun(block, lax.conj, a)
    names = "left_side", "lower", "unit_diagonal"
    flags = ", ".join(f"{name} = {bool_attr(params[name])}" for name in names)
    how = f"{flags}, transpose_a = #stablehlo<transpose {kind}>"
    return block.generic(
        "stablehlo.triangular_solve", [a, b], [eqn.outvars[0].aval], how
    )


stablehlo_rules[fft_p] = _fft
stablehlo_rules[cholesky_p] = _cholesky
stablehlo_rules[triangular_solve_p] = _triangular_solve


# StableHLO of keys: each is a number of 64 bits, its two words together.

U32_DTYPE = ShapedArray((), np.dtype(np.uint32))
WORD_OPS = {
    "add": lax.add, "xor": lax.bitwise_xor, "or": lax.bitwise_or,
    "shift_left": lax.shift_left, "shift_right": lax.shift_right_logical,
}  # fmt: skip


def by_lax(op, *operands):
    """Do a scalar operation to arrays of words; numbers become arrays like them."""
    like = next(x for x in operands if not isinstance(x, int))
    return WORD_OPS[op](
        *[lax.full_like(like, x) if isinstance(x, int) else x for x in operands]
    )


def split_words(keys):
    """Return the two words of each key, arrays of 32 bits."""
    return [lax.index_in_dim(keys, i, keys.ndim - 1, keepdims=False) for i in (0, 1)]


def wrap_keys(first, second):
    """Return keys as arrays of words, from their first and their second ones."""
    return lax.concatenate(
        [lax.expand_dims(x, [x.ndim]) for x in (first, second)], first.ndim
    )


def threefry_words(keys, shape):
    """Return two words for each place in an array of this shape, and for each key."""
    rank = keys.ndim - 1
    low = lax.reshape(lax.iota(np.uint32, math.prod(shape)), shape)
    counter = [lax.full_like(low, 0), low]
    whole = (*keys.shape[:-1], *shape)
    key = [lax.broadcast_in_dim(word, whole, range(rank)) for word in split_words(keys)]
    places = range(rank, len(whole))
    return threefry2x32(
        by_lax, key, [lax.broadcast_in_dim(x, whole, places) for x in counter]
    )


def threefry_row(keys, count):
    """Return `count` words for each key along a last axis, in JAX's older layout."""
    rank, half = keys.ndim - 1, -(-count // 2)
    low = lax.iota(np.uint32, half)
    high = low + np.uint32(half)
    high = lax.select(high < np.uint32(count), high, lax.full_like(high, 0))
    whole = (*keys.shape[:-1], half)
    key = [lax.broadcast_in_dim(word, whole, range(rank)) for word in split_words(keys)]
    counter = [lax.broadcast_in_dim(x, whole, [rank]) for x in (low, high)]
    row = lax.concatenate(threefry2x32(by_lax, key, counter), rank)
    return lax.slice_in_dim(row, 0, count, axis=rank)


def join_words(first, second, bit_width):
    """Return an integer for each two words."""
    if bit_width < 64:
        return lax.convert_element_type(first ^ second, f"uint{bit_width}")
    high, low = [lax.convert_element_type(x, np.uint64) for x in (first, second)]
    return lax.shift_left(high, lax.full_like(high, 32)) | low


def _bits(keys, bit_width, shape, partitionable=True):
    if partitionable:
        first, second = threefry_words(keys, shape)
        return join_words(first, second, bit_width)
    axis, size = keys.ndim - 1, math.prod(shape)
    row = threefry_row(keys, -(-bit_width * size // 32))
    if bit_width == 64:
        first = lax.slice_in_dim(row, 0, size, axis=axis)
        second = lax.slice_in_dim(row, size, 2 * size, axis=axis)
        numbers = join_words(first, second, bit_width)
    else:
        parts = (*row.shape, 32 // bit_width)
        places = lax.broadcasted_iota(np.uint32, parts, axis + 1) * np.uint32(bit_width)
        words = lax.broadcast_in_dim(row, parts, range(axis + 1))
        words = lax.shift_right_logical(words, places)
        numbers = lax.reshape(words, (*row.shape[:-1], math.prod(parts[axis:])))
        numbers = lax.slice_in_dim(numbers, 0, size, axis=axis)
    numbers = lax.reshape(numbers, (*keys.shape[:-1], *shape))
    return lax.convert_element_type(numbers, f"uint{bit_width}")


def _split(keys, shape, partitionable=True):
    if partitionable:
        return wrap_keys(*threefry_words(keys, shape))
    row = threefry_row(keys, 2 * math.prod(shape))
    return lax.reshape(row, (*keys.shape[:-1], *shape, 2))


def _fold_in(keys, data):
    shape = np.broadcast_shapes(keys.shape[:-1], data.shape)
    key = [
        lax.broadcast_in_dim(x, shape, range(len(shape) - x.ndim, len(shape)))
        for x in split_words(keys)
    ]
    low = lax.broadcast_in_dim(data, shape, range(len(shape) - data.ndim, len(shape)))
    return wrap_keys(*threefry2x32(by_lax, key, [lax.full_like(low, 0), low]))


def _seed(seeds, impl):
    low = lax.convert_element_type(seeds, np.uint32)
    high = lax.full_like(low, 0)
    if seeds.dtype.itemsize == 8:
        high = lax.convert_element_type(
            lax.shift_right_logical(seeds, lax.full_like(seeds, 32)), np.uint32
        )
    return wrap_keys(high, low)


def key_words_of(block, keys):
    """Return keys as words, with an axis of two more."""
    aval = keys.aval.update(shape=(*keys.aval.shape, 2), dtype=np.dtype(np.uint32))
    return block.op("bitcast_convert", [keys], aval)


def closed(block, words, aval):
    """Return words as keys."""
    return block.op("bitcast_convert", [words], aval)


def of_keys(f, makes_keys=True):
    """Return the rule of a primitive whose first operand is an array of keys."""

    def rule(block, eqn, keys, *operands):
        [result] = lower_flat_fun(
            block,
            lambda *xs: f(*xs, **eqn.params),
            key_words_of(block, keys),
            *operands,
        )
        return closed(block, result, eqn.outvars[0].aval) if makes_keys else result

    return rule


def _seeded(block, eqn, seeds):
    [words] = lower_flat_fun(block, lambda x: _seed(x, **eqn.params), seeds)
    return closed(block, words, eqn.outvars[0].aval)


stablehlo_rules[random_bits_p] = of_keys(_bits, makes_keys=False)
stablehlo_rules[random_split_p] = of_keys(_split)
stablehlo_rules[random_fold_in_p] = of_keys(_fold_in)
stablehlo_rules[random_seed_p] = _seeded
stablehlo_rules[random_unwrap_p] = lambda block, eqn, keys: key_words_of(block, keys)
stablehlo_rules[random_wrap_p] = lambda block, eqn, words: closed(
    block, words, eqn.outvars[0].aval
)
stablehlo_rules[random_clone_p] = lambda block, eqn, keys: keys
