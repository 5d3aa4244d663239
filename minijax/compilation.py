# Made from chapters/11_jit.md by `make chapter`;
# edit the chapter, not this file.
"""From a program to something that runs it: backends, and what they have made.

Reference: ``jax.stages.Compiled``.
"""

import os

from minijax.array import asarray_impl
from minijax.core import EvalTrace, set_current_trace
from minijax.jaxpr import eval_jaxpr
from minijax.remembering import Once, cache_by_object
from minijax.settings import config

# From names to functions that make an executable, a callable from arrays to a list of
# arrays with the attribute `text`, of a `ClosedJaxpr`. The last one is the default.
backends = {}


def _backend(name):
    if name is not None and name not in backends:
        known = ", ".join(backends)
        raise ValueError(f"Unknown backend {name!r}; there are: {known}.")
    return name


config.define("minijax_backend", os.environ.get("MINIJAX_BACKEND"), lambda name: name)

# The switches that change what is compiled.
compiled_switches = ["jax_enable_x64"]

_executables = cache_by_object()


def backend_name(name=None):
    """Return the name of a backend: this one, the configured one, or the default."""
    return _backend(name or config.minijax_backend) or list(backends)[-1]


def compiled(closed, backend=None):
    """Return the executable of a program; it is made once.

    Args:
      closed: a `ClosedJaxpr`.
      backend: the name of a backend, or None for the default.
    """
    name = backend_name(backend)
    key = name, *[getattr(config, switch) for switch in compiled_switches]
    once = _executables.get(closed) or _executables.setdefault(closed, Once())
    return once.get(key, lambda: backends[name](closed))


class Interpreter:
    """Runs a program one equation at a time.

    Args:
      closed: a `ClosedJaxpr`.
    """

    def __init__(self, closed):
        self.jaxpr, self.consts = closed.jaxpr, closed.consts

    text = property(lambda self: str(self.jaxpr))

    def __call__(self, *args):
        """Return the list of results."""
        with set_current_trace(EvalTrace()):
            return list(map(asarray_impl, eval_jaxpr(self.jaxpr, self.consts, *args)))


backends["interpreter"] = Interpreter
