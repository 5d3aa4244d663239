# Made from chapters/11_jit.md by `make chapter`;
# edit the chapter, not this file.
"""From a program to something that runs it: backends, and what they have made.

Reference: ``jax.stages.Compiled``.
"""

import os

from minijax.array import asarray_impl
from minijax.core import EvalTrace, set_current_trace
from minijax.jaxpr import eval_jaxpr
from minijax.programs import dce_program
from minijax.remembering import cache_by_object, once_of
from minijax.settings import config

config.define("minijax_backend", os.environ.get("MINIJAX_BACKEND"), lambda name: name)

# The switches that change what is compiled.
compiled_switches = ["jax_enable_x64"]


# From names to functions of a `ClosedJaxpr` and its name that make an executable: a
# callable from arrays to a list of arrays, with the attribute `text`. The last one is
# the default.
backends = {}


class Interpreter:
    """Runs a program one equation at a time.

    Args:
      closed: a `ClosedJaxpr`.
      name: what the program is called.
    """

    def __init__(self, closed, name="program"):
        self.jaxpr, self.consts, self.name = closed.jaxpr, closed.consts, name

    text = property(lambda self: str(self.jaxpr))

    def __call__(self, *args):
        """Return the list of results."""
        with set_current_trace(EvalTrace()):
            return list(map(asarray_impl, eval_jaxpr(self.jaxpr, self.consts, *args)))


backends["interpreter"] = Interpreter


def without_waste(closed):
    """Return a program without the equations that neither results nor effects need."""
    return dce_program(closed, (True,) * len(closed.outvars))[0]


_executables = cache_by_object()


def backend_name(name=None):
    """Return the name of a backend: this one, the configured one, or the default.

    Raises:
      RuntimeError: if there is no such backend.
    """
    name = name or config.minijax_backend or list(backends)[-1]
    if name not in backends:
        known = ", ".join(backends)
        raise RuntimeError(f"Unknown backend {name!r}; there are: {known}.")
    return name


def compile_context():
    """Return what compiling depends on, beside the program."""
    switches = tuple([getattr(config, name) for name in compiled_switches])
    return config.minijax_backend, switches


def compiled(closed, backend=None, name="program"):
    """Return the executable of a program; it is made once.

    Args:
      closed: a `ClosedJaxpr`.
      backend: the name of a backend, or None for the default.
      name: what the program is called.
    """
    backend = backend_name(backend)
    key = backend, compile_context()
    once = once_of(_executables, closed)
    return once.get(key, lambda: backends[backend](without_waste(closed), name))
