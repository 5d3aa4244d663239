"""The tracing cache: functions of trees as programs, each made once for its key.

Reference: the tracing cache of ``jax.jit``.
"""

# Made from chapters/12_jit_ground.md by `make chapter`;
# edit the chapter, not this file.

from typing import NamedTuple

from minijax.core import Tracer, current_trace, lifetime
from minijax.diagnostics.user_lines import readers
from minijax.forgetting.programs import partition
from minijax.forgetting.remembering import Once, cache_by_object, once_of, trace_context
from minijax.jaxprs.jaxpr import ClosedJaxpr
from minijax.jaxprs.latest import Latest
from minijax.jaxprs.staging import JaxprTrace, Origin
from minijax.pytrees.treedefs import PyTreeDef


class Key(NamedTuple):
    """What a program depends on, besides the function.

    Attributes:
      tree: the structure of the arguments, a `PyTreeDef` of ``(args, kwargs)``.
      avals: the abstract values of their leaves.
      statics: pairs of a name and a `Static`.
      hoist: whether constants are inputs.
      switches: the values of `traced_switches`.
      axes: the named axes around, each a `MappedAxis`.
    """

    tree: PyTreeDef
    avals: tuple
    statics: tuple
    hoist: bool
    switches: tuple
    axes: tuple


class Program(NamedTuple):
    """A user's function, traced.

    Attributes:
      closed: a `ClosedJaxpr`, whose first inputs are those of `captured`.
      captured: the arrays and tracers that the function has used and that are inputs.
      out_tree: the structure of its result.
      name: of the function.
    """

    closed: ClosedJaxpr
    captured: list
    out_tree: PyTreeDef
    name: str


def _closed(call, key, jaxpr, consts):
    captures = [key.hoist or isinstance(const, Tracer) for const in consts]
    constvars, lifted = partition(captures, jaxpr.constvars)
    values, captured = partition(captures, consts)
    jaxpr = jaxpr.replace(constvars=constvars, invars=lifted + jaxpr.invars)
    closed = ClosedJaxpr(jaxpr, values)
    return Program(closed, captured, call.out_tree, name_of_program(call.fun))


def name_of_program(fun):
    """Return what the program of a function is called."""
    inner = getattr(fun, "func", fun)  # of a functools.partial
    return getattr(inner, "__name__", "<unnamed function>")


_programs = cache_by_object()
note_miss = Latest(lambda call, key, once: None)  # is told of each miss


def programs_of(fun):
    """Return the `Once` with the programs of a function, by `Key`."""
    try:
        return once_of(_programs, fun)
    except TypeError:  # it has no hash, or no weak references
        return Once()


def program_of(call, statics=(), hoist=False):
    """Return the `Program` of a call; it is made once for each kind of arguments.

    A program that has picked up tracers of the transformations around is right for them
    alone, and not kept.

    Args:
      call: a `FlatCall`.
      statics: pairs of a name and a `Static` on which the program depends.
      hoist: whether all constants become inputs, not only tracers.
    """
    once = programs_of(call.fun)
    key = Key(call.in_tree, tuple(call.avals), statics, hoist, *trace_context())
    if (program := once.values.get(key)) is not None:
        return program
    with once.turn(key):
        if (program := once.values.get(key)) is None:
            note_miss.value(call, key, once)
            origin = Origin(call.name, call.fun_name, call.names)
            trace = JaxprTrace(current_trace(), origin)
            with lifetime(trace):  # `trace_to_jaxpr`, with fewer calls on the stack
                outs = call.__call__(*map(trace.new_input, call.avals))
                jaxpr, consts = trace.to_jaxpr(outs)
            current_trace()  # who reads it lets go of the trace that has ended
            program = _closed(call, key, jaxpr, consts)
            alone = not any(isinstance(x, Tracer) for x in program.captured)
            once.offer(key, program, alone)
    return program


readers.add(program_of, keeps=True)
