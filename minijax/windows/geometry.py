"""Sliding windows and convolutions: sizes, strides, padding, axes, dtypes.

References: ``jax.lax.padtype_to_pads``, ``jax.lax.reduce_window_shape_tuple``,
``jax.lax.ConvDimensionNumbers``, ``jax.lax.conv_shape_tuple``.
"""

# Made from chapters/30_windows_ground.md by `make chapter`;
# edit the chapter, not this file.

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax import lax
from minijax.arrays.array import ShapedArray, typeof
from minijax.arrays.dtypes import dtype_kind
from minijax.arrays.numerics import (
    all_weak,
    canonicalize_int_tuple,
    check_same_dtype,
    sizes_of_axes,
)

# Sliding windows: sizes, strides, padding and dilations; how many windows there are.


def dilate_dim(size, dilation):
    """Return how long an axis is when gaps are put between its elements."""
    return (size - 1) * dilation + 1 if size else 0


class Window(NamedTuple):
    """How windows slide over an array: tuples with an entry for each axis.

    Attributes:
      sizes: of a window.
      strides: by how much a window moves.
      padding: pairs: how many elements are put in front of the axis, and behind it;
        negative numbers take elements away.
      base_dilation, window_dilation: distances of neighbours in the array, and in a
        window, in elements.
    """

    sizes: tuple
    strides: tuple
    padding: tuple
    base_dilation: tuple
    window_dilation: tuple

    def room(self, shape):
        """Return the sizes of an array with its gaps and its padding."""
        pairs = zip(shape, self.base_dilation, self.padding)
        return tuple(max(dilate_dim(n, gap) + sum(pads), 0) for n, gap, pads in pairs)

    def counts(self, shape):
        """Return how many windows there are along each axis."""
        widths = map(dilate_dim, self.sizes, self.window_dilation)
        triples = zip(self.room(shape), widths, self.strides)
        return tuple(max((n - width) // step + 1, 0) for n, width, step in triples)

    def behind(self, count):
        """Return how windows slide that do not extend along so many axes in front."""
        ones = (1,) * count
        fronts = ones, ones, ((0, 0),) * count, ones, ones
        return Window(*[(*front, *part) for front, part in zip(fronts, self)])


def int_tuple_or_default(numbers, default):
    """Return a parameter as Python ints, or `default` where it is None."""
    return default if numbers is None else canonicalize_int_tuple(numbers)


def make_window(
    sizes, strides=None, padding=None, base_dilation=None, window_dilation=None
):
    """Return a `Window` in which what is not given changes nothing."""
    ones = (1,) * len(sizes)
    pads = [(0, 0)] * len(sizes) if padding is None else padding
    pairs = tuple(map(canonicalize_int_tuple, pads))
    rest = [
        int_tuple_or_default(x, ones) for x in (strides, base_dilation, window_dilation)
    ]
    return Window(canonicalize_int_tuple(sizes), rest[0], pairs, *rest[1:])


def pad_and_dilate(xp, x, sliding, fill=0):
    """Return an array with its gaps and its padding, which hold one number."""
    result = xp.full(sliding.room(x.shape), fill, x.dtype)
    taken, places = [], []
    axes = zip(x.shape, sliding.base_dilation, sliding.padding, result.shape)
    for size, gap, (low, _), room in axes:
        first, end = max(0, -(low // gap)), min(size, -((low - room) // gap))
        count, start = max(0, end - first), max(0, low + first * gap)
        taken.append(slice(first, first + count))
        places.append(slice(start, start + max(0, count * gap - gap + 1), gap))
    result[tuple(places)] = x[tuple(taken)]
    return result


def padtype_to_pads(
    in_shape: Sequence[int],
    window_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str,
) -> list[tuple[int, int]]:
    """Return how much is padded on both sides of each axis, for a padding by name.

    Args:
      in_shape, window_shape, window_strides: an entry for each axis; gaps count.
      padding: ``"VALID"``, ``"SAME"`` or ``"SAME_LOWER"``.

    Raises:
      RuntimeError: if there is no padding of that name.
      TypeError: if it is no name.

    Reference: ``jax.lax.padtype_to_pads``.
    """
    if not isinstance(padding, str):
        raise TypeError(f"Unknown padding type: {padding}.")
    if padding.upper() not in ("VALID", "SAME", "SAME_LOWER"):
        raise RuntimeError(
            "Unrecognized padding type: expected 'VALID', 'SAME' or 'SAME_LOWER', got "
            f"{padding!r}. A sequence of (low, high) pairs says it in numbers."
        )
    if padding.upper() == "VALID":
        return [(0, 0)] * len(in_shape)
    axes = zip(*map(canonicalize_int_tuple, (in_shape, window_shape, window_strides)))
    totals = [max((-(-n // by) - 1) * by + width - n, 0) for n, width, by in axes]
    halves = [(total // 2, total - total // 2) for total in totals]
    return halves if padding.upper() == "SAME" else [(b, a) for a, b in halves]


def reduce_window_shape_tuple(
    operand_shape: Sequence[int],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> tuple[int, ...]:
    """Return how many windows there are along each axis.

    Reference: ``jax.lax.reduce_window_shape_tuple``.
    """
    how = window_strides, padding, base_dilation, window_dilation
    return make_window(window_dimensions, *how).counts(
        canonicalize_int_tuple(operand_shape)
    )


def dilated_lengths(sliding, shape):
    """Return, axis by axis: the array, the window and the result, with their gaps."""
    lhs = map(dilate_dim, shape, sliding.base_dilation)
    rhs = map(dilate_dim, sliding.sizes, sliding.window_dilation)
    out = map(dilate_dim, sliding.counts(shape), sliding.strides)
    return zip(lhs, rhs, out, sliding.padding)


class Phase(NamedTuple):
    """Some windows of an axis, and those of their elements that are no gaps.

    Window ``first + step * i`` reads, for its element ``tap + tap_step * j``, the
    element ``place + move * i + tap_move * j`` of the array, if there is one.
    """

    first: int
    step: int
    count: int
    tap: int
    tap_step: int
    taps: int
    place: int
    move: int
    tap_move: int

    def bounds(self):
        """Return the least and the greatest place that is read."""
        ends = self.place + self.move * (self.count - 1)
        return self.place, ends + self.tap_move * (self.taps - 1)


def phases_along(sliding, axis, size):
    """Return the phases of an axis of an array of so many elements."""
    window, stride, (low, high), base, gap = [part[axis] for part in sliding]
    [count] = Window(*[(part[axis],) for part in sliding]).counts((size,))
    step, tap_step = base // math.gcd(stride, base), base // math.gcd(gap, base)
    phases = []
    for first in range(min(step, count)):
        start = first * stride - low
        taps = [
            t for t in range(min(tap_step, window)) if (start + t * gap) % base == 0
        ]
        tap = taps[0] if taps else window
        moves = stride * step // base, gap * tap_step // base
        here = (
            -(-(count - first) // step),
            tap,
            tap_step,
            -(-(window - tap) // tap_step),
        )
        phases.append(Phase(first, step, *here, (start + tap * gap) // base, *moves))
    return phases


def phases_of(sliding, shape):
    """Return tuples of phases, one for each axis, that together are all windows."""
    axes = [phases_along(sliding, axis, size) for axis, size in enumerate(shape)]
    return [*itertools.product(*axes)]


# Axes, shapes and dtypes of convolutions, and what does not fit.


class ConvDimensionNumbers(NamedTuple):
    """Where the axes of a convolution's operands and result are.

    Attributes:
      lhs_spec, out_spec: the axes of examples, of features, and those of space.
      rhs_spec: the axes of the result's features, of the features that are summed
        over, and those of space.

    Reference: ``jax.lax.ConvDimensionNumbers``.
    """

    lhs_spec: Sequence[int]
    rhs_spec: Sequence[int]
    out_spec: Sequence[int]


ConvGeneralDilatedDimensionNumbers = tuple[str, str, str] | ConvDimensionNumbers | None


def conv_general_permutations(
    dimension_numbers: Sequence[str],
) -> tuple[tuple[int, ...], ...]:
    """Return the axes that three strings of letters name, in the order of a spec.

    Raises:
      TypeError: if a letter is missing, or twice there.

    Reference: ``jax.lax.conv_general_permutations``.
    """
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    named = zip((lhs_spec, rhs_spec, out_spec), ("NC", "OI", "NC"))
    for position, (spec, letters) in enumerate(named):
        named = isinstance(spec, str)
        if not named or any(spec.count(letter) != 1 for letter in letters):
            raise TypeError(
                f"convolution dimension_numbers[{position}] must contain "
                f"{letters[0]!r} and {letters[1]!r} exactly once, got {spec!r}."
            )
        if len({*spec}) != len(spec):
            raise TypeError(
                f"convolution dimension_numbers[{position}] has a letter twice: "
                f"{spec!r}."
            )
    space = [letter for letter in rhs_spec if letter not in "OI"]
    if not {*lhs_spec} - {*"NC"} == {*space} == {*out_spec} - {*"NC"}:
        raise TypeError(
            "convolution dimension_numbers elements must each have the same set of "
            f"spatial letters, got {(lhs_spec, rhs_spec, out_spec)}."
        )
    orders = ["NC", *space], ["OI", *space], ["NC", *space]
    specs = zip((lhs_spec, rhs_spec, out_spec), orders)
    return tuple(tuple(map(spec.index, "".join(order))) for spec, order in specs)


def conv_dimension_numbers(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], dimension_numbers: object
) -> ConvDimensionNumbers:
    """Return the `ConvDimensionNumbers` that strings, tuples or None stand for.

    Args:
      lhs_shape, rhs_shape: shapes of the operands.
      dimension_numbers: None for ``("NCHW", "OIHW", "NCHW")`` and its like in other
        ranks; three strings; or a `ConvDimensionNumbers`.

    Raises:
      TypeError: if ranks differ, or letters do not fit.

    Reference: ``jax.lax.conv_dimension_numbers``.
    """
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    if len(lhs_shape) != len(rhs_shape):
        raise TypeError(
            "convolution requires lhs and rhs ndim to be equal, got "
            f"{len(lhs_shape)} and {len(rhs_shape)}: shapes {tuple(lhs_shape)} and "
            f"{tuple(rhs_shape)}."
        )
    if dimension_numbers is None:
        axes = tuple(range(len(lhs_shape)))
        return ConvDimensionNumbers(axes, axes, axes)
    if not isinstance(dimension_numbers, list | tuple):
        raise TypeError(
            "convolution dimension_numbers must be a tuple, a list or None, got "
            f"{type(dimension_numbers)}."
        )
    _check_letters(dimension_numbers, lhs_shape, rhs_shape)
    return ConvDimensionNumbers(*conv_general_permutations(dimension_numbers))


def _check_letters(numbers, lhs_shape, rhs_shape):
    if len(numbers) != 3:
        raise TypeError(
            f"convolution dimension_numbers must have length 3, got {len(numbers)}."
        )
    if not all(isinstance(spec, str) for spec in numbers):
        kinds = tuple(map(type, numbers))
        raise TypeError(
            f"convolution dimension_numbers elements must be strings, got {kinds}."
        )
    for position, spec in enumerate(numbers):
        if len(spec) != len(lhs_shape):
            raise TypeError(
                f"convolution dimension_numbers[{position}] must have a letter for "
                f"each axis, got {spec!r} for shapes {tuple(lhs_shape)} and "
                f"{tuple(rhs_shape)}."
            )


def split_feature_groups(x, axis, count):
    """Return an array with an axis divided into groups, which are counted in front."""
    shape = (*x.shape[:axis], count, x.shape[axis] // count, *x.shape[axis + 1 :])
    order = [axis, *(k for k in range(x.ndim + 1) if k != axis)]
    return x.reshape(shape).transpose(order)


def swap_first_two(spec):
    """Return the axes of an array with its first two roles exchanged."""
    return (spec[1], spec[0], *spec[2:])


def move_feature_groups(x, groups, source, destination):
    """Return an array whose groups, outermost on one axis, are so on another one."""
    if groups == 1:
        return x
    return reshape_axis_into(
        reshape_axis_out_of(x, source, groups), source, destination
    )


def reshape_axis_out_of(x, axis, count):
    """Return an array with an axis as two: groups, and what is in one."""
    shape = list(typeof(x).shape)
    shape[axis : axis + 1] = count, shape[axis] // count
    return lax.reshape(x, shape)


def reshape_axis_into(x, source, destination):
    """Return an array with an axis taken away and put in front of another's numbers."""
    order = [axis for axis in range(typeof(x).ndim) if axis != source]
    shape = [typeof(x).shape[axis] for axis in order]
    order.insert(destination, source)
    shape[destination] *= typeof(x).shape[source]
    return lax.reshape(x, shape, None if order == sorted(order) else order)


def merge_bdim_into_groups(x, dim, destination, groups):
    """Merge the axis of examples into another one, within each of its groups."""
    if groups == 1:
        return reshape_axis_into(x, dim, destination)
    x = reshape_axis_out_of(x, destination + (dim <= destination), groups)
    x = reshape_axis_into(x, dim + (destination < dim), destination + 1)
    return reshape_axis_into(x, destination, destination)


def conv_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    strides: Sequence[int],
    pads: Any,
    batch_group_count: int = 1,
) -> tuple[int, ...]:
    """Return the shape of a convolution of arrays with their axes in JAX's order.

    Args:
      lhs_shape: examples, features, and the axes of space, gaps included.
      rhs_shape: features of the result, features, and the window, gaps included.
      strides, pads: as for `conv_general_dilated`.
      batch_group_count: in how many groups the examples are.

    Raises:
      TypeError: if there is not a pair of pads for each axis.
      ValueError: if more is taken away than there is.

    Reference: ``jax.lax.conv_shape_tuple``.
    """
    space, window = tuple(lhs_shape[2:]), tuple(rhs_shape[2:])
    if isinstance(pads, str):
        pads = padtype_to_pads(space, window, strides, pads)
    if len(pads) != len(space):
        raise TypeError(
            "Wrong number of explicit pads for convolution: expected "
            f"{len(space)}, got {len(pads)}."
        )
    sliding = make_window(window, strides, pads)
    if any(n + sum(pair) < 0 for n, pair in zip(space, sliding.padding)):
        raise ValueError(
            "Negative padding is larger than the size of the axis: got padding "
            f"{sliding.padding} for axes of space of sizes {space}."
        )
    counts = sliding.counts(space)
    return (lhs_shape[0] // batch_group_count, rhs_shape[0], *counts)


def conv_general_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Any,
    dimension_numbers: Sequence[str],
) -> tuple[int, ...]:
    """Return the shape of a convolution, for axes that strings of letters name.

    Reference: ``jax.lax.conv_general_shape_tuple``.
    """
    lhs, rhs, out = conv_general_permutations(dimension_numbers)
    shapes = sizes_of_axes(lhs_shape, lhs), sizes_of_axes(rhs_shape, rhs)
    shape = conv_shape_tuple(*shapes, window_strides, padding)
    return sizes_of_axes(shape, np.argsort(out))


def conv_transpose_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Any,
    dimension_numbers: Sequence[str],
) -> tuple[int, ...]:
    """Return the shape of the result of `conv_transpose`.

    Reference: ``jax.lax.conv_transpose_shape_tuple``.
    """
    lhs, rhs, out = conv_general_permutations(dimension_numbers)
    shape, window = sizes_of_axes(lhs_shape, lhs), sizes_of_axes(rhs_shape, rhs)
    if isinstance(padding, str):
        pairs = zip(window[2:], window_strides)
        padding = [conv_transpose_padding(*pair, padding) for pair in pairs]
    spread = [dilate_dim(n, step) for n, step in zip(shape[2:], window_strides)]
    ones = (1,) * len(spread)
    shape = conv_shape_tuple((*shape[:2], *spread), window, ones, padding)
    return sizes_of_axes(shape, np.argsort(out))


def conv_transpose_padding(size, stride, padding):
    """Return the pads that make a transposed convolution as large as a name says."""
    if padding == "SAME":
        total = size + stride - 2
        low = size - 1 if stride > size - 1 else -(-total // 2)
    elif padding == "VALID":
        total, low = size + stride - 2 + max(size - stride, 0), size - 1
    else:
        raise ValueError(f"Padding mode must be 'SAME' or 'VALID', got {padding!r}.")
    return low, total - low


def conv_window(lhs, rhs, params):
    """Return the `Window` of a convolution's windows over the axes of space."""
    window = sizes_of_axes(rhs.shape, params["dimension_numbers"].rhs_spec[2:])
    names = "window_strides padding lhs_dilation rhs_dilation".split()
    return Window(window, *[params[name] for name in names])


def conv_shape_rule(lhs, rhs, **params):
    """Return the type of a convolution; refuse what does not fit."""
    check_same_dtype("conv_general_dilated", [lhs, rhs])
    _check_ranks(lhs, rhs, params)
    lhs_spec, rhs_spec, out_spec = params["dimension_numbers"]
    shape, window = (
        sizes_of_axes(lhs.shape, lhs_spec),
        sizes_of_axes(rhs.shape, rhs_spec),
    )
    _check_groups(shape, window, params)
    _check_windows(window, params)
    sliding = conv_window(lhs, rhs, params)
    spread = map(dilate_dim, shape[2:], sliding.base_dilation)
    wide = map(dilate_dim, window[2:], sliding.window_dilation)
    found = conv_shape_tuple(
        (*shape[:2], *spread),
        (*window[:2], *wide),
        sliding.strides,
        sliding.padding,
        params["batch_group_count"],
    )
    dtype = _dtype(lhs.dtype, params["preferred_element_type"])
    return [
        ShapedArray(
            sizes_of_axes(found, np.argsort(out_spec)), dtype, all_weak([lhs, rhs])
        )
    ]


def _check_ranks(lhs, rhs, params):
    if lhs.ndim != rhs.ndim or lhs.ndim < 2:
        raise TypeError(
            "convolution requires lhs and rhs of one rank, 2 or more, got "
            f"{lhs} and {rhs}."
        )
    names = "window_strides", "lhs_dilation", "rhs_dilation"
    for name in names:
        if len(params[name]) != lhs.ndim - 2:
            raise ValueError(
                f"conv_general_dilated needs one entry of {name} for each of the "
                f"{lhs.ndim - 2} axes of its window, got {params[name]}."
            )
    for name in names[1:]:
        if min(params[name], default=1) < 1:
            raise TypeError(f"All dilations must be positive, got {params[name]}.")
    if min(params["window_strides"], default=1) < 1:
        strides = params["window_strides"]
        raise ValueError(f"window_strides must be positive, got {strides}.")


def _check_windows(window, params):
    if 0 in window[2:]:
        raise ValueError(
            f"The window of a convolution is empty: its sizes are {window[2:]}."
        )


def _check_groups(shape, window, params):
    features, batches = params["feature_group_count"], params["batch_group_count"]
    for name in ("feature_group_count", "batch_group_count"):
        if params[name] < 1:
            raise ValueError(
                f"conv_general_dilated {name} must be a positive integer, got "
                f"{params[name]}."
            )
    if features > 1 and batches > 1:
        raise ValueError(
            "At most one of batch_group_count and feature_group_count may be > 1, got "
            f"batch_group_count={batches} and feature_group_count={features}."
        )
    if shape[1] % features or shape[1] // features != window[1]:
        raise ValueError(
            "conv_general_dilated: the features of lhs, divided by "
            "feature_group_count, must be as many as those of rhs: got "
            f"{shape[1]} / {features} and {window[1]}."
        )
    if window[0] % (features * batches):
        raise ValueError(
            "conv_general_dilated: the number of features that rhs makes must be a "
            f"multiple of the number of groups, but {window[0]} is not a multiple of "
            f"{features * batches}."
        )
    if shape[0] % batches:
        raise ValueError(
            "conv_general_dilated: batch_group_count must divide the number of "
            f"examples, but {batches} does not divide {shape[0]}."
        )


def _dtype(own, preferred):
    if preferred is None or preferred == own:
        return own
    old = dtype_kind(own).replace("h", "f")
    new = dtype_kind(preferred).replace("h", "f")
    signs = old + new
    fits = signs in ("ii", "uu", "if", "uf", "ff", "cc", "ui", "iu")
    if not fits and own != np.bool_:
        raise TypeError(
            f"preferred_element_type={preferred} does not go with operands of {own}: "
            "integers become integers or floats, floats floats, and complex numbers "
            "complex numbers."
        )
    if preferred.itemsize < own.itemsize:
        raise TypeError(
            f"preferred_element_type={preferred} must not be narrower than {own}."
        )
    if signs == "iu":
        raise TypeError(
            f"preferred_element_type={preferred} must have the signs of {own}."
        )
    return preferred
