"""Primitives in Python: those that act on each element.

NumPy's function is called where it means exactly what the primitive means.
"""

# Made from chapters/13_python.md by `make chapter`;
# edit the chapter, not this file.

from minijax import lax
from minijax.emitted.emission import python_rules
from minijax.emitted.evaluations import write_evaluation
from minijax.emitted.spelling import INFIX, UFUNCS, same_meaning, spelled


def expression(spell):
    """Return the rule that writes one expression, or else calls the evaluation.

    Args:
      spell: a function ``(writer, eqn, *operands)`` that returns the expression, or
        None where there is no short one.
    """

    def rule(writer, eqn, operands, results):
        text = spell(writer, eqn, *operands)
        if text is None:
            write_evaluation(writer, eqn, operands, results)
        else:
            writer.line(f"{results[0]} = {text}")

    return rule


def ufunc(name):
    """Return the rule of a primitive that is a universal function of NumPy."""

    def spell(writer, eqn, *operands):
        if same_meaning(name, eqn):
            return f"np.{name}({', '.join(spelled(eqn, operands))})"

    return expression(spell)


def infix(symbol, name):
    """Return the rule of a primitive that is a Python operator."""

    def spell(writer, eqn, *operands):
        if not same_meaning(name, eqn):
            return None
        if eqn.invars[0].aval.dtype.kind == "c" and not eqn.outvars[0].aval.shape:
            # NumPy's scalars have code of their own, which may round otherwise.
            return f"np.{name}({', '.join(operands)})"
        left, right = spelled(eqn, operands)
        return f"{left} {symbol} {right}"

    return expression(spell)


def add_rules(rules):
    """Add rules to the table, by the names of primitives of `lax`."""
    for primitive, rule in rules.items():
        python_rules[getattr(lax, f"{primitive}_p")] = rule


add_rules({primitive: infix(*names) for primitive, names in INFIX.items()})
add_rules({primitive: ufunc(name) for primitive, name in UFUNCS.items()})
