"""A prompt inside of a running program, NaN checks, and logged values.

References: ``jax.debug.breakpoint``, ``jax_debug_nans``, ``jax_debug_infs`` of
``jax.config``, ``jax.debug_nans``, ``jax.debug_infs``, ``jax.debug.log``.
"""

# Made from chapters/14_callbacks_rest.md by `make chapter`;
# edit the chapter, not this file.

import cmd
import linecache
import os
import pprint
import sys
from contextlib import AbstractContextManager
from functools import partial
from types import FrameType

import numpy as np

from minijax.arrays.array import as_array_impl, typeof
from minijax.arrays.dtypes import _on_or_off, config, is_inexact
from minijax.callbacks.callback import debug_callback_p, pure_callback
from minijax.callbacks.host_calls import (
    HostCallback,
    Printer,
    bind_debug_callback,
    bind_debug_print,
    partition_operands,
)
from minijax.core import Tracer, bind_listeners, impl_rules
from minijax.diagnostics.source_info import UserLine
from minijax.diagnostics.tracebacks import is_internal_file, user_line
from minijax.jaxprs.pretty_printer import jaxprs_in_params
from minijax.pytrees.tree_util import tree_flatten, tree_map

# A prompt inside of a running program.


class Stop:
    """A place at which a program has been stopped: a line, and the names in sight.

    Args:
      line: the `UserLine`.
      outer: the global names there, a dictionary.
      names: the local names, a dictionary.
    """

    def __init__(self, line, outer, names):
        self.line, self.outer, self.names = line, outer, names

    def lines(self, around):
        """Return the lines of text around the place, with an arrow."""
        number, _ = self.line.position
        file = self.line.code.co_filename
        first, last = max(1, number - around), number + around
        shown = [f"> {self.line.file}({number})"]
        for i in range(first, min(last, len(linecache.getlines(file))) + 1):
            arrow = "->  " if i == number else "    "
            shown.append(arrow + linecache.getline(file, i).rstrip("\n"))
        return "\n".join(shown)


class Prompt(cmd.Cmd):
    """Reads commands and carries them out until it is told to go on.

    Args:
      stops: list of `Stop`, the innermost first.
      stdin, stdout: text files; by default the terminal's.
    """

    prompt = "(jdb) "
    intro = "Entering jdb:"

    def __init__(self, stops, stdin=None, stdout=None):
        super().__init__(stdin=stdin, stdout=stdout)
        self.use_rawinput = stdin is None
        self.stops, self.index = stops, 0

    def say(self, text):
        """Write a line."""
        self.stdout.write(f"{text}\n")

    def show(self, expression, spell):
        """Evaluate an expression among the names in sight, and write its value."""
        stop = self.stops[self.index]
        try:
            self.say(spell(eval(expression, {**stop.outer, **stop.names})))
        except Exception as error:
            self.say(f"*** {type(error).__name__}: {error}")

    def default(self, line):
        """Evaluate what is no command."""
        self.show(line, repr)

    def emptyline(self):
        """Do nothing."""

    def do_p(self, arg):
        """p expression: print its value."""
        self.show(arg, repr)

    def do_pp(self, arg):
        """pp expression: print its value over several lines."""
        self.show(arg, pprint.pformat)

    def do_list(self, arg):
        """l(ist): show the lines around this place."""
        self.say(self.stops[self.index].lines(5))

    def do_where(self, arg):
        """w(here), bt: show where the program is, the innermost place last."""
        self.say("Traceback:")
        for stop in reversed(self.stops):
            self.say(f'  File "{stop.line.file}", line {stop.line.position[0]}')
            self.say(f"    {stop.line.text or '<no source>'}")

    def do_up(self, arg):
        """u(p): go to the caller."""
        self.move(1, "At topmost frame.")

    def do_down(self, arg):
        """d(own): go back to the callee."""
        self.move(-1, "At bottommost frame.")

    def move(self, step, otherwise):
        """Go to a neighbouring frame, if there is one, and show it."""
        if self.index + step in range(len(self.stops)):
            self.index += step
        else:
            self.say(otherwise)
        self.say(self.stops[self.index].lines(2))

    def do_continue(self, arg):
        """c(ont(inue)): let the program go on."""
        return True

    def do_quit(self, arg):
        """q(uit), exit: end the program."""
        sys.exit(0)

    do_l, do_w, do_bt = do_list, do_where, do_where
    do_u, do_d, do_c, do_cont = do_up, do_down, do_continue, do_continue
    do_q = do_exit = do_EOF = do_quit


class Wrapped:
    """A value that is to be a leaf, whatever it is."""

    def __init__(self, value):
        self.value = value


def _travelling(value):
    try:
        tree_flatten(value)
    except Exception:
        return Wrapped(value)
    return value


def _unwrapped(names):
    return {
        name: value.value if isinstance(value, Wrapped) else value
        for name, value in names.items()
    }


def user_frames(everything=False):
    """Return the frames of the user's functions that are running, innermost first.

    Args:
      everything: whether to include those of the package.
    """
    frame: FrameType | None = sys._getframe(2)
    frames = []
    while frame is not None:
        if everything or not is_internal_file(frame.f_code.co_filename):
            frames.append(frame)
        frame = frame.f_back
    return frames


def _is_alive(leaf):
    return isinstance(leaf, Tracer) and leaf._trace.alive


def debug_breakpoint(
    *,
    backend=None,
    filter_frames=True,
    num_frames=None,
    ordered=False,
    token=None,
    **kwargs,
):
    """Stop when the program gets here, and read commands: `help` lists them.

    Args:
      backend: accepted for compatibility; there is one prompt, that of the terminal.
      filter_frames: whether to leave out the frames of the package.
      num_frames: how many frames to keep, the innermost ones; all if None.
      ordered: whether the order among such calls matters; it is kept in any case.
      token: a tree of arrays. If it is given, the program stops when they have been
        computed, and only if what is returned is used.
      **kwargs: `stdin` and `stdout`, text files to read commands from and write to.

    Returns:
      `token`.

    Raises:
      ValueError: if `ordered` and `token` are both given.

    Reference: ``jax.debug.breakpoint``.
    """
    if token is not None and ordered:
        raise ValueError("`ordered` and `token` are mutually exclusive arguments.")
    frames = user_frames(not filter_frames)[:num_frames]
    places = [(UserLine(f.f_code, f.f_lasti), f.f_globals) for f in frames]
    names = [{k: _travelling(v) for k, v in f.f_locals.items()} for f in frames]

    def stop(*names):
        stops = [Stop(*place, _unwrapped(n)) for place, n in zip(places, names)]
        Prompt(stops, **kwargs).cmdloop()

    if token is None:
        bind_debug_callback(
            debug_callback_p, stop, (names, {}), _is_alive, ordered=ordered
        )
        return None
    operands, tree = partition_operands((names, {}), _is_alive)

    def stop_and_return(token, *operands):
        HostCallback("debug.breakpoint", stop, tree)(*operands)
        return token

    return pure_callback(stop_and_return, tree_map(typeof, token), token, *operands)


# NaN checks: results that are not numbers, reported where they arise.

INVALID_NUMBER_TESTS = {
    "jax_debug_nans": ("nan", np.isnan),
    "jax_debug_infs": ("inf", np.isinf),
}


def search(primitive, args, params, results):
    """Raise a FloatingPointError if a result is invalid and a switch forbids it."""
    for switch, (word, is_invalid) in INVALID_NUMBER_TESTS.items():
        if getattr(config, switch) and any(_holds(is_invalid, x) for x in results):
            try:
                search_inside(primitive, args, params)
            except FloatingPointError as found:
                raise _of_devices(primitive, word, found) from None
            line = user_line()
            place = f"\n  {line.quoted}" if line else ""
            why = _NOT_INSIDE * any(True for _ in jaxprs_in_params(params))
            raise FloatingPointError(
                f"invalid value ({word}) encountered in {primitive}{why}{place}"
            )


# What is said of a program whose equations make no invalid numbers.
_NOT_INSIDE = (
    ", and the de-optimized function did not make it: run equation by equation, its "
    "operations have valid results. An input or a literal is such a number, or "
    "compiling has changed a result."
)


def _of_devices(primitive, word, found):
    """Return the error about a number that was made on a device of a mesh."""
    if str(primitive) != "shard_map":
        return found
    words = f"Invalid value ({word}) encountered in sharded computation: it is made on "
    return FloatingPointError(f"{words}one of the devices, {found}")


def _holds(is_invalid, x):
    x = as_array_impl(x)
    return is_inexact(x.dtype) and bool(is_invalid(x._numbers()).any())


def search_inside(primitive, args, params):
    """Run a primitive that contains programs again, one equation after the other."""
    if jaxprs_in_params(params):
        again = params | {"backend": None} if "backend" in params else params
        with config.override("minijax_backend", "interpreter"):
            impl_rules[primitive](*args, **again)


_wanted = dict.fromkeys(INVALID_NUMBER_TESTS, False)


def _engage(switch, values):
    _wanted[switch] = any(values)
    if search in bind_listeners and not any(_wanted.values()):
        bind_listeners.remove(search)
    elif search not in bind_listeners and any(_wanted.values()):
        bind_listeners.append(search)


for _switch in INVALID_NUMBER_TESTS:
    _default, _told = os.environ.get(_switch.upper(), "0"), partial(_engage, _switch)
    config.define(_switch, _default, _on_or_off, _told)


# Switches for those who look for a mistake.


def debug_nans(new_val: bool = True) -> AbstractContextManager:
    """Return a context manager inside which a result that is nan is an error.

    Reference: ``jax.debug_nans``.
    """
    return config.override("jax_debug_nans", new_val)


def debug_infs(new_val: bool = True) -> AbstractContextManager:
    """Return a context manager inside which a result that is infinite is an error.

    Reference: ``jax.debug_infs``.
    """
    return config.override("jax_debug_infs", new_val)


# Values that a program hands to Python's logging.

LOGGER = "minijax.callbacks.debugger"


class LogPrinter(Printer):
    """Logs its arguments in a format, as of the user's line of now."""

    def __init__(self, fmt):
        super().__init__(fmt)
        line = user_line()
        self.place = (line.file, line.position[0]) if line else ("", 0)

    def __call__(self, *args, **kwargs):
        import logging  # not earlier: a fork takes logging's lock before ours

        logger, text = logging.getLogger(LOGGER), self.text(*args, **kwargs)
        record = (LOGGER, logging.INFO, *self.place, "%s", (text,), None)
        if logger.isEnabledFor(logging.INFO):
            logger.handle(logger.makeRecord(*record))


def debug_log(
    fmt=None,
    *args,
    ordered=False,
    partitioned=False,
    skip_format_check=False,
    **kwargs,
):
    """Log values at the level INFO, wherever a program computes them.

    The arguments and the errors are those of `debug_print`; the logger's name is that
    of this module.

    Reference: ``jax.debug.log``.
    """
    how = LogPrinter, ordered, skip_format_check
    return bind_debug_print(*how, "debug.log", fmt, args, kwargs)
