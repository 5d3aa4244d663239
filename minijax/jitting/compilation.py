# Made from chapters/12_jit.md by `make chapter`;
# edit the chapter, not this file.
"""From a program to something that runs it: backends, and what they have made.

Reference: ``jax.stages.Compiled``.
"""

import os

from minijax.arrays.array import ArrayImpl, asarray_impl
from minijax.arrays.settings import config
from minijax.core import EvalTrace, set_current_trace
from minijax.forgetting.programs import prune
from minijax.forgetting.remembering import cache_by_object, once_of
from minijax.jaxprs.jaxpr import eval_jaxpr
from minijax.jaxprs.latest import Latest

# From names to functions of a `ClosedJaxpr` and its name that make an executable: a
# callable from arrays to a list of arrays, with the attribute `text`. One with a true
# attribute `donates` takes a keyword `donated` as well.
backends = {}


class Interpreter:
    """Runs a program one equation at a time.

    Args:
      closed: a `ClosedJaxpr`.
      name: what the program is called.
    """

    def __init__(self, closed, name="program"):
        self.jaxpr, self.consts, self.name = closed.jaxpr, closed.consts, name
        self.out_avals = closed.out_avals

    text = property(lambda self: str(self.jaxpr))

    def __call__(self, *args):
        """Return the list of results."""
        inside = config.override("minijax_backend", "interpreter")
        with set_current_trace(EvalTrace()), inside:
            outs = eval_jaxpr(self.jaxpr, self.consts, *args)
        return list(map(_typed, outs, self.out_avals))


backends["interpreter"] = Interpreter


config.define("minijax_backend", os.environ.get("MINIJAX_BACKEND"), lambda name: name)
default_backend = Latest("interpreter")

# What returns the kind of processor that code is made for, as a switch names it.
processor = Latest(lambda: None)

# From names to functions of a `ClosedJaxpr`, its name, and the flags of donated inputs
# that return a text: what the program looks like on the way to an executable.
dialects = {}


def _typed(x, aval):
    """Return a result as an array; one that is a literal is as weak as it was."""
    x = asarray_impl(x)
    return x if x.aval == aval else ArrayImpl(x._buffer, aval, x.device)


def backend_name(name=None):
    """Return the name of a backend: this one, the configured one, or the default.

    Raises:
      RuntimeError: if there is no such backend.
    """
    name = name or config.minijax_backend or default_backend.value
    if name not in backends:
        known = ", ".join(backends)
        raise RuntimeError(f"Unknown backend {name!r}; there are: {known}.")
    return name


def compile_context():
    """Return what compiling depends on, besides the program."""
    return config.minijax_backend, config.jax_enable_x64, processor.value()


def without_waste(closed):
    """Return a program without the equations that neither results nor effects need."""
    return prune(closed)[0]


def _options(backend, donated):
    """Return the keyword arguments that a backend takes besides program and name."""
    takes = any(donated) and getattr(backend, "donates", False)
    return {"donated": tuple(donated)} if takes else {}


_executables = cache_by_object()


def compiled(closed, backend=None, name="program", donated=()):
    """Return the executable of a program; it is made once.

    Args:
      closed: a `ClosedJaxpr`.
      backend: the name of a backend, or None for the default.
      name: what the program is called.
      donated: for each input whether its memory may be written to; () for none.
    """
    backend = backend_name(backend)
    options = _options(backends[backend], donated)
    key = backend, compile_context(), options.get("donated")
    once = once_of(_executables, closed)
    if (value := once.values.get(key)) is not None:
        return value
    with once.turn(key) as value:
        if value is None:
            value = backends[backend](without_waste(closed), name, **options)
            once.offer(key, value)
    return value
