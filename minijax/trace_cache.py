# Made from chapters/11_jit.md by `make chapter`;
# edit the chapter, not this file.
"""Functions of trees as programs, written down once per kind of arguments.

Reference: the tracing cache of ``jax.jit``.
"""

from typing import NamedTuple

from minijax.core import Tracer, current_trace
from minijax.jaxpr import ClosedJaxpr
from minijax.programs import partition
from minijax.remembering import Once, cache_by_object, trace_context
from minijax.staging import Origin, trace_to_jaxpr
from minijax.treedefs import PyTreeDef


class Program(NamedTuple):
    """A user's function, written down.

    Attributes:
      closed: a `ClosedJaxpr`, whose first inputs are those of `captured`.
      captured: the tracers, of transformations around, that the function has used.
      out_tree: the structure of its result.
      name: of the function.
    """

    closed: ClosedJaxpr
    captured: list
    out_tree: PyTreeDef
    name: str


_programs = cache_by_object()


def program_of(call, statics=(), hoist=False):
    """Return the `Program` of a call; it is made once for each kind of arguments.

    A program that has picked up tracers of the transformations around is right for them
    alone, and not kept.

    Args:
      call: a `FlatCall`.
      statics: hashable data on which the program depends.
      hoist: whether all constants become inputs, not only tracers.
    """
    once = _programs.get(call.fun) or _programs.setdefault(call.fun, Once())
    key = call.in_tree, tuple(call.avals), statics, hoist, trace_context()
    return once.get(key, lambda: _write_down(call, hoist), _stands_alone)


def _stands_alone(program):
    return not any(isinstance(x, Tracer) for x in program.captured)


def _write_down(call, hoist):
    origin = Origin(call.name, call.fun_name, call.names)
    jaxpr, consts = trace_to_jaxpr(call, call.avals, origin)
    taken = [hoist or isinstance(const, Tracer) for const in consts]
    constvars, lifted = partition(taken, jaxpr.constvars)
    values, captured = partition(taken, consts)
    jaxpr = jaxpr.replace(constvars=constvars, invars=lifted + jaxpr.invars)
    name = getattr(call.fun, "__name__", call.fun_name)
    return Program(ClosedJaxpr(jaxpr, values), captured, call.out_tree, name)
