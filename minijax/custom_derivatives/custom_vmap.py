"""Custom vmap rules: functions with a rule of their own for batches.

Reference: ``jax.custom_batching.custom_vmap``.
"""

# Made from chapters/11_own_rules_rest.md by `make chapter`;
# edit the chapter, not this file.

import functools
from collections.abc import Callable
from typing import Any

from minijax.arrays.array import shape_rules, typeof
from minijax.arrays.dtypes import is_inexact
from minijax.batching.vmap import batch_dim_to_front, move_one_axis, vmap_rules
from minijax.core import Primitive, impl_rules
from minijax.custom_derivatives.custom_jvp_vjp import (
    callee_rules,
    trace_to_closed_jaxpr,
)
from minijax.custom_derivatives.flat_functions import (
    CustomRuleFunction,
    flatten_call,
    fun_name_of,
    raise_not_array,
    resolve_kwargs,
    unpack_pair,
)
from minijax.diagnostics.tracebacks import api_boundary
from minijax.forward_mode.jvp import instantiate_tangents, jvp_flat_fun, jvp_rules
from minijax.jaxprs.jaxpr import jaxpr_as_fun
from minijax.pytrees.tree_operations import treedef_tuple
from minijax.pytrees.tree_util import tree_flatten, tree_structure
from minijax.reverse_mode.backward_pass import transpose_rules
from minijax.reverse_mode.transpose_rules import transpose_call_eqn

custom_vmap_p = Primitive("custom_vmap_call")
custom_vmap_p.multiple_results = True
impl_rules[custom_vmap_p] = lambda *args, call, **_: jaxpr_as_fun(call)(*args)
shape_rules[custom_vmap_p] = lambda *avals, call, **_: call.out_avals
callee_rules[custom_vmap_p] = lambda eqn: eqn.params["call"]


def _vmap(axis, args, dims, rule, **params):
    fronts = [x if d is None else move_one_axis(x, d, 0) for x, d in zip(args, dims)]
    outs, mapped = rule(axis.size, [d is not None for d in dims], fronts)
    return outs, [0 if flag else None for flag in mapped]


def _transpose(cts, *operands, call, **params):
    return transpose_call_eqn(call, operands, cts)


vmap_rules[custom_vmap_p], transpose_rules[custom_vmap_p] = _vmap, _transpose


class BatchRule:
    """A user's rule for batches, as a function of flat lists.

    Args:
      rule: called as ``rule(size, in_mapped, *args)``; returns a pair of trees.
      in_tree: the structure of what the function closes over, and of its arguments.
      out_tree: that of its result.
    """

    def __init__(self, rule, in_tree, out_tree):
        self.rule, self.in_tree, self.out_tree = rule, in_tree, out_tree

    def __repr__(self):
        return repr(self.rule)

    def __call__(self, size, mapped, args):
        """Return the list of results, and for each whether it is mapped.

        Raises:
          ValueError: if the trees do not fit, or if a value that the function closes
            over is mapped.
        """
        closed_over, mapped = self.in_tree.unflatten(mapped)
        if any(closed_over):
            raise ValueError(
                "A batch reaches a custom_vmap function through a value that it closes "
                "over, so its rule would not see the batch. Try passing the "
                "closed-over value into the custom_vmap function as an argument, and "
                "adapting the rule."
            )
        _, args = self.in_tree.unflatten(args)
        name, wanted = fun_name_of(self.rule), "the result and which parts are mapped"
        found = self.rule(size, [*mapped], *args)
        out, flags = unpack_pair(found, f"The custom vmap rule {name}", wanted)
        raise_not_array(f"The custom vmap rule {name}", out)
        outs, tree = tree_flatten(out)
        flags, flag_tree = tree_flatten(flags)
        self._check(tree, flag_tree)
        return outs, flags

    def _check(self, tree, flag_tree):
        name = getattr(self.rule, "__name__", "<unnamed rule>")
        if tree != flag_tree:
            raise ValueError(
                "structure of output value and output batching specification returned "
                f"by custom vmap rule ({name}) do not match.\nOutput values: {tree}\n"
                f"Batching spec: {flag_tree}"
            )
        if tree != self.out_tree:
            raise ValueError(
                f"structure of output returned by custom vmap rule ({name}) does not "
                "match that of original custom-vmapped function.\n"
                f"Original output: {self.out_tree}\nRule output: {tree}"
            )


class custom_vmap:
    """A function with a rule of its own for batches.

    Args:
      fun: a function of trees of arrays. It is written down at each call.

    Raises:
      AttributeError: at a call, if no rule was defined.
      TypeError: at a call, if its arguments do not fit.
      ValueError: in reverse mode; see `custom_vjp` for a function that has both.

    Reference: ``jax.custom_batching.custom_vmap``.
    """

    vmap_rule: Callable | None = None

    def __init__(self, fun: Callable):
        functools.update_wrapper(self, fun)
        self.fun = fun

    __getattr__ = CustomRuleFunction.__getattr__

    def def_vmap(self, vmap_rule: Callable) -> Callable:
        """Define the rule, and return it.

        Args:
          vmap_rule: called as ``vmap_rule(size, in_mapped, *args)``: the number of
            examples, a list with a tree of booleans for each argument, and the
            arguments, with the examples in front where they are mapped. Returns the
            pair of the result and a tree of booleans for it.
        """
        self.vmap_rule = vmap_rule
        return vmap_rule

    @api_boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        args = resolve_kwargs("custom_vmap", self.fun, args, kwargs)
        if self.vmap_rule is None:
            raise AttributeError(
                f"No batching rule defined for custom_vmap function "
                f"{fun_name_of(self.fun)} using def_vmap."
            )
        leaves, function = flatten_call("custom_vmap", self.fun, args, ())
        call, consts = trace_to_closed_jaxpr(function, leaves)
        in_tree = treedef_tuple([tree_structure(consts), function.in_tree])
        trees = {"in_tree": in_tree, "out_tree": function.out_tree}
        rule = BatchRule(self.vmap_rule, **trees)
        outs = custom_vmap_p.bind(*consts, *leaves, call=call, rule=rule, **trees)
        return function.out_tree.unflatten(outs)


class TangentBatchRule:
    """The rule for batches of values with their tangents.

    Args:
      rule: that for values, on flat lists.
      moving: for each argument whether it has a tangent.
      moves: for each result whether it has one.
    """

    def __init__(self, rule, moving, moves):
        self.rule, self.moving, self.moves = rule, moving, moves

    def __call__(self, size, mapped, args):
        """Return values and tangents, and for each whether it is mapped."""
        either = [x or y for x, y in zip(mapped, self._of_tangents(mapped, False))]
        wanted = either + select_masked(self.moving, either)
        args = [
            batch_dim_to_front(x, 0 if there else None, size) if want else x
            for x, there, want in zip(args, mapped, wanted)
        ]
        found = []

        def values(*primals):
            outs, flags = self.rule(size, either, primals)
            found.extend(flags)
            return outs

        primals = args[: len(either)]
        outs, slopes = jvp_flat_fun(values, primals, self._of_tangents(args, None))
        slopes = select_masked(self.moves, instantiate_tangents(outs, slopes))
        return outs + slopes, found + select_masked(self.moves, found)

    def _of_tangents(self, flat, missing):
        """Return one item for each argument: that of its tangent, if it has one."""
        tangents = iter(flat[len(self.moving) :])
        return [next(tangents) if moves else missing for moves in self.moving]


def select_masked(mask, items):
    """Return the list of those items for which `mask` is true."""
    return [item for flag, item in zip(mask, items) if flag]


def _jvp(primals, tangents, call, rule, in_tree, out_tree):
    moving = [is_inexact(typeof(x).dtype) for x in primals]
    moves = [is_inexact(aval.dtype) for aval in call.out_avals]
    count = len(primals)

    def program(*flat):
        slopes = iter(flat[count:])
        given = [next(slopes) if moves else None for moves in moving]
        outs, slopes = jvp_flat_fun(jaxpr_as_fun(call), flat[:count], given)
        return outs + select_masked(moves, instantiate_tangents(outs, slopes))

    flat = [*primals, *select_masked(moving, instantiate_tangents(primals, tangents))]
    twin = in_tree.unflatten([0 if flag else None for flag in moving])
    twin_out = out_tree.unflatten([0 if flag else None for flag in moves])
    outs = custom_vmap_p.bind(
        *flat,
        call=trace_to_closed_jaxpr(program, flat)[0],
        rule=TangentBatchRule(rule, moving, moves),
        in_tree=treedef_tuple([in_tree, tree_structure(twin)]),
        out_tree=treedef_tuple([out_tree, tree_structure(twin_out)]),
    )
    slopes = iter(outs[len(moves) :])
    return outs[: len(moves)], [next(slopes) if flag else None for flag in moves]


jvp_rules[custom_vmap_p] = _jvp
