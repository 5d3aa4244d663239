"""Batches of primitives, under the names that JAX has for them.

Reference: ``jax.interpreters.batching``.
"""

# Made from chapters/14_callbacks_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax.arrays.array import typeof
from minijax.batching.vmap import (
    broadcast_batch_dim,
    move_one_axis,
    vectorized_rule,
    vmap_rules,
)


class _FancyBatchers(dict):
    """From primitives to rules ``rule(axis, operands, dims, **params)``.

    The axis is a `MappedAxis`, with a `name` and a `size`.
    """

    def __setitem__(self, primitive, rule):
        def listed(axis, args, dims, **params):
            out, dim = rule(axis, args, dims, **params)
            return primitive.listed(out), primitive.listed(dim)

        super().__setitem__(primitive, rule)
        vmap_rules[primitive.inner] = listed


class _Batchers(_FancyBatchers):
    """From primitives to rules ``rule(operands, dims, **params)``."""

    def __setitem__(self, primitive, rule):
        super().__setitem__(
            primitive, lambda axis, args, dims, **params: rule(args, dims, **params)
        )
        dict.__setitem__(self, primitive, rule)


class _AxisBatchers(_FancyBatchers):
    """From primitives to rules ``rule(size, name, kind, operands, dims, **params)``."""

    def __setitem__(self, primitive, rule):
        super().__setitem__(
            primitive,
            lambda axis, *args, **params: rule(
                axis.size, axis.name, None, *args, **params
            ),
        )


primitive_batchers, fancy_primitive_batchers = _Batchers(), _FancyBatchers()
axis_primitive_batchers = _AxisBatchers()


def defvectorized(primitive):
    """Set the rule of a primitive that acts on each element by itself."""
    vmap_rules[primitive.inner] = vectorized_rule(primitive.inner)


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
