"""Branches that are known, and branches and loops that are handed less."""

# Made from chapters/22_passes_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax import lax
from minijax.forgetting.programs import acts, merge, only, partition
from minijax.jaxprs.jaxpr import Literal
from minijax.passes.common_subexpressions import key_of
from minijax.passes.inlining import inline
from minijax.passes.loop_invariants import (
    loop_again,
    loop_parts,
    loop_programs,
    variables_read,
    with_places,
)
from minijax.passes.sweeping import literal, put, stretched_to
from minijax.scans.steps import groups


def narrowed(programs, operands, *places):
    """Return programs with fewer inputs, and for each old one whether it is kept.

    An input goes if no program reads it, if it is a literal, or the same as another.

    Args:
      programs: list of `ClosedJaxpr`, which are all given the same.
      operands: what they are given.
      *places: ranges of what may go; within a range, one may stand for another.
    """
    less = [with_operands(closed, operands, places) for closed in programs]
    read = {i for closed in less for i in places_read(closed)}
    may_go = set().union(*places)
    kept = [i not in may_go or i in read for i in range(len(operands))]
    if all(kept):
        return programs, kept
    return [with_places(p, only(kept, p.invars)) for p in less], kept


def with_operands(closed, operands, places):
    """Return a program that has literals inside, and reads equal operands once."""
    names, first = {}, {}
    given = [*zip(closed.invars, operands)]
    for some in places:
        for var, x in given[some.start : some.stop]:
            if isinstance(x, Literal):
                names[var] = Literal(x.val, var.aval)
            elif first.setdefault((some, x), var) is not var:
                names[var] = first[some, x]
    return with_places(closed, closed.invars, names=names)


def places_read(closed):
    """Return the places of the inputs that a program reads or returns."""
    read = variables_read(closed)
    return [place for place, var in enumerate(closed.invars) if var in read]


def choose_branch(sweep, eqn):
    """A rule for cond: the branch itself, if there is nothing to choose."""
    index, *operands = eqn.invars
    branches = eqn.params["branches"]
    if isinstance(index, Literal):
        return inline(sweep, branches[int(index.val)], operands)
    return inline(sweep, branches[0], operands) if len({*branches}) == 1 else None


def narrow_branches(sweep, eqn):
    """A rule for cond: without what no branch reads, and what all of them hand on."""
    index, *operands = eqn.invars
    branches = eqn.params["branches"]
    handed = [*map(agreed, zip(*[handed_on(branch, operands) for branch in branches]))]
    computed = [x is None for x in handed]
    less = [
        with_places(b, b.invars, only(computed, b.outvars)) for b in branches
    ]
    less, kept = narrowed(less, operands, range(len(operands)))
    if all(computed) and all(kept):
        return None
    invars = [index, *only(kept, operands)]
    outvars = only(computed, eqn.outvars)
    new = eqn.replace(invars=invars, outvars=outvars, params={"branches": (*less,)})
    results = iter(sweep.add(new) if outvars or acts(new) else ())
    return [next(results) if x is None else x for x in handed]


def handed_on(closed, operands):
    """Return for each result what it is outside; None for one that is computed."""
    outside = dict(zip(closed.invars, operands))
    return [x if isinstance(x, Literal) else outside.get(x) for x in closed.outvars]


def agreed(atoms):
    """Return the one atom that all of these are, or None."""
    return atoms[0] if None not in atoms and len(set(map(key_of, atoms))) == 1 else None


def few_steps(sweep, eqn):
    """A rule for a scan: no loop for one step, and nothing for none."""
    step, length = eqn.params["jaxpr"], eqn.params["length"]
    if length > 1:
        return None
    consts, carry, xs = loop_parts(eqn, eqn.invars)
    ys = eqn.outvars[len(carry) :]
    if length == 0:
        zeros = [literal(0, y.aval.update(shape=())) for y in ys]
        return carry + [stretched_to(sweep, x, y.aval.shape) for x, y in zip(zeros, ys)]
    rows = [put(sweep, lax.squeeze_p, x, dimensions=(0,))[0] for x in xs]
    results = inline(sweep, step, [*consts, *carry, *rows])
    carry, rows = groups(results, len(carry))
    return carry + [repeated(sweep, row, 1) for row in rows]


def repeated(sweep, atom, length):
    """Return what stands for an array with an atom in each row."""
    shape = (length, *atom.aval.shape)
    params = {"shape": shape, "broadcast_dimensions": tuple(range(1, len(shape)))}
    return put(sweep, lax.broadcast_in_dim_p, atom, **params)[0]


def narrow_loop(sweep, eqn):
    """A rule for loops: without constants, and rows, that need not be handed over."""
    parts, programs = loop_parts(eqn, eqn.invars), loop_programs(eqn)
    count, less, operands = len(programs), [], []
    carry, *xs = parts[count:]
    for program, consts in zip(programs, parts):
        given = sum([consts, carry, *xs], [])
        ends = len(consts), len(consts) + len(carry)
        places = range(ends[0]), range(ends[1], len(given))
        [program], kept = narrowed([program], given, *places)
        less.append(program)
        operands.append(only(kept[: ends[0]], consts))
    operands += [carry, *[only(kept[ends[1] :], rows) for rows in xs]]
    same = [*map(len, operands)] == [*map(len, parts)]
    return None if same else loop_again(sweep, eqn, less, operands, eqn.outvars)


def carry_less(sweep, eqn):
    """A rule for a scan: no carry that does not change, or not after the first step."""
    step = eqn.params["jaxpr"]
    consts, before, _ = loop_parts(eqn, step.invars)
    after, ys = groups(step.outvars, len(before))
    read, fixed = variables_read(step), {*consts}
    known = dict(zip(step.invars, eqn.invars))
    changes = [
        a is not b and (b in read or not (a in fixed or isinstance(a, Literal)))
        for a, b in zip(after, before)
    ]
    if all(changes):
        return None
    operands = _with_more_consts(loop_parts(eqn, eqn.invars), changes)
    invars = sum(_with_more_consts(loop_parts(eqn, step.invars), changes), [])
    kept = changes + [True] * len(ys)
    gone, left = partition(kept, step.outvars)
    less = sweep.inside.settled(with_places(step, invars, left))
    outvars = only(kept, eqn.outvars)
    results = loop_again(sweep, eqn, [less], operands, outvars)
    return merge(kept, [known.get(x, x) for x in gone], results)


def _with_more_consts(parts, changes):
    consts, carry, xs = parts
    fixed, carry = partition(changes, carry)
    return [[*consts, *fixed], carry, xs]


def stack_less(sweep, eqn):
    """A rule for a scan: no stacks of rows that are there already, or all the same."""
    step, length = eqn.params["jaxpr"], eqn.params["length"]
    outside = dict(zip(step.invars, eqn.invars))
    consts, carry, rows = loop_parts(eqn, step.invars)
    carried, ys = groups(step.outvars, len(carry))
    known, first = {*rows, *consts}, {}
    kept = [
        not (isinstance(y, Literal) or y in known) and first.setdefault(y, i) == i
        for i, y in enumerate(ys)
    ]
    if all(kept):
        return None
    kept_ys = only(kept, ys)
    outs, stacks = groups(eqn.outvars, len(carry))
    less = with_places(step, step.invars, [*carried, *kept_ys])
    outvars = [*outs, *only(kept, stacks)]
    less, operands = sweep.inside.settled(less), loop_parts(eqn, eqn.invars)
    results = loop_again(sweep, eqn, [less], operands, outvars)
    outs, stacks = groups(results, len(carry))
    made = dict(zip(kept_ys, stacks)) | {row: outside[row] for row in rows}
    return outs + [
        made[y] if y in made else repeated(sweep, outside.get(y, y), length) for y in ys
    ]


def no_rounds(sweep, eqn):
    """A rule for while: the initial carry, if the condition never holds."""
    [going] = eqn.params["cond_jaxpr"].outvars
    stops = isinstance(going, Literal) and not going.val
    return loop_parts(eqn, eqn.invars)[2] if stops else None


def carry_less_round(sweep, eqn):
    """A rule for while: what each round hands on as it is, is a constant."""
    test, body = loop_programs(eqn)
    first, second, carry = loop_parts(eqn, eqn.invars)
    inside = body.invars[len(second) :]
    changes = [a is not b for a, b in zip(inside, body.outvars)]
    if all(changes):
        return None
    fixed, moving = partition(changes, carry)
    outvars = only(changes, body.outvars)
    body = with_places(body, _fixed_first(body, len(second), changes), outvars)
    test = with_places(test, _fixed_first(test, len(first), changes))
    programs = list(map(sweep.inside.settled, (test, body)))
    operands = [[*fixed, *first], [*fixed, *second], moving]
    outvars = only(changes, eqn.outvars)
    results = loop_again(sweep, eqn, programs, operands, outvars)
    return merge(changes, fixed, results)


def _fixed_first(closed, num_consts, changes):
    fixed, moving = partition(changes, closed.invars[num_consts:])
    return [*fixed, *closed.invars[:num_consts], *moving]
