"""Where values come from: parameters, assignments, equations and arguments.

Reference: the hints of ``jax.errors.UnexpectedTracerError``.
"""

# Made from chapters/08_errors_ground.md by `make chapter`;
# edit the chapter, not this file.

import dis
import inspect
import re

from minijax.core import Tracer
from minijax.diagnostics.frames import UserLine
from minijax.jaxprs.staging import JaxprTracer


def parts_of(leaf):
    """Return what a leaf holds: the ends and the step of a slice, or itself."""
    cut = isinstance(leaf, slice)
    return (leaf.start, leaf.stop, leaf.step) if cut else (leaf,)


def arguments_of(frame):
    """Return the values of the parameters of the function that a frame runs."""
    values = inspect.getargvalues(frame)
    names = [*values.args, values.varargs, values.keywords]
    return [values.locals[name] for name in names if name in values.locals]


def assigned(line, name):
    """Return the `UserLine` that gave a variable its value, before `line`, or None."""
    found = None
    for step in dis.get_instructions(line.code):
        if step.offset >= line.instruction:
            break
        names = step.argval if isinstance(step.argval, tuple) else (step.argval,)
        if step.opname.startswith("STORE_") and name in names:
            found = UserLine(line.code, step.offset)
    return found


def staged(value):
    """Return the `JaxprTracer` under the tracers of other traces, or None."""
    while isinstance(value, Tracer) and not isinstance(value, JaxprTracer):
        value = getattr(value, "primal", getattr(value, "value", None))
    return value if isinstance(value, JaxprTracer) else None


def made(tracer):
    """Return the `UserLine` whose equation made a tracer, or None."""
    for eqn in tracer._trace.eqns:
        if tracer.variable in eqn.outvars:
            return eqn.source
    return None


def argument(tracer):
    """Return which argument of the function that is traced a tracer is, or None."""
    trace = tracer._trace
    names, function = trace.origin.argument_names, trace.origin.function
    if names is None or tracer.variable not in trace.invars:
        return None
    return f"the argument {names()[trace.invars.index(tracer.variable)]} of {function}"


def birth(line, name, value):
    """Return where a value comes from, for a message; empty if that is not known."""
    tracer = staged(value)
    if tracer is not None and (found := argument(tracer)):
        return found
    source = made(tracer) if tracer is not None else None
    source = source or (name and assigned(line, re.split(r"\W", name)[0]))
    if source:
        return f"from {source.brief}"
    parameters = line.code.co_varnames[: line.code.co_argcount]
    known = name and re.split(r"\W", name)[0] in parameters
    return f"an argument of {line.code.co_name}" if known else ""
