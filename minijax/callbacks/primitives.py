"""Python functions inside of programs.

Reference: ``jax.pure_callback``, ``jax.experimental.io_callback``.
"""

# Made from chapters/14_callbacks.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Callable
from typing import Any

from minijax.arrays.array import asarray_impl, shape_rules
from minijax.arrays.interchange import placement_of
from minijax.arrays.transfer import moved
from minijax.batching.rules import vmap_rules
from minijax.callbacks.batching import check_vmap_method, method_for, vmap_methods
from minijax.callbacks.host_calls import HostCall
from minijax.callbacks.promises import checked_result, on_buffers, promised, refuses
from minijax.core import Primitive, impl_rules
from minijax.emitted.emission import python_rules
from minijax.forgetting.programs import effect_rules
from minijax.forward.rules import jvp_rules
from minijax.pytrees.api_util import FlatCall
from minijax.reverse.transposition import transpose_rules

pure_callback_p = Primitive("pure_callback")


def call_back(*args, callback, result_avals, **params):
    """Call a `HostCall`, and hold it to its promise."""
    placement = placement_of(args, pure_callback_p)
    result = callback.guarded(*map(asarray_impl, args))
    results = checked_result(callback, result, result_avals)
    return [moved(x, placement) for x in results]


def as_promised(*avals, result_avals, **params):
    """Return the promised types of the results."""
    return list(result_avals)


impl_rules[pure_callback_p] = call_back
shape_rules[pure_callback_p] = as_promised


def bind_callback(primitive, function, result_shape_dtypes, arguments, **params):
    """Bind a primitive that calls a function of trees and returns what it returns.

    Args:
      primitive: `pure_callback_p`, or one of its kind.
      function: the user's function.
      result_shape_dtypes: the promise, a tree of things with a shape and a dtype.
      arguments: the pair of its positional and its keyword arguments.
      **params: further parameters of the primitive.
    """
    call = FlatCall(primitive.name, function, *arguments)
    result_avals, out_tree = promised(result_shape_dtypes)
    callback = HostCall(primitive.name, function, call.in_tree, out_tree)
    outs = primitive.bind(
        *call.leaves, callback=callback, result_avals=result_avals, **params
    )
    return out_tree.unflatten(outs)


def write_call(writer, eqn, operands, results):
    """Write the call of a Python function as a line of an emitted program."""
    callback = eqn.params["callback"]
    call = on_buffers(callback, eqn.params["result_avals"])
    name = writer.constant(call, callback.name, f"calls {callback.name}")
    targets = f"[{', '.join(results)}] = " if results else ""
    writer.line(f"{targets}{name}({', '.join(operands)})")


python_rules[pure_callback_p] = write_call


def pure_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: None = None,
    vmap_method: str | None = None,
    **kwargs: Any,
) -> Any:
    """Call a pure Python function, also from within a program that is compiled.

    Args:
      callback: function of trees of arrays that returns a tree of arrays. It may be
        called any number of times, and not at all if its result is not needed.
      result_shape_dtypes: what it returns: a tree of things with a shape and a dtype.
      *args, **kwargs: its arguments.
      sharding: accepted for compatibility; it has no influence.
      vmap_method: how it is called for a batch; one of the names in `vmap_methods`.

    Returns:
      What `callback` returns, as a tree of arrays like `result_shape_dtypes`.

    Raises:
      ValueError: if there is no such `vmap_method`, or a 64-bit result in 32-bit mode.
      JaxRuntimeError: as it runs, if `callback` raises or breaks the promise.

    Reference: ``jax.pure_callback``.
    """
    check_vmap_method(vmap_method)
    arguments, params = (args, kwargs), {"vmap_method": vmap_method}
    return bind_callback(
        pure_callback_p, callback, result_shape_dtypes, arguments, **params
    )


def _vmap_pure_callback(axis, args, dims, vmap_method, **params):
    method = method_for(vmap_method, params["callback"])
    params["vmap_method"] = vmap_method
    return method(pure_callback_p, axis, args, dims, params)


vmap_rules[pure_callback_p] = _vmap_pure_callback


jvp_rules[pure_callback_p] = refuses(
    "Pure callbacks do not support JVP: the derivative of a Python function is not "
    "known. Give the function that calls it a derivative of its own (custom_jvp)."
)
transpose_rules[pure_callback_p] = refuses(
    "Pure callbacks do not support transpose: a Python function cannot be run "
    "backwards. Give the function that calls it a derivative of its own (custom_vjp)."
)


io_callback_p = Primitive("io_callback")
effect_rules[io_callback_p] = lambda eqn: True
impl_rules[io_callback_p] = call_back
shape_rules[io_callback_p] = as_promised
python_rules[io_callback_p] = write_call


def _vmap_io_callback(axis, args, dims, **params):
    if params["ordered"]:
        raise ValueError(
            "Cannot `vmap` ordered IO callback: a batch is one step of the program, "
            "and its examples have no order among each other."
        )
    return vmap_methods["sequential"](io_callback_p, axis, args, dims, params)


vmap_rules[io_callback_p] = _vmap_io_callback
jvp_rules[io_callback_p] = refuses(
    "IO callbacks do not support JVP: what a function does has no derivative."
)
transpose_rules[io_callback_p] = refuses(
    "IO callbacks do not support transpose: what was done cannot be run backwards."
)


def io_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: None = None,
    ordered: bool = False,
    **kwargs: Any,
) -> Any:
    """Call a Python function for what it does, also from within a compiled program.

    Args:
      callback: function of trees of arrays that returns a tree of arrays, or None.
      result_shape_dtypes: what it returns: a tree of things with a shape and a dtype;
        None for nothing.
      *args, **kwargs: its arguments.
      sharding: accepted for compatibility; it has no influence.
      ordered: whether it matters in which order these calls are made. Such a call
        cannot be mapped by `vmap`; the others are made once for each example.

    Returns:
      What `callback` returns, as a tree of arrays like `result_shape_dtypes`.

    Raises:
      ValueError: for a 64-bit result in 32-bit mode.
      JaxRuntimeError: as it runs, if `callback` raises or breaks the promise.

    Reference: ``jax.experimental.io_callback``.
    """
    return bind_callback(
        io_callback_p, callback, result_shape_dtypes, (args, kwargs), ordered=ordered
    )
