"""How a function that Python runs is called for a batch.

Reference: the argument ``vmap_method`` of ``jax.pure_callback``.
"""

# Made from chapters/14_callbacks_ground.md by `make chapter`;
# edit the chapter, not this file.

from minijax import lax
from minijax._registry import Registry
from minijax.batching.rules import at_front, insert_axis


def example(x, dim, i):
    """Return example number `i` of an array that is mapped along `dim`, if it is."""
    if dim is None:
        return x
    return lax.squeeze(lax.slice_in_dim(x, i, i + 1, axis=dim), (dim,))


def batched_avals(size, avals):
    """Return the types of batches of `size` values of these types, a tuple."""
    return tuple([aval.update(shape=(size, *aval.shape)) for aval in avals])


def one_by_one(primitive, axis, args, dims, params):
    """Bind a primitive once for each example, and stack the results."""
    places = range(axis.size)
    examples = [[example(*pair, i) for pair in zip(args, dims)] for i in places]
    batches = zip(*[primitive.bind(*xs, **params) for xs in examples])
    outs = [lax.concatenate([insert_axis(x, 0, 1) for x in xs], 0) for xs in batches]
    if not examples:
        avals = batched_avals(0, params["result_avals"])
        outs = [lax.full(aval.shape, 0, aval.dtype) for aval in avals]
    return outs, [0] * len(outs)


def all_at_once(shared):
    """Return the method that binds once, on batches.

    Args:
      shared: what to do with an operand that all examples share: a function of the
        operand and the number of examples.
    """

    def method(primitive, axis, args, dims, params):
        args = [
            shared(x, axis.size) if dim is None else at_front(x, dim, axis.size)
            for x, dim in zip(args, dims)
        ]
        avals = batched_avals(axis.size, params["result_avals"])
        outs = primitive.bind(*args, **params | {"result_avals": avals})
        return outs, [0] * len(outs)

    return method


# From the names of the ways to functions
# ``method(primitive, axis, args, dims, params)``, which return what a vmap rule does.
vmap_methods = Registry({
    "sequential": one_by_one,
    "sequential_unrolled": one_by_one,
    "expand_dims": all_at_once(lambda x, size: insert_axis(x, 0, 1)),
    "broadcast_all": all_at_once(lambda x, size: insert_axis(x, 0, size)),
    "legacy_vectorized": all_at_once(lambda x, size: x),
})


def check_vmap_method(name):
    """Raise a ValueError unless `name` is None or one of `vmap_methods`."""
    if name is not None and name not in vmap_methods:
        raise ValueError(f"vmap_method must be one of {_known()}; got {name!r}.")


def method_for(name, callback):
    """Return the method of that name; without one, it is asked for."""
    if name is None:
        raise NotImplementedError(
            f"Should pure_callback call {callback.name} once for each example of a "
            f"batch, or once for all? Give it a vmap_method: {_known()}."
        )
    return vmap_methods[name]


def _known():
    return ", ".join(map(repr, vmap_methods))
