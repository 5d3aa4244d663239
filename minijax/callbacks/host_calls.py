"""Python functions at the other end of a program's line: promises, formats, batches.

References: ``jax.pure_callback``, ``jax.debug.print``, the argument ``vmap_method``
of ``jax.pure_callback``.
"""

# Made from chapters/14_callbacks_ground.md by `make chapter`;
# edit the chapter, not this file.

import re
import string
from contextvars import copy_context

import numpy as np

from minijax import lax
from minijax._registry import Registry
from minijax.arrays.array import ArrayImpl, ShapedArray, as_array_impl, asbuffer, typeof
from minijax.arrays.devices import host_device
from minijax.arrays.dtypes import canonicalize_dtype
from minijax.arrays.interchange import placement_of
from minijax.arrays.transfer import copy_to_placement
from minijax.batching.vmap import batch_dim_to_front, broadcast_batch_dim
from minijax.core import Array, Primitive
from minijax.diagnostics.tracebacks import user_line
from minijax.errors import JaxRuntimeError
from minijax.jaxprs.pretty_printer import pp_eqn_default, pp_eqn_rules
from minijax.jitting.compilation import default_device_scope
from minijax.python_backend.source import result_buffer_of_type
from minijax.pytrees.api_util import FlatCall
from minijax.pytrees.registry import keystr
from minijax.pytrees.tree_util import (
    tree_flatten,
    tree_leaves_with_path,
    tree_structure,
)
from minijax.rematerialization.jaxpr_transforms import merge_lists, partition_list
from minijax.reverse_mode.argument_checks import aval_text

# A Python function at the other end of a program's line.


class HostCallback:
    """A function of trees, which a program calls with flat lists of arrays.

    Args:
      primitive: the name of what calls it, for messages.
      function: the user's function.
      in_tree: the structure of the pair of its positional and its keyword arguments.
      out_tree: the structure of its result.
    """

    def __init__(self, primitive, function, in_tree, out_tree=None):
        self.primitive, self.function = primitive, function
        self.in_tree, self.out_tree = in_tree, out_tree
        self.line = user_line()

    def __repr__(self):
        pair = f"callback_func={self.function!r}, in_tree={self.in_tree!r}"
        return f"_FlatCallback({pair})"

    def __call__(self, *arrays):
        """Call the function, and let its errors pass."""
        args, kwargs = self.in_tree.unflatten(arrays)
        return self.function(*args, **kwargs)

    @property
    def name(self):
        """What the function is called."""
        return getattr(self.function, "__name__", type(self.function).__name__)

    def look(self, *args):
        """Call the function on the host, for what it does; return no results."""
        home = host_device().committed
        with default_device_scope(home):
            self(*[copy_to_placement(as_array_impl(x), home) for x in args])
        return []

    def call_with_context(self, *values):
        """Call the function on the host; its errors become a JaxRuntimeError."""
        try:
            with default_device_scope(host_device().committed):
                return self(*map(on_host, values))
        except Exception as error:
            raise self.failure(f"raised {type(error).__name__}: {error}") from error

    def failure(self, what):
        """Return the error that says what the function did, and who had it called."""
        place = f"\n  {self.line.quoted}" if self.line else ""
        return JaxRuntimeError(f"{self.primitive}: {self.name} {what}{place}")


def on_host(x):
    """Return an array or a buffer as an array of the CPU, whose type is not weak."""
    buffer = x.view() if isinstance(x, np.ndarray) else asbuffer(x, host_device())
    return ArrayImpl(buffer, typeof(x).update(weak_type=False), host_device().committed)


class PartlyKnown:
    """The structure of a tree some of whose leaves are known.

    Args:
      treedef: the structure of the whole.
      given: for each leaf whether it will be given.
      known: the list of the other leaves.
    """

    def __init__(self, treedef, given, known):
        self.treedef, self.given, self.known = treedef, given, known

    def unflatten(self, leaves):
        """Return the tree with these leaves in the places that are not known."""
        return self.treedef.unflatten(merge_lists(self.given, self.known, leaves))


def partition_operands(tree, is_operand):
    """Return those leaves of a tree that are operands, and what puts them back."""
    leaves, treedef = tree_flatten(tree)
    given = list(map(is_operand, leaves))
    known, operands = partition_list(given, leaves)
    return operands, PartlyKnown(treedef, given, known)


def is_array(leaf):
    """Return whether a leaf is an array, a tracer or a number."""
    try:
        typeof(leaf)
    except TypeError:
        return False
    return True


def bind_debug_callback(primitive, function, arguments, is_operand=is_array, **params):
    """Bind one of the two primitives.

    Args:
      primitive: `debug_callback_p` or `debug_print_p`.
      function: called with the arguments; what it returns is ignored.
      arguments: the pair of its positional and its keyword arguments.
      is_operand: from leaves of the arguments to whether the program computes them.
      **params: further parameters of the primitive.
    """
    operands, tree = partition_operands(arguments, is_operand)
    name = primitive.name.replace("_", ".")
    primitive.bind_all(*operands, callback=HostCallback(name, function, tree), **params)


# The format of a print, checked when it is written and filled in when it runs.


class FormatCheck(string.Formatter):
    """Goes through a format without formatting, and misses what is missing."""

    def get_field(self, field_name, args, kwargs):
        key = re.split(r"[.\[]", field_name)[0]
        asks = "The format of debug.print asks for"
        if not key.isdigit():
            if key not in kwargs:
                raise KeyError(f"{asks} {key!r}, and no argument has that name.")
            return "", key
        if int(key) >= len(args):
            raise IndexError(
                f"{asks} positional argument {key}, counted from 0, and {len(args)} "
                "in all are given."
            )
        return "", int(key)

    def format_field(self, value, format_spec):
        return ""

    def check_unused_args(self, used_args, args, kwargs):
        unused = [arg for i, arg in enumerate(args) if i not in used_args]
        names = [name for name in kwargs if name not in used_args]
        if unused or names:
            kind = "Unused arguments" if unused else "Unused keyword arguments"
            raise ValueError(
                f"{kind} to `jax.debug.print`: {unused + names}. You may be passing an "
                "f-string, and the format should be a plain string: it is filled in "
                "later."
            )


class Printer:
    """Prints its arguments in a format, with NumPy's print options of now."""

    def __init__(self, fmt):
        self.__name__ = "printer"
        self.fmt, self.options = fmt, np.get_printoptions()
        self.fields = [field for _, field, _, _ in string.Formatter().parse(fmt)]

    def __call__(self, *args, **kwargs):
        print(self.text(*args, **kwargs))

    def text(self, *args, **kwargs):
        """Return the format, filled in; without fields it stays as it is."""
        if all(field is None for field in self.fields):
            return self.fmt
        return copy_context().run(self._filled_in, args, kwargs)  # Ctrl-C may come

    def _filled_in(self, args, kwargs):
        with np.printoptions(**self.options):
            return self.fmt.format(*args, **kwargs)


# The primitives that look at values, and how users bind them.

debug_callback_p, debug_print_p = map(Primitive, ["debug_callback", "debug_print"])
debug_callback_p.multiple_results = debug_print_p.multiple_results = True
pp_eqn_rules[debug_print_p] = lambda eqn, writing: pp_eqn_default(
    eqn, writing, {key: eqn.params[key] for key in ("fmt", "ordered")}
)


def debug_callback(callback=None, *args, ordered=False, partitioned=False, **kwargs):
    """Call a Python function to look at values, wherever a program computes them.

    Args:
      callback: function of trees; what it returns is ignored. Without it, the result
        is a function of `callback` and its arguments, which has the other options.
      *args, **kwargs: its arguments; what is no array arrives as it is.
      ordered: whether the order among such calls matters; it is kept in any case.
      partitioned: accepted for compatibility; there are no parts.

    Raises:
      TypeError: if `callback` cannot be called, or is left out before arguments.

    Reference: ``jax.debug.callback``.
    """

    def look_with(callback, *args, **kwargs):
        if not callable(callback):
            raise TypeError(
                "first argument to debug.callback must be callable, but got an object "
                f"of type {type(callback)}"
            )
        bind_debug_callback(debug_callback_p, callback, (args, kwargs), ordered=ordered)

    return _in_one_call_or_two("debug.callback", look_with, callback, args, kwargs)


def _in_one_call_or_two(name, function, first, args, kwargs):
    if first is not None:
        return function(first, *args, **kwargs)
    if args or kwargs:
        raise TypeError(
            f"{name.replace('.', '_')} received unexpected arguments in the two-call "
            f"form, in which its first one comes later: {args} and {kwargs}."
        )
    return function


def debug_print(
    fmt=None,
    *args,
    ordered=False,
    partitioned=False,
    skip_format_check=False,
    **kwargs,
):
    """Print values, wherever a program computes them.

    Args:
      fmt: a format as for ``str.format``, filled in when the program runs. Without
        it, the result is a function of `fmt` and its arguments with the other options.
      *args, **kwargs: arrays, numbers, trees of them and anything else.
      ordered: whether the order among such calls matters; it is kept in any case.
      partitioned: accepted for compatibility; there are no parts.
      skip_format_check: whether not to compare format and arguments now.

    Raises:
      TypeError: if `fmt` is no string, or is left out before arguments.
      IndexError, KeyError: if it asks for what is not given.
      ValueError: if it does not ask for what is given.

    Reference: ``jax.debug.print``.
    """

    how = Printer, ordered, skip_format_check
    return bind_debug_print(*how, "debug.print", fmt, args, kwargs)


def bind_debug_print(kind, ordered, skip_format_check, name, fmt, args, kwargs):
    """Bind a print whose text goes where a `Printer` of some kind puts it."""

    def print_in(fmt, *args, **kwargs):
        if not isinstance(fmt, str):
            raise TypeError(f"{name} needs a format, a str; got {fmt!r:.40}.")
        if not skip_format_check:
            FormatCheck().vformat(fmt, args, kwargs)
        arguments, params = (args, kwargs), {"fmt": fmt, "ordered": ordered}
        bind_debug_callback(debug_print_p, kind(fmt), arguments, **params)

    return _in_one_call_or_two(name, print_in, fmt, args, kwargs)


# What a Python function has promised to return, and whether it did.


def flatten_result_types(result_shape_dtypes):
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


def check_callback_result(call, result, avals):
    """Return the leaves of a result as arrays, if it is what was promised.

    Args:
      call: the `HostCallback` that returned it.
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
            f"promised {aval_text(aval)} at result{keystr(path)}, "
            f"and returned {aval_text(found)}."
        )
    return ArrayImpl(asbuffer(value, host_device()), aval, host_device().committed)


def raising_rule(message):
    """Return a rule that raises a ValueError."""

    def rule(*args, **params):
        raise ValueError(message)

    return rule


def callback_on_buffers(callback, avals):
    """Return a function from buffers to a list of them, for emitted programs."""

    def call(*buffers):
        outs = check_callback_result(
            callback, callback.call_with_context(*buffers), avals
        )
        return [
            result_buffer_of_type(asbuffer(out, host_device()), out.aval)
            for out in outs
        ]

    return call


def beside_operands(primitive, rule):
    """Return an impl rule whose results are where its operands are.

    Args:
      primitive: the primitive that it is a rule of.
      rule: from arrays to a list of arrays of the host.
    """

    def evaluate(*args, **params):
        placement = placement_of(args, primitive)
        results = rule(*map(as_array_impl, args), **params)
        return [copy_to_placement(x, placement) for x in results]

    return evaluate


def bind_callback(primitive, function, result_shape_dtypes, arguments, **params):
    """Bind a primitive that calls a function of trees and returns what it returns.

    Args:
      primitive: one that calls a `HostCallback`, its parameter `callback`.
      function: the user's function.
      result_shape_dtypes: the promise, a tree of things with a shape and a dtype.
      arguments: the pair of its positional and its keyword arguments.
      **params: further parameters of the primitive.
    """
    call = FlatCall(primitive.name, function, *arguments)
    result_avals, out_tree = flatten_result_types(result_shape_dtypes)
    callback = HostCallback(primitive.name, function, call.in_tree, out_tree)
    outs = primitive.bind_all(
        *call.leaves, callback=callback, result_avals=result_avals, **params
    )
    return out_tree.unflatten(outs)


def write_call(emitter, eqn, operands, results):
    """Write the call of a Python function as a line of an emitted program."""
    callback = eqn.params["callback"]
    call = callback_on_buffers(callback, eqn.params["result_avals"])
    name = emitter.constant(call, callback.name, f"calls {callback.name}")
    targets = f"[{', '.join(results)}] = " if results else ""
    emitter.line(f"{targets}{name}({', '.join(operands)})")


# How a function that Python runs is called for a batch.


def slice_example(x, dim, i):
    """Return example number `i` of an array that is mapped along `dim`, if it is."""
    if dim is None:
        return x
    return lax.squeeze(lax.slice_in_dim(x, i, i + 1, axis=dim), (dim,))


def batched_avals(size, avals):
    """Return the types of batches of `size` values of these types, a tuple."""
    return tuple([aval.update(shape=(size, *aval.shape)) for aval in avals])


def sequential_vmap_rule(primitive, axis, args, dims, params):
    """Bind a primitive once for each example, and stack the results."""
    places = range(axis.size)
    examples = [[slice_example(*pair, i) for pair in zip(args, dims)] for i in places]
    batches = zip(*[primitive.bind_all(*xs, **params) for xs in examples])
    outs = [
        lax.concatenate([broadcast_batch_dim(x, 0, 1) for x in xs], 0) for xs in batches
    ]
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
            shared(x, axis.size)
            if dim is None
            else batch_dim_to_front(x, dim, axis.size)
            for x, dim in zip(args, dims)
        ]
        avals = batched_avals(axis.size, params["result_avals"])
        outs = primitive.bind_all(*args, **params | {"result_avals": avals})
        return outs, [0] * len(outs)

    return method


# From the names of the ways to functions
# ``method(primitive, axis, args, dims, params)``, which return what a vmap rule does.
vmap_methods = Registry(
    {
        "sequential": sequential_vmap_rule,
        "sequential_unrolled": sequential_vmap_rule,
        "expand_dims": all_at_once(lambda x, size: broadcast_batch_dim(x, 0, 1)),
        "broadcast_all": all_at_once(lambda x, size: broadcast_batch_dim(x, 0, size)),
        "legacy_vectorized": all_at_once(lambda x, size: x),
    }
)


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


def effects_barrier() -> None:
    """Return when the effects of all programs that were called have happened.

    Programs run in the thread that calls them, so this is at once.

    Reference: ``jax.effects_barrier``.
    """
