"""The columns of the primitive sort: derivatives, batches, what it costs.

Reference: ``jax._src.lax.lax``.
"""

# Made from chapters/29_sorting.md by `make chapter`;
# edit the chapter, not this file.

import math

from minijax import lax
from minijax.arrays.avals import typeof
from minijax.batching.rules import insert_axis, move_axis, vmap_rules
from minijax.core import set_current_trace
from minijax.emitted.emission import python_rules
from minijax.emitted.evaluations import write_evaluation
from minijax.forgetting.programs import dce_rules, merge, only, partition
from minijax.forward.rules import jvp_rules
from minijax.jitting.costs import FLOPS, _moved, cost_rules
from minijax.linear.linearization import put_on_tape, split_rules
from minijax.reverse.transposition import Linear, transpose_rules
from minijax.sorting.primitive import sort_p


def sort_jvp(primals, tangents, **how):
    """Sort the operands, and rearrange the tangents with them."""
    moving = [t for t in tangents if t is not None]
    results = sort_p.bind(*primals, *moving, **how)
    moved = iter(results[len(primals) :])
    moves = [None if t is None else next(moved) for t in tangents]
    return results[: len(primals)], moves


jvp_rules[sort_p] = sort_jvp


def split_sort(split, primitive, args, on_tape, params):
    """Sort what is known now; the tape sorts the rest by the same keys."""
    count = params["num_keys"]
    if any(on_tape[:count]):
        return put_on_tape(split, primitive, args, on_tape, params)
    known, later = partition(on_tape, args)
    with set_current_trace(split.parent):
        known = primitive.bind(*known, **params)
    with set_current_trace(split.tape):
        later = primitive.bind(*args[:count], *later, **params)
    return merge(on_tape, known, later[count:])


split_rules[sort_p] = split_sort


def sort_transpose(cotangents, *operands, dimension, is_stable, num_keys):
    """Send each cotangent back to the place from which its number came."""
    if any(isinstance(x, Linear) for x in operands[:num_keys]):
        raise NotImplementedError(
            "Transpose rule (for reverse-mode differentiation) for 'sort' not "
            "implemented for its keys: their order does not depend on them linearly."
        )
    how = {"dimension": dimension, "is_stable": is_stable}
    keys, shape = operands[:num_keys], typeof(operands[0]).shape
    places = lax.broadcasted_iota("uint32", shape, dimension)
    *_, places = sort_p.bind(*keys, places, num_keys=num_keys, **how)
    given = [ct is not None for ct in cotangents]
    given = [g and isinstance(x, Linear) for g, x in zip(given, operands)]
    _, moving = partition(given, cotangents)
    _, *home = sort_p.bind(places, *moving, num_keys=1, **how)
    return merge(given, [None] * given.count(False), home)


transpose_rules[sort_p] = sort_transpose


def sort_batch(axis, args, dims, dimension, **params):
    """Sort all examples at once, along the axis beside theirs."""
    place = next(dim for dim in dims if dim is not None)
    args = [
        insert_axis(x, place, axis.size) if dim is None else move_axis(x, dim, place)
        for x, dim in zip(args, dims)
    ]
    dimension += place <= dimension
    results = sort_p.bind(*args, dimension=dimension, **params)
    return results, [place] * len(results)


def sort_dce(eqn, used):
    """Leave out the operands that are no keys and whose results nothing reads."""
    count = eqn.params["num_keys"]
    kept = [i < count or needed for i, needed in enumerate(used)]
    invars, outvars = (only(kept, atoms) for atoms in (eqn.invars, eqn.outvars))
    return eqn.replace(invars=invars, outvars=outvars)


def sort_cost(eqn):
    """Count the comparisons of a merge sort, and the bytes."""
    aval = eqn.invars[0].aval
    rounds = math.ceil(math.log2(max(aval.shape[eqn.params["dimension"]], 1)))
    return {FLOPS: aval.size * rounds} | _moved(eqn)


vmap_rules[sort_p], dce_rules[sort_p] = sort_batch, sort_dce
cost_rules[sort_p], python_rules[sort_p] = sort_cost, write_evaluation
