"""How a scan runs: in emitted Python, as a whole outside of jit, one by one.

References: ``jax.lax.scan``, ``jax.lax.scan``, which compiles its loop in any case,
``jax.custom_batching.sequential_vmap``, ``jax.extend.core.primitives``.
"""

# Made from chapters/16_scan_rest.md by `make chapter`;
# edit the chapter, not this file.

from collections import Counter
from collections.abc import Callable

from minijax.arrays.array import typeof
from minijax.batching.vmap import move_one_axis
from minijax.callbacks.host_calls import sequential_vmap_rule, vmap_methods
from minijax.control_flow.conditionals import cond_p as cond_p
from minijax.control_flow.while_loops import while_p as while_p
from minijax.core import impl_rules
from minijax.custom_derivatives.custom_vmap import custom_vmap
from minijax.jaxprs.jaxpr import ClosedJaxpr, Var
from minijax.jitting.compilation import backend_name, run_program
from minijax.jitting.stages import cost_analysis, cost_rules
from minijax.python_backend.codegen import python_rules
from minijax.python_backend.codegen_rules import assign_outputs
from minijax.pytrees.tree_util import tree_flatten, tree_map
from minijax.rematerialization.caching import weakref_memoize
from minijax.rematerialization.jaxpr_transforms import (
    dce_rules,
    merge_lists,
    partition_list,
    select_where,
    trace_flat_fun,
)
from minijax.rematerialization.remat import (
    RematSplit,
    policy_allows_saving,
    remat_partial_eval,
    remat_partial_eval_rules,
    save_outputs,
)
from minijax.scans.loops import scan
from minijax.scans.scan import bind_scan, scan_impl, stack_aval, unstacked_aval
from minijax.scans.scan import scan_p as scan_p
from minijax.scans.step import (
    cached_per_function,
    dce_scan_body,
    map_body,
    split_list_by_sizes,
)

# A scan in emitted Python: a for loop, and an array for each of the ys.


def write_scan(emitter, eqn, operands, results):
    """Write a scan as a loop.

    Args:
      emitter: the `PythonEmitter` of the function.
      eqn: the equation.
      operands: expressions of its operands.
      results: the names of its results.
    """
    program, num_carry = eqn.params["jaxpr"], eqn.params["num_carry"]
    consts, carry, xs = split_list_by_sizes(
        operands, eqn.params["num_consts"], num_carry
    )
    state, ys = split_list_by_sizes(results, num_carry)
    state = [emitter.name("carry") if name == "_" else name for name in state]
    emitter.assign(state, carry)
    stacks, twins = _write_stacks(emitter, eqn, ys)
    step = emitter.name("step")
    with emitter.block(f"for {step} in {_range_of_rows(**eqn.params)}:"):
        rows = _write_rows(emitter, program, xs, step)
        carry, rows = split_list_by_sizes(
            emitter.inline(program, consts + state + rows), num_carry
        )
        for y, place in stacks.items():
            emitter.line(f"{y}[{step}] = {rows[place]}")
        assign_outputs(emitter, program, carry, state)
    emitter.assign(*twins)


python_rules[scan_p] = write_scan


def _range_of_rows(length, reverse, **params):
    return f"range({length - 1}, -1, -1)" if reverse else f"range({length})"


def _write_stacks(emitter, eqn, ys):
    """Write empty arrays for the ys.

    Returns:
      A dictionary from their names to the places of the rows that go there; and two
      lists of names, of ys that would be filled with the same rows, and of the others.
    """
    num_carry, stacks, first = eqn.params["num_carry"], {}, {}
    rows = eqn.params["jaxpr"].outvars[num_carry:]
    for place, (y, row, var) in enumerate(zip(ys, rows, eqn.outvars[num_carry:])):
        if y != "_" and first.setdefault(row, y) == y:
            dtype = emitter.dtype(var.aval.dtype)
            emitter.line(f"{y} = np.empty({var.aval.shape}, {dtype})")
            stacks[y] = place
    twins = [(y, first[row]) for y, row in zip(ys, rows) if y not in ("_", *stacks)]
    return stacks, [*zip(*twins)] or [(), ()]


def _write_rows(emitter, program, xs, step):
    """Write what takes the row of a step, and return expressions of the rows."""
    uses = Counter([*program.outvars, *(x for eqn in program.eqns for x in eqn.invars)])
    rows = []
    for x, var in zip(xs, program.invars[len(program.invars) - len(xs) :]):
        rows.append(f"{x}[{step}]")
        if uses[var] > 1:
            row = emitter.name("row")
            emitter.line(f"{row} = {rows.pop()}")
            rows.append(row)
    return rows


# A scan as one equation: its program outside of `jit`, its dead code, its costs.


@weakref_memoize
def program_of_scan(step, length, reverse, num_consts, num_carry, unroll):
    """Return the program of one equation, a scan.

    Args:
      step: the `ClosedJaxpr` of a step.
      length, reverse, num_consts, num_carry, unroll: the other parameters of the scan.
    """
    how = {"length": length, "reverse": reverse, "unroll": unroll}
    consts, carry, rows = split_list_by_sizes(step.in_avals, num_consts, num_carry)
    xs = [stack_aval(row, length) for row in rows]
    step = ClosedJaxpr(step.jaxpr, step.consts)  # a memory must not hold its key

    def program(*args):
        operands = split_list_by_sizes(args, num_consts, num_carry)
        return sum(bind_scan(step, *operands, **how), [])

    return trace_flat_fun(program, consts + carry + xs)


_parameters = "length", "reverse", "num_consts", "num_carry", "unroll"


def _run_whole(*args, jaxpr, **params):
    if backend_name() == "interpreter":
        return scan_impl(*args, jaxpr=jaxpr, **params)
    key = [params[name] for name in _parameters]
    return run_program(program_of_scan(jaxpr, *key), args, name="scan")


impl_rules.supersede(scan_p, scan_impl, _run_whole)


def one_per_step(primitive, axis, args, dims, params):
    """Bind a primitive in a scan over the examples."""
    is_mapped = [dim is not None for dim in dims]
    consts, examples = partition_list(is_mapped, args)
    dims = select_where(is_mapped, dims)
    examples = [move_one_axis(x, dim, 0) for x, dim in zip(examples, dims)]

    def step(*flat):
        shared, rows = split_list_by_sizes(flat, len(consts))
        return primitive.bind_all(*merge_lists(is_mapped, shared, rows), **params)

    avals = [typeof(x) for x in consts] + [unstacked_aval(typeof(x)) for x in examples]
    how = {"length": axis.size, "reverse": False, "unroll": 1}
    _, ys = bind_scan(trace_flat_fun(step, avals), consts, [], examples, **how)
    return ys, [0] * len(ys)


vmap_methods.supersede("sequential", sequential_vmap_rule, one_per_step)


def _dce(eqn, used):
    sizes = eqn.params["num_consts"], eqn.params["num_carry"]
    step, kept, used = dce_scan_body(eqn.params["jaxpr"], tuple(used), *sizes)
    consts, carry, _ = split_list_by_sizes(kept, *sizes)
    changes = {"jaxpr": step, "num_consts": sum(consts), "num_carry": sum(carry)}
    return eqn.replace(
        invars=select_where(kept, eqn.invars),
        outvars=select_where(used, eqn.outvars),
        params=eqn.params | changes,
    )


def _cost(eqn):
    once = cost_analysis(eqn.params["jaxpr"].jaxpr)
    return {kind: eqn.params["length"] * amount for kind, amount in once.items()}


dce_rules[scan_p] = _dce
cost_rules[scan_p] = _cost


def _keep(eqn, policy):
    step = remat_partial_eval(eqn.params["jaxpr"], policy)
    if policy_allows_saving(policy, eqn) or not step.residuals:
        return save_outputs(eqn, policy)
    length, params = eqn.params["length"], eqn.params
    rows = [Var(stack_aval(var.aval, length)) for var in step.residuals]
    now = eqn.replace(
        outvars=[*eqn.outvars, *rows], params=params | {"jaxpr": step.known}
    )
    again = eqn.replace(
        invars=[*eqn.invars, *rows], params=params | {"jaxpr": step.staged}
    )
    again = dce_rules[scan_p](again, (True,) * len(again.outvars))
    return RematSplit(now, again, rows)


remat_partial_eval_rules[scan_p] = _keep


# Functions whose batch is a loop over the examples.


def sequential_vmap(f: Callable) -> custom_vmap:
    """Return a function whose batch is a loop over the examples.

    Args:
      f: a function of trees of arrays.

    Reference: ``jax.custom_batching.sequential_vmap``.
    """
    f = custom_vmap(f)

    @f.def_vmap
    def rule(axis_size, in_batched, *args):
        leaves, tree = tree_flatten(list(args))
        batched = tree.flatten_up_to(in_batched)
        shared, rows = partition_list(batched, leaves)

        def one(row):
            return f(*tree.unflatten(merge_lists(batched, shared, row)))

        out = scan(cached_per_function(map_body, one), (), rows)[1]
        return out, tree_map(lambda leaf: True, out)

    return f


# Primitives of branches and loops.
