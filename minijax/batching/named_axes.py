"""Named axes: how operations talk across the examples of a vmap.

Inside ``vmap(f, axis_name="i")``, `f` sees one example; a *collective* such as
``lax.psum(x, "i")`` uses the `x` of all of them. It is a primitive with the parameter
`axis_name`, a tuple of names. The trace whose axis has such a name answers it; others
pass it on.

Reference: ``jax.lax.axis_index``, ``jax.lax.axis_size``.
"""

# Made from chapters/06_vmap_rest.md by `make chapter`;
# edit the chapter, not this file.

from math import prod
from typing import Any

import numpy as np

from minijax import lax
from minijax.arrays.array import shape_rules
from minijax.arrays.avals import ShapedArray
from minijax.batching.rules import example_aval, vmap_rules
from minijax.core import Array, Primitive, current_trace, impl_rules
from minijax.forward.rules import jvp_rules


def named_axis_size(name):
    """Return the size of the innermost mapped axis that is called `name`.

    Raises:
      NameError: if neither the current trace nor one below it maps such an axis.
    """
    trace = current_trace()
    while trace is not None:
        axis = getattr(trace, "axis", None)
        if axis is not None and axis.name is not None and axis.name == name:
            return axis.size
        trace = trace.parent
    raise unbound_axis(name)


def unbound_axis(name):
    """Return the error of a collective whose axis name no vmap has given."""
    return NameError(
        f"unbound axis name: {name}. Names are given to axes by "
        f"vmap(..., axis_name={name!r}), by pmap in the same way, and by the mesh of a "
        "shard_map; they hold inside the mapped function."
    )


def refuse_unbound(*args, axis_name, **params):
    """Raise, as the impl rule of all collectives: no trace below maps the axis."""
    raise unbound_axis(axis_name[0])


def collective(primitive, shape, own, other):
    """Give a primitive with one operand its first rules.

    Args:
      primitive: a primitive with the parameter `axis_name`.
      shape: its shape rule.
      own: the vmap rule of an axis that it names, called as ``own(axis, x, dim,
        **params)``; returns the result and its mapped axis.
      other: the vmap rule of any other axis, called in the same way.
    """

    def rule(axis, args, dims, **params):
        shape(*map(example_aval, args, dims), **params)  # its checks, on one example
        answer = own if axis.name in params["axis_name"] else other
        if answer is own and "axis_index_groups" in params:
            raise NotImplementedError(
                f"{primitive} under vmap takes no axis_index_groups: reshape, and give "
                "the groups an axis and a name of their own."
            )
        result, dim = answer(axis, *args, *dims, **params)
        return [result], [dim]

    shape_rules[primitive] = shape
    impl_rules[primitive] = refuse_unbound
    vmap_rules[primitive] = rule


def outermost_first(names):
    """Return names of mapped axes in their order around, as in a mesh, a tuple."""
    trace, around = current_trace(), []
    while trace is not None:
        axis = getattr(trace, "axis", None)
        if axis is not None and axis.name in names and axis.name not in around:
            around.append(axis.name)
        trace = trace.parent
    return tuple(reversed(around))


def axis_names(axis_name):
    """Return a tuple of different names, each of which is that of a mapped axis."""
    names = tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,)
    for name in names:
        named_axis_size(name)
    if len(set(names)) < len(names):
        raise ValueError(f"duplicate axis name in axis_name={axis_name!r}")
    return names


def grouped(names, axis_index_groups):
    """Return the parameter that groups of examples are, in a dictionary; or {}.

    Raises:
      ValueError: if an index of the axes is in no group, or in two.
    """
    if axis_index_groups is None:
        return {}
    groups, size = tuple(map(tuple, axis_index_groups)), axis_size(names)
    if sorted(i for group in groups for i in group) != list(range(size)):
        raise ValueError(
            "axis_index_groups must cover all indices exactly once: those of "
            f"{' and '.join(map(repr, names))} are 0 to {size - 1}, got {groups}."
        )
    return {"axis_index_groups": groups}


def group_size(names, axis_index_groups=None):
    """Return how many examples meet: those of the axes, or of each group of them.

    Raises:
      ValueError: if groups are not of one size.
    """
    sizes = {len(group) for group in axis_index_groups or ()}
    if len(sizes) > 1:
        raise ValueError(
            "axis_index_groups must all have the same size here, got "
            f"{axis_index_groups}."
        )
    return sizes.pop() if sizes else axis_size(names)


def axis_size(axis_name: Any) -> int:
    """Return the number of examples along a named axis, a Python int.

    Args:
      axis_name: a name, or a tuple of names whose sizes are multiplied.

    Raises:
      NameError: if no axis of that name is mapped here.

    Reference: ``jax.lax.axis_size``.
    """
    return prod(map(named_axis_size, axis_names(axis_name)))


def names_and_groups(function, axis_name, axis_index_groups=None):
    """Return a tuple of names, and the parameter that groups are, see `grouped`.

    Raises:
      ValueError: if there is no name, or if there are groups of several ones.
    """
    names = axis_names(axis_name)
    if not names or (axis_index_groups is not None and len(names) > 1):
        amount = "at least one axis name" if not names else "one axis name with groups"
        raise ValueError(f"{function} takes {amount}, got {axis_name!r}")
    return names, grouped(names, axis_index_groups)


def axis_index_shape(axis_name):
    """Return the type of an index, which does not depend on the axis."""
    return [ShapedArray((), np.int32)]


axis_index_p = Primitive("axis_index")
shape_rules[axis_index_p] = axis_index_shape
impl_rules[axis_index_p] = refuse_unbound
vmap_rules[axis_index_p] = lambda axis, args, dims, axis_name: (
    [lax.iota(np.int32, axis.size)],
    [0],
)


def axis_index(axis_name: Any) -> Array:
    """Return which example this is along a named axis, an int32 scalar.

    Args:
      axis_name: a name, or a tuple of names; then the last one counts fastest.

    Raises:
      NameError: if no axis of that name is mapped here.

    Reference: ``jax.lax.axis_index``.
    """
    first, *others = axis_names(axis_name)
    [index] = axis_index_p.bind(axis_name=(first,))
    for name in others:
        [inner] = axis_index_p.bind(axis_name=(name,))
        index = index * axis_size(name) + inner
    return index


jvp_rules.reasons[axis_index_p] = "It has no operands, so it has no tangent."
