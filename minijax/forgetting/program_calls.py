"""Rules of primitives that call a program: each is a call of a transformed program.

Reference: the rules of ``jit_p`` in ``jax._src.pjit``.
"""

# Made from chapters/11_remat_upper.md by `make chapter`;
# edit the chapter, not this file.

from minijax.forgetting.programs import (
    dce_program,
    jvp_program,
    keep_inputs,
    only,
    partition,
    spread,
    transpose_program,
    types_given,
    vmap_program,
)
from minijax.reverse.transposition import Linear


def vmap_call(primitive):
    """Return the batching rule of a primitive that calls its parameter `jaxpr`."""

    def rule(axis, args, dims, jaxpr, **params):
        program, dims_out = vmap_program(jaxpr, axis, tuple(dims))
        return primitive.bind(*args, jaxpr=program, **params), list(dims_out)

    return rule


def unchanged(params, choose):
    """Return parameters, none of which says something about each operand."""
    return params


def jvp_call(primitive, per_operand=unchanged):
    """Return the jvp rule of a primitive that calls its parameter `jaxpr`.

    Args:
      primitive: the `Primitive`.
      per_operand: called with the parameters, and a function from what they say about
        the operands to what they are to say; returns the parameters.
    """

    def rule(primals, tangents, jaxpr, **params):
        moving = tuple([tangent is not None for tangent in tangents])
        program, moves = jvp_program(jaxpr, moving)
        params = per_operand(params, lambda given: [*given, *only(moving, given)])
        operands = *primals, *only(moving, tangents)
        outs = primitive.bind(*operands, jaxpr=program, **params)
        return outs[: len(moves)], spread(moves, outs[len(moves) :])

    return rule


def transpose_call(primitive, per_operand=unchanged, types=types_given):
    """Return the transpose rule of a primitive that calls its parameter `jaxpr`."""

    def rule(cts, *operands, jaxpr, **params):
        linear = tuple([isinstance(x, Linear) for x in operands])
        given = types(cts, jaxpr.out_avals)
        program, arrives = transpose_program(jaxpr, linear, given)
        values, _ = partition(linear, operands)
        cts = only(given, cts)
        new = [None] * len(cts)
        params = per_operand(params, lambda x: [*partition(linear, x)[0], *new])
        arrived = primitive.bind(*values, *cts, jaxpr=program, **params)
        return spread(linear, spread(arrives, arrived))

    return rule


def dce_call(per_operand=unchanged):
    """Return the dce rule of a primitive that calls its parameter `jaxpr`."""

    def rule(eqn, used):
        program, needed = dce_program(eqn.params["jaxpr"], used)
        params = per_operand(eqn.params, lambda given: only(needed, given))
        return eqn.replace(
            invars=only(needed, eqn.invars),
            outvars=only(used, eqn.outvars),
            params=params | {"jaxpr": keep_inputs(program, needed)},
        )

    return rule
