"""Looking at values while a program runs: `print`, `log`, `callback`, `breakpoint`.

Reference: ``jax.debug``.
"""

# Made from chapters/14_callbacks_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax._lazy import after_registrations, as_called_in
from minijax.callbacks.debugger import debug_breakpoint, debug_log
from minijax.callbacks.host_calls import debug_callback, debug_print

_functions = {
    "breakpoint": as_called_in(debug_breakpoint, __name__, "breakpoint"),
    "callback": debug_callback,
    "log": debug_log,
    "print": debug_print,
}


def __getattr__(name):
    if name.startswith("_") and name != "__all__":
        raise AttributeError(f"module 'minijax.debug' has no attribute {name!r}")
    functions = after_registrations(
        lambda: _functions
    )  # to which higher floors add theirs
    if name == "__all__":
        return sorted(functions)
    if name not in functions:
        raise AttributeError(f"module 'minijax.debug' has no attribute {name!r}")
    return functions[name]


def __dir__():
    return sorted(after_registrations(lambda: _functions))
