# Made from chapters/18_passes.md by `make chapter`;
# edit the chapter, not this file.
"""Loops with a known number of steps, with less to do in each of them."""

from minijax import lax
from minijax.forgetting.programs import acts, partition
from minijax.jaxprs.jaxpr import Literal
from minijax.jitting.costs import nbytes
from minijax.passes.constant_folding import stretched_to
from minijax.passes.inlining import inline
from minijax.passes.loop_invariants import moved_before
from minijax.passes.narrowing import narrowed, variables_read, with_places
from minijax.passes.sweeping import literal
from minijax.scans.primitive import scan_p
from minijax.scans.steps import groups


def scan_groups(eqn, values):
    """Return what belongs to constants, to the carry, and to rows, of some values."""
    return groups(values, eqn.params["num_consts"], eqn.params["num_carry"])


def scan_again(sweep, eqn, step, consts, carry, xs, outvars):
    """Add a scan in the place of another; return the list of its results."""
    sizes = {"num_consts": len(consts), "num_carry": len(carry)}
    params = eqn.params | sizes | {"jaxpr": step}
    new = eqn.replace(invars=[*consts, *carry, *xs], outvars=outvars, params=params)
    return sweep.add(new) if outvars or acts(new) else []


def few_steps(sweep, eqn):
    """A rule for a scan: no loop for one step, and nothing for none."""
    step, length = eqn.params["jaxpr"], eqn.params["length"]
    if length > 1:
        return None
    consts, carry, xs = scan_groups(eqn, eqn.invars)
    ys = eqn.outvars[len(carry) :]
    if length == 0:
        zeros = [literal(0, y.aval.update(shape=())) for y in ys]
        return carry + [stretched_to(sweep, x, y.aval.shape) for x, y in zip(zeros, ys)]
    rows = [sweep.put(lax.squeeze_p, x, dimensions=(0,))[0] for x in xs]
    results = inline(sweep, step, [*consts, *carry, *rows])
    carry, rows = groups(results, len(carry))
    return carry + [repeated(sweep, row, 1) for row in rows]


def repeated(sweep, atom, length):
    """Return what stands for an array with an atom in each row."""
    shape = (length, *atom.aval.shape)
    params = {"shape": shape, "broadcast_dimensions": tuple(range(1, len(shape)))}
    return sweep.put(lax.broadcast_in_dim_p, atom, **params)[0]


def narrow_scan(sweep, eqn):
    """A rule for a scan: without constants, and rows, that need not be handed over."""
    step, num_consts = eqn.params["jaxpr"], eqn.params["num_consts"]
    first_row = num_consts + eqn.params["num_carry"]
    fewer, kept = narrowed(step, eqn.invars, 0, num_consts)
    operands = partition(kept, eqn.invars)[1]
    gone = len(eqn.invars) - len(operands)
    fewer, rows_kept = narrowed(fewer, operands, first_row - gone, len(operands))
    if fewer is step:
        return None
    operands = partition(rows_kept, operands)[1]
    consts, carry, xs = groups(operands, num_consts - gone, eqn.params["num_carry"])
    return scan_again(sweep, eqn, fewer, consts, carry, xs, eqn.outvars)


def carry_less(sweep, eqn):
    """A rule for a scan: no carry that does not change, or not after the first step."""
    step = eqn.params["jaxpr"]
    consts, before, _ = scan_groups(eqn, step.invars)
    after, ys = groups(step.outvars, len(before))
    read, fixed = variables_read(step), {*consts}
    known = dict(zip(step.invars, eqn.invars))
    changes = [
        a is not b and (b in read or not (a in fixed or isinstance(a, Literal)))
        for a, b in zip(after, before)
    ]
    if all(changes):
        return None
    consts, carry, xs = _with_more_consts(scan_groups(eqn, eqn.invars), changes)
    invars = sum(_with_more_consts(scan_groups(eqn, step.invars), changes), [])
    kept = changes + [True] * len(ys)
    less = with_places(step, invars, partition(kept, step.outvars)[1])
    outvars = partition(kept, eqn.outvars)[1]
    less = sweep.inside.settled(less)
    results = iter(scan_again(sweep, eqn, less, consts, carry, xs, outvars))
    return [
        next(results) if keep else known.get(x, x)
        for keep, x in zip(kept, step.outvars)
    ]


def _with_more_consts(parts, changes):
    consts, carry, xs = parts
    fixed, carry = partition(changes, carry)
    return [[*consts, *fixed], carry, xs]


def stack_less(sweep, eqn):
    """A rule for a scan: no stacks of rows that are there already, or all the same."""
    step, length = eqn.params["jaxpr"], eqn.params["length"]
    outside = dict(zip(step.invars, eqn.invars))
    consts, carry, rows = scan_groups(eqn, step.invars)
    carried, ys = groups(step.outvars, len(carry))
    known, first = {*rows, *consts}, {}
    kept = [
        not (isinstance(y, Literal) or y in known) and first.setdefault(y, i) == i
        for i, y in enumerate(ys)
    ]
    if all(kept):
        return None
    kept_ys = partition(kept, ys)[1]
    outs, stacks = groups(eqn.outvars, len(carry))
    less = with_places(step, step.invars, [*carried, *kept_ys])
    outvars = [*outs, *partition(kept, stacks)[1]]
    consts, carry, xs = scan_groups(eqn, eqn.invars)
    less = sweep.inside.settled(less)
    results = scan_again(sweep, eqn, less, consts, carry, xs, outvars)
    outs, stacks = groups(results, len(carry))
    made = dict(zip(kept_ys, stacks)) | {row: outside[row] for row in rows}
    return outs + [
        made[y] if y in made else repeated(sweep, outside.get(y, y), length) for y in ys
    ]


def move_before_scan(sweep, eqn):
    """A rule for a scan: what is the same in each step is computed before the first."""
    consts, carry, xs = scan_groups(eqn, eqn.invars)
    found = moved_before(sweep, eqn.params["jaxpr"], len(consts), consts)
    if found is None:
        return None
    step, more = found
    return scan_again(sweep, eqn, step, [*more, *consts], carry, xs, eqn.outvars)


def multiply_before_scan(sweep, eqn):
    """A rule for a scan: one product of all rows, in place of one in each step.

    It is worth while where a factor, which all steps would read, is larger than what
    they would read instead.
    """
    step = eqn.params["jaxpr"]
    consts, _, rows = map(set, scan_groups(eqn, step.invars))
    products = [e for e in step.eqns if is_product_of(e, consts, rows)]
    if not products:
        return None
    outside = dict(zip(step.invars, eqn.invars))
    gone = {*products}
    left = [e for e in step.eqns if e not in gone]
    stacks = [product_of_rows(sweep, e, outside, rows) for e in products]
    invars = [*step.invars, *(var for e in products for var in e.outvars)]
    less = sweep.inside.settled(with_places(step, invars, eqns=left))
    consts, carry, xs = scan_groups(eqn, eqn.invars)
    return scan_again(sweep, eqn, less, consts, carry, [*xs, *stacks], eqn.outvars)


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
    [stack] = sweep.put(lax.dot_general_p, outside[x], outside[y], **params)
    free, ndim = stack.aval.ndim - (y.aval.ndim - len(right)), stack.aval.ndim
    if not swapped or free in (1, ndim):
        return stack
    order = (0, *range(free, ndim), *range(1, free))
    return sweep.put(lax.transpose_p, stack, permutation=order)[0]


SCANS = [
    ({scan_p}, rule)
    for rule in (
        few_steps, narrow_scan, carry_less, stack_less, move_before_scan,
        multiply_before_scan,
    )
]  # fmt: skip
