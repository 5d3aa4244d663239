"""Traces of a profiler: named spans and calls of Python, in Chrome's trace format.

Reference: ``jax.profiler``; *Trace Event Format*, the Chromium project.
"""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

import gzip
import json
import os
import platform
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from minijax._lazy import wraps
from minijax.context_values import CallbackContext, context_variable
from minijax.core import EvalTrace, bind_listeners

_LIMIT = 1_000_000  # spans in a file; JAX's has as many


class ProfileOptions:
    """What a trace records.

    Attributes:
      python_tracer_level: 0 to leave calls of Python functions out.
      host_tracer_level: 0 to leave annotations out.
      device_tracer_level: accepted for compatibility.

    Reference: ``jax.profiler.ProfileOptions``.
    """

    def __init__(self):
        self.python_tracer_level, self.host_tracer_level = 1, 2
        self.device_tracer_level = 1


class _Recording:
    """The spans of a process, while a trace is taken."""

    def __init__(self, folder, options, perfetto):
        self.folder, self.options, self.perfetto = Path(folder), options, perfetto
        self.events, self.thread = [], threading.local()

    def add(self, name, start, **args):
        """Note a span that ends now; `start` is a time of ``perf_counter_ns``."""
        if len(self.events) < _LIMIT:
            length, thread = time.perf_counter_ns() - start, threading.get_native_id()
            span = {"ph": "X", "name": name, "pid": os.getpid(), "tid": thread}
            span |= {"ts": start / 1000, "dur": length / 1000}
            self.events.append(span | ({"args": args} if args else {}))

    def hear(self, frame, event, _):
        """Note calls of Python functions; the interpreter tells of them."""
        starts = self.thread.__dict__.setdefault("starts", [])
        if event == "call":
            starts.append(time.perf_counter_ns())
        elif event == "return" and starts:
            self.add(_name_of_call(frame), starts.pop())

    def listen(self, hear):
        """Let the interpreter tell of calls in this thread, and in those to come."""
        if self.options.python_tracer_level:
            there = _nothing in bind_listeners
            if bool(hear) != there:
                (bind_listeners.append if hear else bind_listeners.remove)(_nothing)
            sys.setprofile(hear)
            threading.setprofile(hear)

    def start(self):
        """Record from now on."""
        _recordings.append(self)
        self.listen(self.hear)

    def stop(self):
        """Record no more; may be called again where it was interrupted."""
        self.listen(None)
        _recordings[:] = [each for each in _recordings if each is not self]

    def write(self):
        """Write the spans into a folder of their own, and return the file."""
        here = self.folder / "plugins" / "profile" / time.strftime("%Y_%m_%d_%H_%M_%S")
        here.mkdir(parents=True, exist_ok=True)
        name = {"name": "process_name", "args": {"name": "/host:CPU"}}
        names = [name | {"ph": "M", "pid": os.getpid()}]
        text = {"displayTimeUnit": "ns", "traceEvents": names + self.events}
        _write(here / f"{platform.node()}.trace.json.gz", text | {"metadata": {}})
        if self.perfetto:
            _write(here / "perfetto_trace.json.gz", text)


def _write(path, value):
    with gzip.open(path, "wt", encoding="utf-8") as file:
        json.dump(value, file)


def _nothing(*_):
    """Watch evaluations: jitted functions bind their primitive while one watches."""


_EVALUATION = EvalTrace.process_primitive.__code__


def _name_of_call(frame):
    """Return the primitive that a frame evaluates, or its function with the place."""
    code = frame.f_code
    if code is not _EVALUATION:
        file = os.path.basename(code.co_filename)
        return f"${file}:{code.co_firstlineno} {code.co_name}"
    primitive, params = frame.f_locals["primitive"], frame.f_locals["params"]
    if primitive.name == "jit":
        return f"PjitFunction({params['name']})"
    return primitive.name


_recordings: list[_Recording] = []  # one at most


def start_trace(
    log_dir: str | os.PathLike,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: ProfileOptions | None = None,
) -> None:
    """Begin to record spans; `stop_trace` writes them down.

    Args:
      log_dir: a folder. The file is ``plugins/profile/<time>/<host>.trace.json.gz``.
      create_perfetto_link: has to be False: no file is served to a browser.
      create_perfetto_trace: whether to write ``perfetto_trace.json.gz`` beside it.
      profiler_options: what to record.

    Raises:
      RuntimeError: if a trace is being taken.
      NotImplementedError: if a link is asked for.

    Reference: ``jax.profiler.start_trace``.
    """
    arguments = log_dir, create_perfetto_link, create_perfetto_trace, profiler_options
    recording = _recording(*arguments)
    try:
        recording.start()
    except BaseException:  # an interrupt
        recording.stop()
        raise


def _recording(
    log_dir, create_perfetto_link=False, create_perfetto_trace=False, options=None
):
    """Return what `start_trace` starts; its arguments are those."""
    if create_perfetto_link:
        raise NotImplementedError(
            "start_trace serves no file to a browser. With create_perfetto_trace=True "
            "it writes one, which can be opened at https://ui.perfetto.dev."
        )
    if _recordings:
        raise RuntimeError(
            "Profile has already been started. Only one profile may be run at a time."
        )
    return _Recording(log_dir, options or ProfileOptions(), create_perfetto_trace)


def stop_trace() -> None:
    """End the trace that is being taken, and write its file.

    Raises:
      RuntimeError: if none is.

    Reference: ``jax.profiler.stop_trace``.
    """
    if not _recordings:
        raise RuntimeError("No profile started")
    recording = _recordings[0]
    recording.stop()
    recording.write()


_traces = context_variable("traces", None)


class _Taking(CallbackContext):
    """A block during which a trace is taken."""

    __slots__ = ("arguments", "recording")

    def __init__(self, *arguments):
        super().__init__(_traces)
        self.arguments, self.recording = arguments, None

    def __enter__(self):
        self.recording = _recording(*self.arguments)
        super().__enter__()
        self.recording.start()

    def end(self):
        """Write what was recorded, unless the trace has been stopped."""
        if self.recording in _recordings:
            self.recording.stop()
            self.recording.write()

    def again(self):
        """Return what can be entered like this one, once more."""
        return _Taking(*self.arguments)


def trace(
    log_dir: str | os.PathLike,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: ProfileOptions | None = None,
) -> AbstractContextManager[None]:
    """Record the spans of a block; the arguments are those of `start_trace`.

    Reference: ``jax.profiler.trace``.
    """
    return _Taking(
        log_dir, create_perfetto_link, create_perfetto_trace, profiler_options
    )


class TraceAnnotation:
    """A span with a name: a context manager.

    Args:
      name: of the span.
      **kwargs: more about it, for the viewer.

    Reference: ``jax.profiler.TraceAnnotation``.
    """

    def __init__(self, name: str, **kwargs: Any):
        self.name, self.args = name, {key: str(kwargs[key]) for key in kwargs}

    def __enter__(self):
        self.start = time.perf_counter_ns()
        return self

    def __exit__(self, *_):
        for recording in _recordings:
            if recording.options.host_tracer_level:
                recording.add(self.name, self.start, **self.args)


class StepTraceAnnotation(TraceAnnotation):
    """A span that is a step of training; its number is the argument `step_num`.

    Reference: ``jax.profiler.StepTraceAnnotation``.
    """


def annotate_function(
    func: Callable, name: str | None = None, **decorator_kwargs: Any
) -> Callable:
    """Return a function each of whose calls is a span, with its name by default.

    Reference: ``jax.profiler.annotate_function``.
    """
    name = name or getattr(func, "__qualname__", None) or func.__name__

    @wraps(func)
    def wrapper(*args, **kwargs):
        with TraceAnnotation(name, **decorator_kwargs):
            return func(*args, **kwargs)

    return wrapper
