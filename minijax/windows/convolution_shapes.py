"""Axes, shapes and dtypes of convolutions, and what does not fit.

Reference: ``jax.lax.ConvDimensionNumbers``, ``jax.lax.conv_shape_tuple``.
"""

# Made from chapters/30_windows_ground.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax import lax
from minijax.arrays.avals import ShapedArray, typeof
from minijax.arrays.checks import all_weak, check_same_dtype, sizes
from minijax.arrays.dtypes import kind_of
from minijax.windows.geometry import Sliding, dilated, full_sliding, padtype_to_pads


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


def in_groups(x, axis, count):
    """Return an array with an axis divided into groups, which are counted in front."""
    shape = (*x.shape[:axis], count, x.shape[axis] // count, *x.shape[axis + 1 :])
    order = [axis, *(k for k in range(x.ndim + 1) if k != axis)]
    return x.reshape(shape).transpose(order)


def exchanged(spec):
    """Return the axes of an array with its first two roles exchanged."""
    return (spec[1], spec[0], *spec[2:])


def move_groups(x, groups, source, destination):
    """Return an array whose groups, outermost on one axis, are so on another one."""
    if groups == 1:
        return x
    return merge_axis(split_axis(x, source, groups), source, destination)


def split_axis(x, axis, count):
    """Return an array with an axis as two: groups, and what is in one."""
    shape = list(typeof(x).shape)
    shape[axis : axis + 1] = count, shape[axis] // count
    return lax.reshape(x, shape)


def merge_axis(x, source, destination):
    """Return an array with an axis taken away and put in front of another's numbers."""
    order = [axis for axis in range(typeof(x).ndim) if axis != source]
    shape = [typeof(x).shape[axis] for axis in order]
    order.insert(destination, source)
    shape[destination] *= typeof(x).shape[source]
    return lax.reshape(x, shape, None if order == sorted(order) else order)


def merge_inside(x, dim, destination, groups):
    """Merge the axis of examples into another one, within each of its groups."""
    if groups == 1:
        return merge_axis(x, dim, destination)
    x = split_axis(x, destination + (dim <= destination), groups)
    x = merge_axis(x, dim + (destination < dim), destination + 1)
    return merge_axis(x, destination, destination)


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
    sliding = full_sliding(window, strides, pads)
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
    shapes = sizes(lhs_shape, lhs), sizes(rhs_shape, rhs)
    shape = conv_shape_tuple(*shapes, window_strides, padding)
    return sizes(shape, np.argsort(out))


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
    shape, window = sizes(lhs_shape, lhs), sizes(rhs_shape, rhs)
    if isinstance(padding, str):
        pairs = zip(window[2:], window_strides)
        padding = [conv_transpose_padding(*pair, padding) for pair in pairs]
    spread = [dilated(n, step) for n, step in zip(shape[2:], window_strides)]
    ones = (1,) * len(spread)
    shape = conv_shape_tuple((*shape[:2], *spread), window, ones, padding)
    return sizes(shape, np.argsort(out))


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


def convolution_sliding(lhs, rhs, params):
    """Return the `Sliding` of a convolution's windows over the axes of space."""
    window = sizes(rhs.shape, params["dimension_numbers"].rhs_spec[2:])
    names = "window_strides padding lhs_dilation rhs_dilation".split()
    return Sliding(window, *[params[name] for name in names])


def convolution_shape(lhs, rhs, **params):
    """Return the type of a convolution; refuse what does not fit."""
    check_same_dtype("conv_general_dilated", [lhs, rhs])
    _check_ranks(lhs, rhs, params)
    lhs_spec, rhs_spec, out_spec = params["dimension_numbers"]
    shape, window = sizes(lhs.shape, lhs_spec), sizes(rhs.shape, rhs_spec)
    _check_groups(shape, window, params)
    _check_windows(window, params)
    sliding = convolution_sliding(lhs, rhs, params)
    spread = map(dilated, shape[2:], sliding.base_dilation)
    wide = map(dilated, window[2:], sliding.window_dilation)
    found = conv_shape_tuple(
        (*shape[:2], *spread),
        (*window[:2], *wide),
        sliding.strides,
        sliding.padding,
        params["batch_group_count"],
    )
    dtype = _dtype(lhs.dtype, params["preferred_element_type"])
    return [
        ShapedArray(sizes(found, np.argsort(out_spec)), dtype, all_weak([lhs, rhs]))
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
    old, new = kind_of(own).replace("h", "f"), kind_of(preferred).replace("h", "f")
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
