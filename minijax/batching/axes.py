"""Which axes vmap maps: from in_axes and out_axes to one axis for each leaf.

Reference: the arguments `in_axes` and `out_axes` of ``jax.vmap``.
"""

# Made from chapters/06_vmap_ground.md by `make chapter`;
# edit the chapter, not this file.

from minijax._registry import Registry
from minijax.arrays.array import typeof
from minijax.pytrees.tree_operations import flatten_axes
from minijax.tree_util import keystr, tree_leaves, tree_leaves_with_path


def flat_in_axes(call, in_axes, args):
    """Return the mapped axis of each leaf of the arguments, counted from the front."""
    if isinstance(in_axes, tuple) and len(in_axes) != len(args):
        raise ValueError(
            "vmap in_axes must be an int, None, or a tuple of entries corresponding to "
            "the positional arguments passed to the function, but got "
            f"len(in_axes)={len(in_axes)}, len(args)={len(args)}"
        )
    axes = flatten_axes("vmap in_axes", in_axes, args)
    axes += [0] * (len(call.leaves) - len(axes))  # keyword arguments
    return [_input_axis(call, i, axis) for i, axis in enumerate(axes)]


def typeof_or_none(x):
    """Return the abstract value of a leaf; a leaf that is not mapped needs none."""
    try:
        return typeof(x)
    except TypeError:
        return None


def _input_axis(call, i, axis):
    """Return one mapped axis, counted from the front."""
    if axis is None:
        return None
    if call.avals[i] is None:
        raise TypeError(
            f"vmap was requested to map {call.name_of(i)} along axis {axis}, but it is "
            f"no array: {call.leaves[i]!r} of type {type(call.leaves[i])}. What all "
            "examples share, of whatever type, needs in_axes=None."
        )
    shape = call.avals[i].shape
    if -len(shape) <= axis < len(shape):
        return axis % len(shape)
    raise ValueError(
        f"vmap was requested to map its argument along axis {axis}, which implies "
        f"that its rank should be at least {axis + 1 if axis >= 0 else -axis}, but is "
        f"only {len(shape)} (its shape is {shape}): {call.name_of(i)}"
    )


def mapped_axis_size(call, dims, axis_size):
    """Return the one size that all mapped axes have."""
    sizes = {} if axis_size is None else {axis_size: []}
    for i, dim in enumerate(dims):
        if dim is not None:
            sizes.setdefault(call.avals[i].shape[dim], []).append(i)
    if len(sizes) == 1:
        return next(iter(sizes))
    if not call.leaves:
        raise ValueError(
            "vmap wrapped function must be passed at least one argument containing an "
            f"array or axis_size must be specified, got empty *args={call.args} and "
            f"**kwargs={call.kwargs}"
        )
    if not sizes:
        raise ValueError(
            "vmap must have at least one non-None value in in_axes, or axis_size: it "
            f"needs something to map over. {call.fun_name} got {len(call.leaves)} "
            "arrays or scalars."
        )
    counted = sorted(sizes.items(), key=lambda item: -len(item[1]))
    lines = [_describe(call, dims, *item) for item in counted if item[1]]
    if axis_size is not None:
        lines.insert(0, f"the `axis_size` argument was {axis_size}")
    raise ValueError(
        "vmap got inconsistent sizes for array axes to be mapped:\n  * "
        + ";\n  * ".join(lines).replace("some axes", "most axes", 1)
        + "\nMap axes of one size; arguments that all examples share need in_axes=None."
    )


def _describe(call, dims, size, leaves):
    """Return how many axes have `size`, and which is the first."""
    i = leaves[0]
    axis = f"axis {dims[i]} of {_place(call, i)} of type {call.avals[i]}"
    if len(leaves) == 1:
        return f"one axis had size {size}: {axis}"
    return f"some axes ({len(leaves)} of them) had size {size}, e.g. {axis}"


def _place(call, i):
    """Return whether leaf `i` came by position or by keyword, and where."""
    if i < call.args_tree.num_leaves:
        return f"argument {call.name_of(i)}"
    paths = tree_leaves_with_path(call.kwargs)
    return "kwargs" + keystr(paths[i - call.args_tree.num_leaves][0])


def check_out_axis(call, i, ndim, dim, place):
    """Raise unless result `i`, of rank `ndim` with its axis, can have it at `place`."""
    if place is None:
        raise ValueError(
            f"at vmap out_axes{_output_path(call, i)}, got axis spec None but output "
            f"was batched on axis {dim}: it depends on the example."
        )
    if not -ndim <= place < ndim:
        raise ValueError(
            f"at vmap out_axes{_output_path(call, i)}, axis {place} is out of bounds "
            f"for array of dimension {ndim}"
        )


def _output_path(call, i):
    numbered = call.out_tree.unflatten(range(call.num_outs))
    return keystr(tree_leaves_with_path(numbered)[i][0])


def canonicalize_in_axes(in_axes):
    """Return `in_axes` as an int, None or a tuple."""
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if in_axes is not None and type(in_axes) not in (int, tuple, *spec_types):
        raise TypeError(
            "vmap in_axes must be an int, None, or a tuple of entries corresponding to "
            f"the positional arguments passed to the function, but got {in_axes!r}."
        )
    check_axes_are_ints("in_axes", in_axes)
    return in_axes


# From classes that know their examples to two functions: to an element, and back.
vmappables: dict = Registry()
# The classes of what says, in the place of an axis, where the examples of objects are.
spec_types: set[type] = set()


def check_axes_are_ints(name, axes):
    """Raise unless all entries are ints or None."""
    if not all(type(axis) in (int, *spec_types) for axis in tree_leaves(axes)):
        raise TypeError(
            f"vmap {name} must be an int, None, or (nested) container with those types "
            f"as leaves, but got {axes!r}."
        )
