"""Constant folding: what depends on known numbers alone, computed beforehand."""

# Made from chapters/22_passes_rest.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax import lax
from minijax.arrays.array import ArrayImpl, computations, shape_rules
from minijax.arrays.placement import default_placement, host_device
from minijax.batching.rules import ELEMENTWISE, primitives
from minijax.jaxprs.jaxpr import JaxprEqn, Literal, Var
from minijax.passes.sweeping import constant, literal, number_in, stretched_to

# Larger arrays are left alone.
LIMIT = 4096


def fold_constants(sweep, eqn):
    """A rule: numbers, in place of an equation all of whose operands are known."""
    if eqn.primitive not in computations or not eqn.invars:
        return None
    for x in eqn.invars:
        if type(x) is not Literal and x not in sweep.constants:
            return fold_uniform(sweep, eqn)
    operands = [known_value(sweep, x) for x in eqn.invars]
    if any(x is None for x in operands):
        return None
    size = sum(x.size for x in operands)
    if max(size, *[var.aval.size for var in eqn.outvars]) > LIMIT:
        return None
    if sum(var.aval.size for var in eqn.outvars) > size:
        return None
    results = computed(eqn, operands)
    pairs, here = zip(results, eqn.outvars), _place_of_numbers()
    return [constant(sweep, ArrayImpl(x, var.aval, here)) for x, var in pairs]


def _place_of_numbers():
    """Return where NumPy's numbers may lie: by default, if that is a CPU."""
    place = default_placement()
    return place if place.device.platform == "cpu" else host_device().committed


def known_value(sweep, atom):
    """Return the NumPy array that an atom stands for, or None."""
    if isinstance(atom, Literal):
        return np.asarray(atom.val, atom.aval.dtype)
    array = sweep.constants.get(atom)
    return array._numbers() if isinstance(array, ArrayImpl) else None


def computed(eqn, operands):
    """Return the list of an equation's results, NumPy arrays."""
    with np.errstate(all="ignore"):
        results = computations[eqn.primitive](np, *operands, **eqn.params)
    results = results if isinstance(results, list) else [results]
    return [np.asarray(x, var.aval.dtype) for x, var in zip(results, eqn.outvars)]


# What keeps shapes, element by element.
UNIFORM = {*primitives(ELEMENTWISE), lax.select_n_p, lax.clamp_p}
UNIFORM.remove(lax.bitcast_convert_type_p)


def fold_uniform(sweep, eqn):
    """Return the results of an equation whose operands are one number each."""
    if eqn.primitive not in UNIFORM:
        return None
    numbers = [number_in(sweep, x) for x in eqn.invars]
    if None in numbers:
        return None
    [var] = eqn.outvars
    [x] = computed(eqn, [known_value(sweep, number) for number in numbers])
    number = literal(x, var.aval.update(shape=()))
    return [stretched_to(sweep, number, var.aval.shape)]


def number_of(sweep, primitive, *atoms):
    """Return what stands for a primitive applied to atoms that are one number each."""
    avals = shape_rules[primitive](*[x.aval for x in atoms])
    eqn = JaxprEqn([*atoms], list(map(Var, avals)), primitive, {})
    return fold_uniform(sweep, eqn)[0]


FOLDING = None, fold_constants
