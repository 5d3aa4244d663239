"""Looking at values while a program runs.

Reference: ``jax.debug.callback``, ``jax.debug.print``.
"""

# Made from chapters/14_callbacks.md by `make chapter`;
# edit the chapter, not this file.

from minijax.arrays.array import shape_rules
from minijax.batching.rules import vmap_rules
from minijax.callbacks.batching import example
from minijax.callbacks.formats import FormatCheck, Printer
from minijax.callbacks.host_calls import bind_debug
from minijax.core import Primitive, impl_rules
from minijax.emitted.emission import python_rules
from minijax.forgetting.programs import effect_rules
from minijax.forward.rules import constant_rule, jvp_rules
from minijax.jaxprs.printing import print_rules, write_plainly
from minijax.reverse.transposition import transpose_rules


def _write_look(writer, eqn, operands, results):
    callback = eqn.params["callback"]
    name = writer.constant(callback.guarded, callback.name, f"calls {callback.name}")
    writer.line(f"{name}({', '.join(operands)})")


def watching_rules(primitive):
    """Give a primitive that has no results, and looks at values, rules of each kind."""
    effect_rules[primitive] = lambda eqn: True
    shape_rules[primitive] = lambda *avals, **params: []
    jvp_rules[primitive] = constant_rule(primitive)
    transpose_rules.reasons[primitive] = "It has no result, so no cotangent arrives."


def debugging_rules(primitive):
    """Give a primitive that calls a Python function to look at values its rules."""

    def vmap_rule(axis, args, dims, **params):
        for i in range(axis.size):
            primitive.bind(*[example(*pair, i) for pair in zip(args, dims)], **params)
        return [], []

    watching_rules(primitive)
    impl_rules[primitive] = lambda *args, callback, **params: callback.look(*args)
    python_rules[primitive] = _write_look
    vmap_rules[primitive] = vmap_rule


debug_callback_p, debug_print_p = map(Primitive, ["debug_callback", "debug_print"])
debugging_rules(debug_callback_p)
debugging_rules(debug_print_p)
print_rules[debug_print_p] = lambda eqn, writing: write_plainly(
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
        bind_debug(debug_callback_p, callback, (args, kwargs), ordered=ordered)

    return _in_one_call_or_two("debug.callback", look_with, callback, args, kwargs)


def _in_one_call_or_two(name, function, first, args, kwargs):
    if first is not None:
        return function(first, *args, **kwargs)
    if args or kwargs:
        raise TypeError(f"{name} has arguments, {args} and {kwargs}, but no first one.")
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
    return print_by(*how, "debug.print", fmt, args, kwargs)


def print_by(kind, ordered, skip_format_check, name, fmt, args, kwargs):
    """Bind a print whose text goes where a `Printer` of some kind puts it."""

    def print_in(fmt, *args, **kwargs):
        if not isinstance(fmt, str):
            raise TypeError(f"{name} needs a format, a str; got {fmt!r:.40}.")
        if not skip_format_check:
            FormatCheck().vformat(fmt, args, kwargs)
        arguments, params = (args, kwargs), {"fmt": fmt, "ordered": ordered}
        bind_debug(debug_print_p, kind(fmt), arguments, **params)

    return _in_one_call_or_two(name, print_in, fmt, args, kwargs)
