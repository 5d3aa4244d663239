"""A call of a program, as a primitive with a rule in every table.

Reference: ``jit_p`` in ``jax.extend.core.primitives``.
"""

# Made from chapters/12_jit.md by `make chapter`;
# edit the chapter, not this file.
# Amended in chapters/12_jit_rest.md: _write, _impl, _partial_eval (2221461b).
# Amended in chapters/36_replicas_rest.md: _impl (d176233b).

from minijax.arrays.array import shape_rules
from minijax.batching.vmap import higher_order_primitives, vmap_rules
from minijax.core import impl_rules, set_current_trace
from minijax.custom_derivatives.custom_jvp_vjp import callee_rules, transparent_calls
from minijax.forward_mode.jvp import jvp_rules
from minijax.jaxprs.jaxpr import Var
from minijax.jaxprs.pretty_printer import pp_eqn_default, pp_eqn_rules
from minijax.jaxprs.types import Hook
from minijax.jitting.compilation import (
    JitPrimitive,
    requested_devices,
    run_program,
    with_single_device,
)
from minijax.linearization.linearize import partial_eval_rules
from minijax.rematerialization.jaxpr_transforms import (
    convert_constvars_closed,
    dce_closed_jaxpr,
    dce_rules,
    partition_list,
)
from minijax.rematerialization.partial_eval import partial_eval_jaxpr
from minijax.rematerialization.remat import (
    batch_call_rule,
    dce_call_rule,
    jvp_call_rule,
    transpose_call_rule,
)
from minijax.reverse_mode.backward_pass import transpose_rules

jit_p = JitPrimitive("jit")  # a Primitive with a list of results


higher_order_primitives.add(jit_p)  # it has a program inside,
transparent_calls.add(jit_p)  # which may be written in its place,
callee_rules[jit_p] = lambda eqn: eqn.params["jaxpr"]  # and this is the one


def check_jaxpr_operands(name, expected, given):
    """Raise if operands are not of the types that a program was written for.

    Args:
      name: of the program.
      expected: the `ShapedArray` of its inputs.
      given: those of the operands.
    """
    kinds = [[(a.shape, a.dtype) for a in avals] for avals in (expected, given)]
    if kinds[0] != kinds[1]:
        wanted, got = (", ".join(map(str, avals)) for avals in (expected, given))
        raise TypeError(f"{name} is a program for ({wanted}); it was given ({got}).")


def _shape(*avals, jaxpr, name, **params):
    check_jaxpr_operands(name, jaxpr.in_avals, avals)
    return jaxpr.out_avals


shape_rules[jit_p] = _shape


def call_alike(names, inner, outer):
    """Give variables the names of others, except those that have one; each once."""
    given = set()
    for mine, theirs in zip(inner, outer):
        new = isinstance(mine, Var) and mine not in names
        if new and isinstance(theirs, Var) and theirs not in given:
            names[mine] = names[theirs]
            given.add(theirs)


def _write(eqn, writing):
    """Write a call; the program's variables are called like the caller's."""
    program, names = eqn.params["jaxpr"].jaxpr, writing.names
    shown = "donated_invars", "in_shardings", "jaxpr", "keep_unused", "out_shardings"
    params = {key: eqn.params[key] for key in ("name", *shown) if key in eqn.params}
    if program not in writing.shared:
        call_alike(names, program.invars, eqn.invars)
        call_alike(names, program.outvars, eqn.outvars)
    return pp_eqn_default(eqn, writing, params)


pp_eqn_rules[jit_p] = _write


# What returns a program that brings operands and results where parameters of its call
# say it: a function of the program and these, ``in_shardings`` and ``out_shardings``.
program_sharding_hook = Hook(lambda closed, params: closed)


def _impl(*args, jaxpr, name, backend=None, **params):
    device = next(requested_devices(params), None)
    placement = device and device.committed.mesh_placement
    jaxpr = program_sharding_hook.value(jaxpr, params)
    return run_program(jaxpr, args, backend, name, placement)


impl_rules[jit_p] = _impl


dce_rules[jit_p] = dce_call_rule()
jvp_rules[jit_p] = jvp_call_rule(jit_p)
vmap_rules[jit_p] = batch_call_rule(jit_p)
transpose_rules[jit_p] = transpose_call_rule(jit_p)


def _bind_less(args, params):
    """Bind a call without those results that are operands, and return all results."""
    program = params["jaxpr"]
    places = {var: i for i, var in enumerate(program.invars)}
    new = tuple([out not in places for out in program.outvars])
    if not all(new):
        params = params | {"jaxpr": dce_closed_jaxpr(program, new)[0]}
    outs = iter(jit_p.bind(*args, **params))
    found = [places.get(out) for out in program.outvars]
    return [next(outs) if place is None else args[place] for place in found]


def _per_operand(params, choose):
    """Return parameters with the donated inputs that `choose` makes of those before."""
    params = with_single_device(params)
    if "donated_invars" not in params:
        return params
    donated = map(bool, choose(params["donated_invars"]))
    rest = {key: params[key] for key in params if key != "donated_invars"}
    donated = tuple(donated)
    return rest | {"donated_invars": donated} if any(donated) else rest


def _partial_eval(trace, primitive, args, in_unknown, params):
    parts = partial_eval_jaxpr(params["jaxpr"], tuple(in_unknown))
    params = _per_operand(params, lambda given: ())
    known_args, unknown_args = partition_list(in_unknown, args)
    with set_current_trace(trace.parent):
        known_outs = _bind_less(known_args, params | {"jaxpr": parts.known})
    residuals = parts.residuals(known_args, known_outs)
    with set_current_trace(trace.tape):
        operands = [*parts.unknown.consts, *residuals, *unknown_args]
        unknown = convert_constvars_closed(parts.unknown)
        unknown_outs = primitive.bind_all(*operands, **params | {"jaxpr": unknown})
    return parts.results(known_outs, unknown_outs)


dce_rules.supersede(jit_p, dce_rules[jit_p], dce_call_rule(_per_operand))


jvp_rules.supersede(jit_p, jvp_rules[jit_p], jvp_call_rule(jit_p, _per_operand))


transpose_rules.supersede(
    jit_p,
    transpose_rules[jit_p],
    transpose_call_rule(jit_p, per_operand=_per_operand),
)


partial_eval_rules[jit_p] = _partial_eval
