# Made from chapters/17_passes.md by `make chapter`;
# edit the chapter, not this file.
"""Matrix products that read what is there, in the order in which it is there."""

from minijax import lax
from minijax.lax.contraction import free_axes
from minijax.sweeping import INSIDE, sweeping


def turn_operands(sweep, eqn):
    """A rule: axes of what was transposed, in place of axes of the transpose."""
    contracting, batch = eqn.params["dimension_numbers"]
    sides = [
        untransposed(sweep, x, *axes)
        for x, *axes in zip(eqn.invars, contracting, batch)
    ]
    operands = [side[0] for side in sides]
    if operands == eqn.invars:
        return None
    numbers = tuple([tuple([side[i] for side in sides]) for i in (1, 2)])
    return sweep.put(
        lax.dot_general_p, *operands, **eqn.params | {"dimension_numbers": numbers}
    )


def untransposed(sweep, x, contracting, batch):
    """Return an operand of a product without its transpose, and its axes.

    The transpose stays if the free axes would come in another order.
    """
    inner = sweep.definition(x, lax.transpose_p)
    if inner is None:
        return x, contracting, batch
    order = inner.params["permutation"]
    free = [order[axis] for axis in free_axes(x.aval.ndim, contracting, batch)]
    if free != sorted(free):
        return x, contracting, batch
    axes = [tuple([order[axis] for axis in some]) for some in (contracting, batch)]
    return inner.invars[0], *axes


CONTRACTIONS = {lax.dot_general_p}, turn_operands
turn_products = sweeping(INSIDE, CONTRACTIONS)
