"""Dimension numbers of gathers and scatters, their modes, and checks of both.

Reference: ``jax.lax.GatherDimensionNumbers``; XLA's operation semantics of Gather.
"""

# Made from chapters/28_indexing_ground.md by `make chapter`;
# edit the chapter, not this file.

import enum
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from minijax.arrays.array import ShapedArray, typeof
from minijax.arrays.dtypes import dtype_kind
from minijax.arrays.numerics import integer_limits
from minijax.core import Array
from minijax.jaxprs.jaxpr import trace_to_jaxpr
from minijax.numpy.operands import concrete_or_none


class GatherDimensionNumbers(NamedTuple):
    """Which axes of a gather's operand, indices and result belong together.

    Attributes:
      offset_dims: axes of the result along which one moves within a window.
      collapsed_slice_dims: axes of the operand that the result does not have.
      start_index_map: for each number of an index, the axis of the operand.
      operand_batching_dims, start_indices_batching_dims: axes of the operand and of
        the indices that are walked together.

    Reference: ``jax.lax.GatherDimensionNumbers``.
    """

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()


class ScatterDimensionNumbers(NamedTuple):
    """Which axes of a scatter's operand, indices and updates belong together.

    The attributes mean what those of `GatherDimensionNumbers` mean, in their order,
    with the updates in place of the result.

    Reference: ``jax.lax.ScatterDimensionNumbers``.
    """

    update_window_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    scatter_dims_to_operand_dims: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    scatter_indices_batching_dims: tuple[int, ...] = ()


class GatherScatterMode(enum.Enum):
    """What becomes of windows that are not within the operand.

    ``CLIP`` moves them inside. ``FILL_OR_DROP`` fills the result of a gather with a
    value, and leaves out the update of a scatter. ``PROMISE_IN_BOUNDS`` says that there
    are none. ``ONE_HOT`` is known by name only.

    Reference: ``jax.lax.GatherScatterMode``.
    """

    CLIP = enum.auto()
    FILL_OR_DROP = enum.auto()
    PROMISE_IN_BOUNDS = enum.auto()
    ONE_HOT = enum.auto()

    @staticmethod
    def from_any(s: "str | GatherScatterMode | None") -> "GatherScatterMode":
        """Return the mode of a name; None stands for ``FILL_OR_DROP``.

        Raises:
          ValueError: for another name.
        """
        if isinstance(s, GatherScatterMode):
            return s
        names = {None: "FILL_OR_DROP", "drop": "FILL_OR_DROP", "fill": "FILL_OR_DROP"}
        lower = ("clip", "promise_in_bounds", "one_hot")
        names |= {name: name.upper() for name in lower}
        if s not in names:
            raise ValueError(f'Unknown gather mode "{s}"')
        return GatherScatterMode[names[s]]


def default_fill_value(dtype, given=None):
    """Return what a gather finds out of bounds: NaN, or an extreme integer.

    Args:
      dtype: of the operand.
      given: what is found instead, if it is not None; an array becomes its number,
        since parameters of equations are compared.

    Raises:
      ValueError: for a dtype that has no such value.
      TypeError: for a value that is computed by the program.
    """
    if given is not None:
        known = concrete_or_none(given)
        if known is None:
            raise TypeError(f"fill_value has to be known while tracing, got {given!r}.")
        single = isinstance(known, Array | np.ndarray) and not np.ndim(known)
        return np.asarray(known)[()] if single else known
    kind = dtype_kind(dtype)
    if kind in "fch":
        return np.nan
    if kind == "b":
        return True
    if kind in "iu":
        least, greatest = integer_limits(dtype)
        return least if kind == "i" else greatest
    if dtype_kind(dtype) in "x0":
        return np.iinfo(np.uint32).max
    raise ValueError(f"Unsupported dtype for gather fill_value {dtype}")


def fill_value_in_dtype(dtype, value):
    """Return a fill value as a number of a dtype; of keys, all bits are set."""
    if dtype_kind(dtype) in "x0":
        return np.full(dtype.itemsize, 255, np.uint8).view(dtype)[0]
    return np.asarray(value).astype(dtype)[()]


class ScatterIndexInfo(NamedTuple):
    """What the caller of a scatter says of its indices."""

    indices_are_sorted: bool = False
    unique_indices: bool = False
    mode: Any = None


@cache
def update_program(combine, dtype):
    """Return the jaxpr by which an update enters an element: of two scalars."""
    scalar = ShapedArray((), dtype)
    jaxpr, _ = trace_to_jaxpr(lambda x, y: [combine(x, y)], [scalar, scalar])
    return jaxpr


def with_tuples(numbers):
    """Return dimension numbers whose axes are tuples, also if some were ranges."""
    known = isinstance(numbers, GatherDimensionNumbers | ScatterDimensionNumbers)
    return type(numbers)(*map(tuple, numbers)) if known else numbers


def bind_scatter(primitive, operand, indices, updates, numbers, how, jaxpr, consts=()):
    """Bind a scatter whose updates enter by a jaxpr of two scalars, or by None."""
    return primitive.bind(
        operand,
        indices,
        updates,
        dimension_numbers=with_tuples(numbers),
        indices_are_sorted=bool(how.indices_are_sorted),
        mode=GatherScatterMode.from_any(how.mode),
        unique_indices=bool(how.unique_indices),
        update_consts=consts,
        update_jaxpr=jaxpr,
    )


def scatter_with_combiner(primitive, combine, operand, indices, updates, numbers, how):
    """Bind a scatter whose updates enter by a function of two scalars, or by None."""
    jaxpr = combine and update_program(combine, typeof(operand).dtype)
    return bind_scatter(primitive, operand, indices, updates, numbers, how, jaxpr)


class WindowDims(NamedTuple):
    """How windows of an operand lie in the result of a gather, or in updates.

    Attributes:
      offset_dims: axes of the result along which one moves within a window.
      collapsed_slice_dims: axes of the operand that the result does not have.
      start_index_map: for each number of an index, the axis of the operand that it
        counts.
      operand_batching_dims, start_indices_batching_dims: axes of operand and indices
        that are walked together.
    """

    offset_dims: tuple
    collapsed_slice_dims: tuple
    start_index_map: tuple
    operand_batching_dims: tuple = ()
    start_indices_batching_dims: tuple = ()

    def batch_dims(self, ndim):
        """Return the axes of the result that count the windows, in order."""
        return [axis for axis in range(ndim) if axis not in self.offset_dims]

    def kept(self, ndim):
        """Return the axes of the operand along which a window may be wide."""
        left_out = {*self.collapsed_slice_dims, *self.operand_batching_dims}
        return [axis for axis in range(ndim) if axis not in left_out]

    def sizes(self, ndim, shape):
        """Return the size of a window along each axis of the operand."""
        found = [1] * ndim
        for axis, place in zip(self.kept(ndim), self.offset_dims):
            found[axis] = shape[place]
        return tuple(found)


def check_dims(op, name, dims, rank, ordered=True):
    """Raise unless axes are distinct, in order, and axes of an array of some rank."""
    if ordered and list(dims) != sorted(dims):
        raise TypeError(f"{name} in {op} op must be sorted; got {dims}")
    if len({*dims}) != len(dims):
        raise TypeError(f"{name} in {op} op must not repeat; got: {dims}.")
    for dim in dims:
        if not 0 <= dim < rank:
            raise TypeError(
                f"Invalid {name} set in {op} op; valid range is [0, {rank}); got: "
                f"{dim}."
            )


def check_disjoint(op, names, one, other):
    """Raise if two tuples of axes have an axis in common."""
    if not {*one}.isdisjoint(other):
        raise TypeError(
            f"{names[0]} and {names[1]} in {op} op must be disjoint; got: {one} and "
            f"{other}."
        )


def check_batching(op, numbers, operand, indices):
    """Check the axes of the operand and of the indices that are walked together."""
    dropped, mapped, batching, index_batching = numbers[1:]
    names = numbers._fields
    check_dims(op, names[1], dropped, operand.ndim)
    check_dims(op, names[3], batching, operand.ndim)
    check_disjoint(op, (names[1], names[3]), dropped, batching)
    check_disjoint(op, (names[2], names[3]), mapped, batching)
    check_dims(op, names[4], index_batching, indices.ndim, ordered=False)
    name = op.capitalize()
    if indices.ndim - 1 in index_batching:
        raise TypeError(
            f"{name} op cannot have the index vector dimension as a batching "
            f"dimension; got {index_batching}."
        )
    if len(batching) != len(index_batching):
        raise TypeError(
            f"{name} op requires equal numbers of operand_batching_dims and "
            f"{names[4]}, got {batching} and {index_batching}."
        )
    sizes = [operand.shape[i] for i in batching]
    if sizes != [indices.shape[i] for i in index_batching]:
        raise TypeError(
            f"{name} op requires operand batching dimensions and indices batching "
            f"dimensions to have the same shape, got {batching} of {operand.shape} and "
            f"{index_batching} of {indices.shape}."
        )


def check_indices(op, numbers, operand, indices):
    """Check that indices are integers, and that the numbers are of this operation."""
    if dtype_kind(indices.dtype) not in "iu":
        raise ValueError("indices must have an integer type")
    if not indices.ndim:
        raise TypeError(
            f"{op.capitalize()} index leaf dimension must be within [0, rank(indices) "
            "+ 1). rank(indices) is 0 and the leaf dimension is -1."
        )
    if not isinstance(numbers, GatherDimensionNumbers | ScatterDimensionNumbers):
        raise TypeError(
            f"dimension_numbers of {op} are {op.capitalize()}DimensionNumbers, not "
            f"{numbers!r}."
        )


def check_mapped_axes(op, numbers, operand, indices):
    """Check that each number of an index vector is a place along its own axis."""
    mapped, name = numbers[2], numbers._fields[2]
    if len(mapped) != indices.shape[-1]:
        raise TypeError(
            f"{op.capitalize()} op has {len(mapped)} elements in {name} and the bound "
            f"of dimension index_vector_dim={indices.ndim - 1} of indices is "
            f"{indices.shape[-1]}. These two numbers must be equal."
        )
    if any(not 0 <= axis < operand.ndim for axis in mapped):
        raise TypeError(f"Invalid {name}; domain is [0, {operand.ndim}), got: {mapped}")
    check_dims(op, name, mapped, operand.ndim, ordered=False)


def gather_shape_rule(operand, indices, dimension_numbers, slice_sizes, **_):
    """Return the type of a gather's result.

    Raises:
      TypeError: for dimension numbers or slice sizes that do not fit.
      ValueError: for indices that are no integers.
    """
    numbers = dimension_numbers
    check_indices("gather", numbers, operand, indices)
    check_mapped_axes("gather", numbers, operand, indices)
    rank = len(numbers.offset_dims) + indices.ndim - 1
    check_dims("gather", "offset_dims", numbers.offset_dims, rank)
    check_batching("gather", numbers, operand, indices)
    _check_slices(numbers, operand, indices, slice_sizes)
    left_out = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    window = [size for axis, size in enumerate(slice_sizes) if axis not in left_out]
    shape = [*indices.shape[:-1]]
    for axis, size in zip(numbers.offset_dims, window):
        shape.insert(axis, size)
    return [operand.update(shape=tuple(shape))]


def _check_slices(numbers, operand, indices, sizes):
    """Check the sizes of a gather's windows, one for each axis of the operand."""
    if operand.ndim != len(sizes):
        raise TypeError(
            "Gather op must have one slice size for every input dimension; got: "
            f"len(slice_sizes)={len(sizes)}, input_shape.rank={operand.ndim}"
        )
    if operand.ndim != sum(map(len, (*numbers[:2], numbers[3]))):
        raise TypeError(
            "All components of the offset index in a gather op must either be a offset "
            f"dimension or explicitly collapsed/batching; got {len(sizes)=}, {numbers}."
        )
    for axis, (size, whole) in enumerate(zip(sizes, operand.shape)):
        if 0 not in indices.shape and not 0 <= size <= whole:
            raise TypeError(
                f"Slice size at index {axis} in gather op is out of range, must be "
                f"within [0, {whole} + 1), got {size}."
            )
    for axis in numbers.collapsed_slice_dims:
        if sizes[axis] != 1:
            raise TypeError(
                "Gather op can only collapse slice dims with bound 1, but bound is "
                f"{sizes[axis]} for index {axis}."
            )
    for axis in numbers.operand_batching_dims:
        if sizes[axis] > 1:
            raise TypeError(
                "Gather op can only have operand batching dims with bound 0/1, but "
                f"bound is {sizes[axis]} for index {axis}."
            )


def scatter_shape_rule(operand, indices, updates, dimension_numbers, **_):
    """Return the type of a scatter's result, that of its operand.

    Raises:
      TypeError: for dimension numbers or updates that do not fit.
      ValueError: for indices that are no integers.
    """
    numbers = dimension_numbers
    check_indices("scatter", numbers, operand, indices)
    if operand.dtype != updates.dtype:
        raise TypeError(
            "lax.scatter requires arguments to have the same dtypes, got "
            f"{operand.dtype}, {updates.dtype}."
        )
    rank = indices.ndim - 1 + len(numbers.update_window_dims)
    if updates.ndim != rank:
        raise TypeError(f"Updates tensor must be of rank {rank}; got {updates.ndim}.")
    check_dims("scatter", "update_window_dims", numbers.update_window_dims, rank)
    check_batching("scatter", numbers, operand, indices)
    check_mapped_axes("scatter", numbers, operand, indices)
    _check_updates(numbers, operand, indices, updates)
    return [operand]


def _check_updates(numbers, operand, indices, updates):
    """Check the sizes of a scatter's windows, and how many there are."""
    window = numbers.update_window_dims
    left_out = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    bounds = [size for axis, size in enumerate(operand.shape) if axis not in left_out]
    if operand.ndim != len(window) + len(left_out):
        raise TypeError(
            f"Scatter op has window of size {len(window) + len(left_out)}; doesn't "
            f"match operand of rank {operand.ndim}."
        )
    for axis, bound in zip(window, bounds):
        if updates.shape[axis] > bound:
            raise TypeError(
                "Bounds of the window dimensions of updates must not exceed the bounds "
                "of the corresponding dimensions of operand. For dimension "
                f"{axis}, updates bound is {updates.shape[axis]}, operand bound is "
                f"{bound}."
            )
    counting = [axis for axis in range(updates.ndim) if axis not in window]
    for axis, size in zip(counting, indices.shape):
        if updates.shape[axis] != size:
            raise TypeError(
                "Bounds of the scatter dimensions of updates must be the same as the "
                "bounds of the corresponding dimensions of scatter indices. For "
                f"scatter dimension {axis}, updates bound is {updates.shape[axis]}, "
                f"indices bound is {size}."
            )
