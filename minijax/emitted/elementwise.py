# Made from chapters/13_python.md by `make chapter`;
# edit the chapter, not this file.
"""Primitives in Python: those that act on each element.

NumPy's function is called where it means exactly what the primitive means.
"""

from functools import cache

import numpy as np

from minijax import lax
from minijax.emitted.emission import python_rules
from minijax.emitted.evaluations import write_evaluation
from minijax.emitted.scopes import scalar_of
from minijax.jaxprs.jaxpr import Literal


def number_text(atom):
    """Return a literal as Python writes the number, or None if it needs its dtype.

    NumPy gives a Python number the dtype of the operand beside it.
    """
    scalar = scalar_of(atom) if isinstance(atom, Literal) else None
    if scalar is None or scalar.dtype.kind not in "biuf" or not np.isfinite(scalar):
        return None
    text, kind = str(scalar), type(scalar.item())
    same = kind is bool or scalar.dtype.type(kind(text)) == scalar
    return text if same else None


LOSING = "divide", "expm1"  # infinities and zeros of complex numbers


@cache
def means(name, *dtypes):
    """Return whether a function of NumPy takes and gives exactly these dtypes."""
    if name in LOSING and dtypes[0].kind == "c":
        return False
    try:
        return getattr(np, name).resolve_dtypes((*dtypes[:-1], None)) == dtypes
    except TypeError:
        return False


def same_meaning(name, eqn):
    """Return whether a function of NumPy has the dtypes of an equation."""
    return means(name, *[atom.aval.dtype for atom in [*eqn.invars, *eqn.outvars]])


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


def spelled(eqn, operands):
    """Return operands, with literals as plain numbers unless there is nothing else."""
    if all(isinstance(atom, Literal) for atom in eqn.invars):
        return operands
    return [number_text(atom) or x for atom, x in zip(eqn.invars, operands)]


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
            return f"np.{name}({', '.join(operands)})"
        left, right = spelled(eqn, operands)
        return f"{left} {symbol} {right}"

    return expression(spell)


INFIX = {
    "add": ("+", "add"), "sub": ("-", "subtract"), "mul": ("*", "multiply"),
    "add_any": ("+", "add"), "div": ("/", "divide"),
    "eq": ("==", "equal"), "ne": ("!=", "not_equal"), "lt": ("<", "less"),
    "le": ("<=", "less_equal"), "gt": (">", "greater"), "ge": (">=", "greater_equal"),
    "and": ("&", "bitwise_and"), "or": ("|", "bitwise_or"), "xor": ("^", "bitwise_xor"),
}  # fmt: skip

UFUNCS = {
    "exp": "exp", "exp2": "exp2", "expm1": "expm1", "log": "log", "log1p": "log1p",
    "sqrt": "sqrt", "cbrt": "cbrt", "sin": "sin", "cos": "cos", "tan": "tan",
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "sinh": "sinh",
    "cosh": "cosh", "tanh": "tanh", "asinh": "arcsinh", "acosh": "arccosh",
    "atanh": "arctanh", "abs": "abs", "conj": "conj", "floor": "floor", "ceil": "ceil",
    "is_finite": "isfinite", "max": "maximum", "min": "minimum",
}  # fmt: skip


def add_rules(rules):
    """Add rules to the table, by the names of primitives of `lax`."""
    for primitive, rule in rules.items():
        python_rules[getattr(lax, f"{primitive}_p")] = rule


add_rules({primitive: infix(*names) for primitive, names in INFIX.items()})
add_rules({primitive: ufunc(name) for primitive, name in UFUNCS.items()})
