# Made from chapters/13_python.md by `make chapter`;
# edit the chapter, not this file.
"""Primitives in Python: a program inside of a program, as a function that is called."""

from minijax.arrays.transfer import device_put_p
from minijax.emitted.emission import python_rules
from minijax.forgetting.barriers import optimization_barrier_p
from minijax.forgetting.policies import name_p
from minijax.jitting.costs import cost_rules
from minijax.jitting.primitive import jit_p
from minijax.own_rules.calls import CALLS
from minijax.own_rules.cotangent_rules import custom_lin_p
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
for _same in (optimization_barrier_p, name_p, device_put_p):  # they cost nothing
    python_rules[_same] = lambda writer, eqn, operands, results: writer.assign(
        results, operands
    )
    cost_rules[_same] = lambda eqn: {}
python_rules.reasons[custom_lin_p] = "It is never run, only transposed."
