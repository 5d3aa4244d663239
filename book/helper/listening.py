"""The two traces that early chapters listen with: names of what is bound, and types."""

from minijax.arrays.array import shape_rules, typeof
from minijax.core import Trace, Tracer, current_trace, set_current_trace, trace_scope


class DiaryTrace(Trace):
    """Chapter 1's diary without tracers: it notes the name of whatever is bound."""

    def __init__(self, parent):
        self.parent, self.diary = parent, []

    def process_primitive(self, primitive, args, params):
        self.diary.append(primitive.name)
        with set_current_trace(self.parent):
            return primitive.bind_all(*args, **params)


def binds(f, *args):
    """Return the names of the primitives that ``f(*args)`` binds."""
    with trace_scope(DiaryTrace(current_trace())) as trace:
        f(*args)
    return trace.diary


class ShapeTracer(Tracer):
    """A stand-in with a type and no numbers."""

    def __init__(self, trace, aval):
        super().__init__(trace)
        self.aval = aval


class ShapeTrace(Trace):
    """Chapter 2's trace, which answers each operation with a type."""

    def process_primitive(self, primitive, args, params):
        avals = shape_rules[primitive](*map(typeof, args), **params)
        return [ShapeTracer(self, aval) for aval in avals]


def shape_of(f):
    """Return a function like `f` that returns the type of its result."""

    def shaped(*args):
        with trace_scope(ShapeTrace()) as trace:
            return typeof(f(*[ShapeTracer(trace, typeof(arg)) for arg in args]))

    return shaped
