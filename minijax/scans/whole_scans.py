"""A scan as one equation: its program outside of `jit`, its dead code, its costs.

Reference: ``jax.lax.scan``, which compiles its loop in any case.
"""

# Made from chapters/16_scan_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax.arrays.avals import typeof
from minijax.batching.rules import move_axis
from minijax.callbacks.batching import one_by_one, vmap_methods
from minijax.core import impl_rules
from minijax.forgetting.programs import dce_rules, merge, only, partition, stage
from minijax.forgetting.rematerialisation import (
    Keeping,
    keep_results,
    keep_rules,
    keeping,
    keeps,
)
from minijax.forgetting.remembering import remembered
from minijax.jaxprs.jaxpr import ClosedJaxpr, Var
from minijax.jitting.compilation import backend_name, run_program
from minijax.jitting.costs import cost_analysis, cost_rules
from minijax.scans.primitive import (
    bind_scan,
    row_aval,
    scan_p,
    stacked_aval,
    step_by_step,
)
from minijax.scans.steps import groups, needed_step


@remembered
def program_of_scan(step, length, reverse, num_consts, num_carry, unroll):
    """Return the program of one equation, a scan.

    Args:
      step: the `ClosedJaxpr` of a step.
      length, reverse, num_consts, num_carry, unroll: the other parameters of the scan.
    """
    how = {"length": length, "reverse": reverse, "unroll": unroll}
    consts, carry, rows = groups(step.in_avals, num_consts, num_carry)
    xs = [stacked_aval(row, length) for row in rows]
    step = ClosedJaxpr(step.jaxpr, step.consts)  # a memory must not hold its key

    def program(*args):
        operands = groups(args, num_consts, num_carry)
        return sum(bind_scan(step, *operands, **how), [])

    return stage(program, consts + carry + xs)


_parameters = "length", "reverse", "num_consts", "num_carry", "unroll"


def _run_whole(*args, jaxpr, **params):
    if backend_name() == "interpreter":
        return step_by_step(*args, jaxpr=jaxpr, **params)
    key = [params[name] for name in _parameters]
    return run_program(program_of_scan(jaxpr, *key), args, name="scan")


impl_rules.supersede(scan_p, step_by_step, _run_whole)


def one_per_step(primitive, axis, args, dims, params):
    """Bind a primitive in a scan over the examples."""
    is_mapped = [dim is not None for dim in dims]
    consts, examples = partition(is_mapped, args)
    dims = only(is_mapped, dims)
    examples = [move_axis(x, dim, 0) for x, dim in zip(examples, dims)]

    def step(*flat):
        shared, rows = groups(flat, len(consts))
        return primitive.bind(*merge(is_mapped, shared, rows), **params)

    avals = [typeof(x) for x in consts] + [row_aval(typeof(x)) for x in examples]
    how = {"length": axis.size, "reverse": False, "unroll": 1}
    _, ys = bind_scan(stage(step, avals), consts, [], examples, **how)
    return ys, [0] * len(ys)


vmap_methods.supersede("sequential", one_by_one, one_per_step)


def _dce(eqn, used):
    sizes = eqn.params["num_consts"], eqn.params["num_carry"]
    step, kept, used = needed_step(eqn.params["jaxpr"], tuple(used), *sizes)
    consts, carry, _ = groups(kept, *sizes)
    changes = {"jaxpr": step, "num_consts": sum(consts), "num_carry": sum(carry)}
    return eqn.replace(
        invars=only(kept, eqn.invars),
        outvars=only(used, eqn.outvars),
        params=eqn.params | changes,
    )


def _cost(eqn):
    once = cost_analysis(eqn.params["jaxpr"].jaxpr)
    return {kind: eqn.params["length"] * amount for kind, amount in once.items()}


dce_rules[scan_p] = _dce
cost_rules[scan_p] = _cost


def _keep(eqn, policy):
    step = keeping(eqn.params["jaxpr"], policy)
    if keeps(policy, eqn) or not step.kept:
        return keep_results(eqn, policy)
    length, params = eqn.params["length"], eqn.params
    rows = [Var(stacked_aval(var.aval, length)) for var in step.kept]
    now = eqn.replace(
        outvars=[*eqn.outvars, *rows], params=params | {"jaxpr": step.now}
    )
    again = eqn.replace(
        invars=[*eqn.invars, *rows], params=params | {"jaxpr": step.again}
    )
    again = dce_rules[scan_p](again, (True,) * len(again.outvars))
    return Keeping(now, again, rows)


keep_rules[scan_p] = _keep
