# Made from chapters/13_python.md by `make chapter`;
# edit the chapter, not this file.
"""Primitives in Python: a program inside of a program, as a function that is called."""

from minijax.emitted.emission import python_rules
from minijax.jitting.primitive import jit_p


def _jit(writer, eqn, operands, results):
    inner = writer.emission.function(eqn.params["jaxpr"], eqn.params["name"])
    name = writer.constant(inner, inner.__name__, "a function above")
    left = f"[{', '.join(results)}] = " if results else ""
    writer.line(f"{left}{name}({', '.join(operands)})")


python_rules[jit_p] = _jit
