# Made from chapters/13_python.md by `make chapter`;
# edit the chapter, not this file.
"""Primitives in Python: those that act on each element.

NumPy's function is called where it means exactly what the primitive means.
"""

from functools import cache

import numpy as np

from minijax import lax
from minijax.arrays.dtypes import is_inexact
from minijax.emitted.emission import python_rules
from minijax.emitted.evaluations import write_evaluation
from minijax.emitted.source_text import number_text
from minijax.jaxprs.jaxpr import Literal

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
    """Return the rule of a primitive that is an operator of Python."""

    def spell(writer, eqn, *operands):
        if not same_meaning(name, eqn):
            return None
        if eqn.invars[0].aval.dtype.kind == "c" and not eqn.outvars[0].aval.shape:
            return f"np.{name}({', '.join(operands)})"
        left, right = spelled(eqn, operands)
        return f"{left} {symbol} {right}"

    return expression(spell)


def prefix(symbol, name):
    """Return the rule of a primitive that is an operator in front of its operand."""

    def spell(writer, eqn, x):
        return f"{symbol}{x}" if same_meaning(name, eqn) else None

    return expression(spell)


INFIX = {
    "add": ("+", "add"), "sub": ("-", "subtract"), "mul": ("*", "multiply"),
    "add_any": ("+", "add"), "div": ("/", "divide"),
    "eq": ("==", "equal"), "ne": ("!=", "not_equal"), "lt": ("<", "less"),
    "le": ("<=", "less_equal"), "gt": (">", "greater"), "ge": (">=", "greater_equal"),
    "and": ("&", "bitwise_and"), "or": ("|", "bitwise_or"), "xor": ("^", "bitwise_xor"),
}  # fmt: skip

PREFIX = {"neg": ("-", "negative"), "not": ("~", "invert")}

UFUNCS = {
    "exp": "exp", "exp2": "exp2", "expm1": "expm1", "log": "log", "log1p": "log1p",
    "sqrt": "sqrt", "cbrt": "cbrt", "sin": "sin", "cos": "cos", "tan": "tan",
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "sinh": "sinh",
    "cosh": "cosh", "tanh": "tanh", "asinh": "arcsinh", "acosh": "arccosh",
    "atanh": "arctanh", "abs": "abs", "conj": "conj", "floor": "floor", "ceil": "ceil",
    "is_finite": "isfinite", "max": "maximum", "min": "minimum",
}  # fmt: skip


def register(rules):
    """Add rules to the table, by the names of primitives of `lax`."""
    for primitive, rule in rules.items():
        python_rules[getattr(lax, f"{primitive}_p")] = rule


register({primitive: infix(*names) for primitive, names in INFIX.items()})
register({primitive: prefix(*names) for primitive, names in PREFIX.items()})
register({primitive: ufunc(name) for primitive, name in UFUNCS.items()})


def _select(writer, eqn, which, *cases):
    aval = eqn.invars[0].aval
    if aval.dtype.kind != "b" or len(cases) != 2:
        return None
    if not aval.shape:
        which = number_text(eqn.invars[0]) or which
        return f"{cases[1]} if {which} else {cases[0]}"
    return f"np.where({which}, {cases[1]}, {cases[0]})"


python_rules[lax.select_n_p] = expression(_select)


def of_floats(template):
    """Return the rule of an expression that is right for NumPy's own floats."""

    def spell(writer, eqn, *operands):
        if eqn.invars[0].aval.dtype.kind == "f":
            return template.format(*operands)

    return expression(spell)


def _square(writer, eqn, x):
    aval = eqn.invars[0].aval
    scalar = aval.dtype.kind == "c" and not aval.shape
    return f"np.multiply({x}, {x})" if scalar else f"{x} * {x}"


def power_text(x, y, dtype):
    """Return the expression of an integer power of floats or integers."""
    if y < 0:
        return f"1 / {power_text(x, -y, dtype)}"
    return f"np.power({x}, {np.asarray(y, dtype)})"


def _integer_pow(writer, eqn, x):
    y, dtype = eqn.params["y"], eqn.invars[0].aval.dtype
    short = dtype.kind in "iuf" and 0 < abs(y) < 128
    return power_text(x, y, dtype) if short else None


def may_be_half(atom):
    """Return whether an exponent may be 1/2; of most literals one knows better."""
    return not isinstance(atom, Literal) or atom.val == 0.5


def _pow(writer, eqn, x, y):
    base, exponent = [atom.aval.dtype for atom in eqn.invars]
    if base == exponent and may_be_half(eqn.invars[1]):
        return None  # NumPy takes a square root
    if base == exponent:
        return f"np.power({', '.join(spelled(eqn, [x, y]))})"
    return f"np.power({x}, {y}.astype({writer.dtype(base)}))"


def _round(writer, eqn, x):
    even = eqn.params["rounding_method"] == lax.RoundingMethod.TO_NEAREST_EVEN
    return f"np.rint({x})" if even and same_meaning("rint", eqn) else None


def _convert(writer, eqn, x):
    old, new = eqn.invars[0].aval.dtype, eqn.outvars[0].aval.dtype
    if old == new:
        return x
    if is_inexact(old) and new.kind in "iu":
        return None
    part = f"{x}.real" if old.kind == "c" and new.kind != "c" else x
    return f"{part}.astype({writer.dtype(new)})"


def _clamp(writer, eqn, low, x, high):
    return f"np.minimum(np.maximum({x}, {low}), {high})"


register({
    "rsqrt": of_floats("1 / np.sqrt({})"),
    "logistic": of_floats("1 / (1 + np.exp(-{}))"),
    "rem": of_floats("np.fmod({}, {})"),
    "atan2": of_floats("np.arctan2({}, {})"),
    "real": expression(lambda writer, eqn, x: f"{x}.real"),
    "imag": expression(lambda writer, eqn, x: f"{x}.imag"),
    "copy": expression(lambda writer, eqn, x: f"{x}.copy()"),
    "square": expression(_square), "integer_pow": expression(_integer_pow),
    "pow": expression(_pow), "round": expression(_round),
    "convert_element_type": expression(_convert), "clamp": expression(_clamp),
})  # fmt: skip

CALLED = """
    sign erf erfc erf_inv lgamma digamma complex shift_left shift_right_logical
    shift_right_arithmetic population_count clz reduce_precision nextafter
""".split()
register(dict.fromkeys(CALLED, write_evaluation))
