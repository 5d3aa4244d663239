"""Events and the functions that listen to them.

Reference: ``jax.monitoring``.
"""

# Made from chapters/12_jit_ground.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Callable
from typing import Any

_listeners: dict[str, list[Callable[..., None]]] = {
    kind: [] for kind in ("event", "duration", "time span", "scalar")
}


def _tell(kind, /, *args, **kwargs):
    for listener in (*_listeners[kind],):  # one may unregister itself
        listener(*args, **kwargs)


def record_event(event: str, **kwargs: str | int) -> None:
    """Tell the listeners to events that something has happened.

    Args:
      event: its name, by convention a path such as ``"/package/what"``.
      kwargs: what else is known of it; the listeners get it as keyword arguments.

    Reference: ``jax.monitoring.record_event``.
    """
    _tell("event", event, **kwargs)


def record_event_duration_secs(
    event: str, duration: float, **kwargs: str | int
) -> None:
    """Tell the listeners to durations how many seconds something has taken.

    Reference: ``jax.monitoring.record_event_duration_secs``.
    """
    _tell("duration", event, duration, **kwargs)


def record_event_time_span(
    event: str, start_time: float, end_time: float, **kwargs: str | int
) -> None:
    """Tell the listeners to time spans when something has begun and ended, in seconds.

    Reference: ``jax.monitoring.record_event_time_span``.
    """
    _tell("time span", event, start_time, end_time, **kwargs)


def record_scalar(event: str, value: float | int, **kwargs: str | int) -> None:
    """Tell the listeners to scalars a number.

    Reference: ``jax.monitoring.record_scalar``.
    """
    _tell("scalar", event, value, **kwargs)


def register_event_listener(callback: Callable[..., None]) -> None:
    """Have a function called at each `record_event`, with its arguments.

    Reference: ``jax.monitoring.register_event_listener``.
    """
    _listeners["event"].append(callback)


def register_event_duration_secs_listener(callback: Callable[..., None]) -> None:
    """Have a function called at each `record_event_duration_secs`, with its arguments.

    Reference: ``jax.monitoring.register_event_duration_secs_listener``.
    """
    _listeners["duration"].append(callback)


def register_event_time_span_listener(callback: Callable[..., None]) -> None:
    """Have a function called at each `record_event_time_span`, with its arguments.

    Reference: ``jax.monitoring.register_event_time_span_listener``.
    """
    _listeners["time span"].append(callback)


def register_scalar_listener(callback: Callable[..., None]) -> None:
    """Have a function called at each `record_scalar`, with its arguments.

    Reference: ``jax.monitoring.register_scalar_listener``.
    """
    _listeners["scalar"].append(callback)


def _unregister(kind: str, callback: Any) -> None:
    if callback not in _listeners[kind]:
        raise AssertionError(f"{callback!r} is not registered for events of a {kind}.")
    _listeners[kind].remove(callback)


def unregister_event_listener(callback: Callable[..., None]) -> None:
    """Call a function no more that `register_event_listener` has registered.

    Raises:
      AssertionError: if it is not registered, as in JAX.

    Reference: ``jax.monitoring.unregister_event_listener``.
    """
    _unregister("event", callback)


def unregister_event_duration_listener(callback: Callable[..., None]) -> None:
    """Call a function no more that listened to durations; raise as for events.

    Reference: ``jax.monitoring.unregister_event_duration_listener``.
    """
    _unregister("duration", callback)


def unregister_event_time_span_listener(callback: Callable[..., None]) -> None:
    """Call a function no more that listened to time spans; raise as for events.

    Reference: ``jax.monitoring.unregister_event_time_span_listener``.
    """
    _unregister("time span", callback)


def unregister_scalar_listener(callback: Callable[..., None]) -> None:
    """Call a function no more that listened to scalars; raise as for events.

    Reference: ``jax.monitoring.unregister_scalar_listener``.
    """
    _unregister("scalar", callback)


def clear_event_listeners() -> None:
    """Forget all listeners.

    Reference: ``jax.monitoring.clear_event_listeners``.
    """
    for listeners in _listeners.values():
        listeners.clear()
