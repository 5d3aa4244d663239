"""Traceback filtering: the user's frames are shown, the package's are folded away.

Reference: ``jax._src.traceback_util``, ``jax.config.jax_traceback_filtering``.
"""

# Made from chapters/08_errors.md by `make chapter`;
# edit the chapter, not this file.

import contextlib
import functools
import os
import sys
from types import FunctionType

import numpy as np

from minijax.arrays.settings import config
from minijax.diagnostics.frames import linked, steps_of
from minijax.diagnostics.user_lines import is_ours
from minijax.errors import present, presenters
from minijax.pytrees.node_kinds import _promising
from minijax.pytrees.operations import kept_promises

# Code that the package runs on its way, and that is no user's.
HELPERS = (contextlib.__file__, functools.__file__, os.path.dirname(np.__file__))


def of_user(steps):
    """Return the entries of the user: not ours, nor of a helper that we have called."""
    kept, before = [], True  # before: whether the entry before is the user's
    for step in steps:
        name = step.tb_frame.f_code.co_filename
        ours = is_ours(name) or (not before and name.startswith(HELPERS))
        kept += [] if ours else [step]
        before = not ours
    return kept


MODES = ("off", "tracebackhide", "remove_frames", "quiet_remove_frames", "auto")


def _mode(value):
    if value not in MODES:
        raise ValueError(f"{value!r} is not one of {', '.join(MODES)}.")
    return value


config.define(
    "jax_traceback_filtering", os.environ.get("JAX_TRACEBACK_FILTERING", "auto"), _mode
)


class UnfilteredStackTrace(Exception):
    """The error as it was raised, with all frames: the cause of one that has few."""


FOLDED = "(Frames of minijax are folded away: JAX_TRACEBACK_FILTERING=off shows them.)"


def hide(error):
    """Mark the frames of the package as hidden, as pytest and IPython understand it."""
    steps = steps_of(error.__traceback__)
    kept = of_user(steps)
    for step in steps:
        if step not in kept:
            step.tb_frame.f_locals["__tracebackhide__"] = True


def filter_error(error):
    """Fold the package's frames away, in an error and in what caused it."""
    mode = config.jax_traceback_filtering
    if mode == "tracebackhide":
        hide(error)
    elif mode != "off":
        fold(error, mode)
        for other in (error.__cause__, error.__context__):
            if other is not None and not isinstance(other, UnfilteredStackTrace):
                other.__traceback__ = linked(of_user(steps_of(other.__traceback__)))


def fold(error, mode):
    """Take the frames of the package out of the traceback of an error."""
    whole = error.__traceback__
    steps = steps_of(whole)
    kept = of_user(steps)
    if len(kept) == len(steps):
        return
    error.__traceback__ = linked(kept)
    has_whole = isinstance(error.__cause__, UnfilteredStackTrace)
    if mode == "remove_frames" and not has_whole:
        cause = UnfilteredStackTrace(f"{type(error).__name__}: {error}")
        cause.__cause__, cause.__context__ = error.__cause__, error.__context__
        error.__cause__ = cause.with_traceback(whole)
    elif mode != "remove_frames" and FOLDED not in getattr(error, "__notes__", ()):
        error.add_note(FOLDED)


presenters.append(filter_error)

# The floors whose functions take arrays.
OF_ARRAYS = {
    "lax", "numpy", "operators", "catalogue", "indexing", "sorting", "windows",
    "contractions", "compositions", "factorizations",
}  # fmt: skip


def of_arrays(frame):
    """Return whether a frame runs a function of arrays that is the package's."""
    if frame is None or not is_ours(frame.f_code.co_filename):
        return False
    name = frame.f_globals.get("__name__", "")
    return not OF_ARRAYS.isdisjoint(name.split(".")[1:2])


def is_inner(guard):
    """Return whether a function of arrays further out presents a guard's errors."""
    frame = guard.f_back
    while of_arrays(frame):
        if frame.f_globals["__name__"] == "minijax.operators.syntax":
            return True  # an operator has a `try` of its own
        frame = frame.f_back
    return frame is not None and frame.f_code is guard.f_code


def guarded(function, keeps_promises=False):
    """Return a function that does what `function` does; its errors are presented.

    If another function of arrays calls it, the guard of that one presents them. What it
    returns is guarded as well if it is a function that the package has made.

    Args:
      keeps_promises: whether containers of trees that promise an array, by a method
        ``__jax_array__``, are handed on as that array.
    """

    @functools.wraps(function)
    def guard(*args, **kwargs):
        try:
            if _promising and keeps_promises:
                args, kwargs = kept_promises((args, kwargs))
            result = function(*args, **kwargs)
        except Exception as error:
            if not is_inner(sys._getframe()):
                present(error)
            raise
        made = type(result) is FunctionType
        return guard_made(result, keeps_promises) if made else result

    guard.__wrapped__ = getattr(function, "__wrapped__", function)  # the user's own
    return guard


def guard_made(value, keeps_promises=False):
    """Return a function of the package with a guard, anything else as it is."""
    plain = type(value) is FunctionType and not hasattr(value, "presents_errors")
    made = plain and is_ours(value.__code__.co_filename)
    return guarded(value, keeps_promises) if made else value
