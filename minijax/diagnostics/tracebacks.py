"""Traceback filtering: the user's lines are shown, the package's are folded away.

An explainer looks at a `Scene` and returns lines that are added to the error.

References: ``jax._src.source_info_util``, ``jax._src.traceback_util``,
``jax.config.jax_traceback_filtering``, ``jax.errors``, ``BaseException.add_note``.
"""

# Made from chapters/08_errors.md by `make chapter`;
# edit the chapter, not this file.
# Amended in chapters/08_errors_rest.md: filter_error (2afd08d9).
# Amended in chapters/08_errors_rest.md: about_operands (5db17d78).
# Amended in chapters/08_errors_rest.md: is_internal_file, user_line (dc0788e4).
# Amended in chapters/08_errors_rest.md: api_boundary, wrap_result_in_boundary,
#   asked_arrays (a2a47861).
# Amended in chapters/11_own_rules_ground.md: Readers.add, user_line (ffadf827).
# Amended in chapters/26_calls_rest.md: is_array_api_frame, asked_arrays (92b4462a).

import contextlib
import functools
import gc
import linecache
import os
import sys
from threading import get_ident
from types import FrameType, FunctionType
from weakref import ref

import numpy as np

import minijax
from minijax import errors
from minijax.arrays.array import typeof
from minijax.arrays.dtypes import _on_or_off, config
from minijax.arrays.out_sharding import PLACED_CODE
from minijax.core import Array, Tracer, scope_listeners
from minijax.diagnostics.source_info import (
    UserLine,
    append_note,
    describe_origin,
    frame_arguments,
    make_traceback,
    slice_components,
    traceback_entries,
)
from minijax.errors import (
    UnexpectedTracerError,
    error_presenters,
    format_for_user,
    user_line_finders,
)
from minijax.jaxprs.jaxpr import eval_jaxpr, source_info_hook
from minijax.pytrees.registry import _promising, keystr
from minijax.pytrees.tree_operations import resolve_promises
from minijax.pytrees.tree_util import tree_leaves, tree_leaves_with_path

# Where in the user's program something was asked for.

HOME = os.path.dirname(minijax.__file__) + os.sep


program_keepers: set = set()  # the code of functions that keep the programs they make


class Readers(dict):
    """From names of files to the code of readers in them; to None for a user's file.

    A reader is a function that binds one equation after the other, and calls each
    `eqn`. Each entry is a set of the identities of their code.
    """

    def __missing__(self, file_name):
        ours = file_name.startswith((HOME, "<minijax"))
        ours = ours or linecache.getline(file_name, 1).startswith("#| export")
        return self.setdefault(file_name, set() if ours else None)

    def add(self, function, keeps=False):
        """Note a reader, or a function that keeps programs."""
        self[function.__code__.co_filename].add(id(function.__code__))
        if keeps:
            program_keepers.add(id(function.__code__))


# Functions of the package that evaluate programs, and the files that they are in.
source_line_readers: "Readers" = Readers()


source_line_readers.add(eval_jaxpr)


def is_internal_file(file_name):
    """Return whether code is in the package, or made by it, or about to be in it."""
    return source_line_readers[file_name] is not None


def user_frame_of(frame):
    """Return the innermost frame of the user that a frame of ours runs under."""
    while frame is not None and is_internal_file(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def user_line(to_keep=False):
    """Return the `UserLine` that asked for what is going on, or None.

    Args:
      to_keep: whether to stop at a function that keeps programs, since none of its
        callers is the only one that its program is for.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        known = source_line_readers[frame.f_code.co_filename]
        if known is None:  # a file of the user
            return UserLine(frame.f_code, frame.f_lasti)
        if known and id(frame.f_code) in known:  # a reader
            if to_keep and id(frame.f_code) in program_keepers:
                return None
            eqn = frame.f_locals.get("eqn")
            if eqn is not None and eqn.source is not None:
                return eqn.source
        frame = frame.f_back
    return None


source_info_hook.value = user_line
user_line_finders.append(user_line)  # for messages that name a line themselves


# Traceback filtering: the user's frames are shown, the package's are folded away.

# Code that the package runs on its way, and that is no user's.
HELPERS = (contextlib.__file__, functools.__file__, os.path.dirname(np.__file__))


def user_entries(steps):
    """Return the entries of the user: not ours, nor of a helper that we have called."""
    kept, called_by_us = [], False
    for step in steps:
        name = step.tb_frame.f_code.co_filename
        ours = is_internal_file(name) or (called_by_us and name.startswith(HELPERS))
        kept += [] if ours else [step]
        called_by_us = ours
    return kept


FILTERING_MODES = (
    "off",
    "tracebackhide",
    "remove_frames",
    "quiet_remove_frames",
    "auto",
)


def _mode(value):
    if value not in FILTERING_MODES:
        raise ValueError(f"{value!r} is not one of {', '.join(FILTERING_MODES)}.")
    return value


config.define(
    "jax_traceback_filtering", os.environ.get("JAX_TRACEBACK_FILTERING", "auto"), _mode
)


class UnfilteredStackTrace(Exception):
    """The error as it was raised, with all frames: the cause of one that has few."""


FOLDED = (
    "(For simplicity, the frames of minijax are folded away: "
    "JAX_TRACEBACK_FILTERING=off shows them.)"
)


def hide(error):
    """Mark the frames of the package as hidden, as pytest and IPython understand it."""
    steps = traceback_entries(error.__traceback__)
    kept = user_entries(steps)
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
                other.__traceback__ = make_traceback(
                    user_entries(traceback_entries(other.__traceback__))
                )


def fold(error, mode):
    """Take the frames of the package out of the traceback of an error."""
    whole = error.__traceback__
    steps = traceback_entries(whole)
    kept = user_entries(steps)
    if len(kept) == len(steps):
        return
    error.__traceback__ = make_traceback(kept)
    has_whole = isinstance(error.__cause__, UnfilteredStackTrace)
    if mode == "remove_frames" and not has_whole:
        cause = UnfilteredStackTrace(f"{type(error).__name__}: {error}")
        cause.__cause__, cause.__context__ = error.__cause__, error.__context__
        error.__cause__ = cause.with_traceback(whole)
    elif mode != "remove_frames" and FOLDED not in getattr(error, "__notes__", ()):
        error.add_note(FOLDED)


def place_above(steps, cut):
    """Return the user's frame above an entry of a traceback, and its `UserLine`.

    A function of ours may ask before the error has left our code. Then no entry is the
    user's yet, and the frame is found among the callers.

    Args:
      steps: the entries.
      cut: how many of them end with the user's; 0 if the error is still inside.
    """
    if cut:
        frame, instruction = steps[cut - 1].tb_frame, steps[cut - 1].tb_lasti
    else:
        frame = user_frame_of(steps[0].tb_frame) if steps else None
        instruction = frame.f_lasti if frame else 0
    return frame, frame and UserLine(frame.f_code, instruction)


# Where an error was raised, and what our function had been given there: diagnostics.

ARRAY_TYPES = (Array, np.ndarray, np.generic)


class Scene:
    """Where an error was raised: the user's line, and our frames under it.

    Attributes:
      frame: the innermost frame of the user, or None.
      line: its `UserLine`.
      below: the frames of ours that it had called, outermost first.
    """

    def __init__(self, error):
        steps = traceback_entries(error.__traceback__)
        users = user_entries(steps)
        cut = steps.index(users[-1]) + 1 if users else 0
        self.frame, self.line = place_above(steps, cut)
        self.below = [step.tb_frame for step in steps[cut:]]

    @property
    def operands(self):
        """The arrays and tracers that our function was given, each once."""
        given = tree_leaves(frame_arguments(self.below[0])) if self.below else []
        leaves = [part for leaf in given for part in slice_components(leaf)]
        found = {id(x): x for x in leaves if isinstance(x, ARRAY_TYPES)}
        return list(found.values())


def name_in(frame, value):
    """Return what a frame of the user calls a value: a variable, with a path."""
    from_outside = [(k, frame.f_globals.get(k)) for k in frame.f_code.co_names]
    variables = [*frame.f_locals.items(), *from_outside]
    variables = [(k, v) for k, v in variables if not k.startswith("_")]
    for name, held in variables:
        if held is value:
            return name
    for name, held in variables:
        if isinstance(held, (dict, list, tuple)):
            for path, leaf in tree_leaves_with_path(held):
                if leaf is value:
                    return name + keystr(path)
    return None


ORDINALS = "first", "second", "third", "fourth"


# The floors whose functions take arrays.
OF_ARRAYS = {
    "lax", "numpy", "operators", "catalogue", "indexing", "sorting", "windows",
    "contractions", "compositions", "factorizations",
}  # fmt: skip


# The code of functions that stand between a function of arrays and its caller.
eager_frames: set = {PLACED_CODE}


def is_array_api_frame(frame):
    """Return whether a frame runs a function of arrays that is the package's."""
    if frame is None or not is_internal_file(frame.f_code.co_filename):
        return False
    if frame.f_code in eager_frames:
        return True
    name = frame.f_globals.get("__name__", "")
    return not OF_ARRAYS.isdisjoint(name.split(".")[1:2])


def is_tracer_error(error):
    """Return whether an error is one of ours about tracers, which has its own lines."""
    return type(error).__module__ == errors.__name__


# By thread, the traces that have begun while leaks are looked for.
traces_begun: dict = {}


def _note_trace(trace):
    if config.jax_check_tracer_leaks:
        traces_begun.setdefault(get_ident(), []).append(ref(trace))


def _engage(values):
    if _note_trace in scope_listeners:
        scope_listeners.remove(_note_trace)
    if any(values):
        scope_listeners.append(_note_trace)


config.define(
    "jax_check_tracer_leaks",
    os.environ.get("JAX_CHECK_TRACER_LEAKS", "0"),
    _on_or_off,
    _engage,
)


def _still_there(traces):
    return [trace for one in traces if (trace := one()) is not None]


def _forget_traces(error):
    traces_begun.pop(get_ident(), None)  # frames of the error keep tracers


error_presenters.append(_forget_traces)


def raise_if_leaked():
    """Raise if a transformation in this thread has ended and left tracers."""
    begun = traces_begun.pop(get_ident(), [])
    running = [ref(trace) for trace in _still_there(begun) if trace.alive]
    if running:
        traces_begun[get_ident()] = running
    ended = [ref(trace) for trace in _still_there(begun) if not trace.alive]
    if not ended:
        return
    gc.collect()  # what only cycles keep cannot do any harm
    ended = _still_there(ended)
    tracers = [x for x in gc.get_referrers(*ended) if issubclass(type(x), Tracer)]
    if tracers:
        raise UnexpectedTracerError(
            f"Leaked trace {type(tracers[0]._trace).__name__}. Leaked tracer(s): "
            f"{', '.join(map(repr, tracers))}. A function that was transformed has "
            "stored what stands for its values. Return it from that function instead "
            "of storing it in global state: a variable, an attribute, a list or a "
            "closure."
        )


def is_inner(guard):
    """Return whether a function of arrays further out presents a guard's errors."""
    frame = guard.f_back
    while is_array_api_frame(frame):
        if frame.f_globals["__name__"] == "minijax.numpy.array_methods":
            return True  # an operator has a `try` of its own
        frame = frame.f_back
    return frame is not None and frame.f_code is guard.f_code


def asked_arrays(scene):
    """Return whether the user had called a function of arrays."""
    between = {API_BOUNDARY_CODE, *eager_frames}
    frames = [f for f in scene.below if f.f_code not in between]
    return bool(frames) and is_array_api_frame(frames[0])


def concerns_operands(error, scene):
    """Return whether an error may be about the operands, and these are few."""
    numeric = isinstance(error, (TypeError, ValueError)) and not is_tracer_error(error)
    return numeric and asked_arrays(scene) and len(scene.operands) <= len(ORDINALS)


def about_operands(error, scene):
    """Say of each operand what the user calls it, its type, and where it comes from."""
    if not concerns_operands(error, scene):
        return []
    return [describe_operand(scene, *pair) for pair in zip(ORDINALS, scene.operands)]


def describe_operand(scene, place, value):
    """Return the line about one operand."""
    name = name_in(scene.frame, value)
    parts = [f"{name or f'the {place} operand'}: {typeof(value)}"]
    return ", ".join(
        [*parts, *filter(None, [describe_origin(scene.line, name, value)])]
    )


# Functions ``explainer(error, scene)`` that return lines; each knows its own errors.
explainers = [about_operands]


def explain(error):
    """Add to an error, once, the lines that its explainers have for it."""
    if hasattr(error, "_is_explained") or error.__traceback__ is None:
        return
    error._is_explained = True
    scene = Scene(error)
    if scene.frame is None or not scene.below:
        return
    for explainer in explainers:
        with contextlib.suppress(Exception):  # whatever it is, it is not the user's
            for line in explainer(error, scene):
                append_note(error, f"  {line}")


error_presenters[:0] = [explain, filter_error]


def api_boundary(function, keeps_promises=False):
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
                args, kwargs = resolve_promises((args, kwargs))
            result = function(*args, **kwargs)
            if traces_begun:
                raise_if_leaked()
        except Exception as error:
            if not is_inner(sys._getframe()):
                format_for_user(error)
            raise
        made = type(result) is FunctionType
        return wrap_result_in_boundary(result, keeps_promises) if made else result

    guard.__wrapped__ = getattr(function, "__wrapped__", function)  # the user's own
    return guard


def wrap_result_in_boundary(value, keeps_promises=False):
    """Return a function of the package with a guard, anything else as it is."""
    plain = type(value) is FunctionType and not hasattr(value, "presents_errors")
    made = plain and is_internal_file(value.__code__.co_filename)
    return api_boundary(value, keeps_promises) if made else value


API_BOUNDARY_CODE = api_boundary(traceback_entries).__code__  # the code of every guard
