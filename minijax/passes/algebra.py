"""Algebraic simplification by arithmetic of its own, besides the identities."""

# Made from chapters/22_passes_rest.md by `make chapter`;
# edit the chapter, not this file.

import math

from minijax import lax
from minijax.arrays.dtypes import kind_of
from minijax.batching.rules import primitives
from minijax.lax.conversion import convert_element_type_p
from minijax.passes.constant_folding import number_of
from minijax.passes.identities import IDENTITIES, built
from minijax.passes.sweeping import (
    literal,
    number_in,
    put,
    scalar_in,
    stretched_to,
    typed,
)


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
    ({lax.mul_p}, negated_factor),
    ({lax.add_p, lax.mul_p}, join_numbers),
    (STRETCHING, let_stretch),
]


VIEWS = {lax.broadcast_in_dim_p, lax.reshape_p, lax.squeeze_p, lax.transpose_p}


def truths_behind(sweep, atom):
    """Return the truths that an atom is, converted to floats and moved; None if not."""
    views = []
    while (eqn := sweep.definitions.get(atom)) and eqn.primitive in VIEWS:
        views.append(eqn)
        atom = eqn.invars[0]
    conversion = sweep.definition(atom, convert_element_type_p)
    if conversion is None or conversion.invars[0].aval.dtype.kind != "b":
        return None
    [truths] = conversion.invars
    for eqn in reversed(views):
        [truths] = put(sweep, eqn.primitive, truths, **eqn.params)
    return truths


def choose_by_truths(sweep, eqn):
    """A rule: the float or 0, in place of a product of a float with truths."""
    [result] = eqn.outvars
    if kind_of(result.aval.dtype) not in "hfc":
        return None
    for factor, other in (eqn.invars, eqn.invars[::-1]):
        truths = truths_behind(sweep, factor)
        if truths is not None:
            zero = literal(0, other.aval.update(shape=()))
            parts = truths, zero, other
            parts = [stretched_to(sweep, x, result.aval.shape) for x in parts]
            [chosen] = put(sweep, lax.select_n_p, *parts)
            return [typed(sweep, chosen, result.aval)]
    return None
