# Made from chapters/11_remat_upper.md by `make chapter`;
# edit the chapter, not this file.
"""Rules of primitives that call a program: each is a call of a transformed program.

Reference: the rules of ``jit_p`` in ``jax._src.pjit``.
"""

from minijax.core import Trace, current_trace, set_current_trace
from minijax.forgetting.programs import (
    dce_program,
    jvp_program,
    keep_inputs,
    only,
    partition,
    spread,
    stage,
    transpose_program,
    types_given,
    vmap_program,
)
from minijax.jaxprs.jaxpr import JaxprEqn, jaxpr_as_fun
from minijax.own_rules.function_calls import callee_rules
from minijax.reverse.transposition import Linear


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


def vmap_call(primitive):
    """Return the batching rule of a primitive that calls its parameter `jaxpr`."""

    def rule(axis, args, dims, jaxpr, **params):
        program, dims_out = vmap_program(jaxpr, axis, tuple(dims))
        return primitive.bind(*args, jaxpr=program, **params), list(dims_out)

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


class InlineTrace(Trace):
    """Runs what calls call; everything else goes to its parent.

    Args:
      parent: the trace around.
      left: a set of primitives whose calls are left as they are.
    """

    def __init__(self, parent, left):
        self.parent, self.left = parent, left

    def process_primitive(self, primitive, args, params):
        callee = callee_rules[primitive](JaxprEqn([], [], primitive, params))
        if callee is None or primitive in self.left:
            with set_current_trace(self.parent):
                return primitive.bind(*args, **params)
        with set_current_trace(self):
            return jaxpr_as_fun(callee)(*args)


def inlined(closed, left=()):
    """Return a program with the equations of what it calls in place of the calls."""

    def program(*flat):
        with set_current_trace(InlineTrace(current_trace(), left)):
            return jaxpr_as_fun(closed)(*flat)

    return stage(program, closed.in_avals)
