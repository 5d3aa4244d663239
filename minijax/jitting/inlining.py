"""The class of the primitive `jit`: a call may be asked to vanish.

Reference: the parameter ``inline`` of ``jax.jit``.
"""

# Made from chapters/12_jit_ground.md by `make chapter`;
# edit the chapter, not this file.

from minijax.core import Primitive, current_trace, refuse_dead_tracers
from minijax.jaxprs.jaxpr import eval_jaxpr
from minijax.jaxprs.staging import JaxprTrace


class JitPrimitive(Primitive):
    """A call; one that is to be inlined vanishes when it is written down."""

    def bind(self, *args, jaxpr, **params):
        """Return the list of the results of the program `jaxpr`."""
        trace = current_trace()
        if params.get("inline") and isinstance(trace, JaxprTrace):
            return eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *args)
        refuse_dead_tracers(self, args)
        return trace.process_primitive(self, args, {"jaxpr": jaxpr, **params})
