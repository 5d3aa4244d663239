# Made from chapters/18_passes.md by `make chapter`;
# edit the chapter, not this file.
"""Algebraic simplification: equations replaced by simpler ones, by a table."""

import functools
import itertools
import math
from collections import defaultdict

import numpy as np

from minijax import lax
from minijax.arrays.dtypes import DTYPES, kind_of
from minijax.jaxprs.jaxpr import Literal
from minijax.passes.common_subexpressions import COMMUTATIVE, key_of
from minijax.passes.constant_folding import number_in, number_of, stretched_to
from minijax.passes.identities import identities
from minijax.passes.sweeping import INSIDE, literal, sweeping


@functools.cache
def primitive_named(name):
    """Return the primitive of a term."""
    return getattr(lax, f"{name}_p")


def variants(term):
    """Return a term in all orders in which its operands may stand."""
    if not isinstance(term, tuple):
        return [term]
    name, *args = term
    orders = [args]
    if primitive_named(name) in COMMUTATIVE and args[0] != args[1]:
        orders.append(args[::-1])
    return [
        (name, *found)
        for order in orders
        for found in itertools.product(*map(variants, order))
    ]


def looks(term):
    """Return what to look for first in a term: pairs of a place, and what is there."""
    _, *args = term
    found = [(i, arg) for i, arg in enumerate(args) if not isinstance(arg, str)]
    terms = [(i, arg) for i, arg in found if isinstance(arg, tuple)]
    if terms or found:
        place, arg = (terms or found)[0]
        return place, primitive_named(arg[0]) if terms else repr(arg)
    return None, None


def dtypes_of(row):
    """Return the dtypes that the last operand of the left hand side may have."""
    inside = row.left[-1]
    other = isinstance(inside, tuple) and inside[0] in _ANOTHER_DTYPE
    own = not other and row.left[0] != "select_n"
    return [dtype for dtype in DTYPES if not own or kind_of(dtype) in row.kinds]


_ANOTHER_DTYPE = ("eq", "ne", "lt", "le", "gt", "ge", "complex", "real", "imag")


def index_of(rows):
    """Return identities by all that can be seen of an equation at first sight.

    Args:
      rows: list of `Identity`.

    Returns:
      A dictionary from pairs of a primitive and the dtype of the last operand to
      dictionaries from a place among the operands to dictionaries from what is there, a
      primitive or the text of a number, to lists of pairs of a term and its
      `Identity`. The place None has the terms of variables alone.
    """
    index = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for row in rows:
        for left in variants(row.left) if row.kinds else ():
            primitive, (place, what) = primitive_named(left[0]), looks(left)
            for dtype in dtypes_of(row):
                index[primitive, dtype][place][what].append((left, row))
    return {
        key: [(place, {**table}) for place, table in places.items()]
        for key, places in index.items()
    }


_numbers = {repr(x): x for x in (0, -0.0, 1, -1)}


def texts_of_numbers():
    """Return the texts of the numbers in the table, by dtype and bytes."""
    texts = defaultdict(tuple)
    for dtype in DTYPES:
        for text, x in _numbers.items():
            texts[dtype, np.asarray(x).astype(dtype).tobytes()] += (text,)
    return {**texts}


_texts = texts_of_numbers()


def seen_at(sweep, atom):
    """Return what an atom is, for the index: primitives, or texts of numbers."""
    if type(atom) is Literal:
        return _texts.get(key_of(atom), ())
    eqn = sweep.definitions.get(atom)
    if eqn is None:
        return ()
    if eqn.primitive is lax.broadcast_in_dim_p and type(eqn.invars[0]) is Literal:
        return seen_at(sweep, eqn.invars[0])
    return (eqn.primitive,)


def using(rows):
    """Return the pair, for `Rules`, of the primitives and the rule of some identities.

    Args:
      rows: list of `Identity`.
    """
    index = index_of(rows)

    def use_identity(sweep, eqn):
        for place, table in index.get((eqn.primitive, eqn.invars[-1].aval.dtype), ()):
            whats = (None,) if place is None else seen_at(sweep, eqn.invars[place])
            for left, row in [pair for what in whats for pair in table.get(what, ())]:
                names = {}
                if matches(sweep, left, eqn, names) and applies(row, names):
                    return [built(sweep, row.right, names, eqn.outvars[0].aval)]
        return None

    return frozenset(primitive for primitive, _ in index), use_identity


def matches(sweep, term, eqn, names):
    """Return whether an equation is what a term says; note what its variables are."""
    _, *args = term
    if len(args) != len(eqn.invars):
        return False
    return all(_matches(sweep, arg, atom, names) for arg, atom in zip(args, eqn.invars))


def _matches(sweep, term, atom, names):
    if type(term) is str:
        other = names.setdefault(term, atom)
        return other is atom or key_of(other) == key_of(atom)
    if isinstance(term, tuple):
        eqn = sweep.definitions.get(atom)
        same = eqn is not None and eqn.primitive is primitive_named(term[0])
        return same and matches(sweep, term, eqn, names)
    return repr(term) in seen_at(sweep, atom)


def applies(row, names):
    """Return whether an identity holds for the dtype of its first variable."""
    first = next(iter(names.values()))
    return kind_of(first.aval.dtype) in row.kinds


def built(sweep, term, names, aval):
    """Return what stands for a term, of the shape of `aval`.

    A number has its dtype as well.
    """
    if isinstance(term, str):
        return stretched_to(sweep, names[term], aval.shape)
    if isinstance(term, tuple):
        name, *args = term
        [x] = sweep.put(primitive_named(name), *[names[arg] for arg in args])
        return stretched_to(sweep, x, aval.shape)
    number = literal(np.asarray(term).astype(aval.dtype), aval.update(shape=()))
    return stretched_to(sweep, number, aval.shape)


IDENTITIES = using(identities)


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
    return sweep.put(lax.mul_p, x, factor)


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
    return sweep.put(lax.mul_p, x, number_of(sweep, lax.neg_p, y))


def negated_factor(sweep, eqn):
    """A rule: a product with a negated number, in place of one of what is negated."""
    found = factor_and_number(sweep, eqn)
    negation = found and sweep.definitions.get(found[0])
    if negation is None or negation.primitive is not lax.neg_p:
        return None
    if found[1].aval.dtype.kind == "c":
        return None
    number = number_of(sweep, lax.neg_p, found[1])
    return sweep.put(lax.mul_p, *negation.invars, number)


def join_numbers(sweep, eqn):
    """A rule for integers: one number, in place of two that are added or multiplied."""
    found = factor_and_number(sweep, eqn)
    if found is None or kind_of(found[1].aval.dtype) not in "iu":
        return None
    first = product_with_number(sweep, found[0], eqn.primitive)
    if first is None:
        return None
    number = number_of(sweep, eqn.primitive, first[1], found[1])
    return sweep.put(eqn.primitive, first[0], number)


STRETCHING = frozenset(
    getattr(lax, f"{name}_p")
    for name in (
        "add add_any sub mul div rem max min nextafter eq ne lt le gt ge atan2 complex "
        "and or xor shift_left shift_right_logical shift_right_arithmetic pow"
    ).split()
)


def let_stretch(sweep, eqn):
    """A rule: a scalar as it is, in place of a scalar made as large as the others."""
    x, y = eqn.invars
    a, b = scalar_in(sweep, x), scalar_in(sweep, y)
    if a is x and b is y:
        return None
    if eqn.outvars[0].aval.shape not in (a.aval.shape, b.aval.shape):
        return None
    return sweep.put(eqn.primitive, a, b, **eqn.params)


def scalar_in(sweep, atom):
    """Return the scalar of which an atom is a broadcast, or else the atom."""
    eqn = sweep.definitions.get(atom)
    if eqn is None or eqn.primitive is not lax.broadcast_in_dim_p:
        return atom
    [x] = eqn.invars
    return atom if x.aval.shape else x


ALGEBRA = [
    ({lax.integer_pow_p}, simpler_power),
    IDENTITIES,
    ({lax.div_p}, multiply_instead),
    ({lax.neg_p}, other_sign),
    ({lax.mul_p}, negated_factor),
    ({lax.add_p, lax.mul_p}, join_numbers),
    (STRETCHING, let_stretch),
]
do_algebra = sweeping(INSIDE, *ALGEBRA)
