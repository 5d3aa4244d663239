"""Inlining, common subexpressions, dead code and algebraic identities, in one walk.

A *term* is a variable, which is a letter; a number; or a tuple of the name of a
primitive and its operands, which are terms.
"""

# Made from chapters/22_passes.md by `make chapter`;
# edit the chapter, not this file.

import functools
import itertools
import math
import os
from collections import defaultdict
from typing import NamedTuple

import numpy as np

from minijax import lax
from minijax.arrays.dtypes import SHORT_DTYPE_NAMES, _on_or_off, config, dtype_kind
from minijax.custom_derivatives.custom_jvp_vjp import callee_rules
from minijax.custom_derivatives.linear_solves import CUSTOM_CALL_PRIMITIVES
from minijax.jaxprs.checker import check_jaxpr
from minijax.jaxprs.jaxpr import Literal
from minijax.jaxprs.pretty_printer import jaxprs_in_params
from minijax.jitting.primitive import jit_p
from minijax.passes.rewriting import (
    INNER_JAXPR_RULES,
    MemoizedPass,
    RewriteRules,
    bind_constants,
    broadcast_atom,
    insert_eqn,
    literal,
    rewrite_eqns,
    rewrite_jaxpr,
    rewrite_pass,
    splat_value,
)
from minijax.rematerialization.caching import cache_key_of_params
from minijax.rematerialization.jaxpr_transforms import (
    close_jaxpr,
    dce_rules,
    eqn_has_effects,
)

# Inlining: calls of programs, replaced by what is called.


def inline_jaxpr(sweep, closed, args):
    """Add the equations of a program; return what stands for its results.

    Args:
      sweep: a `JaxprRewriter`.
      closed: a `ClosedJaxpr`.
      args: what stands for its inputs.
    """
    names = bind_constants(sweep, closed) | dict(zip(closed.invars, args))
    rewrite_eqns(sweep, closed.eqns, names, renew=True)
    return [names.get(x, x) for x in closed.outvars]


def inline_call(sweep, eqn):
    """A rule: in place of a call, the equations of what is called."""
    if eqn.params.get("backend"):
        return None
    return inline_jaxpr(sweep, callee_rules[eqn.primitive](eqn), eqn.invars)


# Primitives of calls whose equations take the place of the call.
inlined_primitives = {jit_p, *CUSTOM_CALL_PRIMITIVES}
INLINING_RULES = inlined_primitives, inline_call
inline_calls = rewrite_pass(INLINING_RULES, INNER_JAXPR_RULES)


# Common-subexpression elimination: what is computed twice, computed once.

COMMUTATIVE = frozenset(
    {lax.add_p, lax.add_any_p, lax.mul_p, lax.and_p, lax.or_p, lax.xor_p}
    | {lax.eq_p, lax.ne_p}
)


def use_twin(sweep, eqn):
    """A rule: results of an equation that was written before."""
    if eqn_has_effects(eqn):
        return None
    operands = [atom_key(x) for x in eqn.invars]
    if eqn.primitive in COMMUTATIVE and dtype_kind(eqn.invars[0].aval.dtype) != "c":
        operands = [frozenset(operands)]
    key = (eqn.primitive, *operands, cache_key_of_params(eqn.params))
    twin = sweep.seen.setdefault(key, eqn)
    return None if twin is eqn else twin.outvars


CSE_RULES = None, use_twin
eliminate_common_subexpressions = rewrite_pass(INNER_JAXPR_RULES, CSE_RULES)


def atom_key(atom):
    """Return what two atoms have in common if they are bit by bit the same."""
    if type(atom) is not Literal:
        return atom
    number, dtype = atom.val, atom.aval.dtype
    if type(number) is float:
        return dtype, literal_bytes(number, dtype, math.copysign(1.0, number))
    return dtype, np.asarray(number, dtype).tobytes()


@functools.lru_cache(4096)
def literal_bytes(number, dtype, sign):
    """Return the bytes of a number; its sign is given since 0.0 is equal to -0.0."""
    return np.asarray(number, dtype).tobytes()


# Dead-code elimination: equations whose results are not used, taken away.


def eliminate_dead_eqns(closed):
    """Return a program without what its results and effects do not need, or None."""
    needed, eqns = set(closed.outvars), []
    for eqn in reversed(closed.eqns):
        used = [var in needed for var in eqn.outvars]
        if any(used) or eqn_has_effects(eqn):
            eqns.append(eqn if all(used) else dce_eqn(eqn, tuple(used)))
            needed.update(eqns[-1].invars)
    constvars = [var for var in closed.constvars if var in needed]
    eqns.reverse()
    if eqns == closed.eqns and constvars == closed.constvars:
        return None
    return close_jaxpr(closed.jaxpr.replace(eqns=eqns, constvars=constvars), closed)


def dce_eqn(eqn, used):
    """Return an equation without results that are not used, if they can be spared."""
    less = dce_rules[eqn.primitive](eqn, used)
    sizes = [(len(e.invars), len(e.outvars)) for e in (eqn, less)]
    return eqn if sizes[0] == sizes[1] else less


# `rewrite_jaxpr` is one walk down, here with the rule for programs inside alone; it
# returns None if nothing has changed. `MemoizedPass` makes a pass of a function, with
# the memory that `rewrite_pass` gives to its passes; `inside` is the pass itself.


def _everywhere(closed, inside):
    inner = rewrite_jaxpr(closed, RewriteRules(INNER_JAXPR_RULES), inside)
    return eliminate_dead_eqns(inner or closed) or inner


eliminate_dead_code = MemoizedPass(_everywhere)


# What is equal to what in the algebra of numbers as machines have them.


class Identity(NamedTuple):
    """A term, and a simpler one that is the same, bit by bit; of NaN, any will do.

    Attributes:
      left, right: the terms.
      kinds: letters of the kinds of dtypes for which they are the same: b(ool),
        i(nteger), u(nsigned), h(alf), f(loat), c(omplex).
      note: why not for others.
    """

    left: tuple
    right: object
    kinds: str
    note: str = ""

    def __str__(self):
        return f"{spell_term(self.left)} = {spell_term(self.right)}"


SYMBOLS = {
    "add": "+", "add_any": "+", "sub": "-", "mul": "*", "div": "/", "and": "&",
    "or": "|", "xor": "^", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">",
    "ge": ">=",
}  # fmt: skip


def spell_term(term, inside=False):
    """Return a term as one would write it; in brackets if it is part of another."""
    if not isinstance(term, tuple):
        return str(term)
    name, *args = term
    if name in SYMBOLS:
        text = f" {SYMBOLS[name]} ".join(spell_term(arg, True) for arg in args)
        return f"({text})" if inside else text
    if name in ("neg", "not"):
        return f"{'-' if name == 'neg' else '~'}{spell_term(args[0], True)}"
    return f"{name}({', '.join(map(spell_term, args))})"


REAL_KINDS, NUMBER_KINDS, ALL_KINDS = "iuhf", "iuhfc", "biuhfc"
_zero = "-0.0 + 0.0 is 0.0"
_two = "a complex number has two zeros, and -0.0 + 0j only one with a sign"
_kept = "NaN, and the infinities, have to stay"
_lost = f"{_kept}; 0 has a sign"
_parts = "the parts of an infinite number become NaN"
_nan = "NaN is not equal to itself"
_round = "each operation rounds"
_negative = "negative numbers, and rounding"
identities = [
    Identity(("add", "x", 0), "x", "iu", _zero),
    Identity(("add", "x", -0.0), "x", "iuhf", _two),
    Identity(("add_any", "x", 0), "x", "biu", _zero),
    Identity(("add_any", "x", -0.0), "x", "biuhf", _two),
    Identity(("add", "x", ("neg", "y")), ("sub", "x", "y"), NUMBER_KINDS),
    Identity(("add_any", "x", ("neg", "y")), ("sub", "x", "y"), NUMBER_KINDS),
    Identity(("sub", "x", 0), "x", NUMBER_KINDS),
    Identity(("sub", "x", ("neg", "y")), ("add", "x", "y"), NUMBER_KINDS),
    Identity(("sub", 0, "x"), ("neg", "x"), "iu", "0.0 - 0.0 is 0.0, not -0.0"),
    Identity(("sub", -0.0, "x"), ("neg", "x"), "iuhf", _two),
    Identity(("sub", "x", "x"), 0, "iu", _kept),
    Identity(("neg", ("neg", "x")), "x", NUMBER_KINDS),
    Identity(("neg", ("sub", "x", "y")), ("sub", "y", "x"), "iu", "-(x - x) is -0.0"),
    Identity(("sub", ("add", "x", "y"), "y"), "x", "iu", _round),
    Identity(("add", ("sub", "x", "y"), "y"), "x", "iu", _round),
    Identity(("mul", "x", 1), "x", REAL_KINDS, _parts),
    Identity(("mul", "x", -1), ("neg", "x"), REAL_KINDS, _parts),
    Identity(("mul", "x", 0), 0, "iu", _lost),
    Identity(("mul", ("neg", "x"), ("neg", "y")), ("mul", "x", "y"), NUMBER_KINDS),
    Identity(("div", "x", 1), "x", REAL_KINDS, _parts),
    Identity(("div", "x", -1), ("neg", "x"), "ihf", "2 / 255 in unsigned numbers"),
    Identity(("div", ("neg", "x"), ("neg", "y")), ("div", "x", "y"), "hf", "rounding"),
    Identity(("div", "x", "x"), 1, "", "0 / 0"),
    Identity(("div", ("mul", "x", "y"), "y"), "x", "", _round),
    Identity(("square", ("neg", "x")), ("square", "x"), NUMBER_KINDS),
    Identity(("abs", ("neg", "x")), ("abs", "x"), "ihfc"),
    Identity(("abs", ("abs", "x")), ("abs", "x"), "ihfc"),
    Identity(("mul", ("sqrt", "x"), ("sqrt", "x")), "x", "", _negative),
    Identity(("exp", ("log", "x")), "x", "", _negative),
    Identity(("log", ("exp", "x")), "x", "", "the exponential is 0, or overflows"),
    Identity(("max", "x", "x"), "x", ALL_KINDS),
    Identity(("min", "x", "x"), "x", ALL_KINDS),
    Identity(("and", "x", "x"), "x", "biu"),
    Identity(("and", "x", -1), "x", "biu"),
    Identity(("and", "x", 0), 0, "biu"),
    Identity(("or", "x", "x"), "x", "biu"),
    Identity(("or", "x", 0), "x", "biu"),
    Identity(("or", "x", -1), -1, "biu"),
    Identity(("xor", "x", "x"), 0, "biu"),
    Identity(("xor", "x", 0), "x", "biu"),
    Identity(("xor", "x", -1), ("not", "x"), "biu"),
    Identity(("not", ("not", "x")), "x", "biu"),
    Identity(("not", ("eq", "x", "y")), ("ne", "x", "y"), ALL_KINDS),
    Identity(("not", ("ne", "x", "y")), ("eq", "x", "y"), ALL_KINDS),
    Identity(("not", ("lt", "x", "y")), ("ge", "x", "y"), "biu", _nan),
    Identity(("not", ("gt", "x", "y")), ("le", "x", "y"), "biu", _nan),
    Identity(("not", ("le", "x", "y")), ("gt", "x", "y"), "biu", _nan),
    Identity(("not", ("ge", "x", "y")), ("lt", "x", "y"), "biu", _nan),
    Identity(("eq", "x", "x"), -1, "biu", _nan),
    Identity(("ne", "x", "x"), 0, "biu", _nan),
    Identity(("lt", "x", "x"), 0, "biuhf"),
    Identity(("gt", "x", "x"), 0, "biuhf"),
    Identity(("le", "x", "x"), -1, "biu", _nan),
    Identity(("ge", "x", "x"), -1, "biu", _nan),
    Identity(("eq", "p", -1), "p", "b"),
    Identity(("eq", "p", 0), ("not", "p"), "b"),
    Identity(("ne", "p", 0), "p", "b"),
    Identity(("ne", "p", -1), ("not", "p"), "b"),
    Identity(("select_n", "w", "x", "x"), "x", "biu"),
    Identity(("select_n", 0, "x", "y"), "x", ALL_KINDS),
    Identity(("select_n", 1, "x", "y"), "y", ALL_KINDS),
    Identity(("select_n", ("not", "p"), "x", "y"), ("select_n", "p", "y", "x"), "b"),
    Identity(("real", ("complex", "x", "y")), "x", "f"),
    Identity(("imag", ("complex", "x", "y")), "y", "f"),
    Identity(("complex", ("real", "x"), ("imag", "x")), "x", "c"),
    Identity(("conj", ("conj", "x")), "x", "c"),
]


@functools.cache
def primitive_named(name):
    """Return the primitive of a term."""
    return getattr(lax, f"{name}_p")


def matches(sweep, term, atom, names):
    """Return whether an atom is what a term says; note what its variables are."""
    if isinstance(term, str):
        return atom_key(names.setdefault(term, atom)) == atom_key(atom)
    if not isinstance(term, tuple):
        return repr(term) in seen_at(sweep, atom)
    eqn = sweep.definition(atom, primitive_named(term[0]))
    return eqn is not None and all_match(sweep, term[1:], eqn.invars, names)


def all_match(sweep, terms, atoms, names):
    """Return whether atoms are what as many terms say."""
    pairs = zip(terms, atoms)
    return len(terms) == len(atoms) and all(matches(sweep, *p, names) for p in pairs)


def build_term(sweep, term, names, aval):
    """Return what stands for a term, of the shape of `aval`.

    A number has its dtype as well.
    """
    if isinstance(term, str):
        found = names[term]
    elif isinstance(term, tuple):
        name, *args = term
        [found] = insert_eqn(
            sweep, primitive_named(name), *[names[arg] for arg in args]
        )
    else:
        number = np.asarray(term).astype(aval.dtype)
        found = literal(number, aval.update(shape=()))
    return broadcast_atom(sweep, found, aval.shape)


def variants(term):
    """Return a term in all orders in which its operands may stand."""
    if not isinstance(term, tuple):
        return [term]
    name, *args = term
    swaps = primitive_named(name) in COMMUTATIVE and args[0] != args[1]
    return [
        (name, *found)
        for order in ([args, args[::-1]] if swaps else [args])
        for found in itertools.product(*map(variants, order))
    ]


def looks(term):
    """Return what to look for first in a term: a place, or None, and what is there."""
    _, *args = term
    found = [(i, arg) for i, arg in enumerate(args) if not isinstance(arg, str)]
    for place, arg in found:
        if isinstance(arg, tuple):
            return place, primitive_named(arg[0])
    return (found[0][0], repr(found[0][1])) if found else (None, None)


def dtypes_of(row):
    """Return the dtypes that the last operand of the left hand side may have."""
    inside = row.left[-1]
    other = isinstance(inside, tuple) and inside[0] in _ANOTHER_DTYPE
    own = not other and row.left[0] != "select_n"
    return [
        dtype
        for dtype in SHORT_DTYPE_NAMES
        if not own or dtype_kind(dtype) in row.kinds
    ]


_ANOTHER_DTYPE = ("eq", "ne", "lt", "le", "gt", "ge", "complex", "real", "imag")


def index_of(rows):
    """Return identities by what can be seen of an equation at first sight.

    Args:
      rows: list of `Identity`.

    Returns:
      A dictionary from pairs of a primitive and the dtype of the last operand to lists
      of a place among the operands, or None; what is there, a primitive or the text of
      a number; a term; and its `Identity`.
    """
    index = defaultdict(list)
    for row in rows:
        dtypes = dtypes_of(row)
        for left in variants(row.left) if row.kinds else ():
            primitive, entry = primitive_named(left[0]), (*looks(left), left, row)
            for dtype in dtypes:
                index[primitive, dtype].append(entry)
    return {**index}


def texts_of_numbers():
    """Return the texts of the numbers in the table, by dtype and bytes."""
    texts = defaultdict(tuple)
    for dtype in SHORT_DTYPE_NAMES:
        for x in (0, -0.0, 1, -1):
            texts[dtype, np.asarray(x).astype(dtype).tobytes()] += (repr(x),)
    return {**texts}


_texts = texts_of_numbers()


def seen_at(sweep, atom):
    """Return what an atom is, for the index: primitives, or texts of numbers."""
    number, eqn = splat_value(sweep, atom), sweep.definitions.get(atom)
    if number is not None:
        return _texts.get(atom_key(number), ())
    return () if eqn is None else (eqn.primitive,)


def candidates(index, sweep, eqn):
    """Return the pairs of a term and its `Identity` that may apply to an equation."""
    entries = index.get((eqn.primitive, eqn.invars[-1].aval.dtype), ())
    if not entries:
        return ()
    seen = [seen_at(sweep, x) for x in eqn.invars]
    return [
        (left, row)
        for place, what, left, row in entries
        if place is None or what in seen[place]
    ]


def identity_rules(rows):
    """Return a pair for `RewriteRules`: the primitives and the rule of some identities.

    Args:
      rows: list of `Identity`.
    """
    index = index_of(rows)

    def use_identity(sweep, eqn):
        for left, row in candidates(index, sweep, eqn):
            names = {}
            if all_match(sweep, left[1:], eqn.invars, names) and applies(row, names):
                return [build_term(sweep, row.right, names, eqn.outvars[0].aval)]
        return None

    return frozenset(primitive for primitive, _ in index), use_identity


def applies(row, names):
    """Return whether an identity holds for the dtype of its first variable."""
    return dtype_kind(next(iter(names.values())).aval.dtype) in row.kinds


IDENTITY_RULES = identity_rules(identities)


# All rewriting rules in one walk down, and dead code in one walk up.

config.define("jax_enable_checks", os.environ.get("JAX_ENABLE_CHECKS", "0"), _on_or_off)


def fused_pass(*ordered):
    """Return a pass that does what all of some rules and dead-code elimination do.

    Args:
      *ordered: the pairs for `RewriteRules`.
    """
    rules = RewriteRules(*ordered)

    def change(closed, inside):
        program, again = eliminate_dead_eqns(closed) or closed, True
        while again:
            program = checked(rewrite_jaxpr(program, rules, inside)) or program
            less = checked(eliminate_dead_eqns(program))
            again = less is not None and not programs_in(less) <= programs_in(program)
            program = less or program
        return None if program is closed else program

    return MemoizedPass(change)


def programs_in(closed):
    """Return the set of the jaxprs in the equations of a program."""
    return {sub for eqn in closed.eqns for sub in jaxprs_in_params(eqn.params)}


def checked(closed):
    """Return a program, or None; check it if the switch ``jax_enable_checks`` is on."""
    if closed is not None and config.jax_enable_checks:
        check_jaxpr(closed)
    return closed
