# Made from chapters/11_jit.md by `make chapter`;
# edit the chapter, not this file.
"""Functions of trees as programs, written down once per kind of arguments.

Reference: the tracing cache of ``jax.jit``.
"""

import math
from typing import NamedTuple

from minijax.cache_misses import log_reason
from minijax.core import Tracer, current_trace, lifetime
from minijax.jaxpr import ClosedJaxpr
from minijax.programs import partition
from minijax.remembering import Once, cache_by_object, once_of, trace_context
from minijax.settings import config
from minijax.staging import JaxprTrace, Origin
from minijax.treedefs import PyTreeDef


class Static:
    """A value in a key: equal to others of the same type, and equal in all its parts.

    Python's 1, 1.0 and True are equal and have one hash, and so are 0.0 and -0.0; as
    keys they differ.
    """

    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value

    def __hash__(self):
        return hash(self.value)

    def __eq__(self, other):
        return isinstance(other, Static) and _same(self.value, other.value)

    def __repr__(self):
        return repr(self.value)


def _same(a, b):
    if type(a) is not type(b):
        return False
    if type(a) is tuple:
        return len(a) == len(b) and all(map(_same, a, b))
    if type(a) is float and a == 0.0 == b:
        return math.copysign(1.0, a) == math.copysign(1.0, b)
    return a is b or _equal(a, b)


def _equal(a, b):
    try:
        return bool(a == b)
    except Exception as error:
        raise ValueError(
            "Static arguments should be comparable by ==, and these two of type "
            f"{type(a).__name__} are not: {type(error).__name__}: {error}"
        ) from error


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
    """A user's function, written down.

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
    taken = [key.hoist or isinstance(const, Tracer) for const in consts]
    constvars, lifted = partition(taken, jaxpr.constvars)
    values, captured = partition(taken, consts)
    jaxpr = jaxpr.replace(constvars=constvars, invars=lifted + jaxpr.invars)
    return Program(
        ClosedJaxpr(jaxpr, values), captured, call.out_tree, name_of_program(call.fun)
    )


def name_of_program(fun):
    """Return what the program of a function is called."""
    inner = getattr(fun, "func", fun)  # of a functools.partial
    return getattr(inner, "__name__", "<unnamed function>")


_programs = cache_by_object()


def programs_of(fun):
    """Return the `Once` with the programs of a function, by `Key`."""
    try:
        return once_of(_programs, fun)
    except TypeError:  # it has no hash, or nobody may hold it weakly
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
    with once.turn(key) as program:
        if program is None:
            if config.jax_explain_cache_misses:
                log_reason(call, key, once)
            origin = Origin(call.name, call.fun_name, call.names)
            trace = JaxprTrace(current_trace(), origin)
            with lifetime(trace):  # `trace_to_jaxpr`, with fewer calls on the stack
                outs = call.__call__(*map(trace.new_input, call.avals))
                jaxpr, consts = trace.to_jaxpr(outs)
            program = _closed(call, key, jaxpr, consts)
            once.offer(key, program, _stands_alone(program))
    return program


def _stands_alone(program):
    return not any(isinstance(x, Tracer) for x in program.captured)
