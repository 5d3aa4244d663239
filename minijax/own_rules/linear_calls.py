"""Custom transposes: linear functions with a transpose of their own.

Reference: ``jax.custom_derivatives.linear_call``.
"""

# Made from chapters/11_own_rules_rest.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Callable
from typing import Any

from minijax.arrays.array import shape_rules
from minijax.batching.rules import at_front, vmap_rules
from minijax.batching.trace import vmap_flat
from minijax.core import Primitive, impl_rules
from minijax.diagnostics.tracebacks import guarded
from minijax.forward.rules import add_tangents, instantiate, jvp_rules
from minijax.forward.trace import jvp_flat
from minijax.jaxprs.jaxpr import jaxpr_as_fun
from minijax.own_rules.cotangent_rules import at_place
from minijax.own_rules.flat_functions import mapped, take_apart
from minijax.own_rules.function_calls import callee_rules, write_down
from minijax.pytrees.call_checks import zeros_of_tangent
from minijax.pytrees.treedefs import tree_flatten
from minijax.reverse.transposition import transpose_rules

linear_call_p = Primitive("linear_call")


def bind_linear(there, back, residuals, operands):
    """Call a linear function.

    Args:
      there, back: functions of two flat lists that return one: the function, and its
        transpose.
      residuals, operands: lists of arrays; `there` is linear in the second.
    """
    count = len(residuals)
    flat = [*residuals, *operands]
    callee, consts = write_down(lambda *xs: there(xs[:count], xs[count:]), flat)
    return linear_call_p.bind(
        *consts,
        *flat,
        callee=callee,
        num_callee_consts=len(consts),
        num_res=count,
        transpose_thunk=back,
    )


def _linear_transpose(cts, *operands, callee, num_res, transpose_thunk, **params):
    first = params["num_callee_consts"]
    end = first + num_res

    def there(residuals, xs):
        return jaxpr_as_fun(callee)(*operands[:first], *residuals, *xs)

    pairs = zip(callee.out_avals, cts)
    cts = [zeros_of_tangent(aval) if ct is None else ct for aval, ct in pairs]
    found = bind_linear(transpose_thunk, there, operands[first:end], cts)
    return [None] * end + found


impl_rules[linear_call_p] = lambda *args, callee, **_: jaxpr_as_fun(callee)(*args)
shape_rules[linear_call_p] = lambda *avals, callee, **_: callee.out_avals
callee_rules[linear_call_p] = lambda eqn: eqn.params["callee"]
transpose_rules[linear_call_p] = _linear_transpose


def _linear_jvp(primals, tangents, **params):
    end = params["num_callee_consts"] + params["num_res"]
    outs, slopes = linear_call_p.bind(*primals, **params), [None] * len(primals)
    if any(tangent is not None for tangent in tangents[end:]):
        moving = instantiate(primals[end:], tangents[end:])
        slopes = linear_call_p.bind(*primals[:end], *moving, **params)
    if any(tangent is not None for tangent in tangents[:end]):
        still = [None] * len(primals[end:])
        program = jaxpr_as_fun(params["callee"])
        _, others = jvp_flat(program, primals, [*tangents[:end], *still])
        slopes = list(map(add_tangents, slopes, others))
    return outs, slopes


def _linear_vmap(axis, args, dims, callee, transpose_thunk, num_callee_consts, num_res):
    end = num_callee_consts + num_res
    program, _ = write_down(mapped(jaxpr_as_fun(callee), dims, axis), args)

    def back(residuals, cts):
        def one(*xs):
            return transpose_thunk(xs[:num_res], xs[num_res:])

        places = [*dims[num_callee_consts:end], *[0] * len(cts)]
        found, places = vmap_flat(one, [*residuals, *cts], places, axis)
        fronts = [at_front(x, dim, axis.size) for x, dim in zip(found, places)]
        return list(map(at_place, fronts, dims[end:]))

    outs = linear_call_p.bind(
        *args,
        callee=program,
        num_callee_consts=num_callee_consts,
        num_res=num_res,
        transpose_thunk=back,
    )
    return outs, [0] * len(outs)


jvp_rules[linear_call_p], vmap_rules[linear_call_p] = _linear_jvp, _linear_vmap


@guarded
def linear_call(
    fun: Callable, fun_transpose: Callable, residual_args: Any, linear_args: Any
) -> Any:
    """Call a linear function that has a transpose of its own.

    Args:
      fun: called as ``fun(residual_args, linear_args)``, linear in the second.
      fun_transpose: called as ``fun_transpose(residual_args, ct)``, with the cotangent
        of the result; returns that of `linear_args`.
      residual_args, linear_args: trees of arrays.

    Raises:
      TypeError: in reverse mode, if `fun_transpose` returns another structure.

    Reference: ``jax.custom_derivatives.linear_call``.
    """
    residuals, res_tree = tree_flatten(residual_args)
    operands, in_tree = tree_flatten(linear_args)
    args = residual_args, linear_args
    _, function = take_apart("linear_call", fun, args, ())

    def there(residuals, xs):
        return function(*residuals, *xs)

    def back(residuals, cts):
        ct = function.out_tree.unflatten(cts)
        found, tree = tree_flatten(fun_transpose(res_tree.unflatten(residuals), ct))
        if tree != in_tree:
            raise TypeError(
                "transpose output pytree structure must match that of linear inputs, "
                f"got output structure {tree} and input structure {in_tree}."
            )
        return found

    outs = bind_linear(there, back, residuals, operands)
    return function.out_tree.unflatten(outs)
