"""Key-reuse analysis: keys that are used twice are found.

References: ``jax.experimental.key_reuse``, ``jax.debug_key_reuse``.
"""

# Made from chapters/32_random_rest.md by `make chapter`;
# edit the chapter, not this file.

import os
import weakref
from typing import NamedTuple

import numpy as np

from minijax import lax
from minijax.arrays.dtypes import _on_or_off, config
from minijax.callbacks.callback import debug_callback_p, debug_print_p
from minijax.control_flow.conditionals import cond_p
from minijax.control_flow.while_loops import while_p
from minijax.core import RuleTable, bind_listeners
from minijax.custom_derivatives.custom_jvp_vjp import callee_rules, stop_gradient_p
from minijax.diagnostics.tracebacks import user_line
from minijax.distributions.inversion import random_gamma_p
from minijax.errors import KeyReuseError
from minijax.jaxprs.jaxpr import JaxprEqn
from minijax.jitting.primitive import jit_p
from minijax.prng.keys import (
    prng_key,
    random_bits_p,
    random_clone_p,
    random_fold_in_p,
    random_seed_p,
    random_split_p,
    random_unwrap_p,
    random_wrap_p,
)
from minijax.rematerialization.caching import weakref_memoize
from minijax.rematerialization.remat import remat_p
from minijax.scans.scan import scan_p

# Key-reuse analysis: what operations and programs do with keys.


class KeySignature(NamedTuple):
    """What an operation does with keys, by the numbers of operands and results.

    Attributes:
      consumed: from an operand to which of its keys are used up: True, or an array.
      sources: the results that are fresh keys.
      forwards: from a result to the operand that it is.
    """

    consumed: dict = {}
    sources: frozenset = frozenset()
    forwards: dict = {}


def is_key(atom):
    """Return whether an array or an atom of a jaxpr holds keys."""
    aval = getattr(atom, "aval", None)
    return aval is not None and aval.dtype.type is prng_key


def key_positions(atoms):
    """Return the numbers of those that hold keys."""
    return [place for place, atom in enumerate(atoms) if is_key(atom)]


def _unknown(eqn):
    callee = callee_rules[eqn.primitive](eqn)
    if callee is not None:
        return key_signature_of_jaxpr(callee)
    sinks = dict.fromkeys(key_positions(eqn.invars), True)
    return KeySignature(sinks, frozenset(key_positions(eqn.outvars)))


# Rules ``rule(eqn)`` return the `KeySignature` of an equation.
reuse_rules = RuleTable("reuse", default=_unknown)


def _slice(eqn):
    [keys], params = eqn.invars, eqn.params
    if not is_key(keys):
        return KeySignature()
    ends = params["start_indices"], params["limit_indices"]
    strides = params["strides"] or (1,) * len(ends[0])
    taken = np.zeros(keys.aval.shape, bool)
    taken[tuple(map(slice, *ends, strides))] = True
    return KeySignature({0: taken}, frozenset({0}))


def key_signature_of_eqn(eqn):
    """Return the `KeySignature` of an equation."""
    return reuse_rules[eqn.primitive](eqn)


FRESH, NO_KEY_USES = KeySignature(sources=frozenset({0})), KeySignature()
for _uses, _primitives in (
    (KeySignature({0: True}), [random_bits_p, random_gamma_p]),
    (KeySignature({0: True}, frozenset({0})), [random_split_p]),
    (FRESH, [random_seed_p, random_wrap_p, random_fold_in_p, random_clone_p]),
    (FRESH, [lax.select_n_p]),
    (
        NO_KEY_USES,
        [random_unwrap_p, lax.eq_p, lax.ne_p, debug_callback_p, debug_print_p],
    ),
    (
        KeySignature(forwards={0: 0}),
        [lax.reshape_p, lax.squeeze_p, lax.broadcast_in_dim_p, lax.copy_p]
        + [lax.convert_element_type_p, stop_gradient_p],
    ),
):
    reuse_rules.update(dict.fromkeys(_primitives, lambda eqn, uses=_uses: uses))
reuse_rules[lax.slice_p] = _slice


def key_reuse_error(message, before=None, again=None):
    """Return the error, with the lines of the first use and of the second."""
    lines = [message]
    lines += [f"It was used in {before.quoted}"] if before else []
    lines += [f"It is used again in {again.quoted}"] if again else []
    return KeyReuseError("\n".join(lines))


class KeyReuseInterpreter:
    """What is known of the keys of a program, up to some equation."""

    def __init__(self):
        self.used, self.roots, self.lines = {}, {}, {}

    def root(self, var):
        """Return the variable that first named these keys."""
        return self.roots.get(var, var)

    def step(self, eqn):
        """Take an equation into account; raise if it uses what has been used."""
        uses = key_signature_of_eqn(eqn)
        for place, operand in uses.forwards.items():
            if is_key(eqn.outvars[place]):
                self.roots[eqn.outvars[place]] = self.root(eqn.invars[operand])
        for place, mask in uses.consumed.items():
            if place < len(eqn.invars):
                self.sink(eqn, place, mask)
        for place in key_positions(eqn.outvars):
            if place not in uses.forwards:
                self.used[eqn.outvars[place]] = place not in uses.sources

    def sink(self, eqn, place, mask):
        """Mark keys as used."""
        var = self.root(eqn.invars[place])
        mask = mask if np.shape(mask) in ((), var.aval.shape) else True
        used = self.used.get(var, False)
        if np.any(used & mask):
            message = f"In {eqn.primitive}, argument {place} is already consumed."
            raise key_reuse_error(message, self.lines.get(var), eqn.source)
        self.used[var], self.lines[var] = used | mask, eqn.source

    def uses(self, inputs, outputs):
        """Return the `KeySignature` of the whole program."""
        sinks = {
            place: self.used[var]
            for place, var in enumerate(inputs)
            if np.any(self.used.get(var, False))
        }
        numbers = {var: i for i, var in enumerate(inputs)}
        roots = {place: self.root(outputs[place]) for place in key_positions(outputs)}
        forwards = {p: numbers[root] for p, root in roots.items() if root in numbers}
        fresh = [p for p in roots if p not in forwards]
        fresh = [p for p in fresh if not np.any(self.used.get(roots[p], False))]
        return KeySignature(sinks, frozenset(fresh), forwards)


@weakref_memoize
def key_signature_of_jaxpr(closed):
    """Return the `KeySignature` of a program; its constants come after its inputs.

    Raises:
      KeyReuseError: if the program uses a key twice.
    """
    walk = KeyReuseInterpreter()
    for eqn in closed.eqns:
        walk.step(eqn)
    return walk.uses([*closed.invars, *closed.constvars], closed.outvars)


def _check_loop(words, uses, num_consts, fresh, line):
    """Raise if a function that runs again and again would use a key again."""
    for place in uses.consumed:
        if place < num_consts:
            why = f"{words}, because key constants are repeatedly consumed"
            raise key_reuse_error(why, line)
        if place - num_consts not in fresh:
            why = f"{words}, because consumed inputs don't match sourced outputs"
            raise key_reuse_error(why, line)


def _scan(eqn):
    params, uses = eqn.params, key_signature_of_jaxpr(eqn.params["jaxpr"])
    num_carry = params["num_carry"]
    rows = range(num_carry, len(eqn.invars) - params["num_consts"])
    words = "scan body function leads to key reuse when repeatedly executed"
    _check_loop(words, uses, params["num_consts"], {*uses.sources, *rows}, eqn.source)
    return uses


def _while(eqn):
    params, words = eqn.params, "function leads to key reuse when repeatedly executed"
    found = [
        key_signature_of_jaxpr(params[f"{part}_jaxpr"]) for part in ("cond", "body")
    ]
    counts = [params[f"{part}_nconsts"] for part in ("cond", "body")]
    for part, uses, count in zip(("cond", "body"), found, counts):
        name = f"while_loop {part} {words}"
        _check_loop(name, uses, count, found[1].sources, eqn.source)
    test, body = ({p - n for p in u.consumed} for u, n in zip(found, counts))
    if test & body:
        words = "while_loop cond and body functions both use the same key"
        raise key_reuse_error(words, eqn.source)
    sinks = {place + counts[0]: mask for place, mask in found[1].consumed.items()}
    sinks |= {place + counts[1]: True for place in found[0].consumed}
    forwards = {out: place + counts[0] for out, place in found[1].forwards.items()}
    return KeySignature(sinks, found[1].sources, forwards)


def _cond(eqn):
    found = [key_signature_of_jaxpr(branch) for branch in eqn.params["branches"]]
    sinks = {}
    for uses in found:
        for place, mask in uses.consumed.items():
            sinks[place + 1] = sinks.get(place + 1, False) | mask
    sources = frozenset().union(*[uses.sources for uses in found])
    first, *rest = (set(uses.forwards.items()) for uses in found)
    both = first.intersection(*rest)
    return KeySignature(sinks, sources, {out: place + 1 for out, place in both})


def _remat(eqn):
    """What is computed again uses the keys that the first pass has used."""
    return NO_KEY_USES if eqn.params["differentiated"] else _unknown(eqn)


reuse_rules.update({scan_p: _scan, while_p: _while, cond_p: _cond, remat_p: _remat})


# The checker of keys that are used twice, while functions run.

_marks: dict = {}


def mark(keys, used, line=None):
    """Note which keys of an array have been used, and where."""
    place = id(keys)
    forget = weakref.ref(keys, lambda _: _marks.pop(place, None))
    _marks[place] = forget, used, line


def mark_of(keys):
    """Return which keys of an array have been used, and where."""
    return _marks.get(id(keys), (None, False, None))[1:]


def watch(primitive, args, params, results):
    """Raise a KeyReuseError if an operation uses keys that have been used."""
    if not config.jax_debug_key_reuse:
        return
    eqn = JaxprEqn([*args], [*results], primitive, params, user_line())
    callee = callee_rules[primitive](eqn)
    operands = [*args, *(callee.consts if callee else [])]
    uses = key_signature_of_eqn(
        eqn
    )  # which raises if a program uses its own keys twice
    for place, mask in uses.consumed.items():
        used, line = mark_of(operands[place])
        if np.any(used & mask):
            name = _called(eqn, callee)
            message = f"Previously-consumed key passed to {name} at index {place}"
            raise key_reuse_error(message, line, eqn.source)
    _write_down(uses, operands, results, eqn.source)


def _write_down(uses, operands, results, line):
    for place, mask in uses.consumed.items():
        mark(operands[place], mark_of(operands[place])[0] | mask, line)
    for place in key_positions(results):
        mark(results[place], place not in uses.sources)
    for place, operand in uses.forwards.items():
        if is_key(results[place]):
            used, line = mark_of(operands[operand])
            mark(results[place], _spread(used, results[place].shape), line)


def _spread(used, shape):
    fits = np.size(used) == np.prod(shape, dtype=int)
    return np.reshape(used, shape) if fits else bool(np.any(used))


def _called(eqn, callee):
    """Return the words for what was called: a primitive, or a jitted function."""
    if eqn.primitive is not jit_p:
        return str(eqn.primitive)
    if not eqn.params.get("inline"):
        return "jit-compiled function"
    found = [
        inner.primitive for inner in callee.eqns if key_signature_of_eqn(inner).consumed
    ]
    return str(found[0])


def _engage(values):
    if watch in bind_listeners:
        bind_listeners.remove(watch)
    if any(values):
        bind_listeners.append(watch)


config.define(
    "jax_debug_key_reuse",
    os.environ.get("JAX_DEBUG_KEY_REUSE", "0"),
    _on_or_off,
    _engage,
)
