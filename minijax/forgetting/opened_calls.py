"""Programs in the place of equations that stand for them.

Reference: ``inline_jaxpr_into_trace`` in ``jax._src.interpreters.partial_eval``.
"""

# Made from chapters/11_own_rules_ground.md by `make chapter`;
# edit the chapter, not this file.

from minijax.core import Trace, current_trace, set_current_trace
from minijax.forgetting.programs import stage
from minijax.jaxprs.jaxpr import JaxprEqn, jaxpr_as_fun


class InlineTrace(Trace):
    """Runs the programs that equations stand for; all else goes to its parent.

    Args:
      parent: the trace around.
      rules: a dictionary from primitives to functions ``rule(eqn)``, which return the
        `ClosedJaxpr` of an equation.
    """

    def __init__(self, parent, rules):
        self.parent, self.rules = parent, rules

    def process_primitive(self, primitive, args, params):
        if primitive not in self.rules:
            with set_current_trace(self.parent):
                return primitive.bind(*args, **params)
        program = self.rules[primitive](JaxprEqn([], [], primitive, params))
        with set_current_trace(self):
            return jaxpr_as_fun(program)(*args)


def inlined(closed, rules):
    """Return a program with those of `rules` in the place of equations."""

    def program(*flat):
        with set_current_trace(InlineTrace(current_trace(), rules)):
            return jaxpr_as_fun(closed)(*flat)

    return stage(program, closed.in_avals)
