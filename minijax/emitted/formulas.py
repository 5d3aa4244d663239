"""Primitives in Python: elementwise ones that have a formula of their own."""

# Made from chapters/13_python_rest.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax import lax
from minijax.arrays.dtypes import is_inexact, kind_of
from minijax.emitted.elementwise import add_rules, expression
from minijax.emitted.emission import python_rules
from minijax.emitted.evaluations import write_evaluation
from minijax.emitted.spelling import number_text, same_meaning, spelled
from minijax.jaxprs.jaxpr import Literal

PREFIX = {"neg": ("-", "negative"), "not": ("~", "invert")}


def prefix(symbol, name):
    """Return the rule of a primitive that is an operator in front of its operand."""

    def spell(writer, eqn, x):
        return f"{symbol}{x}" if same_meaning(name, eqn) else None

    return expression(spell)


add_rules({primitive: prefix(*names) for primitive, names in PREFIX.items()})


def _select(writer, eqn, which, *cases):
    aval = eqn.invars[0].aval
    if aval.dtype.kind != "b" or len(cases) != 2:
        return None
    if not aval.shape:
        which = number_text(eqn.invars[0]) or which
        return f"{cases[1]} if {which} else {cases[0]}"
    return f"np.where({which}, {cases[1]}, {cases[0]})"


python_rules[lax.select_n_p] = expression(_select)


def of_floats(template, bits=16):
    """Return the rule of an expression that is right for floats from `bits` on."""

    def spell(writer, eqn, *operands):
        dtype = eqn.invars[0].aval.dtype
        if dtype.kind == "f" and dtype.itemsize * 8 >= bits:
            return template.format(*operands)

    return expression(spell)


def _square(writer, eqn, x):
    return None if eqn.invars[0].aval.dtype.kind == "c" else f"{x} * {x}"


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
    if old.char in "dD" and kind_of(new) == "h":
        return None  # it is rounded twice
    part = f"{x}.real" if old.kind == "c" and new.kind != "c" else x
    return f"{part}.astype({writer.dtype(new)})"


def _clamp(writer, eqn, low, x, high):
    return f"np.minimum(np.maximum({x}, {low}), {high})"


add_rules({
    "rsqrt": of_floats("1 / np.sqrt({})", bits=32),
    "logistic": of_floats("1 / (1 + np.exp(-{}))", bits=32),
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
add_rules(dict.fromkeys(CALLED, write_evaluation))
