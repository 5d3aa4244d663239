"""What a Python function has promised to return, and whether it did.

Reference: ``jax.pure_callback``.
"""

# Made from chapters/14_callbacks_ground.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax.arrays.array import ArrayImpl, asbuffer
from minijax.arrays.avals import ShapedArray, typeof
from minijax.arrays.dtypes import canonicalize_dtype
from minijax.arrays.placement import host_device
from minijax.core import Array
from minijax.emitted.evaluations import exactly
from minijax.pytrees.key_paths import keystr
from minijax.pytrees.treedefs import tree_flatten, tree_leaves_with_path, tree_structure
from minijax.reverse.backwards import spell


def promised(result_shape_dtypes):
    """Return the types of a promised result as a tuple, and its structure.

    Args:
      result_shape_dtypes: a tree of things that have a `shape` and a `dtype`.
    """
    leaves, tree = tree_flatten(result_shape_dtypes)
    return tuple(map(_promised_aval, leaves)), tree


def _promised_aval(leaf):
    if not (hasattr(leaf, "shape") and hasattr(leaf, "dtype")):
        raise AttributeError(
            f"result_shape_dtypes has the leaf {leaf!r}, which has no shape and dtype. "
            "Use minijax.ShapeDtypeStruct(shape, dtype)."
        )
    if canonicalize_dtype(leaf.dtype) != np.dtype(leaf.dtype):
        raise ValueError(
            f"result_shape_dtypes cannot specify 64-bit types, such as {leaf.dtype}, "
            "when jax_enable_x64 is disabled."
        )
    return ShapedArray(leaf.shape, leaf.dtype)


def checked_result(call, result, avals):
    """Return the leaves of a result as arrays, if it is what was promised.

    Args:
      call: the `HostCall` that returned it.
      result: a tree of arrays and numbers.
      avals: the promised types.

    Raises:
      JaxRuntimeError: if the promise is broken; the message has the path of the leaf.
    """
    leaves = tree_leaves_with_path(result)
    if len(leaves) != len(avals):
        structures = f"{call.out_tree}, and returned {tree_structure(result)}"
        raise call.failure(f"promised {structures}.")
    pairs = zip(leaves, avals)
    return [_checked_leaf(call, path, leaf, aval) for (path, leaf), aval in pairs]


def _checked_leaf(call, path, leaf, aval):
    value = leaf if isinstance(leaf, Array) else np.asanyarray(leaf)
    try:
        found = typeof(value)
    except (TypeError, ValueError) as error:
        where = f"result{keystr(path)}"
        raise call.failure(f"returned no array at {where}. {error}") from error
    if (found.shape, found.dtype) != (aval.shape, aval.dtype):
        raise call.failure(
            f"promised {spell(aval)} at result{keystr(path)}, "
            f"and returned {spell(found)}."
        )
    return ArrayImpl(asbuffer(value, host_device()), aval, host_device().committed)


def refuses(message):
    """Return a rule that raises a ValueError."""

    def rule(*args, **params):
        raise ValueError(message)

    return rule


def on_buffers(callback, avals):
    """Return a function from buffers to a list of them, for emitted programs."""

    def call(*buffers):
        outs = checked_result(callback, callback.guarded(*buffers), avals)
        return [exactly(asbuffer(out, host_device()), out.aval) for out in outs]

    return call
