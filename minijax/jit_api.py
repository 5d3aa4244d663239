# Made from chapters/11_jit.md by `make chapter`;
# edit the chapter, not this file.
"""jit: a function is written down once, and run as a program from then on.

Reference: ``jax.jit``.
"""

from functools import wraps

from minijax.api_util import FlatCall
from minijax.jit_primitive import jit_p
from minijax.trace_cache import program_of


def jit(fun):
    """Return a function that runs `fun` as a program."""

    @wraps(fun)
    def jitted(*args, **kwargs):
        call = FlatCall("jit", fun, args, kwargs)
        program = program_of(call)
        operands = [*program.captured, *call.leaves]
        outs = jit_p.bind(*operands, jaxpr=program.closed, name=program.name)
        return program.out_tree.unflatten(outs)

    return jitted
