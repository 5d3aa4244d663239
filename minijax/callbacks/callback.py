"""Callbacks: Python functions inside of programs, and looking at values as they run.

References: ``jax.debug.callback``, ``jax.debug.print``, ``jax.pure_callback``,
``jax.experimental.io_callback``.
"""

# Made from chapters/14_callbacks.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Callable
from typing import Any

from minijax.arrays.array import shape_rules
from minijax.batching.vmap import vmap_rules
from minijax.callbacks.host_calls import (
    beside_operands,
    bind_callback,
    check_callback_result,
    check_vmap_method,
    debug_callback_p,
    debug_print_p,
    method_for,
    raising_rule,
    slice_example,
    vmap_methods,
    write_call,
)
from minijax.core import Primitive, impl_rules
from minijax.forward_mode.jvp import defjvp_zero, jvp_rules
from minijax.python_backend.codegen import python_rules
from minijax.rematerialization.jaxpr_transforms import effect_rules
from minijax.reverse_mode.backward_pass import transpose_rules

# Looking at values while a program runs.


def def_effectful_debug_rules(primitive):
    """Give a primitive that has no results, and looks at values, rules of each kind."""
    effect_rules[primitive] = lambda eqn: True
    shape_rules[primitive] = lambda *avals, **params: []
    jvp_rules[primitive] = defjvp_zero(primitive)
    transpose_rules.reasons[primitive] = "It has no result, so no cotangent arrives."


def _write_look(emitter, eqn, operands, results):
    callback = eqn.params["callback"]
    call = callback.call_with_context
    name = emitter.constant(call, callback.name, f"calls {callback.name}")
    emitter.line(f"{name}({', '.join(operands)})")


def debugging_rules(primitive):
    """Give a primitive that calls a Python function to look at values its rules."""

    def vmap_rule(axis, args, dims, **params):
        for i in range(axis.size):
            primitive.bind_all(
                *[slice_example(*pair, i) for pair in zip(args, dims)], **params
            )
        return [], []

    def_effectful_debug_rules(primitive)
    impl_rules[primitive] = lambda *args, callback, **params: callback.look(*args)
    python_rules[primitive] = _write_look
    vmap_rules[primitive] = vmap_rule


debugging_rules(debug_callback_p)
debugging_rules(debug_print_p)


# Python functions inside of programs.

pure_callback_p = Primitive("pure_callback")
pure_callback_p.multiple_results = True


def call_back(*args, callback, result_avals, **params):
    """Call a `HostCallback`, and hold it to its promise."""
    result = callback.call_with_context(*args)
    return check_callback_result(callback, result, result_avals)


def as_promised(*avals, result_avals, **params):
    """Return the promised types of the results."""
    return list(result_avals)


# `beside_operands` puts the results where the operands are, on whatever device.
impl_rules[pure_callback_p] = beside_operands(pure_callback_p, call_back)
shape_rules[pure_callback_p] = as_promised
python_rules[pure_callback_p] = write_call


def _vmap_pure_callback(axis, args, dims, vmap_method, **params):
    method = method_for(vmap_method, params["callback"])
    params["vmap_method"] = vmap_method
    return method(pure_callback_p, axis, args, dims, params)


vmap_rules[pure_callback_p] = _vmap_pure_callback


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


jvp_rules[pure_callback_p] = raising_rule(
    "Pure callbacks do not support JVP: the derivative of a Python function is not "
    "known. Give the function that calls it a derivative of its own (custom_jvp)."
)
transpose_rules[pure_callback_p] = raising_rule(
    "Pure callbacks do not support transpose: a Python function cannot be run "
    "backwards. Give the function that calls it a derivative of its own (custom_vjp)."
)


io_callback_p = Primitive("io_callback")
io_callback_p.multiple_results = True
effect_rules[io_callback_p] = lambda eqn: True
impl_rules[io_callback_p] = beside_operands(io_callback_p, call_back)
shape_rules[io_callback_p] = as_promised
python_rules[io_callback_p] = write_call


def _vmap_io_callback(axis, args, dims, **params):
    if params["ordered"]:
        raise ValueError(
            "Cannot `vmap` ordered IO callback: a batch is one step of the program, "
            "and its examples have no order among themselves."
        )
    return vmap_methods["sequential"](io_callback_p, axis, args, dims, params)


vmap_rules[io_callback_p] = _vmap_io_callback
jvp_rules[io_callback_p] = raising_rule(
    "IO callbacks do not support JVP: what a function does has no derivative."
)
transpose_rules[io_callback_p] = raising_rule(
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
