"""Batches of primitives, under the names that JAX has for them.

Reference: ``jax.interpreters.batching``.
"""

# Made from chapters/14_callbacks_rest.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Callable
from typing import Any

from minijax.arrays.array import typeof
from minijax.batching.axes import spec_types, vmappables
from minijax.batching.vmap import (
    MappedAxis,
    broadcast_batch_dim,
    move_one_axis,
    vectorized_rule,
    vmap_rules,
)
from minijax.compat.core import RuleView
from minijax.compat.primitives import results_as_jax, results_as_list


class _FancyBatchers(RuleView):
    """From primitives to rules ``rule(axis, operands, dims, **params)``.

    The axis is a `MappedAxis`, with a `name` and a `size`.
    """

    def to_table(self, primitive, rule):
        def listed(axis, args, dims, **params):
            out, dim = rule(axis, tuple(args), tuple(dims), **params)
            outs = results_as_list(primitive, out)
            return outs, _dims_listed(primitive, dim)

        return listed

    def from_table(self, primitive, rule):
        def picked(axis, args, dims, **params):
            found = rule(axis, list(args), list(dims), **params)
            return tuple(results_as_jax(primitive, each) for each in found)

        return picked


def _dims_listed(primitive, dim):
    dim = list(dim) if isinstance(dim, tuple) else dim
    return results_as_list(primitive, dim)


class _Batchers(_FancyBatchers):
    """From primitives to rules ``rule(operands, dims, **params)``."""

    def to_table(self, primitive, rule):
        def with_axis(axis, args, dims, **params):
            if all(dim is None for dim in dims):
                outs = primitive.bind_all(*args, **params)
                return results_as_jax(primitive, outs), [None] * len(outs)
            return rule(args, dims, **params)

        return super().to_table(primitive, with_axis)

    def from_table(self, primitive, rule):
        picked = super().from_table(primitive, rule)

        def without_axis(args, dims, **params):
            pairs = zip(args, dims)
            size = next(typeof(x).shape[dim] for x, dim in pairs if dim is not None)
            return picked(MappedAxis(None, size), args, dims, **params)

        return without_axis


class _AxisBatchers(_FancyBatchers):
    """From primitives to rules ``rule(size, name, kind, operands, dims, **params)``."""

    def to_table(self, primitive, rule):
        def with_axis(axis, *args, **params):
            return rule(axis.size, axis.name, None, *args, **params)

        return super().to_table(primitive, with_axis)

    def from_table(self, primitive, rule):
        picked = super().from_table(primitive, rule)

        def with_size(size, name, kind, args, dims, **params):
            return picked(MappedAxis(name, size), args, dims, **params)

        return with_size


primitive_batchers, fancy_primitive_batchers = (
    _Batchers(vmap_rules),
    _FancyBatchers(vmap_rules),
)
axis_primitive_batchers = _AxisBatchers(vmap_rules)


def defvectorized(primitive):
    """Set the rule of a primitive that acts on each element by itself."""
    vmap_rules[primitive] = vectorized_rule(primitive)


def defbroadcasting(primitive):
    """Set the rule of a primitive that acts element by element, as `defvectorized`."""
    defvectorized(primitive)


def defreducer(primitive):
    """Set the rule of a primitive that folds the axes of its parameter `axes`."""

    def rule(args, dims, axes, **params):
        [x], [dim] = args, dims
        axes = tuple([axis + (axis >= dim) for axis in axes])
        kept = [axis for axis in range(typeof(x).ndim) if axis not in axes]
        return primitive.bind(x, axes=axes, **params), kept.index(dim)

    primitive_batchers[primitive] = rule


def broadcast(x, sz, axis, mesh_axis=None):
    """Return an array with a new axis of size `sz`, along which it repeats."""
    return broadcast_batch_dim(x, axis, sz)


def bdim_at_front(x, bdim, size, mesh_axis=None):
    """Return an array with its mapped axis first; if there is none, it repeats."""
    return broadcast(x, size, 0) if bdim is None else move_one_axis(x, bdim, 0)


def register_vmappable(
    data_type: type,
    spec_type: type,
    axis_size_type: type,
    to_elt: Callable[..., Any],
    from_elt: Callable[..., Any],
    make_iota: Callable[..., Any] | None,
) -> None:
    """Let ``vmap`` map objects of a class, which says what an example of one is.

    Args:
      data_type: the class; its objects are leaves of arguments and results.
      spec_type: the class of what says where the examples are, in `in_axes` and
        `out_axes`.
      axis_size_type: the class of numbers of examples, for JAX's sake.
      to_elt: ``to_elt(go_on, indices, x, spec)`` returns the example of `x`, where
        ``go_on(array, axis)`` stands for an example of an array inside.
      from_elt: ``from_elt(go_on, size, x, spec)`` returns the whole, where
        ``go_on(size, array, axis)`` returns an array with the axis of examples.
      make_iota: for JAX's sake; ``indices()`` counts examples as ``lax.iota`` does.

    Reference: ``jax.interpreters.batching.register_vmappable``.
    """
    vmappables[data_type] = to_elt, from_elt
    spec_types.add(spec_type)


def unregister_vmappable(data_type: type) -> None:
    """Do nothing; what a class says of its examples stays.

    Reference: ``jax.interpreters.batching.unregister_vmappable``.
    """
