"""Programs made from programs: what each transformation does to a whole jaxpr.

Each function takes a `ClosedJaxpr` and returns another, and remembers it.

Reference: ``jvp_jaxpr``, ``batch_jaxpr``, ``dce_jaxpr`` in ``jax._src.interpreters``.
"""

# Made from chapters/11_own_rules_ground.md by `make chapter`;
# edit the chapter, not this file.

from minijax.arrays.avals import typeof
from minijax.arrays.dtypes import is_inexact
from minijax.batching.rules import at_front
from minijax.batching.trace import vmap_flat
from minijax.core import RuleTable
from minijax.forgetting.remembering import remembered
from minijax.forward.rules import zeros_like_tangent
from minijax.forward.trace import jvp_flat
from minijax.jaxprs.jaxpr import ClosedJaxpr, Literal, jaxpr_as_fun
from minijax.jaxprs.latest import fitted
from minijax.jaxprs.printing import jaxprs_in_params
from minijax.jaxprs.staging import trace_to_jaxpr
from minijax.linear.linearization import needed_part
from minijax.reverse.backwards import backward_pass, dense_cotangent
from minijax.reverse.transposition import Linear


def partition(mask, values):
    """Return two lists: the values where `mask` is False, and where it is True."""
    pairs = list(zip(mask, values, strict=True))
    return [x for true, x in pairs if not true], [x for true, x in pairs if true]


def only(mask, values):
    """Return the list of the values where `mask` is True."""
    return [x for true, x in zip(mask, values, strict=True) if true]


def merge(mask, no, yes):
    """Return the list of which `partition` gives these two."""
    no, yes = iter(no), iter(yes)
    return [next(yes if chosen else no) for chosen in mask]


def spread(mask, values):
    """Return a list with `values` where `mask` is True, and None elsewhere."""
    values = iter(values)
    return [next(values) if chosen else None for chosen in mask]


def flags_of(flag, count):
    """Return one flag for each of `count` things, of a single flag or of them all."""
    return (flag,) * count if isinstance(flag, bool) else tuple(flag)


def with_consts(jaxpr, closed):
    """Close a jaxpr over those constants of `closed` that it still has."""
    values = dict(zip(closed.constvars, closed.consts))
    return ClosedJaxpr(jaxpr, [values[var] for var in jaxpr.constvars])


def keep_inputs(closed, kept):
    """Return a program without those inputs that are not `kept` and not needed."""
    invars = only(kept, closed.invars)
    return ClosedJaxpr(closed.jaxpr.replace(invars=invars), closed.consts)


@remembered
def without_consts(closed):
    """Return a program whose first inputs are the constants of another one."""
    jaxpr = closed.jaxpr
    invars = jaxpr.constvars + jaxpr.invars
    return ClosedJaxpr(jaxpr.replace(constvars=[], invars=invars), [])


def stage(program, avals):
    """Return the `ClosedJaxpr` of a function from flat arguments to a list."""
    return ClosedJaxpr(*trace_to_jaxpr(program, avals))


@remembered
def jvp_program(closed, moving, instantiate=False):
    """Return the program of values and tangents.

    Args:
      closed: a `ClosedJaxpr`.
      moving: for each input whether it has a tangent.
      instantiate: whether zero tangents of results are written out: one flag, or one
        for each result. Integers have no tangents in any case.

    Returns:
      A `ClosedJaxpr` from all inputs, and the tangents of the moving ones, to all
      results, and the tangents of some; and a tuple that says which.
    """
    count, moves = len(closed.invars), []
    wanted = flags_of(instantiate, len(closed.outvars))

    def program(*flat):
        tangents = spread(moving, flat[count:])
        outs, slopes = jvp_flat(jaxpr_as_fun(closed), flat[:count], tangents)
        slopes = list(map(_written_out, outs, slopes, wanted, closed.out_avals))
        moves.extend(slope is not None for slope in slopes)
        return outs + [slope for slope in slopes if slope is not None]

    avals = closed.in_avals + only(moving, closed.in_avals)
    return ClosedJaxpr(*trace_to_jaxpr(program, avals)), tuple(moves)


def _written_out(out, slope, wanted, aval):
    needed = slope is None and wanted and is_inexact(aval.dtype)
    return fitted.value(zeros_like_tangent(out), typeof(out)) if needed else slope


@remembered
def vmap_program(closed, axis, dims, to_front=False):
    """Return the program of all examples at once.

    Args:
      closed: a `ClosedJaxpr`.
      axis: the `MappedAxis`.
      dims: for each input its mapped axis, or None.
      to_front: whether results get the mapped axis in front, be they mapped or not:
        one flag, or one for each result.

    Returns:
      A `ClosedJaxpr`, and a tuple with the mapped axis of each result, or None.
    """
    fronts, places = flags_of(to_front, len(closed.outvars)), []

    def program(*values):
        outs, found = vmap_flat(jaxpr_as_fun(closed), values, dims, axis)
        places.extend(0 if front else dim for front, dim in zip(fronts, found))
        return [
            at_front(out, dim, axis.size) if front else out
            for front, out, dim in zip(fronts, outs, found)
        ]

    avals = [_batched(aval, dim, axis.size) for aval, dim in zip(closed.in_avals, dims)]
    return ClosedJaxpr(*trace_to_jaxpr(program, avals)), tuple(places)


def _batched(aval, dim, size):
    if dim is None:
        return aval
    return aval.update(shape=(*aval.shape[:dim], size, *aval.shape[dim:]))


def types_given(cts, out_avals=()):
    """Return the abstract value of each cotangent, and None for zero."""
    return tuple([None if ct is None else typeof(ct) for ct in cts])


def types_declared(cts, out_avals):
    """Return the abstract value of each result with a cotangent, and None for zero."""
    return tuple([ct if ct is None else a for ct, a in zip(cts, out_avals)])


@remembered
def transpose_program(closed, linear, given, instantiate=False):
    """Return the program that runs a linear one backwards.

    Args:
      closed: a `ClosedJaxpr`.
      linear: for each input whether the program is linear in it.
      given: what `types_given` or `types_declared` says of the results' cotangents.
      instantiate: whether zero cotangents of linear inputs are written out: one flag,
        or one for each of them.

    Returns:
      A `ClosedJaxpr` from the values of the other inputs, and the cotangents that are
      given, to cotangents of linear inputs; and a tuple that says of which.
    """
    known_avals, linear_avals = partition(linear, closed.in_avals)
    places, count = list(map(Linear, linear_avals)), len(known_avals)
    wanted, arrives = flags_of(instantiate, len(linear_avals)), []

    def program(*flat):
        operands = merge(linear, flat[:count], places)
        cts = spread(given, flat[count:])
        cts = backward_pass(closed.jaxpr, closed.consts, operands, cts)
        cts = [
            dense_cotangent(aval, ct) if dense else ct
            for dense, aval, ct in zip(wanted, linear_avals, only(linear, cts))
        ]
        arrives.extend(ct is not None for ct in cts)
        return [ct for ct in cts if ct is not None]

    avals = known_avals + only(given, given)
    return ClosedJaxpr(*trace_to_jaxpr(program, avals)), tuple(arrives)


def has_effects(jaxpr):
    """Return whether running a jaxpr does more than return results.

    Args:
      jaxpr: a `Jaxpr` or a `ClosedJaxpr`.
    """
    return any(map(acts, jaxpr.eqns))


def acts(eqn):
    """Return whether an equation does more than return results."""
    return effect_rules[eqn.primitive](eqn)


def _acts_inside(eqn):
    """Return whether a program in an equation does more than return results."""
    return any(map(has_effects, jaxprs_in_params(eqn.params)))


# Rules ``rule(eqn)`` say whether an equation does more than return results.
effect_rules: RuleTable = RuleTable("effect", default=_acts_inside)


# Rules ``rule(eqn, used)`` return an equation without those results that are not used,
# and without what only they need: a primitive that contains a program has one.
dce_rules: RuleTable = RuleTable("dce", default=lambda eqn, used: eqn)


def dce_jaxpr(jaxpr, used):
    """Return a jaxpr without the equations, and constants, that nothing needs.

    Args:
      jaxpr: a `Jaxpr`.
      used: for each result whether it is needed; the others go.
    """
    outvars = only(used, jaxpr.outvars)
    needed, eqns = set(_variables(outvars)), []
    for eqn in reversed(jaxpr.eqns):
        mask = tuple([var in needed for var in eqn.outvars])
        if not any(mask) and not acts(eqn):
            continue
        less = dce_rules[eqn.primitive](eqn, mask)
        if not all(mask) or len(less.invars) < len(eqn.invars):
            eqn = less  # otherwise programs that are one object stay one
        eqns.append(eqn)
        needed.update(_variables(eqn.invars))
    constvars = [var for var in jaxpr.constvars if var in needed]
    return jaxpr.replace(constvars=constvars, outvars=outvars, eqns=eqns[::-1])


def _variables(atoms):
    return [atom for atom in atoms if not isinstance(atom, Literal)]


def prune(closed):
    """Return `dce_program` of a program whose results are all needed."""
    return dce_program(closed, (True,) * len(closed.outvars))


@remembered
def dce_program(closed, used):
    """Return a program without what its `used` results do not need.

    Args:
      closed: a `ClosedJaxpr`.
      used: for each result whether it is needed; the others go.

    Returns:
      A `ClosedJaxpr` with the same inputs, and a tuple: for each of them whether it is
      still needed.
    """
    jaxpr = dce_jaxpr(closed.jaxpr, used)
    read = {x for eqn in jaxpr.eqns for x in eqn.invars}.union(jaxpr.outvars)
    return with_consts(jaxpr, closed), tuple([var in read for var in jaxpr.invars])


def _needed(jaxpr, consts):
    """Return a jaxpr without what no result needs, and the constants that it reads."""
    less = dce_jaxpr(jaxpr, (True,) * len(jaxpr.outvars))
    values = dict(zip(jaxpr.constvars, consts))
    return less, [values[var] for var in less.constvars]


needed_part.value = _needed
