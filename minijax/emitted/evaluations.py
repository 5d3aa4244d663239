"""Primitives that have no Python of their own, as functions on buffers."""

# Made from chapters/13_python_ground.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax.arrays.array import ArrayImpl, asbuffer, computations
from minijax.core import EvalTrace, impl_rules, set_current_trace


def evaluation(primitive, in_avals, out_avals):
    """Return a function of buffers and parameters that evaluates a primitive.

    Args:
      primitive: a `Primitive` with an entry in `computations`, or a rule in
        `impl_rules`.
      in_avals, out_avals: types of its operands and results.

    Returns:
      A function that returns the one result, or else a list of results.
    """
    compute = computations.get(primitive) or computation_by_impl(primitive, in_avals)

    def evaluate(*buffers, **params):
        results = compute(np, *buffers, **params)
        results = results if isinstance(results, list) else [results]
        results = list(map(exactly, results, out_avals))
        return results[0] if len(results) == 1 else results

    return evaluate


def exactly(result, aval):
    """Return a result as a buffer of the dtype of `aval`, or a scalar without axes."""
    buffer = np.asarray(result, aval.dtype)
    return buffer if aval.shape else buffer[()]


def to_buffer(x):
    """Return the buffer of an argument, or a scalar if it has no axes."""
    buffer = x._buffer if type(x) is ArrayImpl else asbuffer(x)
    return buffer if buffer.shape else buffer[()]


def computation_by_impl(primitive, avals):
    """Return what the impl rule of a primitive does, as a function on buffers."""

    def compute(xp, *buffers, **params):
        arrays = [ArrayImpl(xp.asarray(x), aval) for x, aval in zip(buffers, avals)]
        with set_current_trace(EvalTrace()):
            return list(map(asbuffer, impl_rules[primitive](*arrays, **params)))

    return compute


def write_evaluation(writer, eqn, operands, results):
    """Write a call of the primitive's own evaluation: the rule of those without one."""
    avals = [tuple(atom.aval for atom in atoms) for atoms in (eqn.invars, eqn.outvars)]
    key, made = (eqn.primitive, *avals), writer.evaluations
    if key not in made:
        made[key] = evaluation(*key)
    name = eqn.primitive.name
    function = writer.constant(made[key], name, f"evaluates the primitive {name}")
    params = [f"{k}={spell_param(writer, v)}" for k, v in eqn.params.items()]
    call = f"{function}({', '.join([*operands, *params])})"
    writer.line(f"{', '.join(results)} = {call}" if results else call)


SPELLED = bool, int, float, str, type(None)


def spell_param(writer, value):
    """Return an expression for a parameter of an equation."""
    if type(value) in SPELLED and repr(value) not in ("inf", "-inf", "nan"):
        return repr(value)
    if type(value) is tuple:
        parts = [spell_param(writer, part) for part in value]
        return f"({', '.join(parts)}{',' * (len(parts) == 1)})"
    if isinstance(value, np.dtype):
        return writer.constant(value, value.name, "a dtype")
    return writer.constant(value, "param")
