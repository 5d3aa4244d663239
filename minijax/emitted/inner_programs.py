"""Primitives in Python: a program inside of a program, as a function that is called."""

# Made from chapters/13_python.md by `make chapter`;
# edit the chapter, not this file.

from minijax.emitted.emission import python_rules
from minijax.jitting.primitive import jit_p
from minijax.own_rules.calls import CALLS
from minijax.own_rules.function_calls import callee_rules


def _call(writer, eqn, operands, results):
    callee = callee_rules[eqn.primitive](eqn)
    hint = eqn.params.get("name", eqn.primitive.name)
    inner = writer.emission.function(callee, hint)
    name = writer.constant(inner, inner.__name__, "a function above")
    left = f"[{', '.join(results)}] = " if results else ""
    writer.line(f"{left}{name}({', '.join(operands)})")


for _calls in (jit_p, *CALLS):
    python_rules[_calls] = _call
