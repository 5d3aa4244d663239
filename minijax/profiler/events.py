"""Events that a process tells its listeners of, such as that a program was compiled.

Reference: ``jax.monitoring``.
"""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Callable

from minijax.jitting.compilation import compile_listeners

COMPILED = "/jax/core/compile/backend_compile_duration"
_listeners: dict[str, list] = {"event": [], "duration": [], "span": [], "scalar": []}


def _tell_listeners(kind, *facts, **named):
    for listener in [*_listeners[kind]]:
        listener(*facts, **named)


def record_event(event: str, **kwargs: str | int) -> None:
    """Tell the listeners of events that something has happened.

    Args:
      event: its name, such as ``"/cache/hit"``.
      **kwargs: facts for the listeners.

    Reference: ``jax.monitoring.record_event``.
    """
    _tell_listeners("event", event, **kwargs)


def record_event_duration_secs(event: str, duration: float, **kwargs: str | int) -> None:
    """Tell the listeners of durations how many seconds something has taken.

    Reference: ``jax.monitoring.record_event_duration_secs``.
    """
    _tell_listeners("duration", event, duration, **kwargs)


def record_event_time_span(
    event: str, start_time: float, end_time: float, **kwargs: str | int
) -> None:
    """Tell the listeners of spans when something began and ended, in seconds.

    Reference: ``jax.monitoring.record_event_time_span``.
    """
    _tell_listeners("span", event, start_time, end_time, **kwargs)


def _record_compile(seconds, name):
    record_event_duration_secs(COMPILED, seconds, fun_name=name)


compile_listeners.append(_record_compile)


def record_scalar(event: str, value: float | int, **kwargs: str | int) -> None:
    """Tell the listeners of numbers the value of something.

    Reference: ``jax.monitoring.record_scalar``.
    """
    _tell_listeners("scalar", event, value, **kwargs)


def register_event_listener(callback: Callable) -> None:
    """Let ``callback(event, **facts)`` be called for each event.

    Reference: ``jax.monitoring.register_event_listener``.
    """
    _listeners["event"].append(callback)


def register_event_duration_secs_listener(callback: Callable) -> None:
    """Let ``callback(event, seconds, **facts)`` be called for each duration.

    Reference: ``jax.monitoring.register_event_duration_secs_listener``.
    """
    _listeners["duration"].append(callback)


def register_event_time_span_listener(callback: Callable) -> None:
    """Let ``callback(event, start, end, **facts)`` be called for each span.

    Reference: ``jax.monitoring.register_event_time_span_listener``.
    """
    _listeners["span"].append(callback)


def register_scalar_listener(callback: Callable) -> None:
    """Let ``callback(event, value, **facts)`` be called for each number.

    Reference: ``jax.monitoring.register_scalar_listener``.
    """
    _listeners["scalar"].append(callback)


def _forget_listener(kind, callback):
    if callback not in _listeners[kind]:
        raise ValueError(f"{callback!r} is not registered as a listener.")
    _listeners[kind].remove(callback)


def unregister_event_listener(callback: Callable) -> None:
    """Call a listener of events no more; a ValueError if it is none.

    Reference: ``jax.monitoring.unregister_event_listener``.
    """
    _forget_listener("event", callback)


def unregister_event_duration_listener(callback: Callable) -> None:
    """Call a listener of durations no more; a ValueError if it is none.

    Reference: ``jax.monitoring.unregister_event_duration_listener``.
    """
    _forget_listener("duration", callback)


def unregister_event_time_span_listener(callback: Callable) -> None:
    """Call a listener of spans no more; a ValueError if it is none.

    Reference: ``jax.monitoring.unregister_event_time_span_listener``.
    """
    _forget_listener("span", callback)


def unregister_scalar_listener(callback: Callable) -> None:
    """Call a listener of numbers no more; a ValueError if it is none.

    Reference: ``jax.monitoring.unregister_scalar_listener``.
    """
    _forget_listener("scalar", callback)


def clear_event_listeners() -> None:
    """Forget all listeners.

    Reference: ``jax.monitoring.clear_event_listeners``.
    """
    for listeners in _listeners.values():
        listeners.clear()
