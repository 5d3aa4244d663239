"""The checker of keys that are used twice, while functions run.

Reference: ``jax.debug_key_reuse``.
"""

# Made from chapters/32_random_rest.md by `make chapter`;
# edit the chapter, not this file.

import os
import weakref

import numpy as np

from minijax.arrays.settings import _on_or_off, config
from minijax.core import watchers
from minijax.diagnostics.user_lines import user_line
from minijax.jaxprs.jaxpr import JaxprEqn
from minijax.jitting.primitive import jit_p
from minijax.own_rules.function_calls import callee_rules
from minijax.randomness.key_uses import is_key, places_of_keys, reused, uses_of_eqn

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
    uses = uses_of_eqn(eqn)  # which raises if a program uses its own keys twice
    for place, mask in uses.sinks.items():
        used, line = mark_of(operands[place])
        if np.any(used & mask):
            name = _called(eqn, callee)
            message = f"Previously-consumed key passed to {name} at index {place}"
            raise reused(message, line, eqn.source)
    _write_down(uses, operands, results, eqn.source)


def _write_down(uses, operands, results, line):
    for place, mask in uses.sinks.items():
        mark(operands[place], mark_of(operands[place])[0] | mask, line)
    for place in places_of_keys(results):
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
    found = [inner.primitive for inner in callee.eqns if uses_of_eqn(inner).sinks]
    return str(found[0])


def _engage(values):
    if watch in watchers:
        watchers.remove(watch)
    if any(values):
        watchers.append(watch)


config.define(
    "jax_debug_key_reuse",
    os.environ.get("JAX_DEBUG_KEY_REUSE", "0"),
    _on_or_off,
    _engage,
)
