"""Checkify's rules for equations that hold programs."""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

from functools import partial

import numpy as np

from minijax import lax
from minijax._registry import Registry
from minijax.arrays.avals import typeof
from minijax.branches.conditionals import cond_p
from minijax.branches.while_loops import parts_of_while, while_p
from minijax.experimental.checkify.checking import checkified
from minijax.experimental.checkify.checks import Error, check_p
from minijax.experimental.checkify.error_values import Failure
from minijax.forgetting.programs import stage
from minijax.forgetting.rematerialisation import remat_p
from minijax.jaxprs.jaxpr import jaxpr_as_fun
from minijax.jitting.primitive import jit_p
from minijax.jitting.shardings import on_one_device
from minijax.own_rules.cotangent_rules import custom_vjp_call_p
from minijax.own_rules.flat_functions import CallRule
from minijax.own_rules.tangent_rules import custom_jvp_call_p
from minijax.pytrees.treedefs import tree_flatten
from minijax.scans.primitive import bind_scan, scan_p
from minijax.scans.steps import groups

PROGRAM_RULES: dict = Registry()


def _discharge(checks, eqn, *operands):
    """Record what a `check` says, if it is of a kind that is wanted."""
    error = eqn.params["err_tree"].unflatten(operands)
    wanted = {kind.__name__ for kind in checks.wanted}
    kept = {n: f for n, f in error.failures.items() if n.partition("(")[0] in wanted}
    checks.take(Error(kept, error.causes))
    return []


PROGRAM_RULES[check_p] = _discharge


def _checked_call(checks, eqn, *operands):
    inner = checkified(eqn.params["jaxpr"], checks.wanted)
    params = on_one_device(eqn.params) | {"jaxpr": inner.program}
    error, outs = inner.split(eqn.primitive.bind(*operands, **params))
    checks.take(error)
    return outs


PROGRAM_RULES[jit_p] = PROGRAM_RULES[remat_p] = _checked_call


class WithFailures(CallRule):
    """A rule of a call, for one that returns failures in front of its results.

    Args:
      rule: the rule.
      kinds: the types of the failures.
    """

    def __init__(self, rule, kinds):
        self.rule, self.kinds, self.name = rule, kinds, rule.name
        self.dims_of, self.placed = rule.dims_of, rule.placed

    def without(self):
        """Return failures that have not happened."""
        return [lax.full(each.shape, 0, each.dtype) for each in self.kinds]


class JvpWithFailures(WithFailures):
    """The rule of a `custom_jvp` function; a derivative takes it at its word."""

    def __call__(self, primals, tangents):
        outs, slopes = self.rule(primals, tangents)
        return self.without() + outs, [None] * len(self.kinds) + slopes


class FwdWithFailures(WithFailures):
    """The forward rule of a `custom_vjp` function."""

    def __call__(self, primals, in_zeros):
        outs, residuals = self.rule(primals, in_zeros)
        return self.without() + outs, residuals


class BwdWithFailures(WithFailures):
    """The backward rule of a `custom_vjp` function."""

    def __call__(self, residuals, cts):
        return self.rule(residuals, cts[len(self.kinds) :])


WRAPPED = {"jvp": JvpWithFailures, "fwd": FwdWithFailures, "bwd": BwdWithFailures}


def _own_rules(checks, eqn, *operands):
    inner = checkified(eqn.params["call_jaxpr"], checks.wanted)
    kinds = inner.program.out_avals[: inner.tree.num_leaves]
    params = eqn.params | {"call_jaxpr": inner.program}
    for name in WRAPPED.keys() & params.keys():
        params[name] = WRAPPED[name](params[name], kinds)
    error, outs = inner.split(eqn.primitive.bind(*operands, **params))
    checks.take(error)
    return outs


PROGRAM_RULES[custom_jvp_call_p] = PROGRAM_RULES[custom_vjp_call_p] = _own_rules


def none_failed(kinds):
    """Return failures of some types, none of which has happened."""

    def one(kind):
        zeros = [lax.full(x.shape, 0, x.dtype) for x in kind.payload]
        return Failure(lax.full((), False), np.int32(-1), tuple(zeros))

    return {name: one(kind) for name, kind in kinds.items()}


def collected(before, *errors):
    """Return failures, with those of error values behind them, each kind once."""
    found = dict(before)
    for error in errors:
        for name, failure in error.failures.items():
            found[name] = found[name].followed_by(failure)
    return found


def _checked_branch(inner, kinds, *operands):
    error, outs = inner.split(jaxpr_as_fun(inner.program)(*operands))
    failures = none_failed({n: k for n, k in kinds.items() if n not in error.failures})
    return tree_flatten({**failures, **error.failures})[0] + outs


def _checked_cond(checks, eqn, index, *operands, branches):
    inner = [checkified(branch, checks.wanted) for branch in branches]
    kinds = {name: kind for each in inner for name, kind in each.kinds.items()}
    avals = branches[0].in_avals
    programs = [stage(partial(_checked_branch, each, kinds), avals) for each in inner]
    outs = cond_p.bind(index, *operands, branches=tuple(programs))
    leaves, tree = tree_flatten(kinds)
    causes = {code: cause for each in inner for code, cause in each.causes.items()}
    checks.take(Error(tree.unflatten(outs[: len(leaves)]), causes))
    return outs[len(leaves) :]


PROGRAM_RULES[cond_p] = lambda checks, eqn, *operands: _checked_cond(
    checks, eqn, *operands, **eqn.params
)


def _checked_scan(checks, eqn, *operands, jaxpr, num_consts, num_carry, **how):
    inner = checkified(jaxpr, checks.wanted)
    consts, carry, xs = groups(operands, num_consts, num_carry)
    leaves, tree = tree_flatten(none_failed(inner.kinds))

    def step(*flat):
        given, slots, rest = groups(flat, num_consts, len(leaves))
        error, outs = inner.split(jaxpr_as_fun(inner.program)(*given, *rest))
        return tree_flatten(collected(tree.unflatten(slots), error))[0] + outs

    types = inner.program.out_avals[: len(leaves)]
    given, rest = groups(jaxpr.in_avals, num_consts)
    step = stage(step, [*given, *types, *rest])
    carried, ys = bind_scan(step, consts, [*leaves, *carry], xs, **how)
    checks.take(Error(tree.unflatten(carried[: len(leaves)]), inner.causes))
    return carried[len(leaves) :] + ys


PROGRAM_RULES[scan_p] = lambda checks, eqn, *operands: _checked_scan(
    checks, eqn, *operands, **eqn.params
)
BATCHED = (
    "Checkify does not support batched while-loops (checkify-of-vmap-of-while). \n"
    "Hint: if possible, move the vmap to the outer level to get "
    "vmap-of-checkify-of-while."
)


def _checked_while(
    checks, *operands, cond_nconsts, cond_jaxpr, body_nconsts, body_jaxpr
):
    if cond_jaxpr.out_avals[0].shape:
        raise ValueError(BATCHED)
    test, body = (checkified(each, checks.wanted) for each in (cond_jaxpr, body_jaxpr))
    leaves, tree = tree_flatten(none_failed({**test.kinds, **body.kinds}))
    parts = partial(parts_of_while, cond_nconsts=cond_nconsts)
    test_consts, body_consts, carry = parts(operands, body_nconsts=body_nconsts)
    count, consts = len(leaves), [*test_consts, *body_consts]

    def going(*flat):
        given, _, carry = groups(flat, cond_nconsts, count)
        return jaxpr_as_fun(cond_jaxpr)(*given, *carry)

    def step(*flat):
        given, slots, carry = groups(flat, len(consts), count)
        asked, used = groups(given, cond_nconsts)
        in_body, carry = body.split(jaxpr_as_fun(body.program)(*used, *carry))
        in_test, _ = test.split(jaxpr_as_fun(test.program)(*asked, *carry))
        found = collected(tree.unflatten(slots), in_body, in_test)
        return tree_flatten(found)[0] + carry

    checks.take(test.split(jaxpr_as_fun(test.program)(*test_consts, *carry))[0])
    types = [typeof(x) for x in (*consts, *leaves)]
    carried = body_jaxpr.out_avals
    asked = [*types[:cond_nconsts], *types[len(consts) :], *carried]
    outs = while_p.bind(
        *test_consts, *consts, *leaves, *carry,
        cond_nconsts=cond_nconsts,
        cond_jaxpr=stage(going, asked),
        body_nconsts=len(consts),
        body_jaxpr=stage(step, [*types, *carried]),
    )  # fmt: skip
    checks.take(Error(tree.unflatten(outs[:count]), {**test.causes, **body.causes}))
    return outs[count:]


PROGRAM_RULES[while_p] = lambda checks, eqn, *operands: _checked_while(
    checks, *operands, **eqn.params
)
