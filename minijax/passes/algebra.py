# Made from chapters/22_passes_rest.md by `make chapter`;
# edit the chapter, not this file.
"""Algebraic simplification by arithmetic of its own, besides the identities."""

import math

from minijax import lax
from minijax.arrays.dtypes import kind_of
from minijax.batching.rules import primitives
from minijax.passes.constant_folding import number_of
from minijax.passes.identities import IDENTITIES, built
from minijax.passes.sweeping import literal, number_in, put, scalar_in, stretched_to


def simpler_power(sweep, eqn):
    """A rule: no power at all, for the exponents 0 and 1."""
    [x], y = eqn.invars, eqn.params["y"]
    if y == 1:
        return [x]
    return [built(sweep, 1, {}, x.aval)] if y == 0 else None


def multiply_instead(sweep, eqn):
    """A rule: multiplication by a power of two, in place of the division by one."""
    x, y = eqn.invars
    number = number_in(sweep, y)
    if number is None or kind_of(number.aval.dtype) not in "hf":
        return None
    value = float(number.val)
    mantissa, exponent = math.frexp(value)
    if abs(mantissa) != 0.5 or not -14 < exponent < 15:
        return None
    factor = stretched_to(sweep, literal(1 / value, number.aval), y.aval.shape)
    return put(sweep, lax.mul_p, x, factor)


def choose_instead(sweep, eqn):
    """A rule: a choice between x and 0, in place of x times what was a bool."""
    shape = eqn.outvars[0].aval.shape
    for y, x in (eqn.invars, eqn.invars[::-1]):
        mask = sweep.definition(y, lax.convert_element_type_p)
        if mask is None or mask.invars[0].aval.dtype.kind != "b":
            continue
        if kind_of(y.aval.dtype) in "hfc" and y.aval.shape == shape:
            zero = built(sweep, 0, {}, y.aval)
            x = stretched_to(sweep, x, shape)
            return put(sweep, lax.select_n_p, *mask.invars, zero, x)
    return None


def factor_and_number(sweep, eqn):
    """Return the operands of a product, or sum, the number behind; None if none is."""
    x, y = eqn.invars
    if number_in(sweep, y) is None:
        x, y = y, x
    return None if number_in(sweep, y) is None else (x, y)


def product_with_number(sweep, atom, primitive=lax.mul_p):
    """Return the two factors of an atom that is a real product with a number, or None.

    The number is the second. The primitive may be another one.
    """
    eqn = sweep.definitions.get(atom)
    if eqn is None or eqn.primitive is not primitive:
        return None
    return None if atom.aval.dtype.kind == "c" else factor_and_number(sweep, eqn)


def other_sign(sweep, eqn):
    """A rule: a product with a negated number, in place of a product negated."""
    found = product_with_number(sweep, eqn.invars[0])
    if found is None:
        return None
    x, y = found
    return put(sweep, lax.mul_p, x, number_of(sweep, lax.neg_p, y))


def negated_factor(sweep, eqn):
    """A rule: a product with a negated number, in place of one of what is negated."""
    found = factor_and_number(sweep, eqn)
    negation = found and sweep.definitions.get(found[0])
    if negation is None or negation.primitive is not lax.neg_p:
        return None
    if found[1].aval.dtype.kind == "c":
        return None
    number = number_of(sweep, lax.neg_p, found[1])
    return put(sweep, lax.mul_p, *negation.invars, number)


def join_numbers(sweep, eqn):
    """A rule for integers: one number, in place of two that are added or multiplied."""
    found = factor_and_number(sweep, eqn)
    if found is None or kind_of(found[1].aval.dtype) not in "iu":
        return None
    first = product_with_number(sweep, found[0], eqn.primitive)
    if first is None:
        return None
    number = number_of(sweep, eqn.primitive, first[1], found[1])
    return put(sweep, eqn.primitive, first[0], number)


STRETCHING = frozenset(primitives("""
    add add_any sub mul div rem max min nextafter eq ne lt le gt ge atan2 complex and
    or xor shift_left shift_right_logical shift_right_arithmetic pow
"""))


def let_stretch(sweep, eqn):
    """A rule: a scalar as it is, in place of a scalar made as large as the others."""
    x, y = eqn.invars
    a, b = scalar_in(sweep, x), scalar_in(sweep, y)
    if a is x and b is y:
        return None
    if eqn.outvars[0].aval.shape not in (a.aval.shape, b.aval.shape):
        return None
    return put(sweep, eqn.primitive, a, b, **eqn.params)

ALGEBRA = [
    ({lax.integer_pow_p}, simpler_power),
    IDENTITIES,
    ({lax.div_p}, multiply_instead),
    ({lax.neg_p}, other_sign),
    ({lax.mul_p}, choose_instead),
    ({lax.mul_p}, negated_factor),
    ({lax.add_p, lax.mul_p}, join_numbers),
    (STRETCHING, let_stretch),
]
