"""A type checker for jaxprs: run it after anything that makes or changes one.

Reference: ``jax.extend.core.check_jaxpr``, ``JaxprTypeError``.
"""

# Made from chapters/07_jaxprs_rest.md by `make chapter`;
# edit the chapter, not this file.

from typing import Any

import numpy as np

from minijax.arrays.array import typeof
from minijax.arrays.dtypes import dtype_kind
from minijax.errors import JaxprTypeError as JaxprTypeError
from minijax.jaxprs.jaxpr import ClosedJaxpr, Literal
from minijax.jaxprs.pretty_printer import (
    PrintContext,
    flat_text,
    jaxprs_in_params,
    pp_eqn,
    pp_jaxpr,
)
from minijax.jaxprs.types import infer_out_avals


def check_jaxpr(jaxpr: Any) -> None:
    """Raise if a jaxpr is not well formed.

    Each variable is defined once, and before it is used; literals are scalars; the
    types on the left of an equation are those that its shape rule gives for the types
    on the right; parameters can be hashed; all this in inner jaxprs too.

    Args:
      jaxpr: a `Jaxpr`, or a `ClosedJaxpr`, the types of whose constants count as well.

    Raises:
      JaxprTypeError: it shows the equation, and says what is wrong.
    """
    place = "the inputs"
    try:
        if isinstance(jaxpr, ClosedJaxpr):
            _check_constants(jaxpr)
        defined = _define(set(), [*jaxpr.constvars, *jaxpr.invars])
        for place in enumerate(jaxpr.eqns):
            _check_eqn(place[1], defined)
        place = "the outputs"
        _read(defined, jaxpr.outvars)
    except _Fault as fault:
        message = _describe(jaxpr, place, *fault.args)
        raise JaxprTypeError(message) from fault.__cause__


class _Fault(Exception):
    """What is wrong, with braces for variables, and the variables."""


def _describe(jaxpr, place, why, *variables):
    writing = PrintContext(jaxpr)
    pp_jaxpr(jaxpr, writing)  # gives every variable its letter
    if isinstance(place, tuple):
        number, eqn = place
        place = f"equation {number}, `{flat_text(pp_eqn(eqn, writing)).strip()}`"
    why = why.format(*[var.spell(writing.names) for var in variables])
    return f"This is no jaxpr: in {place}, {why}.\n\n{jaxpr}"


def _define(defined, variables):
    for var in variables:
        if var in defined:
            raise _Fault("variable {} is defined a second time", var)
        defined.add(var)
    return defined


def _read(defined, atoms):
    for atom in atoms:
        if isinstance(atom, Literal):
            _check_literal(atom)
        elif atom not in defined:
            raise _Fault("variable {} is used before it is defined", atom)


def _check_eqn(eqn, defined):
    _read(defined, eqn.invars)
    _check_params(eqn.params)
    avals = [atom.aval for atom in eqn.invars]
    try:
        results = infer_out_avals(eqn.primitive, avals, eqn.params)
    except Exception as error:
        raise _Fault(f"its shape rule refuses the operands: {_quote(error)}") from error
    expected = [aval.str_short() for aval in results]
    if expected != [_type(var) for var in eqn.outvars]:
        raise _Fault(f"by its shape rule the results are {', '.join(expected)}")
    _define(defined, eqn.outvars)


def _type(atom):
    return atom.aval.str_short()


def _quote(error):
    """Return a message as part of a sentence; its braces stand for themselves."""
    return str(error).rstrip(".").replace("{", "{{").replace("}", "}}")


def _order_of(number):
    """Return a number for the kind of a number: what is larger does not fit into it.

    The first is that of float0.
    """
    return "0biufc".index(dtype_kind(np.asarray(number).dtype).replace("h", "f"))


def _check_literal(literal):
    if np.shape(literal.val) != () or literal.aval.shape != ():
        raise _Fault(f"literal {literal.val} is not a scalar")
    kind, wanted = map(_order_of, (literal.val, literal.value))
    if _type(literal) != typeof(literal.value).str_short() or kind > wanted:
        raise _Fault(f"literal {literal.val} is not of type {_type(literal)}")


_COUNTS = {
    "num_consts", "num_carry", "length", "unroll", "cond_nconsts", "body_nconsts",
    "num_keys",
}  # fmt: skip
_TRUTHS = {"reverse", "is_stable", "is_max_k", "aggregate_to_topk", "has_side_effect"}


def _check_kind(key, value):
    """Refuse a number or truth of another type, which a shape rule may not look at."""
    if key in _COUNTS and (type(value) is not int or value < 0):
        wanted = "an integer from 0 on"
    elif key in _TRUTHS and type(value) is not bool:
        wanted = "a bool"
    else:
        return
    kind = type(value).__name__
    raise _Fault(f"parameter {key} has to be {wanted}, not {value!r} of type {kind}")


def _check_params(params):
    for key, value in params.items():
        _check_kind(key, value)
        try:
            hash(value)
        except TypeError:
            why = f"parameter {key} is a {type(value).__name__}, which has no hash"
            raise _Fault(why) from None
    for sub in jaxprs_in_params(params):
        check_jaxpr(sub)


def _check_constants(closed_jaxpr):
    pairs = zip(closed_jaxpr.constvars, closed_jaxpr.consts)
    for number, (var, value) in enumerate(pairs):
        kind = typeof(value).str_short()
        if kind != _type(var):
            raise _Fault(f"constant {number} is {kind} and its variable {_type(var)}")
