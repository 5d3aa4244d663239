"""Loop-invariant code motion: what is the same in every step is computed once."""

# Made from chapters/22_passes_upper.md by `make chapter`;
# edit the chapter, not this file.

from minijax import lax
from minijax.callbacks.callback import pure_callback_p
from minijax.control_flow.while_loops import while_p
from minijax.jaxprs.jaxpr import ClosedJaxpr, Jaxpr, Literal
from minijax.jaxprs.pretty_printer import jaxprs_in_params
from minijax.jitting.stages import eqn_cost, nbytes
from minijax.llvm.targets import TARGETS
from minijax.passes.rewriting import insert_eqn
from minijax.passes.simplification import eliminate_dead_eqns, inline_jaxpr
from minijax.rematerialization.jaxpr_transforms import eqn_has_effects
from minijax.scans.scan import scan_p
from minijax.scans.step import split_list_by_sizes


def fixed_eqns(closed, num_consts, in_vain=False):
    """Return the equations that give the same in each step of a loop, in order.

    Args:
      closed: the step, whose first inputs are the constants.
      num_consts: how many of its inputs are constants.
      in_vain: whether there may be no step, so that all of them have to end.
    """
    fixed, eqns = {*closed.constvars, *closed.invars[:num_consts]}, []
    for eqn in closed.eqns:
        known = all(x in fixed or isinstance(x, Literal) for x in eqn.invars)
        if known and not eqn_has_effects(eqn) and not (in_vain and may_not_end(eqn)):
            fixed.update(eqn.outvars)
            eqns.append(eqn)
    return eqns


def may_not_end(eqn):
    """Return whether an equation should not be moved to where it may run in vain."""
    inside = [sub.eqns for sub in jaxprs_in_params(eqn.params)]
    special = eqn.primitive in (while_p, pure_callback_p)
    return special or any(may_not_end(sub) for eqns in inside for sub in eqns)


def worth_moving(eqns, target=TARGETS["plain"]):
    """Return those equations that cost more to repeat than their results to read.

    Args:
      eqns: list of equations that give the same in each step of a loop.
      target: the `Target` whose prices count.
    """
    again, moved = {}, []
    for eqn in eqns:
        price = target.work(eqn_cost(eqn)) / target.cache_byte_cost
        price += sum(again.get(x, nbytes(x.aval)) for x in variables_of(eqn))
        size = sum(nbytes(var.aval) for var in eqn.outvars)
        if size < price:
            moved.append(eqn)
        again.update(dict.fromkeys(eqn.outvars, min(size, price)))
    return moved


def variables_of(eqn):
    """Return the operands of an equation that are no literals, each once."""
    return dict.fromkeys(x for x in eqn.invars if not isinstance(x, Literal))


def replace_jaxpr(closed, invars, outvars=None, eqns=None, names=()):
    """Return a program with other inputs, results or equations.

    Args:
      closed: a `ClosedJaxpr`.
      invars, outvars, eqns: lists; None for those that it has.
      names: dictionary from variables to what is read instead of them.
    """
    eqns = closed.eqns if eqns is None else eqns
    outvars = closed.outvars if outvars is None else outvars
    if names:
        eqns = [e.replace(invars=[names.get(x, x) for x in e.invars]) for e in eqns]
        outvars = [names.get(x, x) for x in outvars]
    return ClosedJaxpr(Jaxpr(closed.constvars, invars, outvars, eqns), closed.consts)


def used_vars(closed):
    """Return the set of the variables that a program reads or returns."""
    return {x for eqn in closed.eqns for x in eqn.invars}.union(closed.outvars)


def without_moved(closed, moved):
    """Return a step with the results of some equations as inputs, and those results.

    Args:
      closed: the step, a `ClosedJaxpr`.
      moved: set of some of its equations.
    """
    left = [eqn for eqn in closed.eqns if eqn not in moved]
    read = used_vars(replace_jaxpr(closed, [], eqns=left))
    results = [x for eqn in closed.eqns if eqn in moved for x in eqn.outvars]
    front = [var for var in results if var in read]
    return replace_jaxpr(closed, [*front, *closed.invars], eqns=left), front


def needed_for(moved, eqns):
    """Return those of some equations that others, among them, depend on; in order."""
    wanted, found = {var for eqn in moved for var in eqn.outvars}, []
    for eqn in reversed(eqns):
        if not wanted.isdisjoint(eqn.outvars):
            wanted.update(eqn.invars)
            found.append(eqn)
    return found[::-1]


def moved_before(sweep, closed, operands, in_vain=False):
    """Add what a step computes anew each time, before its loop.

    Args:
      sweep: a `JaxprRewriter`.
      closed: the step, a `ClosedJaxpr`, whose first inputs are its constants.
      operands: what stands for these.
      in_vain: whether there may be no step at all.

    Returns:
      The step with further inputs, which come first, and what stands for them; as it
      was, and an empty list, if there is nothing to move.
    """
    fixed = fixed_eqns(closed, len(operands), in_vain)
    moved = {*worth_moving(fixed)}
    if not moved:
        return closed, []
    step, front = without_moved(closed, moved)
    consts = closed.invars[: len(operands)]
    before = replace_jaxpr(closed, consts, front, needed_for(moved, fixed))
    results = inline_jaxpr(sweep, before, operands)
    return sweep.inside.settled(eliminate_dead_eqns(step) or step), results


# Of a loop, the parameters with the sizes of two groups, and those with programs.
LOOPS = {
    scan_p: (("num_consts", "num_carry"), ("jaxpr",)),
    while_p: (("cond_nconsts", "body_nconsts"), ("cond_jaxpr", "body_jaxpr")),
}


def loop_jaxprs(eqn):
    """Return the list of the programs of a loop."""
    return [eqn.params[name] for name in LOOPS[eqn.primitive][1]]


def split_loop_operands(eqn, values):
    """Return values, one for each operand of a loop, by their use: three lists.

    Of a scan they are for constants, carry and rows; of a while for the condition's
    constants, the body's, and the carry.
    """
    return split_list_by_sizes(
        values, *[eqn.params[size] for size in LOOPS[eqn.primitive][0]]
    )


def rebind_loop(sweep, eqn, programs, operands, outvars):
    """Add a loop in the place of another; return the list of its results.

    Args:
      sweep, eqn: the `JaxprRewriter`, and the equation.
      programs: as `loop_jaxprs` has returned them.
      operands: three lists, as of `split_loop_operands`.
      outvars: list of variables for the results.
    """
    sizes, names = LOOPS[eqn.primitive]
    params = eqn.params | dict(zip(sizes, map(len, operands)))
    params |= dict(zip(names, programs))
    new = eqn.replace(invars=sum(operands, []), outvars=outvars, params=params)
    return sweep.add(new) if outvars or eqn_has_effects(new) else []


def hoist_loop_invariants(sweep, eqn):
    """A rule for loops: what no iteration changes is computed before the first."""
    parts, in_vain = split_loop_operands(eqn, eqn.invars), eqn.primitive is while_p
    pairs = zip(loop_jaxprs(eqn), parts)
    moved = [moved_before(sweep, *pair, in_vain) for pair in pairs]
    programs, more = zip(*moved)
    if not any(more):
        return None
    consts = [[*new, *old] for new, old in zip(more, parts)]
    operands = consts + parts[len(consts) :]
    return rebind_loop(sweep, eqn, programs, operands, eqn.outvars)


def hoist_scan_matmul(sweep, eqn):
    """A rule for a scan: one product of all rows, in place of one in each step.

    It is worth while where a factor, which all steps would read, is larger than what
    they would read instead.
    """
    step = eqn.params["jaxpr"]
    consts, _, rows = map(set, split_loop_operands(eqn, step.invars))
    products = {e for e in step.eqns if is_product_of(e, consts, rows)}
    if not products:
        return None
    outside = dict(zip(step.invars, eqn.invars))
    inside = [e for e in step.eqns if e in products]
    stacks = [product_of_rows(sweep, e, outside, rows) for e in inside]
    invars = [*step.invars, *(var for e in inside for var in e.outvars)]
    eqns = [e for e in step.eqns if e not in products]
    less = sweep.inside.settled(replace_jaxpr(step, invars, eqns=eqns))
    consts, carry, xs = split_loop_operands(eqn, eqn.invars)
    operands = [consts, carry, [*xs, *stacks]]
    return rebind_loop(sweep, eqn, [less], operands, eqn.outvars)


def is_product_of(eqn, consts, rows):
    """Return whether an equation is a product of a row with a large constant."""
    product = eqn.primitive is lax.dot_general_p
    if not product or any(eqn.params["dimension_numbers"][1]):
        return False
    x, y = eqn.invars
    x, y = (y, x) if y in rows else (x, y)
    size = nbytes(eqn.outvars[0].aval)
    return x in rows and y in consts and 2 * size <= nbytes(y.aval)


def product_of_rows(sweep, eqn, outside, rows):
    """Return what stands for the products of all rows, along a new axis in front."""
    (left, right), batch = eqn.params["dimension_numbers"]
    x, y = eqn.invars
    swapped = y in rows
    x, y, left, right = (y, x, right, left) if swapped else (x, y, left, right)
    left = tuple([axis + 1 for axis in left])
    params = eqn.params | {"dimension_numbers": ((left, right), batch)}
    [stack] = insert_eqn(sweep, lax.dot_general_p, outside[x], outside[y], **params)
    free, ndim = stack.aval.ndim - (y.aval.ndim - len(right)), stack.aval.ndim
    if not swapped or free in (1, ndim):
        return stack
    order = (0, *range(free, ndim), *range(1, free))
    return insert_eqn(sweep, lax.transpose_p, stack, permutation=order)[0]
