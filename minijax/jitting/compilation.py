# Made from chapters/12_jit.md by `make chapter`;
# edit the chapter, not this file.
"""From a program to something that runs it: backends, and what they have made.

Reference: ``jax.stages.Compiled``.
"""

import os
from typing import NamedTuple

from minijax.arrays.array import ArrayImpl, asarray_impl
from minijax.arrays.settings import config
from minijax.core import EvalTrace, current_trace, set_current_trace
from minijax.jaxprs.jaxpr import eval_jaxpr
from minijax.jaxprs.latest import Latest
from minijax.jitting.programs import dce_program
from minijax.jitting.remembering import cache_by_object, once_of, trace_context

config.define("minijax_backend", os.environ.get("MINIJAX_BACKEND"), lambda name: name)


# From names to functions of a `ClosedJaxpr` and its name that make an executable: a
# callable from arrays to a list of arrays, with the attribute `text`. One with a true
# attribute `donates` takes a keyword `donated` as well.
backends = {}

# From names to functions of a `ClosedJaxpr`, its name, and the flags of donated inputs
# that return a text: what the program looks like on the way to an executable.
dialects = {}


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


def _typed(x, aval):
    """Return a result as an array; one that is a literal is as weak as it was."""
    x = asarray_impl(x)
    return x if x.aval == aval else ArrayImpl(x._buffer, aval, x.device)


backends["interpreter"] = Interpreter
default_backend = Latest("interpreter")


def without_waste(closed):
    """Return a program without the equations that neither results nor effects need."""
    return dce_program(closed, (True,) * len(closed.outvars))[0]


_executables = cache_by_object()


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


# What returns the kind of processor that code is made for, as a switch names it.
processor = Latest(lambda: None)


def compile_context():
    """Return what compiling depends on, beside the program."""
    return config.minijax_backend, config.jax_enable_x64, processor.value()


def compiled(closed, backend=None, name="program", donated=()):
    """Return the executable of a program; it is made once.

    Args:
      closed: a `ClosedJaxpr`.
      backend: the name of a backend, or None for the default.
      name: what the program is called.
      donated: for each input whether its memory may be written to; () for none.
    """
    backend = backend_name(backend)
    make = backends[backend]
    options = {}
    if any(donated) and getattr(make, "donates", False):
        options["donated"] = tuple(donated)
    key = backend, compile_context(), options.get("donated")
    once = once_of(_executables, closed)
    if (value := once.values.get(key)) is not None:
        return value
    with once.turn(key) as value:
        if value is None:
            value = make(without_waste(closed), name, **options)
            once.offer(key, value)
    return value


class Surroundings(NamedTuple):
    """What a call depends on beside the function and its arguments.

    Attributes:
      tracing, compiling: `trace_context` and `compile_context`.
      disabled: whether functions run as Python.
    """

    tracing: tuple
    compiling: tuple
    disabled: bool


_seen = None, None, None, None


def surroundings():
    """Return the `Surroundings` of a call: the same object, as long as nothing changes.

    Whether anything has changed is seen from three objects that are replaced then.
    """
    global _seen
    (values, overrides), trace, seen = config.state, current_trace(), _seen
    if seen[0] is values and seen[1] is overrides and seen[2] is trace:
        return seen[3]
    here = Surroundings(trace_context(), compile_context(), config.jax_disable_jit)
    if isinstance(trace, EvalTrace):  # the others end soon, and nobody should hold them
        _seen = values, overrides, trace, here
    return here
