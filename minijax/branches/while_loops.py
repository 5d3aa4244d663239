"""while_loop: repetition until a condition fails, as an equation.

Reference: ``jax.lax.while_loop``.
"""

# Made from chapters/15_while_upper.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Callable
from typing import Any

from minijax.arrays.array import shape_rules
from minijax.arrays.settings import config
from minijax.arrays.transfer import brought
from minijax.batching.trace import program_primitives
from minijax.branches.agreement import check_carry, promote_weak
from minijax.branches.conditionals import of_type
from minijax.branches.rewiring import rewired, unchanged
from minijax.branches.selecting import choose
from minijax.core import Primitive, impl_rules
from minijax.errors import ConcretizationTypeError
from minijax.forgetting.programs import dce_program, merge, partition
from minijax.jitting.compilation import compiled, place_to_run
from minijax.jitting.primitive import check_operands
from minijax.jitting.trace_cache import program_of
from minijax.lax.promotion import lift
from minijax.pytrees.api_util import FlatCall
from minijax.pytrees.functions import tree_map

while_p: Primitive = Primitive("while")
program_primitives.add(while_p)


def parts_of_while(values, cond_nconsts, body_nconsts):
    """Return constants of the condition, constants of the body, and the carry."""
    end = cond_nconsts + body_nconsts
    return values[:cond_nconsts], values[cond_nconsts:end], values[end:]


def while_shape(*avals, cond_nconsts, cond_jaxpr, body_nconsts, body_jaxpr):
    """Return the types of the carry, after comparing them with what the body takes."""
    *consts, carry = parts_of_while(avals, cond_nconsts, body_nconsts)
    check_operands("The condition", cond_jaxpr.in_avals, [*consts[0], *carry])
    check_operands("The body", body_jaxpr.in_avals, [*consts[1], *carry])
    return body_jaxpr.out_avals


def _while_impl(*args, cond_nconsts, cond_jaxpr, body_nconsts, body_jaxpr):
    placement = place_to_run(args, while_p, cond_jaxpr, body_jaxpr)
    args = brought(args, placement.device)
    cond_consts, body_consts, carry = parts_of_while(args, cond_nconsts, body_nconsts)
    test = compiled(cond_jaxpr, placement=placement)
    step = compiled(body_jaxpr, placement=placement)
    while (going := test(*cond_consts, *carry)[0]).any():
        stepped = step(*body_consts, *carry)
        carry = [_unless_done(going, old, new) for old, new in zip(carry, stepped)]
    return [of_type(lift(x), aval) for x, aval in zip(carry, body_jaxpr.out_avals)]


def _unless_done(going, old, new):
    """Return `new`, but `old` for those examples of a batch whose loop has ended."""
    return choose(going, old, new) if going.ndim else new


shape_rules[while_p] = while_shape
impl_rules[while_p] = _while_impl


def _write_loop(cond_fun, body_fun, call):
    """Return the initial carry, the condition's `Program` and the body's."""
    test, body = _write_both(cond_fun, body_fun, call)
    out_avals = body.closed.out_avals
    [in_tree] = call.args_tree.children()
    if len(out_avals) == len(call.avals):
        leaves, changed = promote_weak(call.leaves, call.avals, out_avals)
        if changed:
            call = FlatCall("while_loop", body_fun, (in_tree.unflatten(leaves),))
            test, body = _write_both(cond_fun, body_fun, call)
    results = body.out_tree, body.closed.out_avals
    check_carry("while_loop", body_fun, in_tree, call.avals, *results)
    return call.leaves, test, body


def _write_both(cond_fun, body_fun, call):
    test = program_of(FlatCall("while_loop", cond_fun, call.args), hoist=True)
    _check_answer(test)
    return test, program_of(call, hoist=True)


def _check_answer(test):
    """Raise if a condition does not return a boolean scalar."""
    avals = test.closed.out_avals
    found = [(aval.shape, aval.dtype) for aval in avals]
    if test.out_tree.kind is None and found == [((), bool)]:
        return
    returned = ", ".join(map(str, avals))
    if test.out_tree.kind is not None:
        returned = f"{test.out_tree} of ({returned})"
    raise TypeError(
        "while_loop: cond_fun must return a boolean scalar, but got output type(s) "
        f"{returned}. Compare, or take jnp.all or jnp.any."
    )


def while_loop(
    cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any
) -> Any:
    """Apply a function again and again, as long as a condition holds.

    Args:
      cond_fun: function from the carry to a boolean scalar.
      body_fun: function from the carry to a carry of the same structure, shapes and
        dtypes.
      init_val: the first carry, a tree of arrays. A number without a dtype of its own
        takes on that of the carry which the body returns.

    Returns:
      The first carry for which the condition does not hold.

    Raises:
      TypeError: if a function cannot be called, the condition is no boolean scalar, or
        the carry changes its type on the way; the message names the leaves.

    Reference: ``jax.lax.while_loop``.
    """
    if not (callable(cond_fun) and callable(body_fun)):
        raise TypeError("while_loop: cond_fun and body_fun must be callable.")
    if config.jax_disable_jit:
        try:
            return _in_python(cond_fun, body_fun, init_val)
        except ConcretizationTypeError:
            pass  # the carry stands for many examples: no Python loop follows them
    call = FlatCall("while_loop", body_fun, (init_val,))
    leaves, test, body = _write_loop(cond_fun, body_fun, call)
    outs = _bind_while(test, body, leaves)
    return body.out_tree.unflatten(outs)


def _in_python(cond_fun, body_fun, carry):
    carry = tree_map(lift, carry)
    while cond_fun(carry):
        carry = tree_map(lift, body_fun(carry))
    return carry


def _bind_while(test, body, carry):
    """Bind a loop; what its body hands on unchanged becomes a constant of the body."""
    condition, fixed = _fixed_carry(test, body)
    kept, constants = partition(fixed, carry)
    own, moving, _ = _places(test, fixed)
    condition = rewired(condition, own + moving)
    own, moving, still = _places(body, fixed)
    results, _ = partition(fixed, range(len(carry)))
    outs = while_p.bind(
        *[*test.captured, *constants, *body.captured, *kept],
        cond_nconsts=len(test.captured),
        cond_jaxpr=condition,
        body_nconsts=len(constants) + len(body.captured),
        body_jaxpr=rewired(body.closed, still + own + moving, results),
    )
    return merge(fixed, outs, map(lift, constants))


def _fixed_carry(test, body):
    """Return the condition, and for each part of the carry whether it is a constant."""
    program, asked = dce_program(test.closed, (True,))
    first = len(body.captured)
    same = [place == first + i for i, place in enumerate(unchanged(body.closed))]
    fixed = [a and not b for a, b in zip(same, asked[len(test.captured) :])]
    return (program if any(fixed) else test.closed), fixed


def _places(program, fixed):
    """Return where a program has what it captured, the moving and the fixed carry."""
    first = len(program.captured)
    moving, still = partition(fixed, range(first, first + len(fixed)))
    return [*range(first)], [*moving], [*still]
